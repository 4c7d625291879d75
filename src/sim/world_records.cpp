// World's book: what the messages and the nodes' reports say about preparations and handovers.

#include <algorithm>
#include <array>
#include <utility>

#include "sim/world_impl.h"

namespace pallas::sim {
namespace {

double seconds(TimePoint t) {
  return to_seconds(t.time_since_epoch()).count();
}

// Counters of NodeStats, all of them.
constexpr std::array kCounters{&node::NodeStats::sessions_opened,
                               &node::NodeStats::sessions_finished,
                               &node::NodeStats::sessions_failed,
                               &node::NodeStats::tokens_emitted,
                               &node::NodeStats::tokens_sampled,
                               &node::NodeStats::slo_misses,
                               &node::NodeStats::preparations_requested,
                               &node::NodeStats::preparations_successful,
                               &node::NodeStats::preparations_failed,
                               &node::NodeStats::preparations_cancelled,
                               &node::NodeStats::leases_expired,
                               &node::NodeStats::executions_requested,
                               &node::NodeStats::executions_successful,
                               &node::NodeStats::retrievals,
                               &node::NodeStats::recoveries,
                               &node::NodeStats::relays,
                               &node::NodeStats::stale_epochs,
                               &node::NodeStats::kv_bytes_sent,
                               &node::NodeStats::kv_bytes_received,
                               &node::NodeStats::kv_blocks_refused,
                               &node::NodeStats::tokens_recomputed,
                               &node::NodeStats::tokens_replayed,
                               &node::NodeStats::shadow_tokens,
                               &node::NodeStats::shadow_agreed,
                               &node::NodeStats::shadow_differed,
                               &node::NodeStats::shadow_used,
                               &node::NodeStats::sessions_live,
                               &node::NodeStats::sessions_prepared,
                               &node::NodeStats::sessions_frozen,
                               &node::NodeStats::sessions_retained,
                               &node::NodeStats::staged_bytes,
                               &node::NodeStats::free_slots};

}  // namespace

World::Impl::UeBook& World::Impl::book(const Ue& ue) {
  return books_[ue.place];
}

// --- preparations ---

void World::Impl::on_sent(int from, int to, const wire::Message& message) {
  using End = PreparationRecord::End;
  if (const auto* request = std::get_if<wire::HandoverRequest>(&message)) {
    note(*request, from, to);
  } else if (const auto* progress = std::get_if<wire::PreparationProgress>(&message)) {
    note(*progress);
  } else if (const auto* success = std::get_if<wire::HandoverSuccess>(&message)) {
    end_preparation(success->session, success->attempt, End::kClaimed);
  } else if (const auto* cancel = std::get_if<wire::HandoverCancel>(&message)) {
    end_preparation(cancel->session, cancel->attempt, End::kCancelled);
  } else if (const auto* refusal = std::get_if<wire::HandoverPreparationFailure>(&message)) {
    end_preparation(refusal->session, refusal->attempt, End::kRefused);
  } else if (const auto* ack = std::get_if<wire::HandoverCancelAck>(&message)) {
    if (PreparationRecord* p = find_preparation(ack->session, ack->attempt); p && !p->freed_s) {
      p->freed_s = seconds(world_.clock.now());
    }
  }
  if (settings_.observer != nullptr) settings_.observer->on_sent(from, to, message);
  if (world_.on_sent) world_.on_sent(from, to, message);
}

void World::Impl::on_kv_sent(int from, int to, const wire::KvBlock& header) {
  if (settings_.observer != nullptr) {
    settings_.observer->on_sent(from, to, wire::Message(header));
  }
  if (world_.on_sent) world_.on_sent(from, to, wire::Message(header));
}

void World::Impl::note(const wire::HandoverRequest& m, int from, int to) {
  Ue* const ue = ue_of_session(m.session);
  if (ue == nullptr) return;
  draw_rate(*ue, from, to);
  PreparationRecord record;
  record.ue = ue->id.value;
  record.source = names_[static_cast<std::size_t>(from)];
  record.target = names_[static_cast<std::size_t>(to)];
  record.scheme = m.plan.scheme;
  record.requested_s = seconds(world_.clock.now());
  record.expected_s = record.requested_s + m.plan.expected_in_s;
  record.window_s = m.plan.window_s;
  book(*ue).open.push_back(preparations_.size());
  preparations_.push_back(std::move(record));
  // Where the fronts meet no prefix is asked for: the target's report says when they met.
  preparing_.push_back({m.attempt, m.plan.meet ? 0 : m.plan.recompute_end});
}

PreparationRecord* World::Impl::find_preparation(const SessionId& session, const Attempt& attempt) {
  Ue* const ue = ue_of_session(session);
  if (ue == nullptr) return nullptr;
  const auto& open = book(*ue).open;
  for (auto it = open.rbegin(); it != open.rend(); ++it) {
    if (preparing_[*it].attempt == attempt) return &preparations_[*it];
  }
  return nullptr;
}

void World::Impl::end_preparation(const SessionId& session, const Attempt& attempt,
                                  PreparationRecord::End end) {
  PreparationRecord* const p = find_preparation(session, attempt);
  if (p == nullptr || p->end != PreparationRecord::End::kOpen) return;
  p->end = end;
  p->ended_s = seconds(world_.clock.now());
}

void World::Impl::note(const wire::PreparationProgress& m) {
  PreparationRecord* const p = find_preparation(m.session, m.attempt);
  if (p == nullptr || p->prefix_s) return;
  const auto& plan = preparing_[static_cast<std::size_t>(p - preparations_.data())];
  if (plan.recompute_end > 0 && m.front >= plan.recompute_end) {
    p->prefix_s = seconds(world_.clock.now());
  }
}

void World::note_forecast(Ue& ue, const std::optional<std::string>& target, Duration valid) {
  Impl::UeBook& book = impl_->book(ue);
  const TimePoint now = clock.now();
  const auto next = target ? std::optional<int>(index(*target)) : std::nullopt;
  if (next != book.forecast || now > book.forecast_until) book.forecast_since = now;
  book.forecast = next;
  book.forecast_until = now + valid;
}

// --- handovers ---

HandoverRecord World::Impl::new_record(const Ue& ue, int target) {
  const TimePoint now = world_.clock.now();
  HandoverRecord record;
  record.ue = ue.id.value;
  record.source = ue.at.value;
  record.target = names_[static_cast<std::size_t>(target)];
  record.scheme = settings_.scheme;
  record.at_s = seconds(now);
  record.context = ue.prompt_tokens + ue.received();
  UeBook& known = book(ue);
  if (known.forecast == target && now <= known.forecast_until) {
    record.available_s = to_seconds(now - known.forecast_since).count();
  }
  known.forecast.reset();
  for (const std::size_t i : known.open) {
    const PreparationRecord& p = preparations_[i];
    if (p.end != PreparationRecord::End::kOpen || p.target != record.target) continue;
    record.window_s = p.window_s;
    record.lead_s = record.at_s - p.requested_s;
    record.early_error_s = std::max(record.at_s - p.expected_s, 0.0);
    if (p.prefix_s) record.early_s = record.at_s - *p.prefix_s;
  }
  // What ended before is of no more use for the messages to come.
  std::erase_if(known.open, [&](std::size_t i) {
    const PreparationRecord& p = preparations_[i];
    return p.end == PreparationRecord::End::kClaimed || p.freed_s.has_value();
  });
  auto& recent = recent_[target];
  std::erase_if(recent, [&](TimePoint t) { return now - t > std::chrono::seconds(1); });
  record.concurrent = static_cast<std::uint32_t>(recent.size());
  recent.push_back(now);
  return record;
}

void World::Impl::take_reports(WorldGnb& g) {
  if (!g.alive) return;
  const auto& reports = g.node->handovers();
  kept_reports_.insert(kept_reports_.end(), reports.begin(), reports.end());
}

void World::Impl::fill(HandoverRecord& record, const node::HandoverReport& r) const {
  record.scheme = r.scheme;
  record.prepared = r.prepared;
  record.exact = r.exact;
  record.relay = r.relay;
  record.recovery = r.recovery;
  record.expected_sit_s = r.expected_sit_s;
  if (r.fronts_met_ms && !record.early_s) record.early_s = r.early_s;
  record.bytes = static_cast<double>(r.bytes) * scale_;
  record.tokens_total = r.tokens_total;
  record.recomputed = r.tokens_recomputed;
  record.replayed = r.tokens_replayed;
  record.received = r.tokens_received;
  record.overlap = r.tokens_overlap;
  record.residual = r.residual_tokens;
  if (!r.error.empty()) record.error = r.error;
}

void World::Impl::complete() {
  // By UE and epoch.
  std::map<std::pair<std::size_t, std::uint64_t>, std::size_t> places;
  for (auto& ue : ues_) {
    for (HandoverRecord& record : ue->take_handovers()) {
      places[{ue->place, record.epoch}] = handovers_.size();
      handovers_.push_back(std::move(record));
    }
  }
  const auto fill_from = [&](const std::vector<node::HandoverReport>& reports) {
    for (const node::HandoverReport& report : reports) {
      const Ue* const ue = ue_of_session(report.session);
      if (ue == nullptr) continue;
      const auto found = places.find({ue->place, report.epoch.value});
      if (found != places.end()) fill(handovers_[found->second], report);
    }
  };
  fill_from(kept_reports_);
  kept_reports_.clear();
  for (const WorldGnb& g : gnbs_) {
    if (g.alive) fill_from(g.node->handovers());
  }
  places.clear();
  std::stable_sort(handovers_.begin(), handovers_.end(),
                   [](const auto& a, const auto& b) { return a.at_s < b.at_s; });

  // To each preparation the handover that it ended before or with: its UE's next one.
  std::unordered_map<std::string, std::vector<std::size_t>> of_ue;
  for (std::size_t i = 0; i < handovers_.size(); ++i) of_ue[handovers_[i].ue].push_back(i);
  for (PreparationRecord& p : preparations_) {
    const auto found = of_ue.find(p.ue);
    if (found == of_ue.end()) continue;
    const auto next = std::find_if(found->second.begin(), found->second.end(), [&](std::size_t i) {
      return handovers_[i].at_s >= p.requested_s;
    });
    if (next == found->second.end()) continue;
    p.moved = *next;
    HandoverRecord& h = handovers_[*next];
    const bool in_vain =
        p.end == PreparationRecord::End::kCancelled || p.end == PreparationRecord::End::kRefused;
    if (in_vain) h.waste_s = std::max(h.waste_s, p.ended_s - p.requested_s);
  }
}

void World::finish() {
  impl_->complete();
}

const std::vector<HandoverRecord>& World::handovers() const {
  return impl_->handovers_;
}

const std::vector<PreparationRecord>& World::preparations() const {
  return impl_->preparations_;
}

node::NodeStats World::totals() const {
  node::NodeStats sum;
  for (const WorldGnb& g : impl_->gnbs_) {
    if (!g.alive) continue;
    const node::NodeStats one = g.node->stats();
    for (const auto counter : kCounters) sum.*counter += one.*counter;
  }
  return sum;
}

std::vector<std::string> World::breaches() const {
  std::vector<std::string> all = impl_->network_->codec_faults();
  for (const auto& ue : impl_->ues_) {
    all.insert(all.end(), ue->breaches().begin(), ue->breaches().end());
  }
  return all;
}

}  // namespace pallas::sim
