#include "http/api.h"

#include <charconv>

#include "http/ran_parser.h"
#include "http/sse.h"
#include "http/views.h"

namespace pallas::http {
namespace {

// The part of `path` that stands where `pattern` has its '*' (one segment, not empty).
std::optional<std::string> match(std::string_view pattern, std::string_view path) {
  const auto star = pattern.find('*');
  if (star == std::string_view::npos) {
    return pattern == path ? std::optional<std::string>("") : std::nullopt;
  }
  const auto before = pattern.substr(0, star), after = pattern.substr(star + 1);
  if (path.size() <= before.size() + after.size() || !path.starts_with(before) ||
      !path.ends_with(after)) {
    return std::nullopt;
  }
  const auto part = path.substr(before.size(), path.size() - before.size() - after.size());
  if (part.find('/') != std::string_view::npos) return std::nullopt;
  return std::string(part);
}

HttpResponse json_response(std::string body) {
  HttpResponse response;
  response.body = std::move(body);
  return response;
}

// Takes as long for a wrong key as for a right one.
bool equal_secrets(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned char difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned char>(a[i] ^ b[i]);
  }
  return difference == 0;
}

bool wants_resume(const HttpRequest& request) {
  const auto value = request.header("Pallas-Resume");
  return value && (*value == "1" || *value == "true");
}

Parsed<UeId> ue_of(const HttpRequest& request) {
  const auto value = request.header("Pallas-UE");
  if (!value) return UeId();
  bool clean = value->size() <= wire::kMaxNameBytes;
  for (const char c : *value) clean = clean && static_cast<unsigned char>(c) >= 0x20;
  if (clean) return UeId(std::string(*value));
  return tl::unexpected(ApiError{400, "'Pallas-UE' must be a name of at most 128 bytes.",
                                 "Pallas-UE", "invalid_value", std::nullopt});
}

bool offers(Audience listener, Audience route) {
  return listener == Audience::kEverybody || route == Audience::kEverybody || listener == route;
}

ApiError unauthorized(const std::string& what) {
  return {401, what, "", "unauthorized", std::nullopt};
}

bool is_token(const std::string& text) {
  return !text.empty() && text.size() <= wire::kMaxNameBytes;
}

ApiError no_such_session() {
  return {404, "No such session here, or the resume token is wrong.", "", "not_found",
          std::nullopt};
}

}  // namespace

Api::Api(const engine::TextCodec& text, Clock& clock, ApiOptions options, Post post)
    : text_(text),
      clock_(clock),
      options_(std::move(options)),
      post_(std::move(post)),
      // Called from inside the node, which may not be asked back before it returns.
      streams_([this](node::StreamId stream) { post_([this, stream] { resolve(stream); }); }),
      ran_limiter_(options_.ran_messages_per_second),
      started_unix_s_(options_.unix_time()) {}

const std::vector<Api::Route>& Api::routes() {
  constexpr auto kClients = Audience::kClients, kOperators = Audience::kOperators,
                 kEverybody = Audience::kEverybody;
  static const std::vector<Route> kRoutes = {
      {"POST", "/v1/chat/completions", &Api::chat, kClients},
      {"POST", "/v1/completions", &Api::completions, kClients},
      {"GET", "/v1/models", &Api::models, kClients},
      {"GET", "/v1/models/*", &Api::model, kClients},
      {"POST", "/v1/sessions/*/attach", &Api::attach, kClients},
      {"GET", "/v1/sessions/*/events", &Api::events, kClients},
      {"DELETE", "/v1/sessions/*", &Api::stop, kEverybody},
      {"GET", "/v1/sessions", &Api::sessions, kOperators},
      {"POST", "/v1/sessions/*/move", &Api::move, kOperators},
      {"POST", "/v1/predictions", &Api::prediction, kOperators},
      {"POST", "/v1/handovers", &Api::handover, kOperators},
      {"GET", "/v1/handovers", &Api::handovers, kOperators},
      {"GET", "/v1/handovers/*", &Api::one_handover, kOperators},
      {"POST", "/v1/drain", &Api::drain, kOperators},
      {"GET", "/v1/drain", &Api::draining, kOperators},
      {"POST", "/v1/positions", &Api::position, kOperators},
      {"GET", "/v1/engine", &Api::engine, kOperators},
      {"GET", "/health", &Api::health, kEverybody, false},
      {"GET", "/metrics", &Api::metrics, kOperators, false},
  };
  return kRoutes;
}

Api::Answer Api::handle(const HttpRequest& request, Responder& responder, Audience audience) {
  std::string allowed;
  for (const auto& route : routes()) {
    if (!offers(audience, route.audience)) continue;
    auto captured = match(route.pattern, request.path);
    if (!captured) continue;
    if (route.method != request.method) {
      allowed += (allowed.empty() ? "" : ", ") + std::string(route.method);
      continue;
    }
    Call call{request, responder, std::move(*captured), audience, "", "", ""};
    if (const auto error = admit(route, call)) return refuse(call, *error);
    if (route.needs_node && backend_ == nullptr) {
      return refuse(call, {503, "The gNB is starting.", "", "not_ready", std::nullopt});
    }
    return (this->*route.handler)(call);
  }
  ApiError error{404, "There is nothing at this path.", "", "unknown_path", std::nullopt};
  if (!allowed.empty()) {
    error = {405, "This path takes " + allowed + " only.", "", "method_not_allowed", std::nullopt};
  }
  auto response = error_response(error);
  if (!allowed.empty()) response.headers.emplace_back("Allow", allowed);
  responder.respond(std::move(response));
  return std::nullopt;
}

void Api::on_disconnected(node::StreamId stream) {
  pending_.erase(stream);
  if (streams_.abandon(stream) && backend_ != nullptr) backend_->on_stream_closed(stream);
}

// --- who calls ---

bool Api::is_operator(const HttpRequest& request, Audience audience) const {
  if (audience == Audience::kClients) return false;
  if (options_.operator_key.empty()) return audience == Audience::kOperators || !options_.keys;
  const auto header = request.header("Authorization");
  const auto key = header ? bearer_key(*header) : std::nullopt;
  return key && equal_secrets(*key, options_.operator_key);
}

std::string Api::node_token(std::string_view tenant, const std::string& shown) const {
  return options_.keys && !shown.empty() ? bind_token(tenant, shown) : shown;
}

bool Api::may_open(const Call& call, std::optional<wire::SessionSnapshot>& known) const {
  if (!is_token(call.shown_token) || !is_session_id(call.captured)) return false;
  if (auto found = backend_->describe(SessionId(call.captured), call.token)) {
    known = std::move(*found);
    return true;
  }
  return session_of(call.token) == call.captured;
}

std::optional<ApiError> Api::admit(const Route& route, Call& call) const {
  const bool by_operator =
      route.audience != Audience::kClients && is_operator(call.request, call.audience);
  if (route.audience == Audience::kOperators && !by_operator) {
    return unauthorized("Give the operator's key.");
  }
  call.shown_token = std::string(call.request.header("Pallas-Resume-Token").value_or(""));
  call.token = call.shown_token;
  // Health is nobody's secret.
  if (by_operator || !options_.keys || !route.needs_node) return std::nullopt;
  const auto header = call.request.header("Authorization");
  const auto key = header ? bearer_key(*header) : std::nullopt;
  auto tenant = key ? options_.keys->tenant_of(*key) : std::nullopt;
  if (!tenant) return unauthorized("Give an API key: 'Authorization: Bearer KEY'.");
  call.tenant = std::move(*tenant);
  call.token = node_token(call.tenant, call.shown_token);
  return std::nullopt;
}

Api::Answer Api::refuse(const Call& call, const ApiError& error) {
  auto response = error_response(error);
  if (error.status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  call.responder.respond(std::move(response));
  return std::nullopt;
}

ParserContext Api::parser_context() const {
  const auto& info = backend_->engine_info();
  return {&text_,
          info.model_name,
          info.context_tokens,
          backend_->config().default_consistency,
          options_.random,
          options_.unix_time()};
}

// --- generation ---

Api::Answer Api::generate(const Call& call, Endpoint endpoint) {
  if (!backend_->ready()) {
    return refuse(call, {503, "The gNB is being drained and takes no new sessions.", "", "draining",
                         std::nullopt});
  }
  auto ue = ue_of(call.request);
  if (!ue) return refuse(call, ue.error());
  auto parsed = parse_request(endpoint, call.request.body, parser_context());
  if (!parsed) return refuse(call, parsed.error());

  auto& open = parsed->open;
  open.params.ue = std::move(*ue);
  // A client that waits for the whole answer has nothing to resume from.
  open.resumable = parsed->stream && wants_resume(call.request);
  const auto shown = open.params;  // what the client is told
  open.params.resume_token = node_token(call.tenant, shown.resume_token);
  open.session = SessionId(session_of(open.params.resume_token));
  if (options_.keys) open.params.tenant = call.tenant;
  const auto params = open.params;
  const auto session = open.session;
  const auto prompt_tokens = static_cast<TokenPosition>(open.prompt.size());
  const bool resumable = open.resumable;

  const auto shape = parsed->stream ? Streams::Shape::kEvents : Streams::Shape::kWhole;
  const auto stream = streams_.begin(call.responder, shape);
  if (const auto opened = backend_->open(std::move(open), stream); !opened) {
    streams_.drop(stream);
    return refuse(call, to_api_error(opened.error()));
  }
  const auto face = face_of(params, resumable);
  std::string first;
  if (resumable) {
    const auto known = backend_->describe(session, params.resume_token);
    first = session_event({session, backend_->config().name, known ? known->epoch : Epoch(1),
                           &shown, prompt_tokens, backend_->compatibility()});
  }
  streams_.go_live(stream, face, first + role_event(face));
  return stream;
}

Api::Answer Api::models(const Call& call) {
  call.responder.respond(
      json_response(models_json(backend_->engine_info().model_name, started_unix_s_)));
  return std::nullopt;
}

Api::Answer Api::model(const Call& call) {
  const auto& name = backend_->engine_info().model_name;
  if (call.captured != name) {
    return refuse(call, {404, "The model '" + call.captured + "' is not served here.", "model",
                         "model_not_found", std::nullopt});
  }
  call.responder.respond(json_response(model_json(name, started_unix_s_)));
  return std::nullopt;
}

// --- sessions ---

std::optional<std::pair<StreamFace, std::string>> Api::opening(const Pending& pending) const {
  auto known = backend_->describe(pending.session, pending.token);
  if (!known) return std::nullopt;
  auto face = face_of(known->params, true);
  known->params.resume_token = pending.shown_token;
  const SessionAnnouncement announcement{
      pending.session, backend_->config().name, std::max(pending.epoch, known->epoch),
      &known->params,  known->prompt_tokens,    backend_->compatibility()};
  auto first = session_event(announcement);
  if (pending.next_index == 0) first += role_event(face);
  return std::pair{std::move(face), std::move(first)};
}

ApiError Api::session_error(const Error& error, const SessionId& session,
                            const std::string& token) const {
  // One answer for both, so that guessing an id teaches nothing.
  if (error.code == Errc::kNotFound || error.code == Errc::kUnauthorized) return no_such_session();
  auto out = to_api_error(error);
  if (error.code == Errc::kStaleEpoch) {
    if (const auto known = backend_->describe(session, token)) out.current = known->epoch.value;
  }
  return out;
}

Api::Answer Api::attach(const Call& call) {
  std::optional<wire::SessionSnapshot> known;
  if (!may_open(call, known)) return refuse(call, no_such_session());
  auto ue = ue_of(call.request);
  if (!ue) return refuse(call, ue.error());
  const SessionId session(call.captured);
  auto parsed = parse_attach(call.request.body, session, call.token, backend_->compatibility(),
                             parser_context(), known ? &*known : nullptr);
  if (!parsed) return refuse(call, parsed.error());
  if (parsed->context) {
    parsed->context->params.ue = std::move(*ue);
    if (options_.keys) parsed->context->params.tenant = call.tenant;
  }
  return attach_at(call, std::move(*parsed));
}

Api::Answer Api::events(const Call& call) {
  std::optional<wire::SessionSnapshot> known;
  if (!may_open(call, known)) return refuse(call, no_such_session());
  node::AttachRequest attach;
  attach.session = SessionId(call.captured);
  attach.resume_token = call.token;
  Epoch last;
  if (const auto text = call.request.header("Last-Event-ID"); text && !text->empty()) {
    const auto id = parse_event_id(*text);
    if (!id || id->index >= wire::kMaxTokens) {
      return refuse(call, {400, "'Last-Event-ID' must be <epoch>.<index>.", "Last-Event-ID",
                           "invalid_value", std::nullopt});
    }
    last = id->epoch;
    attach.next_index = id->index + 1;
  }
  if (const auto text = call.request.header("Pallas-Epoch")) {
    const auto* end = text->data() + text->size();
    const auto read = std::from_chars(text->data(), end, attach.epoch.value);
    if (read.ec != std::errc{} || read.ptr != end || attach.epoch == Epoch(0)) {
      return refuse(call, {400, "'Pallas-Epoch' must be an integer of at least 1.", "Pallas-Epoch",
                           "invalid_value", std::nullopt});
    }
  } else {
    if (last == Epoch() && known) last = known->epoch;
    attach.epoch = Epoch(last.value + 1);
  }
  if (attach.epoch.value > std::uint64_t{INT64_MAX}) {
    return refuse(call,
                  {400, "The epoch is too large.", "Pallas-Epoch", "invalid_value", std::nullopt});
  }
  return attach_at(call, std::move(attach));
}

Api::Answer Api::attach_at(const Call& call, node::AttachRequest request) {
  const Pending pending{request.session, request.resume_token, call.shown_token, request.epoch,
                        request.next_index};
  const auto stream = streams_.begin(call.responder, Streams::Shape::kEvents);
  if (const auto attached = backend_->attach(std::move(request), stream); !attached) {
    streams_.drop(stream);
    return refuse(call, session_error(attached.error(), pending.session, pending.token));
  }
  if (auto start = opening(pending)) {
    streams_.go_live(stream, std::move(start->first), start->second);
  } else {
    pending_.emplace(stream, pending);
    streams_.await_session(stream);
  }
  return stream;
}

void Api::resolve(node::StreamId stream) {
  const auto it = pending_.find(stream);
  if (backend_ == nullptr || it == pending_.end() || !streams_.is_open(stream)) return;
  const Pending pending = it->second;
  const auto waiting = streams_.waiting(stream);
  if (auto start = opening(pending); start && waiting != Streams::Waiting::kFailure) {
    pending_.erase(it);
    streams_.go_live(stream, std::move(start->first), start->second);
    return;
  }
  switch (waiting) {
    case Streams::Waiting::kNothing:
      streams_.keep_waiting(stream);
      return;
    case Streams::Waiting::kFailure:
      pending_.erase(it);
      streams_.refuse(stream,
                      session_error(*streams_.failure(stream), pending.session, pending.token));
      return;
    case Streams::Waiting::kOther:
      break;
  }
  // Tokens of a session that cannot be described: pass on what is known of it.
  pending_.erase(it);
  StreamFace face;
  face.resumable = true;
  face.model = backend_->engine_info().model_name;
  const SessionAnnouncement announcement{
      pending.session,          backend_->config().name, pending.epoch, nullptr, 0,
      backend_->compatibility()};
  streams_.go_live(stream, face, session_event(announcement));
}

Api::Answer Api::stop(const Call& call) {
  if (!is_session_id(call.captured)) return refuse(call, no_such_session());
  if (call.shown_token.empty() && !is_operator(call.request, call.audience)) {
    return refuse(call, unauthorized("Give the session's Pallas-Resume-Token."));
  }
  std::optional<wire::SessionSnapshot> known;
  if (!call.shown_token.empty() && !may_open(call, known)) return refuse(call, no_such_session());
  std::string last_node(call.request.header("Pallas-Last-Node").value_or(""));
  if (last_node.empty()) last_node = call.request.parameter("last_node").value_or("");
  if (last_node.size() > wire::kMaxNameBytes) {
    return refuse(call, {400, "'last_node' must have at most 128 bytes.", "last_node",
                         "invalid_value", std::nullopt});
  }
  const SessionId session(call.captured);
  if (const auto stopped = backend_->stop(session, call.token, NodeId(last_node)); !stopped) {
    return refuse(call, session_error(stopped.error(), session, call.token));
  }
  call.responder.respond(json_response("{\"id\":\"" + call.captured + "\",\"deleted\":true}"));
  return std::nullopt;
}

// --- RAN feed ---

template <class Event>
Api::Answer Api::take_ran(const Call& call, tl::expected<Event, Problem> event,
                          Status (Backend::*take)(const Event&)) {
  std::optional<Problem> problem;
  if (!event) {
    problem = event.error();
  } else if (!ran_limiter_.allow(event->ue.value, clock_.now())) {
    problem = Problem{429, "rate-limited", "Too many messages about this UE.", "ue"};
  } else if (const auto taken = (backend_->*take)(*event); !taken) {
    problem = ran_problem(taken.error());
  }
  if (problem) {
    ++stats_.ran_messages_refused;
    call.responder.respond(problem_response(*problem));
    return std::nullopt;
  }
  ++stats_.ran_messages_taken;
  HttpResponse response;
  response.status = 204;
  call.responder.respond(std::move(response));
  return std::nullopt;
}

Api::Answer Api::prediction(const Call& call) {
  return take_ran<mobility::Prediction>(call, parse_prediction(call.request.body),
                                        &Backend::on_prediction);
}
Api::Answer Api::handover(const Call& call) {
  return take_ran<mobility::HandoverEvent>(call, parse_handover(call.request.body),
                                           &Backend::on_handover);
}
Api::Answer Api::position(const Call& call) {
  return take_ran<mobility::PositionReport>(call, parse_position(call.request.body),
                                            &Backend::on_position);
}

// --- operator ---

Api::Answer Api::sessions(const Call& call) {
  call.responder.respond(json_response(sessions_json(backend_->sessions())));
  return std::nullopt;
}

Api::Answer Api::handovers(const Call& call) {
  const auto session = call.request.parameter("session").value_or("");
  call.responder.respond(json_response(
      handovers_json(backend_->handovers(), backend_->departures(), session, options_.anchor())));
  return std::nullopt;
}

Api::Answer Api::engine(const Call& call) {
  call.responder.respond(json_response(engine_json(backend_->engine_info())));
  return std::nullopt;
}

Api::Answer Api::health(const Call& call) {
  const bool ready = backend_ != nullptr && backend_->ready();
  auto response = json_response(
      backend_ == nullptr ? health_json(false, {}, "", {})
                          : health_json(ready, backend_->config().name,
                                        backend_->engine_info().model_name, backend_->stats()));
  response.status = ready ? 200 : 503;
  call.responder.respond(std::move(response));
  return std::nullopt;
}

Api::Answer Api::metrics(const Call& call) {
  stats_.streams_open = streams_.size();
  stats_.unsent_bytes = unsent_ ? unsent_() : 0;
  HttpResponse response;
  response.content_type = "text/plain; version=0.0.4; charset=utf-8";
  response.body = metrics_text(backend_ == nullptr ? node::NodeStats{} : backend_->stats(), stats_,
                               backend_ == nullptr ? 0 : backend_->config().slo_ms,
                               metric_source_ ? metric_source_() : std::vector<Metric>{});
  call.responder.respond(std::move(response));
  return std::nullopt;
}

}  // namespace pallas::http
