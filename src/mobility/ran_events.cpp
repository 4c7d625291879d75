#include "mobility/ran_events.h"

#include <array>
#include <utility>

namespace pallas::mobility {
namespace {

constexpr std::array<std::pair<HandoverPhase, std::string_view>, 6> kPhases{{
    {HandoverPhase::kPreparation, "preparation"},
    {HandoverPhase::kExecution, "execution"},
    {HandoverPhase::kCompleted, "completed"},
    {HandoverPhase::kRejected, "rejected"},
    {HandoverPhase::kCancelled, "cancelled"},
    {HandoverPhase::kReestablished, "reestablished"},
}};

}  // namespace

std::string_view to_string(HandoverPhase phase) {
  for (const auto& [value, name] : kPhases) {
    if (value == phase) return name;
  }
  return "unknown";
}

std::optional<HandoverPhase> parse_handover_phase(std::string_view text) {
  for (const auto& [value, name] : kPhases) {
    if (name == text) return value;
  }
  return std::nullopt;
}

}  // namespace pallas::mobility
