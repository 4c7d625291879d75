#include "drainer.h"

#include <algorithm>
#include <csignal>

namespace pallas::app {
namespace {

constexpr Duration kLook = std::chrono::milliseconds(50);
// What is written already may still be on its way to a client.
constexpr Duration kLastWords = std::chrono::milliseconds(500);
// Whoever asks how far it is hears that it is done.
constexpr Duration kSeen = std::chrono::milliseconds(600);

}  // namespace

Drainer::Drainer(const GnbConfig& config, node::Node& node, http::Server& server, Log& log,
                 Clock& clock, std::function<void()> stop)
    : config_(config),
      node_(node),
      server_(server),
      log_(log),
      clock_(clock),
      stop_(std::move(stop)),
      timer_(clock) {}

void Drainer::on_signal(int number) {
  if (ending_) return end();
  log_.write(LogLevel::kInfo, "ending", {{"signal", std::to_string(number)}});
  if (number != SIGTERM || ends_at_) return cut_off();
  // A peer that was never up is no reason to stay.
  const NodeId to = node_.drain(config_.drain_to) ? config_.drain_to : NodeId();
  begin(to, config_.drain_limit);
}

Status Drainer::order(const http::DrainOrder& order) {
  if (auto begun = node_.drain(order.to); !begun) return begun;
  watched_ = true;
  if (!ends_at_ || order.limit) begin(order.to, order.limit.value_or(config_.drain_limit));
  return {};
}

void Drainer::begin(const NodeId& to, Duration limit) {
  static_cast<void>(node_.drain(to));
  ends_at_ = clock_.now() + limit;
  const node::DrainStatus status = node_.drain_status();
  log_.write(LogLevel::kInfo, "draining",
             {{"sessions", std::to_string(status.left())},
              {"to", to.value},
              {"limit_s", std::to_string(to_seconds(limit).count())}});
  if (!ending_) look();
}

std::optional<Duration> Drainer::ends_in() const {
  if (!ends_at_) return std::nullopt;
  return std::max(*ends_at_ - clock_.now(), Duration{0});
}

void Drainer::look() {
  if (node_.drain_status().left() == 0 && server_.idle()) {
    ending_ = true;
    if (!watched_) return end();
    timer_.arm(kSeen, [this] { end(); });
    return;
  }
  if (clock_.now() >= *ends_at_) return cut_off();
  timer_.arm(std::min(kLook, std::max(*ends_at_ - clock_.now(), Duration{0})), [this] { look(); });
}

void Drainer::cut_off() {
  ending_ = true;
  static_cast<void>(node_.drain(node_.drain_status().to));  // takes nothing from here on
  left_ = node_.drain_status().left();
  node_.cut_off();
  wait_for_clients(clock_.now() + kLastWords);
}

void Drainer::wait_for_clients(TimePoint until) {
  if (server_.idle() || clock_.now() >= until) return end();
  timer_.arm(kLook, [this, until] { wait_for_clients(until); });
}

void Drainer::end() {
  timer_.cancel();
  if (stop_) std::exchange(stop_, nullptr)();
}

}  // namespace pallas::app
