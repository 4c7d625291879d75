#pragma once
// The routes of docs/client-api.md: from a request to calls of the node, and back. No sockets: a
// connection hands over requests and gets answers through its Responder.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "engine/engine.h"
#include "http/api_keys.h"
#include "http/backend.h"
#include "http/message.h"
#include "http/metrics.h"
#include "http/orders.h"
#include "http/rate_limiter.h"
#include "http/request_parser.h"
#include "http/streams.h"
#include "http/wall_clock.h"

namespace pallas::http {

// Whom a listener is for.
enum class Audience : std::uint8_t { kClients, kOperators, kEverybody };

struct ApiOptions {
  double ran_messages_per_second = 200;  // of one UE at most; 0: no limit
  // When set, the RAN feed, views and figures, and DELETE without a resume token, need
  // "Authorization: Bearer <key>".
  std::string operator_key;
  // Who may use the OpenAI API, and whose sessions they are. None: everybody, in nobody's name;
  // then a listener for everybody without an operator's key takes everybody for the operator, too.
  std::optional<ApiKeys> keys;
  std::function<std::uint64_t()> random;    // 64 unpredictable bits; ids and tokens come from it
  std::function<std::int64_t()> unix_time;  // the wall clock, for `created` only
  std::function<ClockAnchor()> anchor = read_clock_anchor;  // for reports
};

// Draining is the program's, since it ends with it. `order` false-like: it does not do that.
struct DrainHandler {
  std::function<Status(const DrainOrder&)> order;
  std::function<std::optional<Duration>()> ends_in;
};

class Api {
 public:
  // `post` runs a function later on this thread, never from inside the call.
  using Post = std::function<void(std::function<void()>)>;
  Api(const engine::TextCodec& text, Clock& clock, ApiOptions options, Post post);
  Api(const Api&) = delete;
  Api& operator=(const Api&) = delete;

  // Until there is one, every route that needs it answers 503.
  void set_backend(Backend* backend) { backend_ = backend; }
  void set_metrics(MetricSource source) { metric_source_ = std::move(source); }
  void set_drain(DrainHandler drain) { drain_ = std::move(drain); }
  node::UeLink& ue_link() { return streams_; }
  HttpStats& stats() { return stats_; }
  std::size_t open_streams() const { return streams_.size(); }
  // How many bytes of answers wait for clients, for /metrics.
  void set_unsent(std::function<std::size_t()> unsent) { unsent_ = std::move(unsent); }

  // New keys count from the next request on.
  void set_keys(ApiKeys keys) { options_.keys = std::move(keys); }
  // Answers through `responder`, at once or later; a stream means later, and whoever owns the
  // responder calls on_disconnected() when the client goes before the answer's end. `audience` is
  // that of the listener: other routes do not exist there.
  std::optional<node::StreamId> handle(const HttpRequest& request, Responder& responder,
                                       Audience audience = Audience::kEverybody);
  void on_disconnected(node::StreamId stream);

 private:
  struct Call {
    const HttpRequest& request;
    Responder& responder;
    std::string captured;  // what stood in the place of '*'
    Audience audience;     // of the listener
    std::string tenant;    // by the key; "" where there are no keys
    // The resume token that the client showed, and what the node knows it by.
    std::string shown_token, token;
  };
  using Answer = std::optional<node::StreamId>;
  using Handler = Answer (Api::*)(const Call&);
  struct Route {
    std::string_view method, pattern;
    Handler handler;
    Audience audience;
    bool needs_node = true;
  };
  static const std::vector<Route>& routes();
  struct Pending {
    SessionId session;
    std::string token, shown_token;
    Epoch epoch;
    TokenIndex next_index = 0;
  };

  Answer chat(const Call& call) { return generate(call, Endpoint::kChat); }
  Answer completions(const Call& call) { return generate(call, Endpoint::kCompletions); }
  Answer generate(const Call& call, Endpoint endpoint);
  Answer models(const Call& call);
  Answer model(const Call& call);
  Answer attach(const Call& call);
  Answer events(const Call& call);
  Answer stop(const Call& call);
  Answer prediction(const Call& call);
  Answer handover(const Call& call);
  Answer position(const Call& call);
  Answer sessions(const Call& call);
  Answer handovers(const Call& call);
  Answer one_handover(const Call& call);
  Answer move(const Call& call);
  Answer drain(const Call& call);
  Answer draining(const Call& call);
  Answer engine(const Call& call);
  Answer health(const Call& call);
  Answer metrics(const Call& call);

  Answer attach_at(const Call& call, node::AttachRequest request);
  // What an attached stream needs before its first event; none while the node does not know it.
  std::optional<std::pair<StreamFace, std::string>> opening(const Pending& pending) const;
  ApiError session_error(const Error& error, const SessionId& session,
                         const std::string& token) const;
  void resolve(node::StreamId stream);
  bool is_operator(const HttpRequest& request, Audience audience) const;
  // Finds out who calls; an answer when that may not be.
  std::optional<ApiError> admit(const Route& route, Call& call) const;
  std::string node_token(std::string_view tenant, const std::string& shown) const;
  // What is known here of the session that the path names, if the token opens it. False when it
  // does not open any session of that name, here or elsewhere.
  bool may_open(const Call& call, std::optional<wire::SessionSnapshot>& known) const;
  ParserContext parser_context() const;
  Answer refuse(const Call& call, const ApiError& error);
  template <class Event>
  Answer take_ran(const Call& call, tl::expected<Event, Problem> event,
                  Status (Backend::*take)(const Event&));

  const engine::TextCodec& text_;
  Clock& clock_;
  ApiOptions options_;
  Post post_;
  Backend* backend_ = nullptr;
  MetricSource metric_source_;
  DrainHandler drain_;
  std::function<std::size_t()> unsent_;
  Streams streams_;
  std::map<node::StreamId, Pending> pending_;  // attached, session not known here yet
  RateLimiter ran_limiter_;
  HttpStats stats_;
  std::int64_t started_unix_s_ = 0;
};

}  // namespace pallas::http
