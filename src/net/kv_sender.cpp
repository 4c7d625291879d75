#include "net/kv_sender.h"

#include <algorithm>
#include <limits>

#include "kv/link_ahead.h"

namespace pallas::net {
namespace {

// Small, so that little is in the kernel when a choice is made, and paced bytes flow evenly. A link
// that was seen to be fast, and is not paced, gets what it does in kSegmentTime at once: each write
// wakes both ends.
constexpr std::uint64_t kSegmentBytes = 16u << 10;
constexpr std::uint64_t kLongSegmentBytes = 256u << 10;
constexpr Seconds kSegmentTime{0.001};

}  // namespace

KvSender::KvSender(Clock& clock, Pacer pacer, std::optional<BytesPerSecond> initial_goodput,
                   std::uint64_t block_bytes, std::function<void()> drained)
    : clock_(clock),
      pacer_(std::move(pacer)),
      meter_(initial_goodput),
      block_bytes_(block_bytes),
      drained_(std::move(drained)),
      pace_timer_(clock),
      drained_timer_(clock) {}

void KvSender::attach(Connection& connection) {
  connection_ = &connection;
  told_segment_ = kSegmentBytes;
}

std::size_t KvSender::detach() {
  meter_.abandon();
  const std::size_t lost = queue_.size() + (left_ > 0 ? 1 : 0);
  connection_ = nullptr;
  queue_.clear();
  left_ = 0;
  writing_ = false;
  backlog_ = 0;
  credit_ = 0;
  window_ = 0;
  pace_timer_.cancel();
  drained_timer_.cancel();
  return lost;
}

void KvSender::enqueue(const Attempt& attempt, kv::Bytes head, kv::Bytes rows) {
  if (connection_ == nullptr) return;
  if (backlog_ == 0) {
    pacer_.restart(clock_.now());
    meter_.busy(clock_.now(), delivered());
  }
  backlog_ += rows.size();
  queue_.push_back({attempt, std::move(head), std::move(rows)});
  pump();
}

std::size_t KvSender::discard(const Attempt& attempt) {
  const std::uint64_t before = backlog_;
  const std::size_t count = std::erase_if(queue_, [&](const Frame& frame) {
    if (frame.attempt != attempt) return false;
    backlog_ -= frame.rows.size();
    return true;
  });
  if (count == 0) return 0;
  if (backlog_ == 0) meter_.idle(clock_.now(), delivered());
  if (before >= room_below() && backlog_ < room_below()) {
    // Not from inside the node's own call.
    drained_timer_.arm(Duration::zero(), [this] { drained_(); });
  }
  return count;
}

void KvSender::grant(std::uint64_t bytes) {
  if (connection_ == nullptr) return;
  if (window_ == 0) window_ = bytes;
  credit_ += std::min(bytes, std::numeric_limits<std::uint64_t>::max() - credit_);
  pump();
}

bool KvSender::begin_next() {
  if (queue_.empty() || window_ == 0) return false;
  Frame& next = queue_.front();
  const std::uint64_t cost = credit_cost(next.rows.size(), window_);
  if (cost > credit_) return false;
  credit_ -= cost;
  left_ = next.rows.size();
  connection_->begin_kv(std::move(next.head), std::move(next.rows));
  queue_.pop_front();
  return true;
}

void KvSender::pump() {
  if (connection_ == nullptr || writing_ || pace_timer_.armed()) return;
  const TimePoint now = clock_.now();
  const bool more = left_ > 0 || !queue_.empty();
  if (!more) return;
  if (pacer_.ready_at() > now) {
    pace_timer_.arm_at(pacer_.ready_at(), [this] { pump(); });
    return;
  }
  if (left_ == 0 && !begin_next()) return;
  const std::uint64_t segment = segment_bytes();
  // Not at each small change: a call of the system.
  if (segment >= 2 * told_segment_ || 2 * segment <= told_segment_) {
    connection_->set_unsent_low(segment);
    told_segment_ = segment;
  }
  const auto bytes = static_cast<std::size_t>(std::min(left_, segment));
  pacer_.spend(now, bytes);
  writing_ = true;
  connection_->write_kv(bytes, [this, bytes] { on_written(bytes); });
}

std::uint64_t KvSender::segment_bytes() const {
  const auto goodput = meter_.estimate();
  if (pacer_.paces() || !goodput) return kSegmentBytes;
  const double bytes = goodput->value * kSegmentTime.count();
  if (!(bytes > kSegmentBytes)) return kSegmentBytes;
  return bytes < kLongSegmentBytes ? static_cast<std::uint64_t>(bytes) : kLongSegmentBytes;
}

void KvSender::on_written(std::size_t bytes) {
  writing_ = false;
  const bool was_full = backlog_ >= room_below();
  left_ -= bytes;
  backlog_ -= bytes;
  bytes_sent_ += bytes;
  const bool ended = left_ == 0;
  if (ended) ++frames_sent_;
  measure();
  pump();
  if (backlog_ < room_below() && (was_full || ended)) drained_();
}

// A block's room in what may wait here.
std::uint64_t KvSender::room_below() const {
  return kv::link_ahead(block_bytes_, meter_.estimate()) - block_bytes_;
}

void KvSender::measure() {
  const TimePoint now = clock_.now();
  if (backlog_ > 0) {
    meter_.progress(now, delivered());
  } else {
    meter_.idle(now, delivered());
  }
}

// Bytes in the kernel's queue have not yet shown what the link can do. The count includes the
// frames' heads, a thousandth.
std::uint64_t KvSender::delivered() const {
  const std::uint64_t waiting = connection_ != nullptr ? connection_->unacknowledged() : 0;
  return bytes_sent_ - std::min(bytes_sent_, waiting);
}

}  // namespace pallas::net
