#pragma once
// How a gNB's process ends. SIGTERM or POST /v1/drain: nothing new is taken, sessions move to a
// peer or end, and at the limit what is left is cut off with a word to its client. SIGINT, or a
// second SIGTERM: cut off at once.

#include <functional>
#include <optional>

#include "base/clock.h"
#include "gnb_config.h"
#include "http/server.h"
#include "log.h"
#include "node/node.h"

namespace pallas::app {

class Drainer {
 public:
  // `stop` ends the loop; called once. All outlive this object.
  Drainer(const GnbConfig& config, node::Node& node, http::Server& server, Log& log, Clock& clock,
          std::function<void()> stop);

  void on_signal(int number);
  Status order(const http::DrainOrder& order);
  std::optional<Duration> ends_in() const;

  // Sessions that were cut off.
  std::uint32_t left() const { return left_; }

 private:
  void begin(const NodeId& to, Duration limit);
  void look();
  void cut_off();
  void wait_for_clients(TimePoint until);
  void end();

  const GnbConfig& config_;
  node::Node& node_;
  http::Server& server_;
  Log& log_;
  Clock& clock_;
  std::function<void()> stop_;
  Timer timer_;
  std::optional<TimePoint> ends_at_;
  bool watched_ = false;  // somebody asks by HTTP how far it is
  bool ending_ = false;
  std::uint32_t left_ = 0;
};

}  // namespace pallas::app
