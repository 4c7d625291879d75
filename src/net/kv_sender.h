#pragma once
// What one peer is sent on its data connection: KvBlock frames in order, in paced segments, within
// the credit that the peer granted.

#include <deque>
#include <functional>

#include "base/clock.h"
#include "kv/goodput_meter.h"
#include "net/connection.h"
#include "net/pacer.h"

namespace pallas::net {

class KvSender {
 public:
  // `drained` is called from the event loop each time that there is room for a block again in what
  // may wait (kv/link_ahead.h), and at the end of each frame while there is.
  KvSender(Clock& clock, Pacer pacer, std::optional<BytesPerSecond> initial_goodput,
           std::uint64_t block_bytes, std::function<void()> drained);

  // The link came up: nothing is queued, no credit yet.
  void attach(Connection& connection);
  // The link went down: what is queued is lost; returns how many frames.
  std::size_t detach();

  void enqueue(const Attempt& attempt, kv::Bytes head, kv::Bytes rows);
  // Frames of `attempt` not yet begun are taken back; returns how many.
  std::size_t discard(const Attempt& attempt);
  // The first grant after attach() also tells the peer's window.
  void grant(std::uint64_t bytes);

  std::uint64_t backlog() const { return backlog_; }
  std::uint64_t credit() const { return credit_; }
  std::uint64_t frames_sent() const { return frames_sent_; }
  std::uint64_t bytes_sent() const { return bytes_sent_; }
  const kv::GoodputMeter& goodput() const { return meter_; }

 private:
  struct Frame {
    Attempt attempt;
    kv::Bytes head;
    kv::Bytes rows;
  };

  void pump();
  bool begin_next();
  std::uint64_t segment_bytes() const;
  std::uint64_t room_below() const;
  void on_written(std::size_t bytes);
  void measure();
  std::uint64_t delivered() const;

  Clock& clock_;
  Pacer pacer_;
  kv::GoodputMeter meter_;
  std::uint64_t block_bytes_;
  std::function<void()> drained_;
  Timer pace_timer_;
  Timer drained_timer_;

  Connection* connection_ = nullptr;
  std::deque<Frame> queue_;
  std::uint64_t left_ = 0;  // payload bytes of the frame on the wire
  bool writing_ = false;
  std::uint64_t backlog_ = 0;
  std::uint64_t credit_ = 0;
  std::uint64_t told_segment_ = 0;  // what the connection knows of segment_bytes()
  std::uint64_t window_ = 0;        // the peer's; 0: no grant yet
  std::uint64_t frames_sent_ = 0;
  std::uint64_t bytes_sent_ = 0;
};

// What a frame costs of the credit: one larger than the window travels alone and costs all of it.
inline std::uint64_t credit_cost(std::uint64_t payload, std::uint64_t window) {
  return payload < window ? payload : window;
}

}  // namespace pallas::net
