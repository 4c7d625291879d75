#pragma once
// Shared by the parsers of this folder: one OpenAI request object, wherever it stands. Includes
// nlohmann; for .cpp files only.

#include "http/json_reader.h"
#include "http/request_parser.h"

namespace pallas::http {

ApiError to_api_error(const FieldError& error);

struct RequestFields {
  wire::SessionParams params;  // without seed, ids and tokens of the border
  std::optional<std::uint64_t> seed;
  std::vector<TokenId> prompt;
  bool stream = false;
};
// `path` stands before the names of fields in errors.
Parsed<RequestFields> read_request(Endpoint endpoint, const Json& body, const std::string& path,
                                   const ParserContext& context);

}  // namespace pallas::http
