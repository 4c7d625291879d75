#include "sim/ue.h"

#include <utility>

namespace pallas::sim {
namespace {

constexpr std::size_t kBreachesKept = 20;

}  // namespace

TokenId Ue::expected_id(TokenIndex index) const {
  return sampled_token(params.temperature > 0 ? params.seed : 0, index);
}

void Ue::breach(std::string what) {
  if (breaches_.size() < kBreachesKept) breaches_.push_back(id.value + ": " + std::move(what));
}

void Ue::on_token(const NodeId& emitter, int by, const node::TokenEvent& token, TimePoint now) {
  if (token.index != received_) {
    breach("index " + std::to_string(token.index) + " came in place of " +
           std::to_string(received_) + " from " + emitter.value);
    if (token.index < received_) return;
  }
  if (token.epoch < last_epoch_) breach("epoch went back at index " + std::to_string(token.index));
  if (ids_are_known && token.id != expected_id(token.index) && token.id != kEndToken) {
    breach("id at index " + std::to_string(token.index) + " is not the session's");
  }
  last_epoch_ = token.epoch;
  received_ = token.index + 1;
  if (sampled_by_.empty() || sampled_by_.back().first != by) sampled_by_.emplace_back(by, 0);
  ++sampled_by_.back().second;
  measure(now, by);
}

void Ue::measure(TimePoint now, int by) {
  const TokenIndex index = received_ - 1;
  const auto sampled = [&](TokenIndex i) -> TimePoint {
    return i < sampled_end_ && i + kSampledKept >= sampled_end_ ? sampled_at_[i % kSampledKept]
                                                                : TimePoint{};
  };
  if (last_arrival_) {
    const double ms = to_ms(now - *last_arrival_);
    times_.arrival.add(ms);
    stretch_.arrival.add(ms);
    if (const TimePoint before = sampled(index - 1); before != TimePoint{}) {
      const double latency = to_ms(now - before);
      times_.latency.add(latency);
      stretch_.latency.add(latency);
    }
  }
  last_arrival_ = now;
  if (keep_arrivals) {
    arrivals_.push_back({now, sampled(index), static_cast<std::uint32_t>(by),
                         static_cast<std::uint32_t>(handovers_.size())});
  }
  if (!meter_) return;
  meter_->add(now, by == target_);
  const bool over = meter_->settled() || (meter_->relayed() && meter_->settled_relayed());
  if (during_ && over) close_stretch();
}

// What was measured since the last boundary goes where it belongs.
void Ue::close_stretch() {
  if (!handovers_.empty()) {
    (during_ ? handovers_.back().during : handovers_.back().after) = stretch_;
  }
  stretch_ = {};
  during_ = false;
}

void Ue::begin_handover(HandoverRecord record, TimePoint now, int target) {
  const TokenTimes before = during_ ? TokenTimes{} : stretch_;
  close_stretch();
  if (!handovers_.empty() && meter_) {
    HandoverRecord& last = handovers_.back();
    last.sit_ms = meter_->sit_ms();
    last.gap_ms = meter_->gap_ms();
    last.failed = !last.sit_ms;
  }
  record.before = before;
  handovers_.push_back(std::move(record));
  meter_.emplace(now, last_arrival_);
  during_ = true;
  target_ = target;
}

std::vector<HandoverRecord> Ue::take_handovers() {
  if (!handovers_.empty() && meter_) {
    close_stretch();
    HandoverRecord& last = handovers_.back();
    last.sit_ms = meter_->sit_ms();
    last.gap_ms = meter_->gap_ms();
    last.failed = !last.sit_ms;
    meter_.reset();
  }
  return std::exchange(handovers_, {});
}

void Ue::on_sampled(TokenIndex index, TimePoint when) {
  if (index + 1 < sampled_end_) return;  // a shadow's, behind its source
  sampled_at_[index % kSampledKept] = when;
  sampled_end_ = index + 1;
}

void Ue::on_finish(const node::FinishEvent& event) {
  finished = event;
  ++finishes;
  stream = {};
}

std::vector<TokenId> Ue::prompt() const {
  std::vector<TokenId> ids(prompt_tokens);
  for (TokenPosition p = 0; p < prompt_tokens; ++p) ids[p] = prompt_token(params.seed, p);
  return ids;
}

node::UeContext Ue::context(const std::vector<std::string>& names) const {
  node::UeContext all;
  all.params = params;
  all.prompt = prompt();
  all.generated.reserve(received_);
  for (TokenIndex i = 0; i < received_; ++i) all.generated.push_back(expected_id(i));
  for (const auto& [by, count] : sampled_by_) {
    all.sampled_by.emplace_back(NodeId(names[static_cast<std::size_t>(by)]), count);
  }
  return all;
}

}  // namespace pallas::sim
