// Which configurations make sense. Every message begins with the setting that is wrong.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <set>
#include <utility>

#include "gnb_config.h"
#include "plan/scheme.h"
#include "wire/version.h"

namespace pallas::app {
namespace {

Failure wrong(const std::string& field, const std::string& why) {
  return fail(Errc::kInvalidConfig, field + ": " + why);
}

// Settings that go together: all of them or none.
Status check_together(std::initializer_list<std::pair<const char*, const std::string&>> files,
                      const char* rule) {
  const bool any = std::any_of(files.begin(), files.end(),
                               [](const auto& file) { return !file.second.empty(); });
  for (const auto& [field, path] : files) {
    if (any && path.empty()) return wrong(field, std::string("is missing: ") + rule);
  }
  return {};
}

// Who may reach the HTTP interfaces from elsewhere, and what he then needs.
Status check_http(const GnbConfig& config) {
  const auto at = parse_host_port(config.http_listen, "http_listen");
  if (!at) return Failure(at.error());
  if (auto s = check_together({{"api_cert", config.api_cert}, {"api_key", config.api_key}},
                              "api_cert and api_key go together");
      !s) {
    return s;
  }
  const bool own_listener = !config.operator_listen.empty();
  if (!config.api_keys_file.empty() && !own_listener && config.operator_key_file.empty()) {
    return wrong("api_keys_file",
                 "leaves no operator: give operator_listen or operator_key_file, too");
  }
  const bool secure = has_api_tls(config) && !config.api_keys_file.empty() && own_listener;
  if (!config.allow_remote && !secure && !is_loopback(at->host)) {
    return wrong("http_listen", "'" + at->host +
                                    "' is not a loopback address: give api_cert, api_key, "
                                    "api_keys_file and operator_listen, or allow_remote where "
                                    "nobody else can reach that network");
  }
  if (!own_listener) return {};
  const auto there = parse_host_port(config.operator_listen, "operator_listen");
  if (!there) return Failure(there.error());
  const bool secure_there = has_api_tls(config) && !config.operator_key_file.empty();
  if (!config.allow_remote && !secure_there && !is_loopback(there->host)) {
    return wrong("operator_listen", "'" + there->host +
                                        "' is not a loopback address: give api_cert, api_key and "
                                        "operator_key_file, or allow_remote where nobody else can "
                                        "reach that network");
  }
  for (const auto& [field, other] : {std::pair{"http_listen", config.http_listen},
                                     std::pair{"peer_listen", config.peer_listen}}) {
    if (other == config.operator_listen && !other.ends_with(":0")) {
      return wrong("operator_listen", std::string("must differ from ") + field);
    }
  }
  return {};
}

// Sessions, with their prompts, go between peers: not in the clear over a network.
Status check_peer_host(const GnbConfig& config, const std::string& field, const std::string& host) {
  if (is_loopback(host) || has_peer_tls(config) || config.insecure_peers) return {};
  return wrong(field, "'" + host +
                          "' is not a loopback address: give peer_cert, peer_key and peer_ca "
                          "(pallas certs makes them), or insecure_peers where nobody else can "
                          "reach that network");
}

Status check_addresses(const GnbConfig& config) {
  if (auto s = check_http(config); !s) return s;
  if (auto s = check_together({{"peer_cert", config.peer_cert},
                               {"peer_key", config.peer_key},
                               {"peer_ca", config.peer_ca}},
                              "peer_cert, peer_key and peer_ca go together");
      !s) {
    return s;
  }
  const auto peer_at = parse_host_port(config.peer_listen, "peer_listen");
  if (!peer_at) return Failure(peer_at.error());
  if (auto s = check_peer_host(config, "peer_listen", peer_at->host); !s) return s;
  if (config.http_listen == config.peer_listen && !config.http_listen.ends_with(":0")) {
    return wrong("peer_listen", "must differ from http_listen");
  }
  std::set<std::string> addresses;
  for (const auto& [name, address] : config.peers) {
    const std::string field = "peers." + name.value;
    if (!is_node_name(name.value)) return wrong("peers", "'" + name.value + "' is not a name");
    if (name == config.node.name) return wrong(field, "is this gNB's own name");
    const auto at = parse_host_port(address, field);
    if (!at) return Failure(at.error());
    if (at->port == 0) return wrong(field, "port must be from 1 to 65535");
    if (auto s = check_peer_host(config, field, at->host); !s) return s;
    if (!addresses.insert(address).second) {
      return wrong(field, "'" + address + "' is another peer's address, too");
    }
  }
  return {};
}

Status check_cells(const GnbConfig& config) {
  const auto known = [&](const NodeId& name) {
    return name == config.node.name || config.peers.contains(name);
  };
  for (const auto& [cell, name] : config.node.cells) {
    const std::string field = "cells." + cell.value;
    if (!is_node_name(cell.value)) return wrong("cells", "'" + cell.value + "' is not a name");
    if (!known(name)) return wrong(field, "'" + name.value + "' is neither this gNB nor a peer");
  }
  for (const auto& name : config.node.mirrors) {
    if (!config.peers.contains(name)) {
      return wrong("mirrors", "'" + name.value + "' is not a peer");
    }
  }
  if (!config.node.fallback.value.empty() && !config.peers.contains(config.node.fallback)) {
    return wrong("fallback", "'" + config.node.fallback.value + "' is not a peer");
  }
  if (!std::isfinite(config.cell_size_m) || config.cell_size_m < 1) {
    return wrong("cell_size_m", "must be at least 1");
  }
  if (!std::isfinite(config.cell_offset_m)) return wrong("cell_offset_m", "must be a number");
  for (const auto& [cell, at] : config.sites) {
    const std::string field = "sites." + cell.value;
    if (!std::isfinite(at.x_m) || !std::isfinite(at.y_m)) return wrong(field, "must be finite");
    for (const auto& [other, there] : config.sites) {
      if (other < cell && at == there) return wrong(field, "stands where " + other.value + " does");
    }
  }
  return {};
}

Status check_engine(const GnbConfig& config) {
  if (config.engine != "llama" && config.engine != "fake" && config.engine != "simulated") {
    return wrong("engine", "'" + config.engine + "' is none of llama, fake and simulated");
  }
  const std::uint32_t most_slots =
      config.engine == "llama" ? 64 : (config.engine == "fake" ? 256 : 60'000);
  if (config.slots < 1 || config.slots > most_slots) {
    return wrong("slots", "must be from 1 to " + std::to_string(most_slots));
  }
  if (config.context_tokens < 64 || config.context_tokens > wire::kMaxTokens) {
    return wrong("context_tokens",
                 "must be from 64 to " + std::to_string(std::size_t{wire::kMaxTokens}));
  }
  if (config.threads < 1 || config.threads > 256) return wrong("threads", "must be from 1 to 256");
  return {};
}

Status check_planning(const GnbConfig& config) {
  const auto& node = config.node;
  if (auto scheme = plan::make_scheme(node.scheme); !scheme) {
    return wrong("scheme", scheme.error().message);
  }
  // Comparisons are written so that NaN fails them.
  if (!(node.alpha >= 0 && node.alpha <= 1)) return wrong("alpha", "must be from 0 to 1");
  if (!(node.ewma > 0 && node.ewma <= 1)) return wrong("ewma", "must be above 0, at most 1");
  if (!(node.unmeasured_rate > 0 && node.unmeasured_rate <= 1)) {
    return wrong("unmeasured_rate", "must be above 0, at most 1");
  }
  if (!(node.window_margin_share >= 0 && node.window_margin_share <= 10)) {
    return wrong("window_margin_share", "must be from 0 to 10");
  }
  if (node.preparation_spacing < 1 || node.preparation_spacing > 1000) {
    return wrong("preparation_spacing", "must be from 1 to 1000");
  }
  const plan::Utility& utility = node.utility;
  if (!(utility.full > 0 && utility.full <= 100)) {
    return wrong("utility_full", "must be above 0, at most 100");
  }
  if (!(utility.steepness > 0) || !std::isfinite(utility.steepness)) {
    return wrong("utility_steepness", "must be above 0");
  }
  if (!(utility.threshold > 0 && utility.threshold < 1)) {
    return wrong("utility_threshold", "must be between 0 and 1");
  }
  if (!(node.partial_fraction > 0 && node.partial_fraction <= 1)) {
    return wrong("partial_fraction", "must be above 0, at most 1");
  }
  if (!(node.slo_ms > 0) || !std::isfinite(node.slo_ms)) return wrong("slo_ms", "must be above 0");
  if (!(config.goodput_mbps >= 0) || !std::isfinite(config.goodput_mbps)) {
    return wrong("goodput_mbps", "must be at least 0");
  }
  if (config.goodput_mbps > 0 && !config.goodput_trace.empty()) {
    return wrong("goodput_trace", "cannot be given together with goodput_mbps");
  }
  if (node.initial_goodput &&
      (!(node.initial_goodput->value > 0) || !std::isfinite(node.initial_goodput->value))) {
    return wrong("initial_goodput_mbps", "must be at least 0");
  }
  const std::pair<const char*, Duration> positive[] = {
      {"control_period_ms", node.control_period},
      {"t_max_s", node.t_max},
      {"lease_s", node.lease},
      {"frozen_s", node.frozen},
      {"resume_s", node.resume},
      {"grace_s", node.grace},
      {"repeat_ms", node.repeat},
      {"peer_answer_ms", node.peer_answer},
      {"keep_alive_ms", node.keep_alive},
      {"move_s", node.move},
      {"request_timeout_s", config.request_timeout},
      {"idle_timeout_s", config.idle_timeout},
      {"write_timeout_s", config.write_timeout},
      {"peer_dead_after_ms", config.peer_dead_after},
      {"peer_handshake_ms", config.peer_handshake},
  };
  for (const auto& [field, value] : positive) {
    if (value < std::chrono::milliseconds(1)) return wrong(field, "must be at least a millisecond");
  }
  if (config.drain_limit < Duration{0}) return wrong("drain_limit_s", "must not be negative");
  if (!config.drain_to.value.empty() && !config.peers.contains(config.drain_to)) {
    return wrong("drain_to", "'" + config.drain_to.value + "' is not a peer");
  }
  if (config.max_connections < 1) return wrong("max_connections", "must be at least 1");
  if (config.max_unsent_bytes < 1024) return wrong("max_unsent_bytes", "must be at least 1024");
  if (node.max_sessions < 1) return wrong("max_sessions", "must be at least 1");
  return {};
}

Status check_log(const GnbConfig& config) {
  static const std::set<std::string> levels{"trace", "debug", "info", "warning", "error", "off"};
  if (!levels.contains(config.log_level)) {
    return wrong("log_level",
                 "'" + config.log_level + "' is none of trace, debug, info, warning, error, off");
  }
  if (config.log_format != "text" && config.log_format != "json") {
    return wrong("log_format", "'" + config.log_format + "' is neither text nor json");
  }
  return {};
}

}  // namespace

Status check(const GnbConfig& config) {
  if (!is_node_name(config.node.name.value)) {
    return wrong("name", "must be 1 to 128 letters, digits, '-', '_' or '.'");
  }
  for (const auto& part : {check_addresses, check_cells, check_engine, check_planning, check_log}) {
    if (auto status = part(config); !status) return status;
  }
  if (config.wire_minor < wire::kOldestMinorVersion || config.wire_minor > wire::kMinorVersion) {
    return wrong("wire_minor", "must be " + std::to_string(wire::kOldestMinorVersion) + " or " +
                                   std::to_string(wire::kMinorVersion));
  }
  return {};
}

Status check_abilities(const GnbConfig& config, const engine::EngineInfo& engine) {
  const bool scheme = config.node.scheme == "partial";
  if (!scheme && config.node.partial_fallback <= Duration{0}) return {};
  const std::string field = scheme ? "scheme" : "partial_fallback_ms";
  if (!engine.capabilities.holes) {
    return wrong(field,
                 "partial needs an engine that decodes on scattered rows of KV (capability "
                 "holes), and " +
                     engine.compatibility.engine_build + " does not");
  }
  const bool observes = config.node.partial_ordering == engine::Ordering::kObservationWindow;
  if (observes && engine.compatibility.flash_attention) {
    return wrong("partial_ordering", "observation-window does not go with flash attention");
  }
  return {};
}

// Names go into headers, paths of logs and messages between gNBs.
bool is_node_name(const std::string& text) {
  return !text.empty() && text.size() <= wire::kMaxNameBytes &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '_' || c == '.';
         });
}

Result<HostPort> parse_host_port(std::string_view text, std::string_view field) {
  const auto bad = [&](const std::string& why) {
    return wrong(std::string(field), "'" + std::string(text) + "' " + why);
  };
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return bad("is not of the form host:port");
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return bad("needs brackets around an IPv6 address");
  }
  if (host.empty()) return bad("is not of the form host:port");
  unsigned port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size() || port > 65535) {
    return bad("has a port that is not from 0 to 65535");
  }
  return HostPort{std::string(host), static_cast<std::uint16_t>(port)};
}

bool is_loopback(std::string_view host) {
  // Digits and dots only, so that a name such as 127.example.org does not pass.
  const bool v4 =
      host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string_view::npos;
  return v4 || host == "localhost" || host == "::1";
}

}  // namespace pallas::app
