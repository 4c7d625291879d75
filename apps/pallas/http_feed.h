#pragma once
// Reports to gNBs, and to a UE's local endpoint, over HTTP (docs/ran-feed.md).

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "driver.h"
#include "ue/gnb_client.h"

namespace pallas::app {

// JSON bodies of the RAN feed.
std::string to_json(const mobility::PositionReport& report);
std::string to_json(const mobility::Prediction& prediction);
std::string to_json(const mobility::HandoverEvent& event);

class HttpFeed : public RanFeed {
 public:
  // `ue_endpoint`: where POST /v1/handovers tells a UE about its radio; none: it is told otherwise.
  // `access`: to the gNBs; the UE's endpoint wants none.
  HttpFeed(boost::asio::io_context& io, const std::map<NodeId, ue::Address>& gnbs,
           std::optional<ue::Address> ue_endpoint, ue::HttpAccess access = {});

  void position(const NodeId& gnb, const mobility::PositionReport& report) override;
  void prediction(const NodeId& gnb, const mobility::Prediction& prediction) override;
  void handover(const NodeId& gnb, const mobility::HandoverEvent& event) override;
  void ue_handover(const NodeId& target, const mobility::HandoverEvent& event) override;

  struct Failures {
    std::uint64_t count = 0;
    std::string first;  // which report, and what was answered
  };
  const Failures& failures() const { return failures_; }

 private:
  // Reports of one receiver leave one after the other: a later one must not overtake.
  struct Queue {
    struct Entry {
      const char* path;
      std::string body;
      bool newest_only;
      int tries = 0;
    };
    std::string who;
    ue::Address at;
    ue::GnbClient* client;
    std::deque<Entry> waiting = {};
    bool busy = false;
  };

  void post(Queue& queue, const char* path, std::string body, bool newest_only);
  void next(Queue& queue);

  std::map<NodeId, Queue> gnbs_;
  std::optional<Queue> ue_;
  Failures failures_;
  ue::GnbClient client_, ue_client_;  // last: their handlers refer to the above
};

}  // namespace pallas::app
