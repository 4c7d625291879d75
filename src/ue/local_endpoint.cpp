#include "ue/local_endpoint.h"

#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "http/wall_clock.h"
#include "ue/gnb_api.h"
#include "ue/local_server.h"
#include "ue/openai_output.h"
#include "ue/ran_feed.h"

namespace pallas::ue {
namespace {

constexpr std::string_view kJson = "application/json";

ApiError bad_request(const Error& error) {
  return ApiError{.status = 400,
                  .message = error.message,
                  .type = "invalid_request_error",
                  .param = {},
                  .code = std::string(to_string(error.code))};
}

ApiError not_found(const IncomingRequest& request) {
  return ApiError{.status = 404,
                  .message = "there is no " + request.method + " " + std::string(request.path()),
                  .type = "invalid_request_error",
                  .param = {},
                  .code = "not_found"};
}

}  // namespace

class LocalEndpoint::Impl {
 public:
  explicit Impl(Follower& follower) : follower_(follower), feed_(follower.config().ue) {}

  // Sessions end with their endpoint; callbacks of fetches that are still out find it gone.
  ~Impl() {
    for (const auto& [exchange, answer] : answers_) follower_.stop(answer.session);
  }

  LocalServer::Handlers handlers() {
    return {[this](Exchange e, const IncomingRequest& request) { on_request(e, request); },
            [this](Exchange e) { on_gone(e); }};
  }
  void use(std::unique_ptr<LocalServer> server) { server_ = std::move(server); }
  std::uint16_t port() const { return server_->port(); }

 private:
  using Exchange = LocalServer::Exchange;

  // One OpenAI request that is being answered.
  struct Answer {
    Answer(Endpoint endpoint, const PreparedRequest& request)
        : output(endpoint, request.include_usage), stream(request.stream) {}
    OpenAiOutput output;
    bool stream;
    bool begun = false;
    std::string text;  // of an answer that does not stream
    Follower::SessionNo session = 0;
  };

  void on_request(Exchange exchange, const IncomingRequest& request);
  void on_gone(Exchange exchange);
  void run_session(Exchange exchange, Endpoint endpoint, const std::string& body);
  FollowerCallbacks callbacks(Exchange exchange);
  void take_handover(Exchange exchange, const std::string& body);
  void forward(Exchange exchange, const std::string& target);
  void show_health(Exchange exchange);
  void refuse(Exchange exchange, const ApiError& error) {
    server_->reply(exchange, error.status, kJson, to_json(error));
  }

  Follower& follower_;
  RanFeed feed_;
  std::map<Exchange, Answer> answers_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::unique_ptr<LocalServer> server_;
};

void LocalEndpoint::Impl::on_request(Exchange exchange, const IncomingRequest& request) {
  const std::string_view path = request.path();
  const bool get = request.method == "GET" || request.method == "HEAD";
  const bool post = request.method == "POST";
  if (post && path == "/v1/chat/completions") {
    run_session(exchange, Endpoint::kChat, request.body);
  } else if (post && path == "/v1/completions") {
    run_session(exchange, Endpoint::kCompletion, request.body);
  } else if (get && (path == "/v1/models" || path.starts_with("/v1/models/"))) {
    forward(exchange, request.target);
  } else if (post && path == "/v1/handovers") {
    take_handover(exchange, request.body);
  } else if (get && path == "/v1/handovers") {
    server_->reply(exchange, 200, kJson,
                   handovers_to_json(follower_.report(), http::read_clock_anchor()));
  } else if (get && path == "/health") {
    show_health(exchange);
  } else {
    refuse(exchange, not_found(request));
  }
}

void LocalEndpoint::Impl::run_session(Exchange exchange, Endpoint endpoint,
                                      const std::string& body) {
  const Result<PreparedRequest> request = prepare_request(body);
  if (!request) return refuse(exchange, bad_request(request.error()));
  // The body as the client sent it: start() makes it fit for a gNB.
  const Result<Follower::SessionNo> session = follower_.start(body, endpoint, callbacks(exchange));
  if (!session) return refuse(exchange, bad_request(session.error()));
  answers_.try_emplace(exchange, endpoint, *request).first->second.session = *session;
}

FollowerCallbacks LocalEndpoint::Impl::callbacks(Exchange exchange) {
  FollowerCallbacks calls;
  calls.on_session = [this, exchange](const SessionEvent& session) {
    Answer& answer = answers_.at(exchange);
    answer.output.take_session(session);
    if (!answer.stream) return;
    answer.begun = true;
    server_->begin_stream(exchange, "text/event-stream; charset=utf-8");
    server_->write(exchange, answer.output.begin());
  };
  calls.on_token = [this, exchange](const TokenRecord& token) {
    Answer& answer = answers_.at(exchange);
    if (answer.stream) {
      server_->write(exchange, answer.output.text(token.text));
    } else {
      answer.text += token.text;
    }
  };
  calls.on_keep_alive = [this, exchange] {
    const Answer& answer = answers_.at(exchange);
    if (answer.stream && answer.begun) server_->write(exchange, ": keep-alive\n\n");
  };
  calls.on_finish = [this, exchange](const std::string& reason, const std::string& text,
                                     const std::optional<Usage>& usage) {
    const auto node = answers_.extract(exchange);
    const Answer& answer = node.mapped();
    if (answer.stream) {
      server_->write(exchange, answer.output.finish(reason, text, usage));
      server_->end(exchange);
    } else {
      server_->reply(exchange, 200, kJson, answer.output.whole(answer.text + text, reason, usage));
    }
  };
  calls.on_error = [this, exchange](const ApiError& error) {
    const auto node = answers_.extract(exchange);
    if (!node.mapped().begun) return refuse(exchange, error);
    server_->write(exchange, error_event(error));
    server_->end(exchange);
  };
  return calls;
}

void LocalEndpoint::Impl::on_gone(Exchange exchange) {
  const auto node = answers_.extract(exchange);
  if (!node.empty()) follower_.stop(node.mapped().session);
}

void LocalEndpoint::Impl::take_handover(Exchange exchange, const std::string& body) {
  RanFeed::Outcome outcome = feed_.take(body, follower_.cell(), follower_.config().cells);
  if (outcome.cell && !outcome.problem) {
    if (Status moved = follower_.on_cell(*outcome.cell); !moved) {
      outcome.problem = FeedProblem{422, "target", moved.error().message};
    }
  }
  if (outcome.problem) {
    server_->reply(exchange, outcome.problem->status, "application/problem+json",
                   to_json(*outcome.problem));
  } else {
    server_->reply(exchange, 204, "", "");
  }
}

void LocalEndpoint::Impl::forward(Exchange exchange, const std::string& target) {
  const std::weak_ptr<bool> here = alive_;
  follower_.fetch(target, [this, here, exchange](const Result<HttpReply>& reply) {
    if (here.expired()) return;
    if (reply) return server_->reply(exchange, reply->status, reply->content_type, reply->body);
    refuse(exchange, ApiError{.status = 502,
                              .message = reply.error().message,
                              .type = "server_error",
                              .param = {},
                              .code = std::string(to_string(reply.error().code))});
  });
}

void LocalEndpoint::Impl::show_health(Exchange exchange) {
  const nlohmann::json json{{"status", "ok"},
                            {"ue", follower_.config().ue.value},
                            {"cell", follower_.cell().value},
                            {"gnb", follower_.gnb().value},
                            {"sessions", follower_.active()}};
  server_->reply(exchange, 200, kJson, json.dump());
}

LocalEndpoint::LocalEndpoint(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

LocalEndpoint::~LocalEndpoint() = default;

Result<std::unique_ptr<LocalEndpoint>> LocalEndpoint::listen(boost::asio::io_context& io,
                                                             Follower& follower,
                                                             const Address& address) {
  auto impl = std::make_unique<Impl>(follower);
  auto server = LocalServer::listen(io, address, impl->handlers(), LocalServer::Limits{});
  if (!server) return tl::unexpected(server.error());
  impl->use(std::move(*server));
  return std::unique_ptr<LocalEndpoint>(new LocalEndpoint(std::move(impl)));
}

std::uint16_t LocalEndpoint::port() const {
  return impl_->port();
}

}  // namespace pallas::ue
