#pragma once
// A driver's reports: to the gNBs by HTTP, to a UE in this process by a call.

#include <map>
#include <string>

#include "http_feed.h"
#include "ue/follower.h"

namespace pallas::app {

class FollowerFeed : public HttpFeed {
 public:
  FollowerFeed(boost::asio::io_context& io, const std::map<NodeId, ue::Address>& gnbs,
               ue::Follower& follower)
      : HttpFeed(io, gnbs, std::nullopt), follower_(follower) {}
  void ue_handover(const NodeId&, const mobility::HandoverEvent& event) override {
    // Without an interruption by the radio, execution and completion are one instant.
    if (event.phase == mobility::HandoverPhase::kCompleted) {
      if (auto s = follower_.on_cell(event.target); !s) trouble = s.error().message;
    }
  }
  std::string trouble;

 private:
  ue::Follower& follower_;
};

}  // namespace pallas::app
