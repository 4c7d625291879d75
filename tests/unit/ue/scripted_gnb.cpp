#include "scripted_gnb.h"

#include <nlohmann/json.hpp>
#include <stdexcept>

namespace pallas::ue {

using Json = nlohmann::json;

// Appending step by step: g++ 12 warns of chains of + on temporaries where there is nothing.
std::string word(TokenIndex i) {
  std::string text = "w";
  text += std::to_string(i);
  text += ' ';
  return text;
}

std::string words(TokenIndex n) {
  std::string text;
  for (TokenIndex i = 0; i < n; ++i) text += word(i);
  return text;
}

ScriptedGnb::ScriptedGnb(Loop& loop, std::string node, std::uint16_t port) : name(std::move(node)) {
  auto listening = LocalServer::listen(
      loop.io, {"127.0.0.1", port},
      {[this](Exchange e, const IncomingRequest& request) { on_request(e, request); },
       [this](Exchange e) { gone.push_back(e); }},
      {});
  if (!listening) throw std::runtime_error(listening.error().describe());
  server = std::move(*listening);
}

void ScriptedGnb::session(Exchange e, std::uint64_t epoch) {
  server->begin_stream(e, "text/event-stream");
  const Json data{{"session", "00c0ffee"},    {"node", name},
                  {"epoch", epoch},           {"seed", 7},
                  {"resume_token", "secret"}, {"model", "tiny"},
                  {"prompt_tokens", 4},       {"completion_id", "chatcmpl-7"},
                  {"created", 1700000000},    {"compatibility", Json::object()}};
  std::string text = "event: pallas.session\ndata: ";
  text += data.dump();
  text += "\n\n";
  server->write(e, text);
}

void ScriptedGnb::role(Exchange e) {
  server->write(e,
                "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\","
                "\"content\":\"\"},\"finish_reason\":null}]}\n\n");
}

void ScriptedGnb::token(Exchange e, TokenIndex i, std::uint64_t epoch, const std::string& by) {
  const Json choice{{"index", 0}, {"delta", {{"content", word(i)}}}};
  const Json data{
      {"choices", Json::array({choice})},
      {"pallas", {{"i", i}, {"id", 100 + i}, {"by", by.empty() ? name : by}, {"epoch", epoch}}}};
  std::string text = "id: ";
  text += std::to_string(epoch);
  text += '.';
  text += std::to_string(i);
  text += "\ndata: ";
  text += data.dump();
  text += "\n\n";
  server->write(e, text);
}

void ScriptedGnb::tokens(Exchange e, TokenIndex from, TokenIndex to, std::uint64_t epoch) {
  for (TokenIndex i = from; i < to; ++i) token(e, i, epoch);
}

void ScriptedGnb::event(Exchange e, const std::string& type, const std::string& node) {
  std::string text = "event: ";
  text += type;
  text += "\ndata: {\"node\":\"";
  text += node;
  text += "\"}\n\n";
  server->write(e, text);
}

void ScriptedGnb::done(Exchange e, TokenIndex count) {
  server->write(e,
                "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n");
  const Json usage{{"prompt_tokens", 4}, {"completion_tokens", count}};
  const Json data{{"choices", Json::array()}, {"usage", usage}};
  std::string text = "data: ";
  text += data.dump();
  text += "\n\ndata: [DONE]\n\n";
  server->write(e, text);
  server->end(e);
}

void ScriptedGnb::refuse(Exchange e, int status, const std::string& code, std::uint64_t current) {
  const Json error{{"error",
                    {{"message", "refused: " + code},
                     {"type", "invalid_request_error"},
                     {"param", nullptr},
                     {"code", code},
                     {"current", current}}}};
  server->reply(e, status, "application/json", error.dump());
}

void ScriptedGnb::on_request(Exchange e, const IncomingRequest& request) {
  if (request.method == "DELETE") {
    deletes.push_back(request);
    server->reply(e, 200, "application/json", "{\"deleted\":true}");
  } else if (request.path() == "/v1/models") {
    server->reply(e, 200, "application/json",
                  "{\"object\":\"list\",\"data\":[{\"id\":\"tiny\",\"object\":\"model\"}]}");
  } else if (request.path().ends_with("/attach")) {
    attaches.push_back(request);
    last = e;
    on_attach(e, request);
  } else {
    opens.push_back(request);
    last = e;
    on_open(e, request);
  }
}

}  // namespace pallas::ue
