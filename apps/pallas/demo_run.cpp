#include "demo_run.h"

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "demo_prompt.h"
#include "driver.h"
#include "http/json_writer.h"
#include "http/wall_clock.h"
#include "http_feed.h"
#include "ue/follower.h"
#include "ue/gnb_api.h"

namespace pallas::app {
namespace {

constexpr Duration kFirstToken = std::chrono::seconds(120);
constexpr Duration kPatience = std::chrono::seconds(90);  // beyond the trip's own length

// A session as the demo watches it.
struct Watched {
  std::vector<ue::TokenRecord> tokens;
  bool over = false;
  std::string failure;
  std::uint64_t expected_tokens = 0;
  TokenPosition prompt_tokens = 0;
  SessionId session;
};

ue::FollowerCallbacks callbacks_for(Watched& watched, DemoView* view) {
  ue::FollowerCallbacks callbacks;
  callbacks.on_session = [&watched](const ue::SessionEvent& event) {
    watched.session = event.session;
    watched.prompt_tokens = event.prompt_tokens;
  };
  callbacks.on_token = [&watched, view](const ue::TokenRecord& token) {
    watched.tokens.push_back(token);
    if (view != nullptr) view->text(token.by, token.text);
  };
  callbacks.on_finish = [&watched, view](const std::string&, const std::string& text,
                                         const std::optional<ue::Usage>& usage) {
    watched.over = true;
    watched.expected_tokens = usage ? usage->completion_tokens : watched.tokens.size();
    if (view != nullptr && !watched.tokens.empty()) view->text(watched.tokens.back().by, text);
  };
  callbacks.on_error = [&watched](const ue::ApiError& error) {
    watched.over = true;
    watched.failure = error.message;
  };
  return callbacks;
}

// The driver's reports: the gNBs by HTTP, the UE in this process by a call.
class DemoFeed : public HttpFeed {
 public:
  DemoFeed(boost::asio::io_context& io, const std::map<NodeId, ue::Address>& gnbs,
           ue::Follower& follower)
      : HttpFeed(io, gnbs, std::nullopt), follower_(follower) {}
  void ue_handover(const NodeId&, const mobility::HandoverEvent& event) override {
    // The driver here has no interruption: execution and completion are one instant.
    if (event.phase == mobility::HandoverPhase::kCompleted) {
      if (auto s = follower_.on_cell(event.target); !s) trouble = s.error().message;
    }
  }
  std::string trouble;

 private:
  ue::Follower& follower_;
};

// Asks the gNBs what they are about and shows it, several times a second.
class LivePoll {
 public:
  LivePoll(EventLoop& loop, Clock& clock, Fleet& fleet, const Driver& driver, Watched& watched,
           DemoView& view)
      : fleet_(fleet),
        driver_(driver),
        watched_(watched),
        view_(view),
        timer_(clock),
        client_(loop.io(), ue::HttpTimeouts{}) {
    poll();
  }

 private:
  struct Answer {
    std::string peer, next;
    double window_s = 0, in_s = -1;
    TokenPosition front = 0, received = 0;
  };

  void poll() {
    ask(driver_.gnb(), here_);
    if (!here_.peer.empty()) ask(NodeId(here_.peer), there_);
    show();
    timer_.arm(std::chrono::milliseconds(200), [this] { poll(); });
  }

  void ask(const NodeId& gnb, Answer& into) {
    const auto at = fleet_.http().find(gnb);
    if (at == fleet_.http().end()) return;
    client_.fetch(at->second, {"GET", "/v1/sessions", {}, ""},
                  [this, &into](Result<ue::HttpReply> reply) {
                    if (reply && reply->status == 200) read(reply->body, into);
                  });
  }

  void read(const std::string& body, Answer& into) const {
    into = {};
    const auto json = nlohmann::json::parse(body, nullptr, false);
    if (!json.is_object() || !json.contains("data") || !json["data"].is_array()) return;
    for (const auto& item : json["data"]) {
      if (!item.is_object() || item.value("id", "") != watched_.session.value) continue;
      into.peer = item.value("peer", "");
      into.next = item.value("next", "");
      into.window_s = item.value("window_s", 0.0);
      into.in_s = item.value("handover_in_s", -1.0);
      into.front = item.value("target_front", 0u);
      into.received = item.value("rows_received", 0u);
    }
  }

  void show() {
    LiveState state;
    state.cell = driver_.cell();
    state.gnb = driver_.gnb();
    if (here_.in_s >= 0) state.to_handover_s = here_.in_s;  // as the gNB predicts it
    state.tokens = watched_.prompt_tokens + static_cast<TokenPosition>(watched_.tokens.size());
    if (!here_.peer.empty() && here_.peer == here_.next) {
      state.next = NodeId(here_.peer);
      state.window_s = here_.window_s;
      state.front = here_.front;
      state.received = there_.received;
    }
    view_.live(state);
  }

  Fleet& fleet_;
  const Driver& driver_;
  Watched& watched_;
  DemoView& view_;
  Answer here_, there_;
  Timer timer_;
  ue::GnbClient client_;
};

ue::FollowerConfig follower_config(const Fleet& fleet, const FleetPlan& plan, const CellId& cell,
                                   const std::string& ue) {
  ue::FollowerConfig config;
  config.ue = UeId(ue);
  config.gnbs = fleet.http();
  config.cells = plan.cells;
  config.cell = cell;
  return config;
}

}  // namespace

std::uint32_t DemoRun::max_tokens() const {
  const double seconds = (trip_.end() - trip_.begin()).count();
  return static_cast<std::uint32_t>(std::ceil((seconds + 1) * options_.max_token_rate));
}

Result<std::string> DemoRun::model_of(const ue::Address& gnb) {
  std::optional<Result<ue::HttpReply>> reply;
  ue::GnbClient client(loop_.io(), ue::HttpTimeouts{});
  client.fetch(gnb, {"GET", "/v1/models", {}, ""},
               [&](Result<ue::HttpReply> answer) { reply = std::move(answer); });
  const auto answered = [&] { return reply.has_value(); };
  if (auto s = loop_.wait(answered, std::chrono::seconds(10), "GET /v1/models"); !s) {
    return Failure(s.error());
  }
  if (!*reply) return Failure(reply->error());
  const auto name = ue::parse_first_model((*reply)->status, (*reply)->body);
  if (!name) return Failure(name.error());
  return *name;
}

std::string DemoRun::request(const std::string& model, const std::string& scheme,
                             bool capped) const {
  http::JsonWriter json;
  json.begin_object();
  json.member("model", model);
  json.key("messages").begin_array().begin_object();
  json.member("role", "user").member("content", demo_prompt()).end_object().end_array();
  json.member("temperature", 0.8)
      .member("seed", options_.seed)
      .member("ignore_eos", true)
      .member("max_tokens", max_tokens())
      .member("consistency", consistency_of(options_, scheme));
  if (capped) json.member("max_token_rate", options_.max_token_rate);
  return json.end_object().take();
}

Result<DemoInput> DemoRun::drive(Fleet& fleet, const std::string& scheme, DemoView& view) {
  const std::string ue_name = "ue-" + trip_.trajectory.ue.value;
  auto follower = ue::Follower::create(loop_.io(), clock_,
                                       follower_config(fleet, plan_, trip_.first_cell, ue_name));
  if (!follower) return Failure(follower.error());
  const auto model = model_of(fleet.http().begin()->second);
  if (!model) return Failure(model.error());
  Watched watched;
  const auto no = (*follower)->start(request(*model, scheme, true), ue::Endpoint::kChat,
                                     callbacks_for(watched, &view));
  if (!no) return Failure(no.error());
  const auto first = [&] { return watched.over || !watched.tokens.empty(); };
  if (auto s = loop_.wait(first, kFirstToken, "the first token"); !s) return Failure(s.error());
  if (watched.tokens.empty()) return fail(Errc::kEngine, "no token came: " + watched.failure);

  DriverOptions driving;
  driving.ue = UeId(ue_name);
  driving.cells = plan_.cells;
  driving.period = to_duration(Seconds(1 / options_.hz));
  driving.oracle = options_.oracle;
  DemoFeed feed(loop_.io(), fleet.http(), **follower);
  Driver driver(clock_, feed, trip_, driving);
  bool arrived = false;
  driver.start([&] { arrived = true; });
  {
    LivePoll poll(loop_, clock_, fleet, driver, watched, view);
    std::string trouble;
    const auto ended = [&] {
      trouble = fleet.trouble();
      return !trouble.empty() || (watched.over && (arrived || !watched.failure.empty()));
    };
    const auto limit = to_duration(trip_.end() - trip_.begin()) + kPatience;
    const auto status = loop_.wait(ended, limit, "the end of the session");
    driver.stop();
    view.end();
    if (!status) return Failure(status.error());
    if (!trouble.empty()) return fail(Errc::kUnreachable, trouble);
  }

  DemoInput input;
  input.scheme = scheme;
  input.consistency = consistency_of(options_, scheme);
  input.max_token_rate = options_.max_token_rate;
  input.prompt_tokens = watched.prompt_tokens;
  input.expected_tokens = watched.expected_tokens;
  input.failure = watched.failure;
  for (const auto& token : watched.tokens) {
    input.tokens.push_back({token.index, token.id, token.at, token.by});
  }
  if (const auto report = (*follower)->report(*no)) {
    input.model = report->model;
    for (const auto& h : report->handovers) {
      input.handovers.push_back({h.epoch, h.from, h.to, h.executed_at, h.gap_ms, h.sit_ms,
                                 ue::to_json(h, http::read_clock_anchor())});
    }
    input.contradictions = report->counters.contradictions;
    input.skipped = report->counters.skipped;
  }
  if (auto status = collect(fleet, watched.session, input); !status) {
    return Failure(status.error());
  }
  input.feed_failures = feed.failures().count;
  input.first_feed_failure = feed.failures().first;
  if (!feed.trouble.empty() && input.failure.empty()) input.failure = feed.trouble;
  return input;
}

Result<Reference> DemoRun::reference(Fleet& fleet, const std::string& scheme) {
  auto follower = ue::Follower::create(
      loop_.io(), clock_, follower_config(fleet, plan_, trip_.crossings.back().to, "ue-reference"));
  if (!follower) return Failure(follower.error());
  const auto model = model_of(fleet.http().begin()->second);
  if (!model) return Failure(model.error());
  Watched watched;
  const auto no = (*follower)->start(request(*model, scheme, false), ue::Endpoint::kChat,
                                     callbacks_for(watched, nullptr));
  if (!no) return Failure(no.error());
  std::string trouble;
  const auto ended = [&] {
    trouble = fleet.trouble();
    return watched.over || !trouble.empty();
  };
  if (auto s = loop_.wait(ended, kPatience, "the end of the reference run"); !s) {
    return Failure(s.error());
  }
  if (!trouble.empty()) return fail(Errc::kUnreachable, trouble);
  if (!watched.failure.empty()) {
    return fail(Errc::kEngine, "the reference run failed: " + watched.failure);
  }
  Reference reference;
  for (std::size_t i = 0; i < watched.tokens.size(); ++i) {
    reference.ids.push_back(watched.tokens[i].id);
    if (i > 0) reference.itl_ms.push_back(to_ms(watched.tokens[i].at - watched.tokens[i - 1].at));
  }
  return reference;
}

Status DemoRun::collect(Fleet& fleet, const SessionId& session, DemoInput& into) {
  std::size_t waiting = fleet.http().size();
  std::string trouble;
  ue::GnbClient client(loop_.io(), ue::HttpTimeouts{});
  for (const auto& [name, at] : fleet.http()) {
    client.fetch(at, {"GET", "/v1/handovers?session=" + session.value, {}, ""},
                 [&, who = name.value](Result<ue::HttpReply> reply) {
                   --waiting;
                   if (!reply || reply->status != 200) {
                     trouble = who + ": GET /v1/handovers failed";
                     return;
                   }
                   const auto reports = parse_gnb_reports(reply->body, session);
                   const auto sources = parse_source_reports(reply->body, session);
                   if (!reports || !sources) {
                     trouble = who + ": " + (reports ? sources.error() : reports.error()).message;
                     return;
                   }
                   into.reports.insert(into.reports.end(), reports->begin(), reports->end());
                   into.source_reports.insert(into.source_reports.end(), sources->begin(),
                                              sources->end());
                 });
  }
  const auto done = [&] { return waiting == 0; };
  if (auto s = loop_.wait(done, std::chrono::seconds(10), "the answer of the gNBs"); !s) {
    return Failure(s.error());
  }
  if (!trouble.empty()) return fail(Errc::kUnreachable, trouble);
  return {};
}

}  // namespace pallas::app
