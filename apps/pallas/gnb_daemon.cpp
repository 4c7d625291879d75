// Wires one gNB. Everything but the engine's own thread runs on the thread that calls run_gnb().

#include "gnb_daemon.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <cstdio>
#include <random>
#include <set>

#include "drainer.h"
#include "engine_setup.h"
#include "gzip_file.h"
#include "http/json_writer.h"
#include "http/server.h"
#include "listen_check.h"
#include "log.h"
#include "mobility/cells.h"
#include "net/asio_clock.h"
#include "net/peer_links.h"
#include "node/node.h"
#include "tls/credentials.h"
#include "ue/ue_settings.h"

namespace pallas::app {
namespace {

std::uint64_t random_bits() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

// The peers' word reaches the node, and the log on its way.
class LoggedPeers : public node::PeerEvents {
 public:
  LoggedPeers(node::PeerEvents& node, Log& log) : node_(node), log_(log) {}

  void on_peer_up(const node::PeerHello& hello) override {
    log_.write(LogLevel::kInfo, "peer up", {{"peer", hello.node.value}});
    node_.on_peer_up(hello);
  }
  void on_peer_down(const NodeId& peer) override {
    log_.write(LogLevel::kWarning, "peer down", {{"peer", peer.value}});
    node_.on_peer_down(peer);
  }
  void on_message(const NodeId& peer, wire::Message message) override {
    log_.write(LogLevel::kTrace, "message",
               {{"peer", peer.value}, {"name", std::string(wire::name_of(message))}});
    node_.on_message(peer, std::move(message));
  }
  void on_kv(const NodeId& peer, const wire::KvBlock& header, kv::Bytes rows) override {
    node_.on_kv(peer, header, std::move(rows));
  }
  void on_kv_drained(const NodeId& peer) override { node_.on_kv_drained(peer); }
  std::vector<wire::HeldAttempt> held_from(const NodeId& peer) const override {
    return node_.held_from(peer);
  }

 private:
  node::PeerEvents& node_;
  Log& log_;
};

// Logs each handover once, when its report has come to an end.
class HandoverLog {
 public:
  HandoverLog(const node::Node& node, Log& log, Clock& clock)
      : node_(node), log_(log), timer_(clock) {
    arm();
  }

 private:
  void arm() {
    timer_.arm(std::chrono::seconds(1), [this] {
      look();
      arm();
    });
  }

  void look() {
    std::set<std::string> present;
    for (const auto& report : node_.handovers()) {
      present.insert(report.id);
      if (logged_.contains(report.id)) continue;
      if (!report.first_token_ms && report.error.empty()) continue;  // still going on
      logged_.insert(report.id);
      log_.write(report.error.empty() ? LogLevel::kInfo : LogLevel::kWarning, "handover",
                 {{"id", report.id},
                  {"scheme", report.scheme},
                  {"source", report.source.value},
                  {"target", report.target.value},
                  {"prepared", report.prepared ? "true" : "false"},
                  {"exact", report.exact ? "true" : "false"},
                  {"first_token_ms", fmt::format("{:.1f}", report.first_token_ms.value_or(-1))},
                  {"bytes", std::to_string(report.bytes)},
                  {"recomputed", std::to_string(report.tokens_recomputed)},
                  {"replayed", std::to_string(report.tokens_replayed)},
                  {"shadow", std::to_string(report.shadow_tokens)},
                  {"recovery", report.recovery},
                  {"error", report.error}});
    }
    std::erase_if(logged_, [&](const std::string& id) { return !present.contains(id); });
  }

  const node::Node& node_;
  Log& log_;
  Timer timer_;
  std::set<std::string> logged_;
};

Result<std::unique_ptr<mobility::CellLayout>> make_cells(const GnbConfig& config) {
  if (config.sites.empty()) {
    return mobility::make_square_cells(config.cell_size_m, config.cell_offset_m,
                                       config.cell_offset_m);
  }
  std::vector<mobility::Site> sites;
  for (const auto& [cell, at] : config.sites) sites.push_back({cell, at});
  return mobility::make_nearest_site_cells(std::move(sites));
}

Result<std::optional<kv::RateTrace>> make_pacing(const GnbConfig& config) {
  if (!config.goodput_trace.empty()) {
    const auto csv = read_text_file(config.goodput_trace, 16u << 20);
    if (!csv) return fail(csv.error().code, "goodput_trace: " + csv.error().message);
    auto trace = kv::RateTrace::parse(*csv);
    if (!trace) {
      return fail(trace.error().code,
                  "goodput_trace: " + config.goodput_trace + ": " + trace.error().message);
    }
    return std::optional(std::move(*trace));
  }
  if (config.goodput_mbps <= 0) return std::optional<kv::RateTrace>();
  auto rate = kv::RateTrace::constant(BytesPerSecond::from_mbps(config.goodput_mbps));
  if (!rate) return Failure(rate.error());
  return std::optional(std::move(*rate));
}

tls::Files peer_files(const GnbConfig& config) {
  return {
      {"peer_cert", config.peer_cert}, {"peer_key", config.peer_key}, {"peer_ca", config.peer_ca}};
}

tls::Files api_files(const GnbConfig& config) {
  return {{"api_cert", config.api_cert}, {"api_key", config.api_key}, {"", ""}};
}

// A connection is a descriptor, and the system's soft limit is often 1,024.
Status allow_descriptors(const GnbConfig& config) {
  constexpr rlim_t kOthers = 512;  // peers, files, connections that are being refused
  const rlim_t wanted = config.max_connections + 2 * config.peers.size() + kOthers;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return {};
  limit.rlim_cur = std::min(wanted, limit.rlim_max);
  setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur >= wanted) return {};
  return fail(Errc::kInvalidConfig,
              fmt::format("max_connections: needs {} file descriptors, the system allows {}; raise "
                          "`ulimit -n`",
                          wanted, limit.rlim_max));
}

// Numeric, as sockets want it.
std::string numeric(const std::string& host) {
  return host == "localhost" ? "127.0.0.1" : host;
}

Result<net::PeerLinksConfig> links_config(const GnbConfig& config, BootId boot,
                                          const engine::EngineInfo& engine,
                                          wire::Compatibility compatibility, Log& log) {
  const auto pacing = make_pacing(config);
  if (!pacing) return Failure(pacing.error());
  const auto listen = parse_host_port(config.peer_listen, "peer_listen");
  if (!listen) return Failure(listen.error());
  net::PeerLinksConfig links;
  links.name = config.node.name;
  links.boot = boot;
  links.compatibility = std::move(compatibility);
  links.holes = engine.capabilities.holes;
  links.minor = config.wire_minor;
  links.listen_address = numeric(listen->host);
  links.listen_port = listen->port;
  links.dead_after = config.peer_dead_after;
  links.keep_alive = config.peer_dead_after / 4;
  links.handshake = config.peer_handshake;
  links.block_bytes = engine.geometry.bytes_per_token() * engine.geometry.block_tokens;
  links.log = [&log](const std::string& line) { log.write(LogLevel::kInfo, line); };
  if (has_peer_tls(config)) links.tls = peer_files(config);
  for (const auto& [name, address] : config.peers) {
    const auto at = parse_host_port(address, "peers." + name.value);
    if (!at) return Failure(at.error());
    links.peers.push_back(
        {name, numeric(at->host), at->port, *pacing, config.node.initial_goodput});
  }
  return links;
}

std::vector<http::Metric> link_metrics(const net::PeerLinks& links) {
  std::vector<http::Metric> metrics;
  for (const auto& s : links.stats()) {
    const auto add = [&](const char* name, const char* help, bool counter, double value) {
      metrics.push_back({name, help, counter, {{"peer", s.peer.value}}, value});
    };
    add("pallas_peer_up", "Whether the link to the peer stands.", false, s.up ? 1 : 0);
    add("pallas_peer_connects_total", "Times that the link came up.", true,
        static_cast<double>(s.connects));
    add("pallas_peer_kv_sent_bytes_total", "KV payload written to the peer.", true,
        static_cast<double>(s.kv_bytes_sent));
    add("pallas_peer_kv_received_bytes_total", "KV payload that came from the peer.", true,
        static_cast<double>(s.kv_bytes_received));
    add("pallas_peer_kv_backlog_bytes", "KV payload that waits to be written.", false,
        static_cast<double>(s.kv_backlog_bytes));
    add("pallas_peer_checksum_errors_total", "KV frames with a wrong checksum.", true,
        static_cast<double>(s.checksum_errors));
    add("pallas_peer_protocol_errors_total", "Frames that were refused.", true,
        static_cast<double>(s.protocol_errors));
    if (s.rtt) {
      add("pallas_peer_rtt_seconds", "Round trip of the last keep-alive.", false,
          to_seconds(*s.rtt).count());
    }
    if (s.goodput) {
      add("pallas_peer_goodput_mbps", "Goodput to the peer, as estimated.", false,
          s.goodput->mbps());
    }
    if (s.goodput_age) {
      add("pallas_peer_goodput_age_seconds", "Since the goodput was last measured.", false,
          to_seconds(*s.goodput_age).count());
    }
  }
  if (const auto ends = links.certificate_ends_unix_s()) {
    metrics.push_back({"pallas_peer_certificate_end_seconds",
                       "When this gNB's certificate for its peers ends, since 1970.",
                       false,
                       {},
                       static_cast<double>(*ends)});
  }
  metrics.push_back({"pallas_peer_calls_refused_total",
                     "Calls at the peer port from nobody who is a peer.",
                     true,
                     {},
                     static_cast<double>(links.refused_calls())});
  return metrics;
}

wire::Compatibility to_wire(const engine::CompatibilityRecord& r) {
  return {r.model_hash,      r.tokenizer_hash, r.context_tokens, r.rope,
          r.kv_types,        r.kv_layout,      r.block_tokens,   r.adapter,
          r.instruction_set, r.engine_build,   r.threads,        r.flash_attention};
}

void print_ready(const GnbConfig& config, const http::Server& server, std::uint16_t peer_port,
                 bool json) {
  const auto address = [](const std::string& listen, std::uint16_t port) {
    return listen.substr(0, listen.rfind(':')) + ":" + std::to_string(port);
  };
  const std::string http = address(config.http_listen, server.port());
  const auto operators_port = server.operators_port();
  const std::string operators =
      operators_port ? address(config.operator_listen, *operators_port) : "";
  const std::string peer = address(config.peer_listen, peer_port);
  if (json) {
    http::JsonWriter line;
    line.begin_object()
        .member("ready", true)
        .member("name", config.node.name.value)
        .member("http", http)
        .member("peer", peer);
    if (operators_port) line.member("operators", operators);
    line.end_object();
    std::printf("%s\n", line.take().c_str());
  } else {
    std::printf("ready name=%s http=%s peer=%s%s\n", config.node.name.value.c_str(), http.c_str(),
                peer.c_str(), operators_port ? (" operators=" + operators).c_str() : "");
  }
  std::fflush(stdout);
}

// Reads what has to be read, so that a mistake is known early.
Result<http::ServerOptions> server_options(const GnbConfig& config, const HostPort& at, Log& log) {
  http::ServerOptions options;
  options.address = numeric(at.host);
  options.port = at.port;
  options.log = [&log](const std::string& line) { log.write(LogLevel::kInfo, "HTTP: " + line); };
  options.max_connections = config.max_connections;
  options.max_stream_queue_bytes = config.max_unsent_bytes;
  options.request_timeout = config.request_timeout;
  options.idle_timeout = config.idle_timeout;
  options.write_timeout = config.write_timeout;
  if (!config.operator_listen.empty()) {
    const auto there = parse_host_port(config.operator_listen, "operator_listen");
    if (!there) return Failure(there.error());
    options.operators = http::ListenOptions{numeric(there->host), there->port};
    if (auto free = check_can_listen("operator_listen", options.operators->address, there->port);
        !free) {
      return Failure(free.error());
    }
  }
  if (has_api_tls(config)) {
    options.tls = api_files(config);
    if (const auto good = tls::Credentials::load(*options.tls, ""); !good) {
      return Failure(good.error());
    }
  }
  if (!config.api_keys_file.empty()) {
    options.keys = tls::File{"api_keys_file", config.api_keys_file};
    if (const auto good = http::read_keys(*options.keys); !good) return Failure(good.error());
  }
  if (!config.operator_key_file.empty()) {
    auto key = ue::read_key_file("operator_key_file", config.operator_key_file);
    if (!key) return Failure(key.error());
    options.api.operator_key = std::move(*key);
  }
  return options;
}

}  // namespace

Result<std::uint32_t> run_gnb(const GnbConfig& config, bool json) {
  auto log = Log::open(config.log_level, config.log_format, config.log_file);
  if (!log) return Failure(log.error());
  const auto cells = make_cells(config);
  if (!cells) return Failure(cells.error());
  const auto http_at = parse_host_port(config.http_listen, "http_listen");
  if (!http_at) return Failure(http_at.error());
  const auto peer_at = parse_host_port(config.peer_listen, "peer_listen");
  if (!peer_at) return Failure(peer_at.error());
  // Before the model, which may take minutes to load.
  for (const auto& [setting, at] :
       {std::pair("http_listen", *http_at), {"peer_listen", *peer_at}}) {
    if (auto free = check_can_listen(setting, numeric(at.host), at.port); !free) {
      return Failure(free.error());
    }
  }
  if (auto enough = allow_descriptors(config); !enough) return Failure(enough.error());
  if (has_peer_tls(config)) {
    const auto good = tls::Credentials::load(peer_files(config), config.node.name.value);
    if (!good) return Failure(good.error());
  }
  auto http_options = server_options(config, *http_at, **log);
  if (!http_options) return Failure(http_options.error());

  boost::asio::io_context io(1);
  net::AsioClock clock(io);
  auto kit = make_engine(config, io, clock);
  if (!kit) return Failure(kit.error());

  const BootId boot(random_bits());
  const auto& info = kit->engine->info();
  if (auto able = check_abilities(config, info); !able) return Failure(able.error());
  auto links_settings = links_config(config, boot, info, to_wire(info.compatibility), **log);
  if (!links_settings) return Failure(links_settings.error());
  auto links = net::PeerLinks::create(io, clock, std::move(*links_settings));
  if (!links) return Failure(links.error());

  auto server = http::Server::create(io, clock, *kit->text, std::move(*http_options));
  if (!server) return Failure(server.error());

  node::Node node(
      config.node,
      {&clock, kit->engine.get(), kit->text, &(*server)->ue_link(), links->get(), cells->get()},
      boot, random_bits);
  LoggedPeers peers(node, **log);
  HandoverLog handovers(node, **log, clock);
  (*server)->set_metrics([&links] { return link_metrics(**links); });
  (*server)->set_node(&node);
  (*links)->start(peers);

  Drainer drainer(config, node, **server, **log, clock, [&io] { io.stop(); });
  (*server)->set_drain({[&drainer](const http::DrainOrder& order) { return drainer.order(order); },
                        [&drainer] { return drainer.ends_in(); }});
  boost::asio::signal_set signals(io, SIGINT, SIGTERM);
  const std::function<void()> await_signal = [&] {
    signals.async_wait([&](const boost::system::error_code& error, int number) {
      if (error) return;
      await_signal();
      drainer.on_signal(number);
    });
  };
  await_signal();
  (*log)->write(LogLevel::kInfo, "serving",
                {{"name", config.node.name.value},
                 {"model", info.model_name},
                 {"scheme", config.node.scheme},
                 {"slots", std::to_string(info.slots)},
                 {"context", std::to_string(info.context_tokens)}});
  print_ready(config, **server, (*links)->port(), json);
  io.run();

  const node::DrainStatus end = node.drain_status();
  (*log)->write(drainer.left() == 0 ? LogLevel::kInfo : LogLevel::kWarning, "ended",
                {{"left", std::to_string(drainer.left())},
                 {"moved", std::to_string(end.moved)},
                 {"moves_failed", std::to_string(end.refused)}});
  // The clients first: the node hears of their end while everything it may call still stands.
  (*server)->set_drain({});
  (*server)->close();
  (*server)->set_node(nullptr);
  return drainer.left();
}

}  // namespace pallas::app
