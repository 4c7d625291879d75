#include "bench_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <set>
#include <string_view>

#include "base/random.h"
#include "child_process.h"
#include "distribution.h"
#include "driver.h"
#include "follower_feed.h"
#include "gnb_queries.h"
#include "http/json_writer.h"
#include "request_choices.h"
#include "ue/follower.h"
#include "watched_session.h"

namespace pallas::app {
namespace {

constexpr Duration kFirstToken = std::chrono::seconds(180);
constexpr Duration kPatience = std::chrono::seconds(180);  // beyond the last handover
constexpr Duration kPredictionPeriod = std::chrono::milliseconds(100);
// What an ended session leaves to do at the gNBs.
constexpr Duration kSettle = std::chrono::milliseconds(300);
// A report that tells of a session on a part of its KV is asked for again, for 20 s at most.
constexpr Duration kBackFillPoll = std::chrono::milliseconds(200);
constexpr std::size_t kFleetsAlive = 6;
constexpr std::uint32_t kSizingTokens = 60;

const CellId kCellA("cell_a"), kCellB("cell_b"), kCellC("cell_c");

// Two gNBs, and a third to foretell wrongly.
FleetPlan plan_gnbs(bool wrong_targets) {
  FleetPlan plan{{NodeId("gnb-a"), NodeId("gnb-b")},
                 {{kCellA, NodeId("gnb-a")}, {kCellB, NodeId("gnb-b")}}};
  if (wrong_targets) {
    plan.names.emplace_back("gnb-c");
    plan.cells[kCellC] = NodeId("gnb-c");
  }
  return plan;
}

// The last handover's session is not whole again.
bool is_back_filling(const std::vector<GnbReport>& reports) {
  if (reports.empty()) return false;
  const auto latest = std::max_element(reports.begin(), reports.end(),
                                       [](auto& a, auto& b) { return a.epoch < b.epoch; });
  return latest->partial && !latest->partial->complete_ms;
}

// Of "--setting=value", "--setting" or "--no-setting".
std::string_view setting_of(std::string_view flag) {
  flag = flag.substr(0, flag.find('='));
  flag.remove_prefix(flag.starts_with("--no-") ? 5 : 2);
  return flag;
}

// In the place of an earlier value: what is more particular comes later.
void set_flag(std::vector<std::string>& flags, const std::string& flag) {
  std::erase_if(
      flags, [&](const std::string& earlier) { return setting_of(earlier) == setting_of(flag); });
  flags.push_back(flag);
}

// Every other round goes the other way, so that machines and cores that differ do so for all alike.
struct Way {
  CellId home, away;
};
Way way_of(const PlannedRun& run) {
  return run.round % 2 == 0 ? Way{kCellA, kCellB} : Way{kCellB, kCellA};
}

// To and fro between two cells at the given times; none for a control.
Trip make_trip(const RunLayout& layout, const Way& way, bool moves) {
  Trip trip;
  const Seconds end = layout.handovers.back() + to_seconds(kPatience);
  trip.trajectory.samples = {{Seconds(0), {}, {}, {}}, {end, {}, {}, {}}};
  trip.first_cell = way.home;
  for (std::size_t i = 0; moves && i < layout.handovers.size(); ++i) {
    const bool leaves = i % 2 == 0;
    trip.crossings.push_back({layout.handovers[i], leaves ? way.home : way.away,
                              leaves ? way.away : way.home, mobility::Point{}});
  }
  return trip;
}

}  // namespace

std::uint32_t bench_slots(const BenchPlan& plan) {
  // One that is back-filled takes two.
  const bool partial = std::any_of(plan.schemes.begin(), plan.schemes.end(),
                                   [](const auto& s) { return s.scheme == "partial"; });
  std::uint32_t most = 0;
  for (const auto& setting : plan.settings) {
    most = std::max(most, (partial ? 2 : 1) * setting.movers + setting.residents);
  }
  // One to spare: what is left of the last run may still be there. Three as in the demo, whose
  // measured engine costs are then used again.
  return std::max(3u, most + 1);
}

struct BenchRunner::User {
  std::string name;
  WatchedSession session;
  std::unique_ptr<ue::Follower> follower;
  ue::Follower::SessionNo no = 0;
  // A mover's.
  std::unique_ptr<FollowerFeed> feed;
  std::unique_ptr<Driver> driver;
  std::set<std::size_t> mistaken;
};

BenchRunner::BenchRunner(EventLoop& loop, Clock& clock, const BenchPlan& plan,
                         const LogFolder& logs)
    : loop_(loop),
      clock_(clock),
      plan_(plan),
      logs_(logs),
      fleet_plan_(plan_gnbs(plan.options.wrong_target > 0)),
      slots_(bench_slots(plan)),
      pool_(loop, kFleetsAlive) {
  if (plan.options.pin) cores_ = share_cores(allowed_cores(), fleet_plan_.names.size());
}

std::string BenchRunner::placement() const {
  if (cores_.empty()) {
    return plan_.options.pin ? "gNBs are not pinned: there are fewer cores than gNBs"
                             : "gNBs are not pinned";
  }
  std::string text = "gNBs are pinned:";
  for (std::size_t i = 0; i < cores_.size(); ++i) {
    text += fmt::format("{} {} to core{} {}", i == 0 ? "" : ",", fleet_plan_.names[i].value,
                        cores_[i].size() == 1 ? "" : "s", fmt::join(cores_[i], " "));
  }
  return text;
}

FleetStart BenchRunner::fleet_start(const std::string& name, const std::vector<std::string>& links,
                                    const std::vector<std::string>& of_scheme) const {
  const auto& options = plan_.options;
  FleetStart how;
  how.flags = {"--engine=" + options.engine,
               fmt::format("--context-tokens={}", options.context_tokens),
               // Schemes as published, unless a scheme or --gnb says otherwise.
               fmt::format("--slots={}", slots_), "--log-level=error", "--shadow=off"};
  if (!options.model.empty()) how.flags.push_back("--model=" + options.model);
  for (const auto* flags : {&links, &plan_.gnb_flags, &of_scheme}) {
    for (const auto& flag : *flags) set_flag(how.flags, flag);
  }
  how.cores = cores_;
  how.log_folder = logs_.folder(name);
  return how;
}

Result<Fleet*> BenchRunner::fleet_for(const PlannedRun& planned, const RunLayout& layout) {
  // Controls go through the schemes: where nothing moves, all fleets are alike.
  const std::size_t which = planned.scheme.value_or(planned.round % plan_.schemes.size());
  const auto& scheme = plan_.schemes[which];
  const auto& setting = plan_.settings[planned.setting];
  std::vector<std::string> flags = {
      "--scheme=" + scheme.scheme, fmt::format("--goodput-mbps={}", layout.goodput_mbps),
      // As an operator knows what its links carry.
      fmt::format("--initial-goodput-mbps={}", layout.goodput_mbps), "--t-max-s=12"};
  std::string name = fmt::format("{}-{}", scheme.label, setting.goodput.label);
  if (!plan_.options.goodput_trace.empty()) {
    flags[1] = "--goodput-trace=" + plan_.options.goodput_trace;
    flags[2] = "--initial-goodput-mbps=0";
  } else if (setting.goodput.multiple) {
    name += fmt::format("-{}", layout.goodput_mbps);
  }
  if (setting.window_s) {
    // Starts as soon as a handover is foreseen, which is then the window.
    flags.push_back("--window-margin-ms=60000");
    name += "-window";
  }
  std::replace(name.begin(), name.end(), '/', '_');
  return pool_.get(name, fleet_plan_, fleet_start(name, flags, scheme.flags));
}

std::string BenchRunner::request(std::uint32_t words, std::uint32_t start, std::uint32_t max_tokens,
                                 std::uint64_t seed, double rate,
                                 const std::string& consistency) const {
  http::JsonWriter json;
  json.begin_object();
  json.key("messages").begin_array().begin_object();
  json.member("role", "user").member("content", bench_prompt(words, start));
  json.end_object().end_array();
  json.member("temperature", 0.8)
      .member("seed", seed)
      .member("ignore_eos", true)
      .member("max_tokens", max_tokens)
      .member("consistency", consistency);
  if (rate > 0) json.member("max_token_rate", rate);
  return json.end_object().take();
}

Result<std::unique_ptr<BenchRunner::User>> BenchRunner::start_user(Fleet& fleet,
                                                                   const std::string& name,
                                                                   const CellId& cell,
                                                                   const std::string& body) {
  auto user = std::make_unique<User>();
  user->name = fmt::format("{}-{}", name, ++users_started_);
  ue::FollowerConfig config;
  config.ue = UeId(user->name);
  config.gnbs = fleet.http();
  config.cells = fleet_plan_.cells;
  config.cell = cell;
  auto follower = ue::Follower::create(loop_.io(), clock_, std::move(config));
  if (!follower) return Failure(follower.error());
  user->follower = std::move(*follower);
  const auto no = user->follower->start(body, ue::Endpoint::kChat, user->session.callbacks());
  if (!no) return Failure(no.error());
  user->no = *no;
  return user;
}

Status BenchRunner::wait_for_first(Fleet& fleet, const std::vector<std::unique_ptr<User>>& users) {
  std::string trouble;
  const auto begun = [&] {
    trouble = fleet.trouble();
    return !trouble.empty() || std::all_of(users.begin(), users.end(), [](const auto& user) {
      return user->session.over || !user->session.tokens.empty();
    });
  };
  if (auto s = loop_.wait(begun, kFirstToken, "the first token"); !s) return s;
  if (!trouble.empty()) return fail(Errc::kUnreachable, trouble);
  for (const auto& user : users) {
    if (user->session.tokens.empty()) {
      return fail(Errc::kEngine, "no token came: " + user->session.failure);
    }
  }
  return {};
}

Status BenchRunner::end(std::vector<std::unique_ptr<User>>& users) {
  for (auto& user : users) {
    if (user->driver) user->driver->stop();
    user->follower->stop_all();
  }
  const auto deleted = [&] {
    return std::all_of(users.begin(), users.end(),
                       [](const auto& user) { return user->follower->pending_deletes() == 0; });
  };
  if (auto s = loop_.wait(deleted, std::chrono::seconds(10), "the end of the sessions"); !s) {
    return s;
  }
  const TimePoint until = clock_.now() + kSettle;
  return loop_.wait([&] { return clock_.now() >= until; }, std::chrono::seconds(10), "a moment");
}

Result<Sizing> BenchRunner::size(const BenchSetting& setting) {
  // Not paced: nothing moves.
  const std::string name = "sizing";
  auto fleet = pool_.get(name, fleet_plan_, fleet_start(name, {}, {}));
  if (!fleet) return Failure(fleet.error());
  const auto& gnb = (*fleet)->http().begin()->second;
  Sizing sizing;
  const auto model = model_of(loop_, gnb);
  if (!model) return Failure(model.error());
  sizing.model = *model;
  const auto bytes = kv_bytes_per_token(loop_, gnb);
  if (!bytes) return Failure(bytes.error());
  sizing.kv_bytes = *bytes;

  // Users at once, each with `words` and `tokens`; those of the first.
  const auto ask = [&](std::uint32_t count, std::uint32_t words,
                       std::uint32_t tokens) -> Result<WatchedSession> {
    std::vector<std::unique_ptr<User>> users;
    for (std::uint32_t i = 0; i < count; ++i) {
      auto user = start_user(**fleet, "sizing", kCellA,
                             request(words, 0, tokens, plan_.options.seed, 0, "fast"));
      if (!user) return Failure(user.error());
      users.push_back(std::move(*user));
    }
    if (auto s = wait_for_first(**fleet, users); !s) return Failure(s.error());
    const auto over = [&] {
      return std::all_of(users.begin(), users.end(),
                         [](const auto& user) { return user->session.over; });
    };
    if (auto s = loop_.wait(over, kPatience, "the end of a sizing request"); !s) {
      return Failure(s.error());
    }
    WatchedSession session = users.front()->session;
    if (!session.failure.empty()) return fail(Errc::kEngine, "sizing: " + session.failure);
    if (auto s = end(users); !s) return Failure(s.error());
    return session;
  };

  constexpr std::uint32_t kFew = 20, kMore = 40;
  const auto few = ask(1, kFew, 1);
  if (!few) return Failure(few.error());
  const auto more = ask(1, kMore, 1);
  if (!more) return Failure(more.error());
  const double slope =
      (static_cast<double>(more->prompt_tokens) - static_cast<double>(few->prompt_tokens)) /
      (kMore - kFew);
  sizing.tokens_per_word = std::max(slope, 0.1);
  sizing.tokens_beside = std::max(0.0, few->prompt_tokens - slope * kFew);
  // As deep as the handover will be.
  const double depth =
      std::min<double>(setting.context, plan_.options.context_tokens - kSizingTokens - 1.0) -
      sizing.tokens_beside;
  const auto words =
      static_cast<std::uint32_t>(std::max(1.0, 0.9 * depth / sizing.tokens_per_word));
  const auto deep = ask(setting.movers, words, kSizingTokens);
  if (!deep) return Failure(deep.error());
  // A text of its own length is a better sample of its words than the first forty.
  sizing.tokens_per_word = (deep->prompt_tokens - sizing.tokens_beside) / words;
  std::vector<double> intervals;
  for (std::size_t i = 1; i < deep->tokens.size(); ++i) {
    intervals.push_back(to_ms(deep->tokens[i].at - deep->tokens[i - 1].at));
  }
  sizing.step_ms = distribution(intervals).p50.value_or(0);
  if (!(sizing.step_ms > 0)) return fail(Errc::kEngine, "sizing: there were no intervals");
  return sizing;
}

Result<RunRecord> BenchRunner::measure(const PlannedRun& planned, const Sizing& sizing) {
  const auto& setting = plan_.settings[planned.setting];
  const auto& options = plan_.options;
  const auto layout = lay_out(setting, sizing, options.context_tokens);
  if (!layout) return Failure(layout.error());
  auto fleet_ptr = fleet_for(planned, *layout);
  if (!fleet_ptr) return Failure(fleet_ptr.error());
  Fleet& fleet = **fleet_ptr;
  const std::string consistency = options.consistency.value_or(
      planned.scheme ? default_consistency(plan_.schemes[*planned.scheme].scheme) : "exact");

  const Way way = way_of(planned);
  std::vector<std::unique_ptr<User>> residents, movers;
  // Residents' seeds and texts are the same in every run of a round, like the movers'.
  const std::uint64_t seed = options.seed + 1000ull * planned.round;
  const std::uint32_t text = 37 * planned.round;
  for (std::uint32_t i = 0; i < setting.residents; ++i) {
    auto user = start_user(fleet, "resident", way.away,
                           request(layout->resident_words, text + 11 * i, options.context_tokens,
                                   seed + 100 + i, setting.max_token_rate, consistency));
    if (!user) return Failure(user.error());
    residents.push_back(std::move(*user));
  }
  if (auto s = wait_for_first(fleet, residents); !s) return Failure(s.error());
  for (std::uint32_t i = 0; i < setting.movers; ++i) {
    auto user = start_user(fleet, "mover", way.home,
                           request(layout->mover_words.at(i), text + 11 * i, layout->max_tokens,
                                   seed + i, setting.max_token_rate, consistency));
    if (!user) return Failure(user.error());
    movers.push_back(std::move(*user));
  }
  if (auto s = wait_for_first(fleet, movers); !s) return Failure(s.error());

  const bool moves = planned.scheme.has_value();
  for (std::size_t m = 0; m < movers.size(); ++m) {
    User& user = *movers[m];
    DriverOptions driving;
    driving.ue = UeId(user.name);
    driving.cells = fleet_plan_.cells;
    driving.period = kPredictionPeriod;
    driving.oracle = true;
    driving.foresight = to_duration(layout->available);
    for (std::size_t h = 0; moves && h < layout->handovers.size(); ++h) {
      Random draw(mix(mix(seed + m, "wrong target"), h));
      if (draw.uniform() < options.wrong_target) driving.foretold_wrongly[h] = kCellC;
    }
    user.feed = std::make_unique<FollowerFeed>(loop_.io(), fleet.http(), *user.follower);
    for (const auto& [hop, cell] : driving.foretold_wrongly) user.mistaken.insert(hop);
    user.driver = std::make_unique<Driver>(clock_, *user.feed, make_trip(*layout, way, moves),
                                           std::move(driving));
  }
  const TimePoint start = clock_.now();
  for (auto& user : movers) user->driver->start([] {});

  const TimePoint last = start + to_duration(layout->handovers.back());
  std::string trouble;
  const auto ended = [&] {
    trouble = fleet.trouble();
    if (!trouble.empty()) return true;
    return std::all_of(movers.begin(), movers.end(), [&](const auto& user) {
      if (user->session.over) return true;
      const auto& tokens = user->session.tokens;
      return tokens.size() > kTailTokens && tokens[tokens.size() - kTailTokens].at > last;
    });
  };
  const auto limit = to_duration(layout->handovers.back()) + kPatience;
  if (auto s = loop_.wait(ended, limit, "the end of a run"); !s) return Failure(s.error());
  if (!trouble.empty()) return fail(Errc::kUnreachable, trouble);

  RunRecord record;
  record.key = plan_.key(planned);
  record.goodput_mbps = layout->goodput_mbps;
  record.available_s = layout->available.count();
  record.step_ms = sizing.step_ms;
  for (const Seconds at : layout->handovers) record.planned_ms.push_back(at.count() * 1000);
  for (const auto& user : movers) {
    record.movers.emplace_back();
    if (auto s = collect(fleet, *user, start, record.movers.back()); !s) return Failure(s.error());
  }
  for (const auto& user : residents) {
    record.residents.emplace_back();
    for (const auto& token : user->session.tokens) {
      record.residents.back().push_back(to_ms(token.at - start));
    }
  }
  std::vector<std::unique_ptr<User>> all;
  for (auto* users : {&movers, &residents}) {
    for (auto& user : *users) all.push_back(std::move(user));
  }
  if (auto s = end(all); !s) return Failure(s.error());
  return record;
}

Status BenchRunner::collect(Fleet& fleet, const User& user, TimePoint start, MoverRecord& record) {
  const auto& session = user.session;
  record.prompt_tokens = session.prompt_tokens;
  const auto fault = [&](std::string text) { record.faults.push_back(std::move(text)); };
  for (std::size_t i = 0; i < session.tokens.size(); ++i) {
    const auto& token = session.tokens[i];
    record.at_ms.push_back(to_ms(token.at - start));
    record.ids.push_back(token.id);
    if (token.index != i && record.faults.empty()) {
      fault(fmt::format("the UE got index {} where {} was due", token.index, i));
    }
  }
  if (session.over) {
    fault("the session ended early: " +
          (session.failure.empty() ? "it ran out of tokens" : session.failure));
  }
  if (!user.feed->trouble.empty()) fault(user.feed->trouble);
  if (const auto& failures = user.feed->failures(); failures.count > 0) {
    fault(fmt::format("{} reports of the driver were not taken, first {}", failures.count,
                      failures.first));
  }
  const auto report = user.follower->report(user.no);
  if (!report) return fail(Errc::kInternal, "a session has no report");
  if (report->counters.contradictions > 0) {
    fault(fmt::format("{} tokens came again with another id", report->counters.contradictions));
  }
  if (report->counters.skipped > 0) {
    fault(fmt::format("{} tokens came from beyond the next one", report->counters.skipped));
  }
  auto gnbs = handover_reports(loop_, fleet.http(), session.session);
  for (int asked = 0; gnbs && is_back_filling(*gnbs) && !session.over && asked < 100; ++asked) {
    const TimePoint until = clock_.now() + kBackFillPoll;
    const auto later = [&] { return clock_.now() >= until; };
    if (auto s = loop_.wait(later, kPatience, "a moment"); !s) return s;
    gnbs = handover_reports(loop_, fleet.http(), session.session);
  }
  if (!gnbs) return Failure(gnbs.error());
  for (std::size_t h = 0; h < report->handovers.size(); ++h) {
    const auto& seen = report->handovers[h];
    HopRecord hop{
        to_ms(seen.executed_at - start), seen.gap_ms, seen.sit_ms, {}, user.mistaken.contains(h)};
    for (const auto& gnb : *gnbs) {
      if (gnb.epoch == seen.epoch && gnb.target == seen.to.value) hop.gnb = gnb;
    }
    record.hops.push_back(std::move(hop));
  }
  return {};
}

}  // namespace pallas::app
