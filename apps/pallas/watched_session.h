#pragma once
// A session of this program's own, as it watches it.

#include <string>
#include <vector>

#include "base/units.h"
#include "ue/follower.h"

namespace pallas::app {

struct WatchedSession {
  std::vector<ue::TokenRecord> tokens;
  bool over = false;
  std::string failure;
  std::uint64_t expected_tokens = 0;
  TokenPosition prompt_tokens = 0;
  SessionId session;

  // `on_text`, where given, sees text as it comes and which gNB made it. `this` outlives the
  // session.
  ue::FollowerCallbacks callbacks(
      std::function<void(const NodeId& by, const std::string& text)> on_text = {});
};

}  // namespace pallas::app
