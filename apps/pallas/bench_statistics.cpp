#include "bench_statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "session/handover_meter.h"

namespace pallas::app {
namespace {

TimePoint at(double ms) {
  return TimePoint(to_duration(Seconds(ms / 1000)));
}

std::vector<double> joined(std::initializer_list<const std::vector<double>*> parts) {
  std::vector<double> all;
  for (const auto* part : parts) all.insert(all.end(), part->begin(), part->end());
  return all;
}

// SIT and gap at a moment of a stream that stays where it is.
HopRecord ordinary_hop(const std::vector<double>& at_ms, double executed_ms) {
  const auto next = std::upper_bound(at_ms.begin(), at_ms.end(), executed_ms);
  session::HandoverMeter meter(
      at(executed_ms), next == at_ms.begin() ? std::nullopt : std::optional(at(*(next - 1))));
  for (auto it = next; it != at_ms.end() && !meter.settled(); ++it) meter.add(at(*it), true);
  HopRecord hop;
  hop.executed_ms = executed_ms;
  hop.sit_ms = meter.sit_ms();
  hop.gap_ms = meter.gap_ms();
  return hop;
}

// Where two runs of one request begin to differ; the shorter's end when they do not.
std::size_t common_prefix(const std::vector<TokenId>& a, const std::vector<TokenId>& b) {
  const std::size_t size = std::min(a.size(), b.size());
  std::size_t i = 0;
  while (i < size && a[i] == b[i]) ++i;
  return i;
}

// The number of tokens that had arrived at `ms`.
std::size_t arrived(const std::vector<double>& at_ms, double ms) {
  return static_cast<std::size_t>(std::upper_bound(at_ms.begin(), at_ms.end(), ms) - at_ms.begin());
}

bool same_ids(const MoverRecord& mover, const MoverRecord& control, std::size_t hop) {
  std::size_t bound = std::min(mover.ids.size(), control.ids.size());
  if (hop + 1 < mover.hops.size()) {
    bound = std::min(bound, arrived(mover.at_ms, mover.hops[hop + 1].executed_ms));
  }
  return common_prefix(mover.ids, control.ids) >= bound;
}

// Hops of a mover, or for a control those it would have made.
std::vector<HopRecord> hops_of(const RunRecord& run, const MoverRecord& mover, bool control) {
  if (!control) return mover.hops;
  std::vector<HopRecord> hops;
  for (const double ms : run.planned_ms) hops.push_back(ordinary_hop(mover.at_ms, ms));
  return hops;
}

std::vector<Cut> cuts_of(const RunRecord& run, const std::vector<HopRecord>& hops, bool control) {
  std::vector<Cut> cuts;
  for (const auto& hop : hops) {
    Cut cut{hop.executed_ms, hop.executed_ms};
    if (control) {
      cut.begin_ms -= run.available_s * 1000;
    } else if (hop.gnb && hop.gnb->request_ms && *hop.gnb->request_ms < 0) {
      cut.begin_ms += *hop.gnb->request_ms;
    }
    cuts.push_back(cut);
  }
  return cuts;
}

// The residents' cuts: from the first mover's preparation to the last mover's handover.
std::vector<Cut> widest(const std::vector<std::vector<Cut>>& of_movers) {
  std::vector<Cut> cuts;
  for (const auto& mover : of_movers) {
    for (std::size_t i = 0; i < mover.size(); ++i) {
      if (i == cuts.size()) cuts.push_back(mover[i]);
      cuts[i].begin_ms = std::min(cuts[i].begin_ms, mover[i].begin_ms);
      cuts[i].executed_ms = std::max(cuts[i].executed_ms, mover[i].executed_ms);
    }
  }
  return cuts;
}

// What the runs of one scheme in one setting add up to.
struct Sums {
  Intervals own, residents;
  std::vector<double> control, control_preparation;
  std::vector<double> worst_sit, worst_accuracy;  // of each run
};

class Summarizer {
 public:
  Summarizer(const BenchPlan& plan, const BenchRecords& records) : plan_(plan), records_(records) {}

  SchemeSummary of(std::size_t setting, std::optional<std::size_t> scheme) const {
    SchemeSummary s;
    s.scheme = scheme ? plan_.schemes[*scheme].label : kControl;
    s.setting = plan_.settings[setting];
    Sums sums;
    for (const auto& planned : plan_.runs) {
      if (planned.setting == setting && planned.scheme == scheme) add_run(planned, s, sums);
    }
    s.worst_user_sit_ms = distribution(sums.worst_sit).mean;
    s.worst_user_accuracy = distribution(sums.worst_accuracy).mean;
    if (scheme) s.utility_threshold = plan_.schemes[*scheme].utility.threshold;
    s.before = distribution(sums.own.before);
    s.preparation = distribution(sums.own.preparation);
    s.during = distribution(sums.own.during());
    s.after = distribution(sums.own.after);
    s.control = distribution(scheme ? sums.control : sums.own.all());
    s.control_preparation = distribution(scheme ? sums.control_preparation : sums.own.preparation);
    const auto& there = sums.residents;
    s.residents_before = distribution(there.before);
    s.residents_during = distribution(there.preparation);
    s.residents_after = distribution(joined({&there.handover, &there.after}));
    add_up(s);
    s.step_ms = step_of(setting);
    return s;
  }

 private:
  void add_run(const PlannedRun& planned, SchemeSummary& s, Sums& sums) const {
    const auto* run = records_.run(plan_.key(planned));
    if (run == nullptr) return;
    const auto* control = records_.run(plan_.control_key(planned));
    const bool stays = !planned.scheme;
    ++s.runs;
    s.goodput_mbps = run->goodput_mbps;
    s.available_s = run->available_s;
    std::vector<std::vector<Cut>> cuts;
    std::vector<double> sits, accuracies;
    for (std::size_t m = 0; m < run->movers.size(); ++m) {
      const auto& mover = run->movers[m];
      const auto* other =
          control != nullptr && m < control->movers.size() ? &control->movers[m] : nullptr;
      const auto hops = hops_of(*run, mover, stays);
      cuts.push_back(cuts_of(*run, hops, stays));
      sums.own.add(cut_intervals(mover.at_ms, cuts.back()));
      if (other != nullptr) add_control(cut_intervals(other->at_ms, cuts.back()), sums);
      for (std::size_t h = 0; h < hops.size(); ++h) {
        HandoverRow row{s.scheme,
                        s.setting,
                        run->goodput_mbps,
                        run->available_s,
                        planned.round,
                        m,
                        h,
                        hops[h],
                        {},
                        {},
                        {}};
        if (other != nullptr) {
          row.control_gap_ms = ordinary_hop(other->at_ms, run->planned_ms[h]).gap_ms;
          row.ids_ok = stays || same_ids(mover, *other, h);
        }
        if (row.seen.sit_ms) sits.push_back(*row.seen.sit_ms);
        if (!stays && row.seen.gnb && row.seen.gnb->fraction_at_deadline) {
          const auto& utility = plan_.schemes[*planned.scheme].utility;
          row.accuracy = utility.value(*row.seen.gnb->fraction_at_deadline);
          accuracies.push_back(*row.accuracy);
        }
        s.rows.push_back(std::move(row));
      }
    }
    if (const auto longest = distribution(sits).max) sums.worst_sit.push_back(*longest);
    if (!accuracies.empty()) {
      sums.worst_accuracy.push_back(*std::min_element(accuracies.begin(), accuracies.end()));
    }
    for (const auto& resident : run->residents) {
      sums.residents.add(cut_intervals(resident, widest(cuts)));
    }
  }

  static void add_control(const Intervals& there, Sums& sums) {
    const auto all = there.all();
    sums.control.insert(sums.control.end(), all.begin(), all.end());
    sums.control_preparation.insert(sums.control_preparation.end(), there.preparation.begin(),
                                    there.preparation.end());
  }

  static void add_up(SchemeSummary& s) {
    std::vector<double> sit, gap, control_gap, fraction, accuracy;
    std::vector<double> part, part_tokens, part_complete;
    for (const auto& row : s.rows) {
      if (row.seen.sit_ms) sit.push_back(*row.seen.sit_ms);
      if (row.seen.gap_ms) gap.push_back(*row.seen.gap_ms);
      if (row.control_gap_ms) control_gap.push_back(*row.control_gap_ms);
      if (row.ids_ok.value_or(false)) ++s.ids_ok;
      if (!row.seen.gnb) continue;
      const auto& gnb = *row.seen.gnb;
      if (row.accuracy) {
        accuracy.push_back(*row.accuracy);
        fraction.push_back(*gnb.fraction_at_deadline);
        if (fraction.back() < s.utility_threshold) ++s.below_threshold;
      }
      if (gnb.partial) {
        part.push_back(gnb.partial->fraction);
        part_tokens.push_back(static_cast<double>(gnb.partial->tokens));
        if (gnb.partial->complete_ms) part_complete.push_back(*gnb.partial->complete_ms);
      }
      ++s.reported;
      s.failed += gnb.error.empty() ? 0 : 1;
      s.exact += gnb.exact ? 1 : 0;
      s.prepared += gnb.prepared ? 1 : 0;
      s.bytes += gnb.bytes;
      s.recomputed += gnb.tokens_recomputed;
      s.replayed += gnb.tokens_replayed;
      s.sent += gnb.tokens_received;
      s.overlap += gnb.tokens_overlap;
      s.early_s += gnb.early_s;
    }
    s.sit = distribution(sit);
    s.gap = distribution(gap);
    s.control_gap = distribution(control_gap);
    s.fraction = distribution(fraction);
    s.part = distribution(part);
    s.part_tokens = distribution(part_tokens);
    s.part_complete_ms = distribution(part_complete);
    s.accuracy = distribution(accuracy).mean;
  }

  // With a cap on the rate the sizing's uncapped stream is what there is.
  std::optional<double> step_of(std::size_t setting) const {
    std::vector<double> intervals;
    std::optional<double> sized;
    for (const auto& planned : plan_.runs) {
      if (planned.setting != setting) continue;
      const auto* run = records_.run(plan_.key(planned));
      if (run == nullptr) continue;
      sized = run->step_ms;
      if (planned.scheme) continue;
      for (const auto& mover : run->movers) {
        const auto all = cut_intervals(mover.at_ms, {}).all();
        intervals.insert(intervals.end(), all.begin(), all.end());
      }
    }
    if (plan_.settings[setting].max_token_rate > 0) return sized;
    const auto measured = distribution(std::move(intervals)).p50;
    return measured ? measured : sized;
  }

  const BenchPlan& plan_;
  const BenchRecords& records_;
};

}  // namespace

void Intervals::add(const Intervals& more) {
  before.insert(before.end(), more.before.begin(), more.before.end());
  preparation.insert(preparation.end(), more.preparation.begin(), more.preparation.end());
  handover.insert(handover.end(), more.handover.begin(), more.handover.end());
  after.insert(after.end(), more.after.begin(), more.after.end());
}

std::vector<double> Intervals::during() const {
  return joined({&preparation, &handover});
}

std::vector<double> Intervals::all() const {
  return joined({&before, &preparation, &handover, &after});
}

Intervals cut_intervals(const std::vector<double>& at_ms, const std::vector<Cut>& cuts) {
  struct Span {
    double begin, executed, end;
  };
  std::vector<Span> spans;
  for (const auto& cut : cuts) {
    const std::size_t first = arrived(at_ms, cut.executed_ms);
    const std::size_t last = std::min(first + session::kGapTokens, at_ms.size());
    spans.push_back(
        {cut.begin_ms, cut.executed_ms, last > first ? at_ms[last - 1] : cut.executed_ms});
  }
  Intervals parts;
  for (std::size_t i = 1; i < at_ms.size(); ++i) {
    const double begin = at_ms[i - 1], end = at_ms[i];
    std::vector<double>* part =
        spans.empty() || end <= spans.front().begin ? &parts.before : &parts.after;
    for (const auto& span : spans) {
      if (end > span.executed && begin < span.end) {
        part = &parts.handover;
        break;
      }
      if (end > span.begin && end <= span.executed) part = &parts.preparation;
    }
    part->push_back(end - begin);
  }
  return parts;
}

std::vector<SchemeSummary> summarize(const BenchPlan& plan, const BenchRecords& records) {
  Summarizer summarizer(plan, records);
  std::vector<SchemeSummary> all;
  for (std::size_t i = 0; i < plan.settings.size(); ++i) {
    for (std::size_t k = 0; k <= plan.schemes.size(); ++k) {
      auto summary = summarizer.of(i, k < plan.schemes.size() ? std::optional(k) : std::nullopt);
      if (summary.runs > 0) all.push_back(std::move(summary));
    }
  }
  return all;
}

std::vector<std::string> find_faults(const std::vector<SchemeSummary>& summaries,
                                     const BenchPlan& plan, const BenchRecords& records) {
  std::vector<std::string> faults;
  for (const auto& planned : plan.runs) {
    const std::string key = plan.key(planned);
    const auto* run = records.run(key);
    if (run == nullptr) continue;
    for (const auto& mover : run->movers) {
      for (const auto& fault : mover.faults) faults.push_back(key + ": " + fault);
    }
  }
  for (const auto& summary : summaries) {
    if (summary.scheme == kControl) continue;
    bool exact_so_far = true;
    for (const auto& row : summary.rows) {
      if (row.hop == 0) exact_so_far = true;
      const auto where = fmt::format("{} {} round {} user {} handover {}", row.scheme,
                                     row.setting.key(), row.round + 1, row.mover + 1, row.hop + 1);
      exact_so_far = exact_so_far && row.seen.gnb && row.seen.gnb->exact;
      if (exact_so_far && row.ids_ok == std::optional(false)) {
        faults.push_back(where + ": exact, and its ids are not the control's");
      }
    }
  }
  return faults;
}

}  // namespace pallas::app
