#include "trace_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace pallas::app {
namespace {

using Kind = TraceItem::Kind;
constexpr auto kSource = TraceRole::kSource;
constexpr auto kTarget = TraceRole::kTarget;
constexpr auto kUe = TraceRole::kUe;

// What the phases are called here; those that are not listed keep their names.
struct Title {
  TraceRole who;
  const char* phase;
  TraceLane lane;
  const char* title;
};
constexpr Title kTitles[] = {
    {kSource, "request_sent", TraceLane::kProtocol, "HandoverRequest sent"},
    {kSource, "acknowledged", TraceLane::kProtocol, "acknowledged"},
    {kSource, "rows_sent", TraceLane::kLink, "blocks before the handover"},
    {kSource, "ran_execution", TraceLane::kProtocol, "RAN execution"},
    {kSource, "ran_completed", TraceLane::kProtocol, "RAN completed"},
    {kSource, "claim_received", TraceLane::kProtocol, "claimed"},
    {kSource, "response_sent", TraceLane::kProtocol, "context sent"},
    {kSource, "step_ended", TraceLane::kEngine, "engine stands"},
    {kSource, "status_sent", TraceLane::kProtocol, "SnStatusTransfer sent"},
    {kSource, "tail_sent", TraceLane::kLink, "blocks of the tail"},
    {kSource, "released", TraceLane::kProtocol, "released"},
    {kTarget, "request_received", TraceLane::kProtocol, "HandoverRequest received"},
    {kTarget, "acknowledge_sent", TraceLane::kProtocol, "acknowledge sent"},
    {kTarget, "rows_received", TraceLane::kLink, "blocks before the UE came"},
    {kTarget, "prefill", TraceLane::kEngine, "prefill"},
    {kTarget, "rows_attached", TraceLane::kEngine, "rows attached"},
    {kTarget, "fronts_met", TraceLane::kEngine, "fronts met"},
    {kTarget, "ran_execution", TraceLane::kProtocol, "RAN execution"},
    {kTarget, "ran_completed", TraceLane::kProtocol, "RAN completed"},
    {kTarget, "attached", TraceLane::kProtocol, "UE attached"},
    {kTarget, "retrieve_sent", TraceLane::kProtocol, "RetrieveUeContextRequest sent"},
    {kTarget, "response_received", TraceLane::kProtocol, "context received"},
    {kTarget, "claim_sent", TraceLane::kProtocol, "HandoverSuccess sent"},
    {kTarget, "status_received", TraceLane::kProtocol, "SnStatusTransfer received"},
    {kTarget, "tail_received", TraceLane::kLink, "blocks of the tail"},
    {kTarget, "tail_attached", TraceLane::kEngine, "tail attached"},
    {kTarget, "replay", TraceLane::kEngine, "replay"},
    {kTarget, "shadow", TraceLane::kEngine, "decoding beside the source"},
    {kTarget, "part_attached", TraceLane::kEngine, "a part attached"},
    {kTarget, "partial_decode", TraceLane::kProtocol, "decoding on a part"},
    {kTarget, "back_fill", TraceLane::kLink, "back-filling"},
    {kTarget, "rebuild", TraceLane::kEngine, "building the whole"},
    {kTarget, "covered", TraceLane::kEngine, "coverage complete"},
    {kTarget, "decode_asked", TraceLane::kEngine, "decoding asked for"},
    {kTarget, "first_step_begun", TraceLane::kEngine, "first step begins"},
    {kTarget, "first_step_ended", TraceLane::kEngine, "first step ends"},
    {kTarget, "first_token_written", TraceLane::kProtocol, "first own token written"},
    {kTarget, "release_sent", TraceLane::kProtocol, "UeContextRelease sent"},
    {kTarget, "release_acknowledged", TraceLane::kProtocol, "release acknowledged"},
    {kUe, "last_token", TraceLane::kProtocol, "last token from the source"},
    {kUe, "execution", TraceLane::kProtocol, "RAN execution"},
    {kUe, "attach_sent", TraceLane::kLink, "attach sent"},
    {kUe, "attach_granted", TraceLane::kLink, "attach granted"},
    {kUe, "first_token", TraceLane::kProtocol, "first token at the target"},
    {kUe, "first_own_token", TraceLane::kProtocol, "first token of the target's engine"},
};

// Slices between two instants of one report.
struct Span {
  TraceRole who;
  const char *from, *to;
  TraceLane lane;
  const char* name;
};
constexpr Span kSpans[] = {
    {kSource, "request_sent", "claim_received", TraceLane::kProtocol, "preparation"},
    {kSource, "request_sent", "acknowledged", TraceLane::kProtocol, "request"},
    {kSource, "claim_received", "status_sent", TraceLane::kProtocol, "claim"},
    {kSource, "status_sent", "released", TraceLane::kProtocol, "frozen"},
    {kSource, "claim_received", "step_ended", TraceLane::kEngine, "step at the claim"},
    {kSource, "ran_completed", "step_ended", TraceLane::kEngine, "step at the RAN's completion"},
    {kTarget, "request_received", "attached", TraceLane::kProtocol, "preparation"},
    {kTarget, "attached", "first_token_written", TraceLane::kProtocol, "attach to first token"},
    {kTarget, "retrieve_sent", "response_received", TraceLane::kProtocol, "retrieve"},
    {kTarget, "claim_sent", "status_received", TraceLane::kProtocol, "claim"},
    {kTarget, "release_sent", "release_acknowledged", TraceLane::kProtocol, "release"},
    {kTarget, "decode_asked", "first_step_begun", TraceLane::kEngine, "wait for the engine"},
    {kTarget, "first_step_begun", "first_step_ended", TraceLane::kEngine, "first decode step"},
    {kUe, "last_token", "first_token", TraceLane::kProtocol, "without a token"},
    {kUe, "attach_sent", "attach_granted", TraceLane::kLink, "attach"},
};

// A message as its two ends.
struct Message {
  const char* name;
  TraceRole from;
  const char* sent;
  TraceRole to;
  const char* received;
  bool control = true;  // the clocks may be compared by it
};
constexpr Message kMessages[] = {
    {"HandoverRequest", kSource, "request_sent", kTarget, "request_received"},
    {"HandoverRequestAcknowledge", kTarget, "acknowledge_sent", kSource, "acknowledged"},
    {"KvBlock, the first", kSource, "rows_sent", kTarget, "rows_received", false},
    {"attach", kUe, "attach_sent", kTarget, "attached"},
    {"session", kTarget, "attached", kUe, "attach_granted"},
    {"RetrieveUeContextRequest", kTarget, "retrieve_sent", kSource, "claim_received"},
    {"RetrieveUeContextResponse", kSource, "response_sent", kTarget, "response_received"},
    {"HandoverSuccess", kTarget, "claim_sent", kSource, "claim_received"},
    {"SnStatusTransfer", kSource, "status_sent", kTarget, "status_received"},
    {"KvBlock, the tail's first", kSource, "tail_sent", kTarget, "tail_received", false},
    {"first token", kTarget, "first_token_written", kUe, "first_own_token"},
    {"UeContextRelease", kTarget, "release_sent", kSource, "released"},
    {"UeContextReleaseAck", kSource, "released", kTarget, "release_acknowledged"},
};

const TracePhase* find(const TraceReport* report, const char* phase) {
  if (report == nullptr) return nullptr;
  const auto found = report->phases.find(phase);
  return found == report->phases.end() ? nullptr : &found->second;
}

// The reports with what is to be added to their times.
struct Aligned {
  const TraceReport* report = nullptr;
  double offset_ms = 0;
};
using Parties = std::array<Aligned, 3>;  // by TraceRole

Aligned& of(Parties& parties, TraceRole role) {
  return parties[static_cast<std::size_t>(role)];
}
const Aligned& of(const Parties& parties, TraceRole role) {
  return parties[static_cast<std::size_t>(role)];
}

// When this message left and came, on the common line. A source that was asked for its context was
// claimed by that question, not by the HandoverSuccess that may have followed.
std::optional<std::pair<double, double>> way(const Parties& parties, const Message& m) {
  const auto* sent = find(of(parties, m.from).report, m.sent);
  const auto* received = find(of(parties, m.to).report, m.received);
  if (sent == nullptr || received == nullptr) return std::nullopt;
  const bool by_question = find(of(parties, kTarget).report, "retrieve_sent") != nullptr;
  if (by_question && std::string_view(m.sent) == "claim_sent") return std::nullopt;
  return std::pair(sent->begin_ms + of(parties, m.from).offset_ms,
                   received->begin_ms + of(parties, m.to).offset_ms);
}

// The fastest message from one to the other.
std::optional<double> fastest(const Parties& parties, TraceRole from, TraceRole to) {
  std::optional<double> least;
  for (const Message& m : kMessages) {
    if (!m.control || m.from != from || m.to != to) continue;
    const auto times = way(parties, m);
    if (!times) continue;
    const double took = times->second - times->first;
    least = std::min(least.value_or(took), took);
  }
  return least;
}

std::string name_of(TraceRole role) {
  return role == kSource ? "source" : role == kTarget ? "target" : "UE";
}

// Puts `who` onto the time line of `other`; says how, empty where they share a clock.
std::string align(Parties& parties, TraceRole who, TraceRole other) {
  Aligned& a = of(parties, who);
  const Aligned& b = of(parties, other);
  if (a.report == nullptr || b.report == nullptr) return {};
  const bool shared = !a.report->clock_id.empty() && a.report->clock_id == b.report->clock_id;
  const auto apart = shared ? a.report->monotonic_us - b.report->monotonic_us
                            : a.report->unix_us - b.report->unix_us;
  a.offset_ms = b.offset_ms + static_cast<double>(apart) / 1000;
  if (shared) return {};
  const auto there = fastest(parties, who, other);
  const auto back = fastest(parties, other, who);
  if (!there || !back) return name_of(who) + " by its wall clock, since messages lack";
  a.offset_ms += (*there - *back) / 2;
  return fmt::format("{} by messages, to {:.3f} ms", name_of(who), std::abs(*there + *back) / 2);
}

std::string align_all(Parties& parties) {
  std::string how;
  const auto add = [&](const std::string& sentence) {
    if (!sentence.empty()) how += (how.empty() ? "" : "; ") + sentence;
  };
  const TraceRole reference = of(parties, kTarget).report != nullptr ? kTarget : kSource;
  if (reference == kTarget) add(align(parties, kSource, kTarget));
  add(align(parties, kUe, reference));
  return how.empty() ? "one monotonic clock" : "clocks of several hosts: " + how;
}

// What the table and the trace count from: as SIT does, where the UE was asked.
std::pair<double, std::string> zero_of(const Parties& parties) {
  constexpr std::pair<TraceRole, const char*> kZeros[] = {{kUe, "execution"},
                                                          {kSource, "ran_execution"},
                                                          {kTarget, "ran_execution"},
                                                          {kTarget, "attached"},
                                                          {kSource, "claim_received"}};
  for (const auto& [who, phase] : kZeros) {
    const Aligned& party = of(parties, who);
    if (const auto* at = find(party.report, phase)) {
      const bool radio = std::string_view(phase).ends_with("execution");
      return {at->begin_ms + party.offset_ms,
              (radio ? "the RAN's execution, as seen by the " : "the claim, as seen by the ") +
                  name_of(who)};
    }
  }
  return {0, "the report's own zero"};
}

const Title* title_of(TraceRole who, const std::string& phase) {
  for (const Title& title : kTitles) {
    if (title.who == who && phase == title.phase) return &title;
  }
  return nullptr;
}

void add_phases(const Parties& parties, TraceRole who, std::vector<TraceItem>& items) {
  const Aligned& party = of(parties, who);
  for (const auto& [phase, times] : party.report->phases) {
    const Title* title = title_of(who, phase);
    TraceItem item;
    item.kind = times.count ? Kind::kPhase : Kind::kInstant;
    item.who = who;
    item.lane = title != nullptr ? title->lane : TraceLane::kProtocol;
    item.name = title != nullptr ? title->title : phase;
    item.begin_ms = times.begin_ms + party.offset_ms;
    item.end_ms = times.end_ms + party.offset_ms;
    item.count = times.count;
    item.tokens = times.tokens;
    item.busy_ms = times.busy_ms;
    items.push_back(std::move(item));
  }
  for (const Span& span : kSpans) {
    if (span.who != who) continue;
    const auto* from = find(party.report, span.from);
    const auto* to = find(party.report, span.to);
    if (from == nullptr || to == nullptr || to->begin_ms < from->begin_ms) continue;
    TraceItem item;
    item.kind = Kind::kSpan;
    item.who = who;
    item.lane = span.lane;
    item.name = span.name;
    item.begin_ms = from->begin_ms + party.offset_ms;
    item.end_ms = to->begin_ms + party.offset_ms;
    items.push_back(std::move(item));
  }
}

// The item that stands for this end of a message.
std::size_t end_of(std::vector<TraceItem>& items, TraceRole who, const char* phase) {
  const Title* title = title_of(who, phase);
  const auto found = std::find_if(items.begin(), items.end(), [&](const TraceItem& item) {
    return item.who == who && item.kind != Kind::kSpan && item.name == title->title;
  });
  if (found->kind == Kind::kInstant) found->kind = Kind::kMessage;
  return static_cast<std::size_t>(found - items.begin());
}

void add_arrows(const Parties& parties, TraceTimeline& timeline) {
  for (const Message& m : kMessages) {
    const auto times = way(parties, m);
    // Of rows the first that was counted there may be another than the first that was sent after
    // the handover began here.
    if (!times || (!m.control && times->second < times->first)) continue;
    TraceArrow arrow;
    arrow.name = m.name;
    arrow.from = end_of(timeline.items, m.from, m.sent);
    arrow.to = end_of(timeline.items, m.to, m.received);
    timeline.arrows.push_back(std::move(arrow));
  }
}

}  // namespace

TraceTimeline make_timeline(const TracedHandover& handover) {
  Parties parties;
  of(parties, kSource).report = handover.source ? &*handover.source : nullptr;
  of(parties, kTarget).report = handover.target ? &*handover.target : nullptr;
  of(parties, kUe).report = handover.ue ? &*handover.ue : nullptr;
  TraceTimeline timeline;
  timeline.clock = align_all(parties);

  const TraceReport& known = handover.target ? *handover.target : *handover.source;
  timeline.title = fmt::format("{}: {} -> {}, session {}, epoch {}", known.scheme, known.source,
                               known.target, known.session.value, known.epoch.value);
  if (handover.source) timeline.source = known.source;
  if (handover.target) timeline.target = known.target;
  if (handover.ue) timeline.ue = handover.ue->node;
  if (!handover.source) {
    timeline.missing.push_back("no report of the source " + known.source +
                               ": name it with --gnb too, or it kept none");
  }
  if (!handover.target) {
    timeline.missing.push_back("no report of the target " + known.target +
                               ": name it with --gnb too, or its first token is not out yet");
  }
  if (!handover.ue) {
    timeline.missing.push_back("no report of the UE: name its endpoint with --ue");
  }

  for (const TraceRole who : {kSource, kTarget, kUe}) {
    if (of(parties, who).report != nullptr) add_phases(parties, who, timeline.items);
  }
  std::stable_sort(timeline.items.begin(), timeline.items.end(),
                   [](const TraceItem& a, const TraceItem& b) { return a.begin_ms < b.begin_ms; });
  add_arrows(parties, timeline);
  const auto [zero, what] = zero_of(parties);
  timeline.zero = what;
  for (TraceItem& item : timeline.items) {
    item.begin_ms -= zero;
    item.end_ms -= zero;
  }
  return timeline;
}

}  // namespace pallas::app
