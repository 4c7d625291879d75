// The table of settings. A line here is a TOML key, a flag, a line of --print-config and of --help.

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <type_traits>

#include "gnb_config.h"
#include "wire/validate.h"

namespace pallas::app {
namespace {

Failure wrong(const std::string& key, const std::string& why) {
  return fail(Errc::kInvalidConfig, key + ": " + why);
}

std::optional<double> as_number(const SettingValue& value) {
  if (const auto* d = std::get_if<double>(&value)) return *d;
  if (const auto* i = std::get_if<std::int64_t>(&value)) return static_cast<double>(*i);
  return std::nullopt;
}

// The unit of a duration is the end of its key. Whole units are exact both ways: a printed value
// must read as the same.
double ns_per_unit(const std::string& key) {
  return key.ends_with("_ms") ? 1e6 : 1e9;
}

Status assign(const std::string& key, bool& to, const SettingValue& value) {
  const auto* b = std::get_if<bool>(&value);
  if (b == nullptr) return wrong(key, "must be true or false");
  to = *b;
  return {};
}
Status assign(const std::string& key, std::string& to, const SettingValue& value) {
  const auto* s = std::get_if<std::string>(&value);
  if (s == nullptr) return wrong(key, "must be a string");
  to = *s;
  return {};
}
Status assign(const std::string& key, double& to, const SettingValue& value) {
  const auto number = as_number(value);
  if (!number) return wrong(key, "must be a number");
  to = *number;
  return {};
}
template <class Unsigned>
requires std::is_unsigned_v<Unsigned> Status assign(const std::string& key, Unsigned& to,
                                                    const SettingValue& value) {
  const auto* i = std::get_if<std::int64_t>(&value);
  if (i == nullptr) return wrong(key, "must be a whole number");
  if (*i < 0 || static_cast<std::uint64_t>(*i) > std::numeric_limits<Unsigned>::max()) {
    return wrong(key, "is out of range");
  }
  to = static_cast<Unsigned>(*i);
  return {};
}
Status assign(const std::string& key, Duration& to, const SettingValue& value) {
  const auto number = as_number(value);
  if (!number) return wrong(key, "must be a number");
  const double ns = *number * ns_per_unit(key);
  // A year is beyond any use and far from overflow.
  if (!std::isfinite(ns) || ns < 0 || ns > 3.2e16) {
    return wrong(key, "must be a time from 0 to a year");
  }
  to = Duration(std::llround(ns));
  return {};
}
Status assign(const std::string& key, std::optional<BytesPerSecond>& to,
              const SettingValue& value) {
  const auto number = as_number(value);
  if (!number) return wrong(key, "must be a number");
  if (*number == 0) {
    to.reset();
  } else {
    to = BytesPerSecond::from_mbps(*number);
  }
  return {};
}
Status assign(const std::string& key, NodeId& to, const SettingValue& value) {
  return assign(key, to.value, value);
}
Status assign(const std::string& key, wire::Consistency& to, const SettingValue& value) {
  const auto* s = std::get_if<std::string>(&value);
  if (s != nullptr && *s == "exact") {
    to = wire::Consistency::kExact;
  } else if (s != nullptr && *s == "prefer-exact") {
    to = wire::Consistency::kPreferExact;
  } else if (s != nullptr && *s == "fast") {
    to = wire::Consistency::kFast;
  } else {
    return wrong(key, "must be exact, prefer-exact or fast");
  }
  return {};
}

Status assign(const std::string& key, node::Shadow& to, const SettingValue& value) {
  const auto* s = std::get_if<std::string>(&value);
  if (s == nullptr || !node::parse_shadow(*s, to)) {
    return wrong(key, "must be off, idle or always");
  }
  return {};
}

Status assign(const std::string& key, plan::LinkSharing& to, const SettingValue& value) {
  const auto* s = std::get_if<std::string>(&value);
  if (s == nullptr || !plan::parse_link_sharing(*s, to)) {
    return wrong(key, "must be turns, first-come, equal, ctho or water-filling");
  }
  return {};
}

Status assign(const std::string& key, plan::UtilityShape& to, const SettingValue& value) {
  const auto* s = std::get_if<std::string>(&value);
  if (s != nullptr && *s == "algebraic") {
    to = plan::UtilityShape::kAlgebraic;
  } else if (s != nullptr && *s == "logistic") {
    to = plan::UtilityShape::kLogistic;
  } else {
    return wrong(key, "must be algebraic or logistic");
  }
  return {};
}

Status assign(const std::string& key, engine::Ordering& to, const SettingValue& value) {
  const auto* s = std::get_if<std::string>(&value);
  if (s == nullptr) return wrong(key, "must be a string");
  const auto ordering = engine::parse_ordering(*s);
  if (!ordering) return wrong(key, ordering.error().message);
  to = *ordering;
  return {};
}

SettingValue value_of(const std::string&, bool v) {
  return v;
}
SettingValue value_of(const std::string&, const std::string& v) {
  return v;
}
SettingValue value_of(const std::string&, double v) {
  return v;
}
template <class Unsigned>
requires std::is_unsigned_v<Unsigned> SettingValue value_of(const std::string&, Unsigned v) {
  return static_cast<std::int64_t>(v);
}
SettingValue value_of(const std::string& key, Duration v) {
  return static_cast<double>(v.count()) / ns_per_unit(key);
}
SettingValue value_of(const std::string&, const std::optional<BytesPerSecond>& v) {
  return v ? v->mbps() : 0.0;
}
SettingValue value_of(const std::string&, const NodeId& v) {
  return v.value;
}
SettingValue value_of(const std::string&, wire::Consistency v) {
  switch (v) {
    case wire::Consistency::kExact:
      return std::string("exact");
    case wire::Consistency::kPreferExact:
      return std::string("prefer-exact");
    case wire::Consistency::kFast:
      return std::string("fast");
  }
  return std::string();
}

SettingValue value_of(const std::string&, node::Shadow v) {
  return std::string(node::to_string(v));
}

SettingValue value_of(const std::string&, plan::LinkSharing v) {
  return std::string(plan::to_string(v));
}

SettingValue value_of(const std::string&, engine::Ordering v) {
  return std::string(engine::name_of(v));
}

SettingValue value_of(const std::string&, plan::UtilityShape v) {
  return std::string(v == plan::UtilityShape::kAlgebraic ? "algebraic" : "logistic");
}

template <class T>
constexpr SettingKind kind_of() {
  if constexpr (std::is_same_v<T, bool>) return SettingKind::kBool;
  if constexpr (std::is_unsigned_v<T>) return SettingKind::kInteger;
  if constexpr (std::is_same_v<T, double> || std::is_same_v<T, Duration> ||
                std::is_same_v<T, std::optional<BytesPerSecond>>) {
    return SettingKind::kNumber;
  }
  return SettingKind::kText;
}

// `field` maps a GnbConfig& to a reference of the member.
template <class Field>
Setting setting(std::string key, std::string help, Field field) {
  using T = std::remove_cvref_t<decltype(field(std::declval<GnbConfig&>()))>;
  Setting s;
  s.key = key;
  s.help = std::move(help);
  s.kind = kind_of<T>();
  s.set = [key, field](GnbConfig& config, const SettingValue& value) {
    return assign(key, field(config), value);
  };
  s.get = [key, field](const GnbConfig& config) {
    // The accessor is written once, for a mutable configuration; reading changes nothing.
    return value_of(key, field(const_cast<GnbConfig&>(config)));
  };
  return s;
}

#define PALLAS_FIELD(member)   \
  [](GnbConfig & c) -> auto& { \
    return c.member;           \
  }

std::vector<Setting> make_settings() {
  return {
      setting("name", "Name of this gNB, unique among its peers", PALLAS_FIELD(node.name)),
      setting("http_listen", "host:port of the HTTP interface (port 0: any free one)",
              PALLAS_FIELD(http_listen)),
      setting("peer_listen", "host:port where other gNBs connect (port 0: any free one)",
              PALLAS_FIELD(peer_listen)),
      setting("operator_listen",
              "host:port of RAN feed, operator's views and figures; empty: http_listen",
              PALLAS_FIELD(operator_listen)),
      setting("api_cert", "PEM file: certificate of both HTTP interfaces, for TLS 1.3",
              PALLAS_FIELD(api_cert)),
      setting("api_key", "PEM file: its key", PALLAS_FIELD(api_key)),
      setting("api_keys_file", "Keys of clients, a line `TENANT KEY` each; empty: none needed",
              PALLAS_FIELD(api_keys_file)),
      setting("operator_key_file", "Its first line is the operator's key; empty: none needed",
              PALLAS_FIELD(operator_key_file)),
      setting("allow_remote",
              "HTTP interfaces may be on other addresses than loopback without TLS and keys",
              PALLAS_FIELD(allow_remote)),
      setting("peer_cert", "PEM file: this gNB's certificate, for TLS 1.3 to its peers",
              PALLAS_FIELD(peer_cert)),
      setting("peer_key", "PEM file: its key", PALLAS_FIELD(peer_key)),
      setting("peer_ca", "PEM file: the authorities that sign the peers' certificates",
              PALLAS_FIELD(peer_ca)),
      setting(
          "wire_minor",
          "Minor version of the protocol that it speaks to its peers: its own or the one before",
          PALLAS_FIELD(wire_minor)),
      setting("insecure_peers", "Peers may be on other addresses than loopback without TLS",
              PALLAS_FIELD(insecure_peers)),
      setting("engine", "llama; fake: made-up text at a model's pace; simulated: ids alone",
              PALLAS_FIELD(engine)),
      setting("model", "GGUF file; empty: the prepared default model", PALLAS_FIELD(model)),
      setting("model_name", "What clients call the model; empty: its own name",
              PALLAS_FIELD(model_name)),
      setting("slots", "Sessions at once", PALLAS_FIELD(slots)),
      setting("context_tokens", "Context of one session, in tokens", PALLAS_FIELD(context_tokens)),
      setting("threads", "Threads of the engine", PALLAS_FIELD(threads)),
      setting("cell_size_m", "Side of a square cell, in metres", PALLAS_FIELD(cell_size_m)),
      setting("cell_offset_m", "Where a cell begins, in x and y, in metres",
              PALLAS_FIELD(cell_offset_m)),
      setting("scheme", "What moves a session: pallas gnb --help lists the schemes",
              PALLAS_FIELD(node.scheme)),
      setting("default_consistency", "exact, prefer-exact or fast, unless the request says",
              PALLAS_FIELD(node.default_consistency)),
      setting("alpha", "Weight of the interruption against early preparation, 0 to 1",
              PALLAS_FIELD(node.alpha)),
      setting("control_period_ms", "How often a plan is made anew before a handover",
              PALLAS_FIELD(node.control_period)),
      setting("unmeasured_rate",
              "Share of the profiled prefill rate assumed at a peer not yet measured",
              PALLAS_FIELD(node.unmeasured_rate)),
      setting("t_max_s", "Largest window of preparation", PALLAS_FIELD(node.t_max)),
      setting("window_margin_ms", "two-front starts this much earlier",
              PALLAS_FIELD(node.window_margin)),
      setting("window_margin_share", "And by this share of its window, for rates that vary",
              PALLAS_FIELD(node.window_margin_share)),
      setting(
          "preparation_spacing",
          "Of so many intervals of the sessions here, one may have a chunk of a preparation in it",
          PALLAS_FIELD(node.preparation_spacing)),
      setting("shadow", "A prepared target decodes beside its source: off, idle or always",
              PALLAS_FIELD(node.shadow)),
      setting("link_sharing",
              "Sessions on one link to a peer: turns, first-come, equal, ctho or water-filling",
              PALLAS_FIELD(node.link_sharing)),
      setting("utility_shape", "Accuracy by the fraction of KV received: algebraic or logistic",
              PALLAS_FIELD(node.utility.shape)),
      setting("utility_full", "What that curve tends to, in percent",
              PALLAS_FIELD(node.utility.full)),
      setting("utility_steepness", "How steep it is, above 0",
              PALLAS_FIELD(node.utility.steepness)),
      setting("utility_threshold", "The fraction where it is steepest (tau), between 0 and 1",
              PALLAS_FIELD(node.utility.threshold)),
      setting("partial_ordering",
              "Scheme partial: which KV is sent first: sinks-recency, key-norm, key-diff, "
              "observation-window or random",
              PALLAS_FIELD(node.partial_ordering)),
      setting("partial_fraction", "The target decodes with this fraction of it, above 0, at most 1",
              PALLAS_FIELD(node.partial_fraction)),
      setting("partial_deadline_ms",
              "Or so long after the UE came, with what is always sent; 0: no deadline",
              PALLAS_FIELD(node.partial_deadline)),
      setting("partial_fallback_ms",
              "Other schemes: partial for unprepared cells where ctHO takes longer; 0: never",
              PALLAS_FIELD(node.partial_fallback)),
      setting("use_uncertainty",
              "Windows follow a prediction's sigma and confidence where it has them",
              PALLAS_FIELD(node.use_uncertainty)),
      setting("fallback", "Peer that is prepared, and decodes, where a target refuses; empty: none",
              PALLAS_FIELD(node.fallback)),
      setting("ewma", "Weight of a new sample of a rate, above 0, at most 1",
              PALLAS_FIELD(node.ewma)),
      setting("initial_goodput_mbps", "Goodput between gNBs until one is measured; 0: unknown",
              PALLAS_FIELD(node.initial_goodput)),
      setting("prefer_exact_wait_ms", "What prefer-exact waits at most",
              PALLAS_FIELD(node.prefer_exact_wait)),
      setting("goodput_mbps", "Peer links are paced to this; 0: not at all",
              PALLAS_FIELD(goodput_mbps)),
      setting("goodput_trace", "CSV file `t_ms,mbps` to pace by (step-hold, loops)",
              PALLAS_FIELD(goodput_trace)),
      setting("lease_s", "Prepared state is kept this long without a sign of the source",
              PALLAS_FIELD(node.lease)),
      setting("frozen_s", "A source keeps KV this long for a target that shows no progress",
              PALLAS_FIELD(node.frozen)),
      setting("resume_s", "Token logs and tombstones are kept this long",
              PALLAS_FIELD(node.resume)),
      setting("retain_s", "A released source keeps KV this long, in case the UE returns",
              PALLAS_FIELD(node.retain)),
      setting("flap_s", "A cancelled preparation is kept this long, in case it is asked again",
              PALLAS_FIELD(node.flap)),
      setting("grace_s", "A resumable session goes on this long without its UE",
              PALLAS_FIELD(node.grace)),
      setting("move_s", "An ordered move tells the UE to go at the latest after",
              PALLAS_FIELD(node.move)),
      setting("drain_limit_s", "SIGTERM: what is left then is cut off and the gNB ends",
              PALLAS_FIELD(drain_limit)),
      setting("drain_to", "SIGTERM: the peer that sessions are moved to; empty: they may end here",
              PALLAS_FIELD(drain_to)),
      setting("repeat_ms", "Messages that need an answer are repeated after",
              PALLAS_FIELD(node.repeat)),
      setting("peer_answer_ms", "A claim without an answer: rebuild from tokens after",
              PALLAS_FIELD(node.peer_answer)),
      setting("keep_alive_ms", "A waiting UE gets a comment every", PALLAS_FIELD(node.keep_alive)),
      setting("max_sessions", "Sessions known at once, logs and tombstones included",
              PALLAS_FIELD(node.max_sessions)),
      setting("max_sessions_tenant", "Live sessions of one tenant, above which it gets 429; 0: any",
              PALLAS_FIELD(node.max_sessions_tenant)),
      setting("max_connections", "Client connections at once; further ones get 503",
              PALLAS_FIELD(max_connections)),
      setting("max_unsent_bytes", "A client with more unread events than this is cut off",
              PALLAS_FIELD(max_unsent_bytes)),
      setting("request_timeout_s", "A request must come whole within",
              PALLAS_FIELD(request_timeout)),
      setting("idle_timeout_s", "A connection without a request is closed after",
              PALLAS_FIELD(idle_timeout)),
      setting("write_timeout_s", "A client that takes no byte of its answer is cut off after",
              PALLAS_FIELD(write_timeout)),
      setting("peer_dead_after_ms", "A peer that is silent for so long is down",
              PALLAS_FIELD(peer_dead_after)),
      setting("peer_handshake_ms", "Each step from dialling a peer to its Hello ends after",
              PALLAS_FIELD(peer_handshake)),
      setting("max_staged_bytes", "Received KV waiting in memory, all sessions",
              PALLAS_FIELD(node.max_staged_bytes)),
      setting("max_staged_bytes_session", "The same of one session",
              PALLAS_FIELD(node.max_staged_bytes_session)),
      setting("max_handover_reports", "Reports kept for GET /v1/handovers",
              PALLAS_FIELD(node.max_handover_reports)),
      setting("fraction_deadline_ms",
              "They tell what fraction of the KV was there so long after the UE",
              PALLAS_FIELD(node.fraction_deadline)),
      setting("report_phases", "They tell the time of every phase, at the source as well",
              PALLAS_FIELD(node.report_phases)),
      setting("mirror_on_prediction",
              "Stream token ids to the predicted gNB from the first "
              "prediction on",
              PALLAS_FIELD(node.mirror_on_prediction)),
      setting("slo_ms", "Interval between tokens that the SLO allows", PALLAS_FIELD(node.slo_ms)),
      setting("log_level", "trace, debug, info, warning, error or off", PALLAS_FIELD(log_level)),
      setting("log_format", "text or json (one object a line)", PALLAS_FIELD(log_format)),
      setting("log_file", "File to append to; empty: standard error", PALLAS_FIELD(log_file)),
  };
}

#undef PALLAS_FIELD

// Splits NAME=REST at the first '='.
Result<std::pair<std::string, std::string>> split_pair(const std::string& field,
                                                       const std::string& text,
                                                       const std::string& form) {
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    return wrong(field, "'" + text + "' is not of the form " + form);
  }
  if (!wire::is_utf8(text)) return wrong(field, "must be UTF-8");
  return std::pair(text.substr(0, equals), text.substr(equals + 1));
}

std::optional<double> parse_double(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

const std::vector<Setting>& gnb_settings() {
  static const std::vector<Setting> settings = make_settings();
  return settings;
}

std::string flag_of(std::string_view key) {
  std::string flag = "--" + std::string(key);
  for (char& c : flag) {
    if (c == '_') c = '-';
  }
  return flag;
}

Status set_from_text(GnbConfig& config, const Setting& setting, const std::string& text) {
  switch (setting.kind) {
    case SettingKind::kText:
      // As in a file: what is printed must be read as the same again.
      if (!wire::is_utf8(text)) return wrong(setting.key, "must be UTF-8");
      return setting.set(config, text);
    case SettingKind::kBool:
      if (text == "true" || text == "false") return setting.set(config, text == "true");
      return wrong(setting.key, "must be true or false");
    case SettingKind::kInteger: {
      std::int64_t value = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (error != std::errc() || end != text.data() + text.size()) {
        return wrong(setting.key, "'" + text + "' is not a whole number");
      }
      return setting.set(config, value);
    }
    case SettingKind::kNumber: {
      const auto value = parse_double(text);
      if (!value) return wrong(setting.key, "'" + text + "' is not a number");
      return setting.set(config, *value);
    }
  }
  return {};
}

Status add_peer(GnbConfig& config, const std::string& text) {
  auto pair = split_pair("peers", text, "NAME=HOST:PORT");
  if (!pair) return Failure(pair.error());
  if (!config.peers.emplace(NodeId(pair->first), pair->second).second) {
    return wrong("peers", "'" + pair->first + "' is given twice");
  }
  return {};
}

Status add_cell(GnbConfig& config, const std::string& text) {
  auto pair = split_pair("cells", text, "CELL=GNB");
  if (!pair) return Failure(pair.error());
  if (!config.node.cells.emplace(CellId(pair->first), NodeId(pair->second)).second) {
    return wrong("cells", "'" + pair->first + "' is given twice");
  }
  return {};
}

Status add_site(GnbConfig& config, const std::string& text) {
  auto pair = split_pair("sites", text, "CELL=X,Y");
  if (!pair) return Failure(pair.error());
  const auto comma = pair->second.find(',');
  const auto x = parse_double(std::string_view(pair->second).substr(0, comma));
  const auto y = comma == std::string::npos
                     ? std::nullopt
                     : parse_double(std::string_view(pair->second).substr(comma + 1));
  if (!x || !y) return wrong("sites", "'" + text + "' is not of the form CELL=X,Y");
  if (!config.sites.emplace(CellId(pair->first), mobility::Point{*x, *y}).second) {
    return wrong("sites", "'" + pair->first + "' is given twice");
  }
  return {};
}

}  // namespace pallas::app
