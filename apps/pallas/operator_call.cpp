#include "operator_call.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "operator_access.h"

namespace pallas::app {
namespace {

constexpr Duration kPatience = std::chrono::seconds(10);

// What an OpenAI error object says.
std::string words_of(const ue::HttpReply& reply) {
  const auto json = nlohmann::json::parse(reply.body, nullptr, false);
  if (json.is_object() && json.contains("error") && json["error"].is_object()) {
    const auto message = json["error"].value("message", std::string());
    if (!message.empty()) return message;
  }
  return "answered with " + std::to_string(reply.status);
}

Errc code_of(int status) {
  switch (status) {
    case 400:
      return Errc::kInvalidArgument;
    case 401:
      return Errc::kUnauthorized;
    case 404:
      return Errc::kNotFound;
    case 409:
      return Errc::kOutOfOrder;
    case 503:
      return Errc::kResourceExhausted;
    default:
      return Errc::kInternal;
  }
}

}  // namespace

Result<OperatorCall> OperatorCall::to(EventLoop& loop, const std::string& at,
                                      const std::string& gnb_ca, const std::string& key_file) {
  auto address = ue::parse_address(at);
  if (!address) return fail(Errc::kInvalidArgument, "'" + at + "': " + address.error().message);
  auto access = operator_access(gnb_ca, key_file);
  if (!access) return Failure(access.error());
  return OperatorCall(loop, std::move(*address), std::move(*access));
}

Result<nlohmann::json> OperatorCall::operator()(const std::string& method,
                                                const std::string& target,
                                                const std::string& body) const {
  std::optional<Result<ue::HttpReply>> reply;
  ue::GnbClient client(loop_->io(), ue::HttpTimeouts{}, access_);
  client.fetch(at_, {method, target, {}, body},
               [&](Result<ue::HttpReply> answer) { reply = std::move(answer); });
  const auto answered = [&] { return reply.has_value(); };
  if (auto s = loop_->wait(answered, kPatience, method + " " + target); !s) {
    return Failure(s.error());
  }
  if (!*reply) return Failure(reply->error());
  const ue::HttpReply& got = **reply;
  if (got.status < 200 || got.status > 299) return fail(code_of(got.status), words_of(got));
  auto json = nlohmann::json::parse(got.body, nullptr, false);
  if (!json.is_object()) return fail(Errc::kParse, "the gNB's answer is no JSON object");
  return json;
}

}  // namespace pallas::app
