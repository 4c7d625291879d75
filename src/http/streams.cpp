#include "http/streams.h"

namespace pallas::http {
namespace {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

}  // namespace

node::StreamId Streams::begin(Responder& responder, Shape shape) {
  const node::StreamId id(++last_id_);
  Entry entry;
  entry.responder = &responder;
  entry.shape = shape;
  entries_.emplace(id, std::move(entry));
  return id;
}

void Streams::go_live(node::StreamId stream, StreamFace face, const std::string& first_events) {
  const auto it = entries_.find(stream);
  if (it == entries_.end()) return;
  auto& entry = it->second;
  entry.face = std::move(face);
  entry.state = State::kLive;
  entry.asked = false;
  if (entry.shape == Shape::kEvents) write(entry, first_events);
  const auto kept = std::exchange(entry.kept, {});
  for (const auto& event : kept) {
    if (apply(entry, event)) {
      entries_.erase(it);
      return;
    }
  }
}

void Streams::await_session(node::StreamId stream) {
  const auto it = entries_.find(stream);
  if (it == entries_.end()) return;
  it->second.state = State::kUnknown;
  if (!it->second.kept.empty()) {
    it->second.asked = true;
    on_waiting_(stream);
  }
}

void Streams::keep_waiting(node::StreamId stream) {
  const auto it = entries_.find(stream);
  if (it == entries_.end()) return;
  auto& entry = it->second;
  entry.asked = false;
  if (!entry.kept.empty()) write(entry, keep_alive_comment());
  entry.kept.clear();
}

void Streams::refuse(node::StreamId stream, const ApiError& error) {
  const auto it = entries_.find(stream);
  if (it == entries_.end()) return;
  auto& entry = it->second;
  if (entry.begun) {
    write(entry, error_event(error));
    entry.responder->end();
  } else {
    entry.responder->respond(error_response(error));
  }
  entries_.erase(it);
}

void Streams::drop(node::StreamId stream) {
  entries_.erase(stream);
}

bool Streams::abandon(node::StreamId stream) {
  return entries_.erase(stream) > 0;
}

Streams::Waiting Streams::waiting(node::StreamId stream) const {
  const auto it = entries_.find(stream);
  if (it == entries_.end()) return Waiting::kNothing;
  for (const auto& event : it->second.kept) {
    if (std::holds_alternative<KeepAlive>(event)) continue;
    return std::holds_alternative<Error>(event) ? Waiting::kFailure : Waiting::kOther;
  }
  return Waiting::kNothing;
}

std::optional<Error> Streams::failure(node::StreamId stream) const {
  const auto it = entries_.find(stream);
  if (it == entries_.end()) return std::nullopt;
  for (const auto& event : it->second.kept) {
    if (const auto* error = std::get_if<Error>(&event)) return *error;
  }
  return std::nullopt;
}

void Streams::deliver(node::StreamId stream, const node::TokenEvent& token) {
  take(stream, token);
}
void Streams::finish(node::StreamId stream, const node::FinishEvent& event) {
  take(stream, event);
}
void Streams::fail(node::StreamId stream, const Error& error) {
  take(stream, error);
}
void Streams::announce(node::StreamId stream, const NodeId& next) {
  take(stream, Announce{next});
}
void Streams::keep_alive(node::StreamId stream) {
  take(stream, KeepAlive{});
}
void Streams::close(node::StreamId stream, const NodeId& next) {
  take(stream, Close{next});
}

void Streams::take(node::StreamId stream, Event event) {
  const auto it = entries_.find(stream);
  if (it == entries_.end()) return;
  auto& entry = it->second;
  switch (entry.state) {
    case State::kLive:
      if (apply(entry, event)) entries_.erase(it);
      return;
    case State::kOpening:
      entry.kept.push_back(std::move(event));
      return;
    case State::kUnknown:
      entry.kept.push_back(std::move(event));
      if (!std::exchange(entry.asked, true)) on_waiting_(stream);
      return;
  }
}

void Streams::write(Entry& entry, const std::string& events) {
  if (!entry.begun) {
    entry.begun = true;
    entry.responder->begin_events();
  }
  if (!events.empty()) entry.responder->write(events);
}

bool Streams::apply(Entry& entry, const Event& event) {
  return entry.shape == Shape::kWhole ? apply_whole(entry, event) : apply_events(entry, event);
}

bool Streams::apply_events(Entry& entry, const Event& event) {
  const auto& face = entry.face;
  const bool ended =
      std::visit(Overloaded{[&](const node::TokenEvent& token) {
                              write(entry, token_event(face, token));
                              return false;
                            },
                            [&](const node::FinishEvent& finish) {
                              if (finish.reason == wire::FinishReason::kError) {
                                write(entry, error_event(to_api_error({Errc::kEngine, ""})));
                              } else {
                                write(entry, finish_events(face, finish));
                              }
                              return true;
                            },
                            [&](const Error& error) {
                              write(entry, error_event(to_api_error(error)));
                              return true;
                            },
                            [&](const Announce& announce) {
                              if (face.resumable) write(entry, next_event(announce.next));
                              return false;
                            },
                            [&](const KeepAlive&) {
                              write(entry, keep_alive_comment());
                              return false;
                            },
                            [&](const Close& close) {
                              write(entry, moved_event(face, close.next));
                              return true;
                            }},
                 event);
  if (ended) entry.responder->end();
  return ended;
}

bool Streams::apply_whole(Entry& entry, const Event& event) {
  const auto respond_error = [&](const ApiError& error) {
    entry.responder->respond(error_response(error));
    return true;
  };
  return std::visit(
      Overloaded{[&](const node::TokenEvent& token) {
                   entry.text += token.text;
                   return false;
                 },
                 [&](const node::FinishEvent& finish) {
                   if (finish.reason == wire::FinishReason::kError) {
                     return respond_error(to_api_error({Errc::kEngine, ""}));
                   }
                   HttpResponse response;
                   response.body = completion_json(entry.face, entry.text + finish.text, finish);
                   entry.responder->respond(std::move(response));
                   return true;
                 },
                 [&](const Error& error) { return respond_error(to_api_error(error)); },
                 [&](const Announce&) { return false; }, [&](const KeepAlive&) { return false; },
                 [&](const Close&) {
                   return respond_error({503, "The session went on at another gNB.", "",
                                         "session_moved", std::nullopt});
                 }},
      event);
}

}  // namespace pallas::http
