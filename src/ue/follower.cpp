#include "ue/follower.h"

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "ue/gnb_api.h"
#include "ue/sse_parser.h"

namespace pallas::ue {
namespace {

Status check(const FollowerConfig& config) {
  if (config.gnbs.empty()) return fail(Errc::kInvalidConfig, "gnbs: none is configured");
  for (const auto& [cell, gnb] : config.cells) {
    if (!config.gnbs.contains(gnb)) {
      return fail(Errc::kInvalidConfig, "cells: cell '" + cell.value + "' belongs to gNB '" +
                                            gnb.value + "', which is not configured");
    }
  }
  if (!config.cells.contains(config.cell)) {
    return fail(Errc::kInvalidConfig,
                "cell: '" + config.cell.value + "' is not among the configured cells");
  }
  return {};
}

ApiError as_refusal(const HttpReply& reply) {
  ApiError error = parse_api_error(reply.status, reply.body);
  if (reply.status == 200) {
    error.status = 502;
    error.type = "server_error";
    error.message = "the gNB answered with '" + reply.content_type + "' instead of a stream";
  }
  return error;
}

}  // namespace

// Runs one machine: its actions become HTTP exchanges, its timer one of the clock.
class Follower::Impl {
 public:
  Impl(boost::asio::io_context& io, Clock& time, FollowerConfig settings)
      : config(std::move(settings)),
        clock(time),
        client(io, config.http, config.access),
        cell(config.cell),
        gnb(config.cells.at(cell)) {}

  struct Link {
    GnbClient::Exchange exchange = 0;
    SseParser parser;
  };
  struct Session {
    Session(Clock& c, const ClientConfig& settings, NodeId home)
        : machine(settings, std::move(home)), timer(c) {}
    // A callback may stop the session in the middle of a batch: it hears nothing more.
    bool hears() const { return machine.state() != ClientMachine::State::kStopped; }

    Endpoint endpoint = Endpoint::kChat;
    std::string body;
    FollowerCallbacks callbacks;
    ClientMachine machine;
    Timer timer;
    std::map<StreamNo, Link> links;
    bool running = false;  // inside run(): a nested call leaves its actions to the outer one
    std::string finish_reason;
    std::optional<Usage> usage;
  };

  Session* find(SessionNo number) {
    const auto it = sessions.find(number);
    return it == sessions.end() ? nullptr : it->second.get();
  }

  void run(SessionNo number);
  void act(SessionNo number, Session& session, const OpenStream& action);
  void act(SessionNo number, Session& session, const AttachStream& action);
  void act(SessionNo number, Session& session, const CloseStream& action);
  void act(SessionNo number, Session& session, const WarmConnection& action);
  void act(SessionNo number, Session& session, const DeleteSession& action);
  void act(SessionNo number, Session& session, const SessionOpened& action);
  void act(SessionNo number, Session& session, const DeliverToken& action);
  void act(SessionNo number, Session& session, const SessionFinished& action);
  void act(SessionNo number, Session& session, const SessionFailed& action);
  void open(SessionNo number, Session& session, StreamNo stream, const NodeId& at,
            HttpRequest request);
  void on_data(SessionNo number, StreamNo stream, std::string_view bytes);
  void on_stream_event(Session& session, StreamNo stream, const SseEvent& event);
  void retire(SessionNo number);
  SessionReport report_of(const Session& session) const;

  // A gNB may name others that this UE has no address of.
  void drop_unknown(NodeId& node) const {
    if (!config.gnbs.contains(node)) node = {};
  }

  FollowerConfig config;
  Clock& clock;
  GnbClient client;
  CellId cell;
  NodeId gnb;
  std::map<SessionNo, std::unique_ptr<Session>> sessions;
  std::deque<SessionNo> ended;
  std::size_t active = 0;
  std::size_t pending_deletes = 0;
  SessionNo last = 0;
};

void Follower::Impl::run(SessionNo number) {
  Session* session = find(number);
  if (session == nullptr || session->running) return;
  session->running = true;
  for (auto actions = session->machine.take_actions(); !actions.empty();
       actions = session->machine.take_actions()) {
    for (const ClientAction& action : actions) {
      std::visit([&](const auto& a) { act(number, *session, a); }, action);
    }
  }
  session->running = false;
  if (session->machine.over()) {
    retire(number);
  } else if (const auto when = session->machine.next_timer()) {
    session->timer.arm_at(*when, [this, number] {
      if (Session* due = find(number)) due->machine.on_timer(clock.now());
      run(number);
    });
  } else {
    session->timer.cancel();
  }
}

void Follower::Impl::act(SessionNo number, Session& session, const OpenStream& action) {
  open(number, session, action.stream, action.gnb,
       {"POST", std::string(path_of(session.endpoint)), {}, session.body});
}

void Follower::Impl::act(SessionNo number, Session& session, const AttachStream& action) {
  const ClientMachine& machine = session.machine;
  open(number, session, action.stream, action.gnb,
       {"POST",
        "/v1/sessions/" + machine.session().session.value + "/attach",
        {{"Pallas-Resume-Token", machine.session().resume_token}},
        attach_body(action.epoch, action.last_node, session.endpoint, session.body,
                    machine.session(), machine.records())});
}

void Follower::Impl::act(SessionNo, Session& session, const CloseStream& action) {
  const auto it = session.links.find(action.stream);
  if (it == session.links.end()) return;
  client.close(it->second.exchange);
  session.links.erase(it);
}

void Follower::Impl::act(SessionNo, Session&, const WarmConnection& action) {
  if (!action.gnb.value.empty()) {
    client.warm(config.gnbs.at(action.gnb));
    return;
  }
  for (const auto& [name, address] : config.gnbs) client.cool(address);
}

// Fire and forget: an unreachable gNB ends the session by its own grace time.
void Follower::Impl::act(SessionNo, Session& session, const DeleteSession& action) {
  const SessionEvent& known = session.machine.session();
  HttpRequest request{"DELETE", "/v1/sessions/" + known.session.value, {}, {}};
  request.headers.emplace_back("Pallas-Resume-Token", known.resume_token);
  if (!action.last_node.value.empty()) {
    request.headers.emplace_back("Pallas-Last-Node", action.last_node.value);
  }
  ++pending_deletes;
  client.fetch(config.gnbs.at(action.gnb), request,
               [this](const Result<HttpReply>&) { --pending_deletes; });
}

void Follower::Impl::act(SessionNo, Session& session, const SessionOpened&) {
  if (session.hears() && session.callbacks.on_session) {
    session.callbacks.on_session(session.machine.session());
  }
}

void Follower::Impl::act(SessionNo, Session& session, const DeliverToken& action) {
  if (session.hears() && session.callbacks.on_token) session.callbacks.on_token(action.token);
}

void Follower::Impl::act(SessionNo, Session& session, const SessionFinished& action) {
  session.finish_reason = action.reason;
  session.usage = action.usage;
  if (session.callbacks.on_finish) {
    session.callbacks.on_finish(action.reason, action.text, action.usage);
  }
}

void Follower::Impl::act(SessionNo, Session& session, const SessionFailed& action) {
  if (session.callbacks.on_error) session.callbacks.on_error(action.error);
}

void Follower::Impl::open(SessionNo number, Session& session, StreamNo stream, const NodeId& at,
                          HttpRequest request) {
  request.headers.emplace_back("Pallas-Resume", "1");
  if (!config.ue.value.empty()) request.headers.emplace_back("Pallas-UE", config.ue.value);
  GnbClient::StreamHandlers handlers;
  handlers.on_data = [this, number, stream](std::string_view bytes) {
    on_data(number, stream, bytes);
  };
  handlers.on_refused = [this, number, stream](const HttpReply& reply) {
    if (Session* s = find(number)) s->machine.on_refused(stream, as_refusal(reply), clock.now());
    run(number);
  };
  handlers.on_end = [this, number, stream](const Error& error) {
    if (Session* s = find(number)) s->machine.on_lost(stream, error, clock.now());
    run(number);
  };
  session.links[stream].exchange = client.stream(config.gnbs.at(at), request, std::move(handlers));
}

void Follower::Impl::on_data(SessionNo number, StreamNo stream, std::string_view bytes) {
  Session* session = find(number);
  if (session == nullptr) return;
  const auto it = session->links.find(stream);
  if (it == session->links.end()) return;
  std::vector<SseEvent> events;
  const std::size_t comments = it->second.parser.comments();
  const Status fed = it->second.parser.feed(bytes, events);
  if (it->second.parser.comments() != comments && session->callbacks.on_keep_alive) {
    session->callbacks.on_keep_alive();
  }
  for (const SseEvent& event : events) {
    on_stream_event(*session, stream, event);
    run(number);
    // The machine may be done with this stream, a callback with this session.
    session = find(number);
    if (session == nullptr || !session->links.contains(stream)) return;
  }
  if (!fed) {
    session->machine.on_lost(stream, fed.error(), clock.now());
    run(number);
  }
}

void Follower::Impl::on_stream_event(Session& session, StreamNo stream, const SseEvent& event) {
  Result<StreamEvent> parsed = parse_stream_event(event);
  if (!parsed) {
    session.machine.on_lost(stream, parsed.error(), clock.now());
    return;
  }
  if (auto* next = std::get_if<NextEvent>(&*parsed)) drop_unknown(next->node);
  if (auto* moved = std::get_if<MovedEvent>(&*parsed)) drop_unknown(moved->node);
  session.machine.on_event(stream, std::move(*parsed), clock.now());
}

void Follower::Impl::retire(SessionNo number) {
  if (std::find(ended.begin(), ended.end(), number) != ended.end()) return;
  Session& session = *find(number);
  session.timer.cancel();
  session.body.clear();
  --active;
  ended.push_back(number);
  if (ended.size() > std::max<std::size_t>(config.keep_ended, 1)) {
    sessions.erase(ended.front());
    ended.pop_front();
  }
}

SessionReport Follower::Impl::report_of(const Session& session) const {
  const ClientMachine& machine = session.machine;
  SessionReport report;
  report.session = machine.session().session;
  report.state = std::string(to_string(machine.state()));
  report.model = machine.session().model;
  report.finish_reason = session.finish_reason;
  report.usage = session.usage;
  report.tokens = machine.records();
  report.handovers = measure_handovers(report.session, report.tokens, machine.handovers());
  report.itl = measure_intervals(report.tokens);
  report.counters = machine.counters();
  return report;
}

Follower::Follower(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Follower::~Follower() = default;

Result<std::unique_ptr<Follower>> Follower::create(boost::asio::io_context& io, Clock& clock,
                                                   FollowerConfig config) {
  if (Status status = check(config); !status) return tl::unexpected(status.error());
  return std::unique_ptr<Follower>(
      new Follower(std::make_unique<Impl>(io, clock, std::move(config))));
}

Result<Follower::SessionNo> Follower::start(std::string_view body, Endpoint endpoint,
                                            FollowerCallbacks callbacks) {
  Result<PreparedRequest> request = prepare_request(body);
  if (!request) return tl::unexpected(request.error());
  const SessionNo number = ++impl_->last;
  auto session = std::make_unique<Impl::Session>(impl_->clock, impl_->config.client, impl_->gnb);
  session->endpoint = endpoint;
  session->body = std::move(request->body);
  session->callbacks = std::move(callbacks);
  session->machine.start(impl_->clock.now());
  impl_->sessions[number] = std::move(session);
  ++impl_->active;
  impl_->run(number);
  return number;
}

void Follower::stop(SessionNo session) {
  if (Impl::Session* found = impl_->find(session)) {
    found->machine.stop();
    impl_->run(session);
  }
}

void Follower::stop_all() {
  std::vector<SessionNo> numbers;
  for (const auto& [number, session] : impl_->sessions) numbers.push_back(number);
  for (const SessionNo number : numbers) stop(number);
}

Status Follower::on_cell(const CellId& cell) {
  const auto it = impl_->config.cells.find(cell);
  if (it == impl_->config.cells.end()) {
    return fail(Errc::kNotFound, "cell '" + cell.value + "' belongs to no configured gNB");
  }
  impl_->cell = cell;
  impl_->gnb = it->second;
  std::vector<SessionNo> numbers;
  for (const auto& [number, session] : impl_->sessions) numbers.push_back(number);
  for (const SessionNo number : numbers) {
    if (Impl::Session* session = impl_->find(number)) {
      session->machine.on_handover(impl_->gnb, impl_->clock.now());
      impl_->run(number);
    }
  }
  return {};
}

void Follower::fetch(const std::string& target, std::function<void(Result<HttpReply>)> done) {
  impl_->client.fetch(impl_->config.gnbs.at(impl_->gnb), {"GET", target, {}, {}}, std::move(done));
}

const FollowerConfig& Follower::config() const {
  return impl_->config;
}
const CellId& Follower::cell() const {
  return impl_->cell;
}
const NodeId& Follower::gnb() const {
  return impl_->gnb;
}
std::size_t Follower::active() const {
  return impl_->active;
}
std::size_t Follower::pending_deletes() const {
  return impl_->pending_deletes;
}

std::optional<SessionReport> Follower::report(SessionNo session) const {
  const Impl::Session* found = impl_->find(session);
  if (found == nullptr) return std::nullopt;
  return impl_->report_of(*found);
}

UeReport Follower::report() const {
  UeReport report{impl_->config.ue, impl_->cell, impl_->gnb, {}};
  for (const auto& [number, session] : impl_->sessions) {
    report.sessions.push_back(impl_->report_of(*session));
  }
  return report;
}

const GnbClient::Counters& Follower::connections() const {
  return impl_->client.counters();
}

}  // namespace pallas::ue
