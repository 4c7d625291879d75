#pragma once
// The JSON that passes between a UE and a gNB (docs/client-api.md), to and from native types. What
// comes from a gNB is checked here: ranges, sizes, types.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ue/sse_parser.h"
#include "ue/stream_types.h"

namespace pallas::ue {

// A client's OpenAI request, made fit for a gNB.
struct PreparedRequest {
  std::string body;            // always streams and always asks for usage
  bool stream = false;         // what the client itself wants
  bool include_usage = false;  // likewise
};
// kInvalidArgument naming the field; everything else in the body is the gNB's to judge.
Result<PreparedRequest> prepare_request(std::string_view body);

// One event of a resumable stream. kParse, naming the field, for one that is not as documented;
// kUnsupported for a token without `pallas`: the server is no gNB.
Result<StreamEvent> parse_stream_event(const SseEvent& event);

// The error of an HTTP answer; readable for any body.
ApiError parse_api_error(int status, std::string_view body);
// The id of the first model that GET /v1/models lists.
Result<std::string> parse_first_model(int status, std::string_view body);
// {"error": {...}}
std::string to_json(const ApiError& error);

// The body of POST /v1/sessions/{id}/attach, whole, so that a gNB that knows nothing can go on.
std::string attach_body(Epoch epoch, const NodeId& last_node, Endpoint endpoint,
                        std::string_view request, const SessionEvent& session,
                        const std::vector<TokenRecord>& records);

// The path of the request that opens a session.
std::string_view path_of(Endpoint endpoint);

}  // namespace pallas::ue
