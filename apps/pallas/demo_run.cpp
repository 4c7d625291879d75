#include "demo_run.h"

#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "demo_prompt.h"
#include "driver.h"
#include "follower_feed.h"
#include "gnb_queries.h"
#include "http/json_writer.h"
#include "http/wall_clock.h"
#include "ue/follower.h"
#include "watched_session.h"

namespace pallas::app {
namespace {

constexpr Duration kFirstToken = std::chrono::seconds(120);
constexpr Duration kPatience = std::chrono::seconds(90);  // beyond the trip's own length

// Asks the gNBs what they are about and shows it, several times a second.
class LivePoll {
 public:
  LivePoll(EventLoop& loop, Clock& clock, Fleet& fleet, const Driver& driver,
           WatchedSession& watched, DemoView& view)
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
  const WatchedSession& watched_;
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

std::vector<std::string> demo_gnb_flags(const DemoOptions& options, const std::string& scheme) {
  std::vector<std::string> flags = {
      "--scheme=" + scheme,
      "--shadow=" + options.shadow,
      "--engine=" + options.engine,
      fmt::format("--cell-size-m={}", options.cell_size_m),
      fmt::format("--cell-offset-m={}", options.cell_offset_m),
      fmt::format("--goodput-mbps={}", options.goodput_mbps),
      // An operator knows what its links carry; later samples correct it.
      fmt::format("--initial-goodput-mbps={}", options.goodput_mbps),
      // A vehicle needs about six seconds for a cell, and schemes that only recompute need most of
      // it.
      "--t-max-s=6",
      "--log-level=" + options.log_level,
      fmt::format("--context-tokens={}", options.context_tokens),
      fmt::format("--slots={}", kDemoSlots),
  };
  if (!options.model.empty()) flags.push_back("--model=" + options.model);
  return flags;
}

std::uint32_t DemoRun::max_tokens() const {
  const double seconds = (trip_.end() - trip_.begin()).count();
  return static_cast<std::uint32_t>(std::ceil((seconds + 1) * options_.max_token_rate));
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
  const auto model = model_of(loop_, fleet.http().begin()->second);
  if (!model) return Failure(model.error());
  WatchedSession watched;
  const auto no =
      (*follower)->start(request(*model, scheme, true), ue::Endpoint::kChat,
                         watched.callbacks([&view](const NodeId& by, const std::string& text) {
                           view.text(by, text);
                         }));
  if (!no) return Failure(no.error());
  const auto first = [&] { return watched.over || !watched.tokens.empty(); };
  if (auto s = loop_.wait(first, kFirstToken, "the first token"); !s) return Failure(s.error());
  if (watched.tokens.empty()) return fail(Errc::kEngine, "no token came: " + watched.failure);

  DriverOptions driving;
  driving.ue = UeId(ue_name);
  driving.cells = plan_.cells;
  driving.period = to_duration(Seconds(1 / options_.hz));
  driving.oracle = options_.oracle;
  FollowerFeed feed(loop_.io(), fleet.http(), **follower);
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
  auto reports = handover_reports(loop_, fleet.http(), watched.session);
  if (!reports) return Failure(reports.error());
  input.reports = std::move(*reports);
  auto sources = source_reports(loop_, fleet.http(), watched.session);
  if (!sources) return Failure(sources.error());
  input.source_reports = std::move(*sources);
  input.feed_failures = feed.failures().count;
  input.first_feed_failure = feed.failures().first;
  if (!feed.trouble.empty() && input.failure.empty()) input.failure = feed.trouble;
  return input;
}

Result<Reference> DemoRun::reference(Fleet& fleet, const std::string& scheme) {
  auto follower = ue::Follower::create(
      loop_.io(), clock_, follower_config(fleet, plan_, trip_.crossings.back().to, "ue-reference"));
  if (!follower) return Failure(follower.error());
  const auto model = model_of(loop_, fleet.http().begin()->second);
  if (!model) return Failure(model.error());
  WatchedSession watched;
  const auto no =
      (*follower)->start(request(*model, scheme, false), ue::Endpoint::kChat, watched.callbacks());
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

}  // namespace pallas::app
