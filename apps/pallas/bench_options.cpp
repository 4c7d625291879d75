#include "bench_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "gnb_config.h"
#include "plan/scheme.h"
#include "request_choices.h"

namespace pallas::app {
namespace {

constexpr const char* kSlowSchemes[] = {"full-copy", "recompute", "ctho"};

Failure wrong(std::string_view field, const std::string& why) {
  return fail(Errc::kInvalidArgument, fmt::format("{}: {}", field, why));
}

std::optional<double> parse_number(std::string_view text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  if (parsed.ec != std::errc{} || parsed.ptr != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

// "key=value" as a flag of `pallas gnb`; `config` is set accordingly.
Result<std::string> gnb_flag(std::string_view field, const std::string& text, GnbConfig& config) {
  const auto equals = text.find('=');
  const std::string key = text.substr(0, equals);
  const auto& known = gnb_settings();
  const auto found =
      std::find_if(known.begin(), known.end(), [&](const Setting& s) { return s.key == key; });
  if (equals == std::string::npos || found == known.end()) {
    return wrong(field, "'" + text + "' is not SETTING=VALUE with a setting of pallas gnb");
  }
  if (auto s = set_from_text(config, *found, text.substr(equals + 1)); !s) {
    return wrong(field, s.error().message);
  }
  if (found->kind == SettingKind::kBool) {
    return flag_of(text.ends_with("=true") ? key : "no_" + key);
  }
  return flag_of(key) + text.substr(equals);
}

template <class T>
Status check_each(std::string_view field, const std::vector<T>& values, double low, double high) {
  if (values.empty()) return wrong(field, "needs a value");
  for (const T value : values) {
    const auto number = static_cast<double>(value);
    if (!(number >= low && number <= high)) {
      return wrong(field, fmt::format("{} is not from {} to {}", value, low, high));
    }
  }
  return {};
}

Status check(const BenchOptions& options) {
  for (const auto& status :
       {check_each("context", options.contexts, 50, 100'000),
        check_each("movers", options.movers, 1, 4),
        check_each("residents", options.residents, 0, 3),
        check_each("max_token_rate", options.token_rates, 0, 1000),
        check_each("trip_handovers", options.trip_handovers, 1, 8),
        check_each("handovers", std::vector{options.handovers}, 1, 10'000),
        check_each("handovers_slow", std::vector{options.handovers_slow}, 1, 10'000),
        check_each("wrong_target", std::vector{options.wrong_target}, 0, 1),
        check_each("mover_spread", std::vector{options.mover_spread}, 0, 0.8)}) {
    if (!status) return status;
  }
  if (!options.available_s.empty()) {
    if (auto s = check_each("available_s", options.available_s, 0, 60); !s) return s;
  }
  if (!options.window_s.empty()) {
    if (auto s = check_each("window_s", options.window_s, 0, 12); !s) return s;
    if (!options.available_s.empty()) return wrong("window_s", "goes without available_s");
  }
  if (!options.goodput_trace.empty() && options.goodputs.size() != 1) {
    return wrong("goodput_trace", "takes the place of goodput_mbps");
  }
  if (options.consistency) {
    if (auto s = check_consistency(*options.consistency); !s) return s;
  }
  if (options.resume && options.out.empty()) return wrong("resume", "needs --out DIR");
  return check_engine(options.engine, options.with_llama);
}

std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const auto& text : texts) all += (all.empty() ? "" : ",") + text;
  return all;
}

// What all runs of one invocation share.
std::string common_key(const BenchOptions& o) {
  return fmt::format("engine={} model={} context_tokens={} gnb={} pin={}", o.engine, o.model,
                     o.context_tokens, joined(o.gnb_settings), o.pin);
}

std::vector<std::optional<double>> or_none(const std::vector<double>& values) {
  if (values.empty()) return {std::nullopt};
  return {values.begin(), values.end()};
}

// Every combination, goodputs outermost: gNBs are restarted only when the goodput changes.
std::vector<BenchSetting> cross(const BenchOptions& options, const std::vector<Goodput>& goodputs) {
  std::vector<BenchSetting> all(1);
  const auto times = [&all](const auto& values, auto member) {
    std::vector<BenchSetting> more;
    for (const auto& setting : all) {
      for (const auto& value : values) {
        more.push_back(setting);
        more.back().*member = value;
      }
    }
    all = std::move(more);
  };
  times(goodputs, &BenchSetting::goodput);
  times(options.contexts, &BenchSetting::context);
  times(options.token_rates, &BenchSetting::max_token_rate);
  times(options.movers, &BenchSetting::movers);
  times(options.residents, &BenchSetting::residents);
  times(options.trip_handovers, &BenchSetting::trip_handovers);
  times(or_none(options.available_s), &BenchSetting::available_s);
  times(or_none(options.window_s), &BenchSetting::window_s);
  return all;
}

std::vector<PlannedRun> schedule(const BenchPlan& plan) {
  std::vector<PlannedRun> runs;
  for (std::size_t i = 0; i < plan.settings.size(); ++i) {
    const std::uint32_t group = plan.settings[i].movers * plan.settings[i].trip_handovers;
    const auto rounds = [group](std::uint32_t handovers) {
      return (handovers + group - 1) / group;
    };
    std::vector<std::uint32_t> wanted;
    for (const auto& scheme : plan.schemes) {
      wanted.push_back(rounds(scheme.slow ? plan.options.handovers_slow : plan.options.handovers));
    }
    const std::uint32_t most = *std::max_element(wanted.begin(), wanted.end());
    const std::size_t places = plan.schemes.size() + 1;  // the control's is the last
    for (std::uint32_t round = 0; round < most; ++round) {
      for (std::size_t k = 0; k < places; ++k) {
        const std::size_t place = (k + round) % places;
        if (place == plan.schemes.size()) {
          runs.push_back({i, std::nullopt, round});
        } else if (round < wanted[place]) {
          runs.push_back({i, place, round});
        }
      }
    }
  }
  return runs;
}

// Over `config`, which all gNBs have.
Result<SchemeChoice> parse_scheme_choice(const std::string& text, GnbConfig config) {
  SchemeChoice choice{text, text.substr(0, text.find(':')), {}, false, {}};
  if (auto scheme = plan::make_scheme(choice.scheme); !scheme) {
    return wrong("scheme", scheme.error().message);
  }
  for (std::size_t at = choice.scheme.size(); at < text.size();) {
    const std::size_t end = std::min(text.find(':', at + 1), text.size());
    auto flag = gnb_flag("scheme", text.substr(at + 1, end - at - 1), config);
    if (!flag) return Failure(flag.error());
    choice.flags.push_back(std::move(*flag));
    at = end;
  }
  choice.slow = std::any_of(std::begin(kSlowSchemes), std::end(kSlowSchemes),
                            [&](const char* name) { return choice.scheme == name; });
  choice.utility = config.node.utility;
  return choice;
}

}  // namespace

Result<SchemeChoice> parse_scheme_choice(const std::string& text) {
  return parse_scheme_choice(text, GnbConfig());
}

Result<Goodput> parse_goodput(const std::string& text) {
  const bool multiple = text.ends_with("x");
  const auto value = parse_number(std::string_view(text).substr(0, text.size() - multiple));
  if (!value || *value < 0 || (multiple && *value == 0)) {
    return wrong("goodput_mbps", "'" + text +
                                     "' is neither Mbit/s (0: not paced) nor, as 2x, a "
                                     "multiple of the decoder's KV stream");
  }
  return Goodput{text, *value, multiple};
}

std::string BenchSetting::key() const {
  std::string text =
      fmt::format("context={} goodput={} movers={} residents={} rate={} trip={}", context,
                  goodput.label, movers, residents, max_token_rate, trip_handovers);
  if (available_s) text += fmt::format(" available={}", *available_s);
  if (window_s) text += fmt::format(" window={}", *window_s);
  if (mover_spread > 0) text += fmt::format(" spread={}", mover_spread);
  return text;
}

std::string BenchPlan::key(const PlannedRun& run) const {
  // A control has no scheme, and its consistency changes nothing.
  const std::string who =
      run.scheme
          ? schemes[*run.scheme].label + " consistency=" +
                options.consistency.value_or(default_consistency(schemes[*run.scheme].scheme))
          : "control";
  return fmt::format("{} | {} round={} seed={} wrong={} trace={} | {}", who,
                     settings[run.setting].key(), run.round, options.seed, options.wrong_target,
                     options.goodput_trace, common_key(options));
}

std::string BenchPlan::control_key(const PlannedRun& run) const {
  return key({run.setting, std::nullopt, run.round});
}

std::string BenchPlan::sizing_key(const BenchSetting& setting) const {
  return fmt::format("sizing | context={} movers={} | {}", setting.context, setting.movers,
                     common_key(options));
}

Result<BenchPlan> make_plan(const BenchOptions& options) {
  if (auto status = check(options); !status) return Failure(status.error());
  BenchPlan plan;
  plan.options = options;
  if (options.schemes.empty()) return wrong("scheme", "needs a value");
  GnbConfig all_gnbs;
  for (const auto& text : options.gnb_settings) {
    auto flag = gnb_flag("gnb", text, all_gnbs);
    if (!flag) return Failure(flag.error());
    plan.gnb_flags.push_back(std::move(*flag));
  }
  std::set<std::string> labels;
  for (const auto& text : options.schemes) {
    auto choice = parse_scheme_choice(text, all_gnbs);
    if (!choice) return Failure(choice.error());
    if (!labels.insert(text).second) return wrong("scheme", "'" + text + "' is given twice");
    plan.schemes.push_back(std::move(*choice));
  }
  std::vector<Goodput> goodputs;
  if (!options.goodput_trace.empty()) {
    goodputs.push_back({"trace", 0, false});
  } else {
    for (const auto& text : options.goodputs) {
      auto goodput = parse_goodput(text);
      if (!goodput) return Failure(goodput.error());
      goodputs.push_back(std::move(*goodput));
    }
    if (goodputs.empty()) return wrong("goodput_mbps", "needs a value");
  }
  plan.settings = cross(options, goodputs);
  for (auto& setting : plan.settings) {
    if (setting.movers > 1) setting.mover_spread = options.mover_spread;
  }
  plan.runs = schedule(plan);
  return plan;
}

}  // namespace pallas::app
