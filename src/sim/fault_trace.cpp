#include "sim/fault_trace.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace pallas::sim {

std::string summary_of(const wire::Message& message) {
  std::string text(wire::name_of(message));
  const auto number = [&text](const char* name, std::uint64_t value) {
    text += std::string(" ") + name + " " + std::to_string(value);
  };
  const auto attempt = [&](const Attempt& a) {
    text += " attempt " + a.owner.value + "/" + std::to_string(a.boot.value) + "/" +
            std::to_string(a.counter);
  };
  std::visit(
      [&](const auto& m) {
        using M = std::decay_t<decltype(m)>;
        if constexpr (requires { m.epoch.value; }) number("epoch", m.epoch.value);
        if constexpr (requires { m.current.value; }) number("current", m.current.value);
        if constexpr (std::is_same_v<M, wire::TokenUpdate>) {
          if (m.attempt) attempt(*m.attempt);
        } else if constexpr (requires { m.attempt.counter; }) {
          attempt(m.attempt);
        }
        if constexpr (requires { m.first; }) number("first", m.first);
        if constexpr (requires { m.ids.size(); }) number("ids", m.ids.size());
        if constexpr (requires { m.count; }) number("rows", m.count);
        if constexpr (requires { m.n; }) number("n", m.n);
        if constexpr (requires { m.front; }) number("front", m.front);
        if constexpr (requires { m.message; }) text += " (" + m.message + ")";
        if constexpr (requires { m.cause; }) text += " " + std::string(wire::to_string(m.cause));
        if constexpr (requires { m.finish; }) {
          if (m.finish != wire::FinishReason::kNone) {
            text += " finish " + std::string(wire::to_string(m.finish));
          }
        }
        if constexpr (requires { m.relay; }) {
          if (m.relay) text += " relay";
        }
        if constexpr (requires { m.plan.relay; }) {
          text += " plan " + m.plan.scheme + (m.plan.relay ? " relay" : "");
        }
        if constexpr (requires { m.stop; }) {
          if (m.stop) text += " stop";
        }
        if constexpr (std::is_same_v<M, wire::Moved>) text += " to " + m.node.value;
        if constexpr (std::is_same_v<M, wire::StaleEpoch>) text += " held by " + m.node.value;
      },
      message);
  return text;
}

std::vector<std::string> last_lines(const std::vector<TraceLine>& trace, int ue, TimePoint until,
                                    std::size_t most) {
  std::vector<std::string> lines;
  for (auto line = trace.rbegin(); line != trace.rend() && lines.size() < most; ++line) {
    if (line->at > until || (ue >= 0 && line->ue >= 0 && line->ue != ue)) continue;
    std::array<char, 32> time{};
    std::snprintf(time.data(), time.size(), "%11.3f ms  ", to_ms(line->at.time_since_epoch()));
    std::string text(time.data());
    text += line->gnb >= 0 ? "gnb-" + std::to_string(line->gnb) : std::string("     ");
    if (line->ue >= 0) text += " ue-" + std::to_string(line->ue + 1);
    lines.push_back(text + "  " + line->what);
  }
  std::reverse(lines.begin(), lines.end());
  return lines;
}

}  // namespace pallas::sim
