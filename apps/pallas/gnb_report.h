#pragma once
// What a gNB reports of one handover.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace pallas::app {

// One element of GET /v1/handovers, what of it is used here. Times of phases are those at the
// target, in milliseconds from the attach.
struct GnbReport {
  Epoch epoch;
  std::string scheme, source, target, recovery, error;
  bool prepared = false, exact = false, relay = false, oracle = false;
  std::optional<double> request_ms;  // HandoverRequest came; negative: before
  std::optional<double> fronts_met_ms, status_ms, covered_ms, first_token_ms;
  double window_s = 0, early_s = 0, expected_sit_s = 0;
  std::uint64_t tokens_total = 0, tokens_recomputed = 0, tokens_replayed = 0;
  std::uint64_t tokens_received = 0, tokens_overlap = 0, residual_tokens = 0, bytes = 0;
  // Of the KV, at the attach and fraction_deadline_ms later; none of a gNB that does not tell.
  std::optional<double> fraction_at_attach, fraction_at_deadline;
  std::uint64_t shadow_tokens = 0, shadow_agreed = 0, shadow_differed = 0;
  bool shadow_used = false;
  // Of one that began on a part of the KV, and what became of it.
  struct Partial {
    double fraction = 0;
    std::uint64_t positions = 0, tokens = 0, tokens_replayed = 0;
    bool second_slot = false;
    std::optional<double> complete_ms;
  };
  std::optional<Partial> partial;
  std::string json;  // all of it, where it came from a gNB, for `pallas trace`
};
// The source's report of a handover.
struct SourceReport {
  Epoch epoch;
  std::string json;
};

// Members that are missing or of another type keep their defaults: other versions have others.
GnbReport parse_gnb_report(const nlohmann::json& object);
// Elements about `session` in the answer of GET /v1/handovers; kParse when it is not that.
Result<std::vector<GnbReport>> parse_gnb_reports(const std::string& json, const SessionId& session);
// The sources' reports in the same answer.
Result<std::vector<SourceReport>> parse_source_reports(const std::string& json,
                                                       const SessionId& session);
// As a gNB writes it; parse_gnb_report() reads it back.
std::string to_json(const GnbReport& report);

}  // namespace pallas::app
