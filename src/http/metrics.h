#pragma once
// GET /metrics: Prometheus' text format, version 0.0.4. Every figure is read when it is asked for,
// so that none can disagree with what it shows. Labels are names from the configuration, never
// anything of a client.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "node/node.h"

namespace pallas::http {

// A figure that another part shows, e.g. one a peer link. Samples of one name stand together.
struct Metric {
  std::string name;  // "pallas_peer_goodput_mbps"
  std::string help;
  bool counter = false;  // only grows; else a gauge
  std::vector<std::pair<std::string, std::string>> labels;
  double value = 0;
};
using MetricSource = std::function<std::vector<Metric>()>;

// Of the HTTP side itself.
struct HttpStats {
  std::uint64_t connections_open = 0, connections_accepted = 0, connections_refused = 0;
  std::uint64_t requests = 0;
  std::uint64_t responses_2xx = 0, responses_4xx = 0, responses_5xx = 0;
  std::uint64_t streams_open = 0;
  std::uint64_t unsent_bytes = 0;
  std::uint64_t slow_readers_closed = 0;
  std::uint64_t timeouts = 0;
  std::uint64_t ran_messages_taken = 0, ran_messages_refused = 0;
};

std::string metrics_text(const node::NodeStats& node, const HttpStats& http, double slo_ms,
                         std::vector<Metric> others);

}  // namespace pallas::http
