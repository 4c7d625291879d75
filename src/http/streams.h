#pragma once
// The attached clients of a node, by StreamId: turns what the node delivers into bytes of each
// client's answer.
//
//   begin() --> OPENING --go_live()--> LIVE --finish/fail/close--> gone
//                  |  await_session()    ^
//                  +-----> UNKNOWN ------+      (the node has to ask a peer about the session
//                  first)
//   drop(), abandon() end it in every state.
//
// In OPENING and UNKNOWN events are kept in order: the session event comes before all of them.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "http/sse.h"
#include "node/ports.h"

namespace pallas::http {

class Streams : public node::UeLink {
 public:
  enum class Shape { kEvents, kWhole };  // an event stream, or one JSON answer at the end

  // `on_waiting(stream)` is called, from within UeLink's calls, when the first event came for a
  // stream in UNKNOWN: somebody must call go_live(), keep_waiting() or refuse() later.
  explicit Streams(std::function<void(node::StreamId)> on_waiting)
      : on_waiting_(std::move(on_waiting)) {}

  // `responder` must outlive the stream; whoever owns it calls abandon() before it goes.
  node::StreamId begin(Responder& responder, Shape shape);
  // `first_events` go before everything (session, role).
  void go_live(node::StreamId stream, StreamFace face, const std::string& first_events);
  void await_session(node::StreamId stream);
  // Still unknown: writes kept keep-alives, so that the client sees life.
  void keep_waiting(node::StreamId stream);
  // Answers with an error instead; as an event when the answer has begun.
  void refuse(node::StreamId stream, const ApiError& error);
  // Ends it here without a word to the client: the caller answers.
  void drop(node::StreamId stream);
  // The client is gone. False when the stream had ended before.
  bool abandon(node::StreamId stream);

  bool is_open(node::StreamId stream) const { return entries_.contains(stream); }
  // UNKNOWN: what the first kept event is, besides keep-alives.
  enum class Waiting { kNothing, kFailure, kOther };
  Waiting waiting(node::StreamId stream) const;
  std::optional<Error> failure(node::StreamId stream) const;
  std::size_t size() const { return entries_.size(); }

  // --- node::UeLink ---
  void deliver(node::StreamId stream, const node::TokenEvent& token) override;
  void finish(node::StreamId stream, const node::FinishEvent& event) override;
  void fail(node::StreamId stream, const Error& error) override;
  void announce(node::StreamId stream, const NodeId& next) override;
  void keep_alive(node::StreamId stream) override;
  void close(node::StreamId stream, const NodeId& next) override;

 private:
  struct Announce {
    NodeId next;
  };
  struct KeepAlive {};
  struct Close {
    NodeId next;
  };
  using Event =
      std::variant<node::TokenEvent, node::FinishEvent, Error, Announce, KeepAlive, Close>;
  enum class State { kOpening, kUnknown, kLive };
  struct Entry {
    Responder* responder = nullptr;
    Shape shape = Shape::kEvents;
    State state = State::kOpening;
    StreamFace face;
    std::vector<Event> kept;
    std::string text;    // kWhole: what came so far
    bool begun = false;  // the header of the event stream is out
    bool asked = false;  // on_waiting was called and not answered
  };

  void take(node::StreamId stream, Event event);
  void write(Entry& entry, const std::string& events);
  // True when the event ended the stream.
  bool apply(Entry& entry, const Event& event);
  bool apply_whole(Entry& entry, const Event& event);
  bool apply_events(Entry& entry, const Event& event);

  std::function<void(node::StreamId)> on_waiting_;
  std::map<node::StreamId, Entry> entries_;
  std::uint64_t last_id_ = 0;
};

}  // namespace pallas::http
