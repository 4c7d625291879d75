// TargetHandover on a part of the KV: when there is enough to decode on, and how it becomes whole.

#include <algorithm>

#include "session/partial.h"
#include "session/target_handover.h"

namespace pallas::session {

namespace {

// Ids beyond the source's KV, which are replayed above the part. A source in mid-prompt leaves
// more: then there is no answer to hurry for.
constexpr TokenPosition kFewBeyond = 4;

}  // namespace

bool TargetHandover::may_collect() const {
  return setup_.plan.partial() && setup_.holes && setup_.consistency != wire::Consistency::kExact;
}

// Rows of a partial handover stay staged, since the whole will need them, until there is enough of
// them; then the part goes into the slot. False: the slot is filled as by any other plan.
bool TargetHandover::waits_for_part() {
  if (on_part_) {
    // What the UE has beyond the source's KV.
    if (front_ < known_end()) {
      run_replay(known_end());
      return true;
    }
    collects_ = false;
    state_ = State::kOnPart;
    return true;
  }
  if (state_ != State::kCompleting) return true;
  const bool few_beyond = known_end() - source_n_ <= kFewBeyond;
  if (diverged_ || !kv_coming_ || source_n_ <= front_ || !few_beyond ||
      covered().covers({0, source_n_})) {
    collects_ = false;
    return false;
  }
  if (!enough_for_part()) return true;
  counts_.overlap += staged_.drop_below(front_);
  const kv::Coverage have = covered();
  held_whole_ = front_;
  first_hole_ = have.lowest_missing({0, source_n_})->begin;
  counts_.part_positions = have.total();
  counts_.part_of = source_n_;
  on_part_ = true;
  busy_ = true;
  running_ = Running::kAttach;
  goal_ = source_n_;
  port_.attach_part(staged_.copy_from(front_));
  return true;
}

// The last position is always needed, since the next step follows on it.
bool TargetHandover::enough_for_part() const {
  const kv::Coverage have = covered();
  if (!have.contains(source_n_ - 1)) return false;
  const double wanted = setup_.plan.partial_fraction * static_cast<double>(source_n_);
  if (static_cast<double>(have.total()) >= wanted) return true;
  const TokenPosition recent = std::min(source_n_, kRecentBlocks * setup_.block_tokens);
  return deadline_passed_ && have.covers({0, std::min(kSinkPositions, source_n_)}) &&
         have.covers({source_n_ - recent, source_n_});
}

void TargetHandover::on_deadline() {
  deadline_passed_ = true;
  advance();
}

bool TargetHandover::may_fill() const {
  return state_ == State::kOnPart && (source_lost_ || covered().covers({0, source_n_}));
}

void TargetHandover::begin_whole(TokenPosition front) {
  fills_ = true;
  state_ = State::kFilling;
  front_ = goal_ = front;
  advance();
}

bool TargetHandover::caught_up() const {
  return state_ == State::kFilling && patience_ && (behind() <= 1 || *patience_ == 0);
}

void TargetHandover::end_part() {
  if (state_ == State::kFilling) state_ = State::kCompleting;
  advance();
}

}  // namespace pallas::session
