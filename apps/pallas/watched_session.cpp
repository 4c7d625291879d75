#include "watched_session.h"

#include <utility>

namespace pallas::app {

ue::FollowerCallbacks WatchedSession::callbacks(
    std::function<void(const NodeId&, const std::string&)> on_text) {
  ue::FollowerCallbacks callbacks;
  callbacks.on_session = [this](const ue::SessionEvent& event) {
    session = event.session;
    prompt_tokens = event.prompt_tokens;
  };
  callbacks.on_token = [this, on_text](const ue::TokenRecord& token) {
    tokens.push_back(token);
    if (on_text) on_text(token.by, token.text);
  };
  callbacks.on_finish = [this, on_text](const std::string&, const std::string& text,
                                        const std::optional<ue::Usage>& usage) {
    over = true;
    expected_tokens = usage ? usage->completion_tokens : tokens.size();
    if (on_text && !tokens.empty()) on_text(tokens.back().by, text);
  };
  callbacks.on_error = [this](const ue::ApiError& error) {
    over = true;
    failure = error.message;
  };
  return callbacks;
}

}  // namespace pallas::app
