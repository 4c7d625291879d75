#pragma once
// Everything that `pallas gnb` can be told, as a plain struct. Three files keep apart what is easy
// to confuse: gnb_settings.cpp (which settings exist; TOML and flags share its table),
// gnb_config_toml.cpp (reading and printing), gnb_config_check.cpp (what values make sense).

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "engine/profile.h"
#include "mobility/cells.h"
#include "node/config.h"

namespace pallas::app {

struct GnbConfig {
  node::NodeConfig node;

  // Where it listens: "host:port", port 0 for any free one.
  std::string http_listen = "127.0.0.1:8080";
  std::string peer_listen = "127.0.0.1:7080";
  std::string operator_listen;          // for RAN feed, views and figures; empty: at http_listen
  bool allow_remote = false;            // both may be other addresses without TLS and keys
  std::map<NodeId, std::string> peers;  // name -> "host:port" of its peer_listen

  // PEM files; all three or none. With them peer links are under TLS 1.3.
  std::string peer_cert, peer_key, peer_ca;
  bool insecure_peers = false;  // without them, peers may be on other addresses than loopback
  std::uint32_t wire_minor = wire::kMinorVersion;  // as of which it speaks to its peers

  // PEM files, both or none. With them http_listen and operator_listen are under TLS 1.3.
  std::string api_cert, api_key;
  std::string api_keys_file;      // lines `TENANT KEY`; empty: clients need no key
  std::string operator_key_file;  // its first line; empty: operators need no key

  // The cells that its own predictor knows: squares, or the nearest of these sites.
  double cell_size_m = 100;
  double cell_offset_m = 0;
  std::map<CellId, mobility::Point> sites;

  // Or, for tests and measurements, "fake": made-up text at a model's pace; "simulated": ids
  // without text or KV that cost next to nothing, for thousands of sessions.
  std::string engine = "llama";
  std::string model;                    // GGUF file; empty: the prepared default model
  std::string model_name;               // as clients call it; empty: the file's own name
  std::uint32_t slots = 4;              // sessions at once
  std::uint32_t context_tokens = 2048;  // of one session
  std::uint32_t threads = 1;            // of the engine

  // Draining, and what clients may cost.
  Duration drain_limit{std::chrono::seconds(30)};
  NodeId drain_to;  // a peer, or empty
  std::uint32_t max_connections = 1024;
  std::uint32_t max_unsent_bytes = 1u << 20;
  Duration request_timeout{std::chrono::seconds(20)};
  Duration idle_timeout{std::chrono::seconds(75)};
  Duration write_timeout{std::chrono::seconds(30)};
  Duration peer_dead_after{std::chrono::seconds(1)};
  Duration peer_handshake{std::chrono::seconds(1)};

  // Peer links are paced to this, in the process; 0 and "": not at all.
  double goodput_mbps = 0;
  std::string goodput_trace;  // CSV `t_ms,mbps`, step-hold, loops

  std::string log_level = "info";   // trace, debug, info, warning, error, off
  std::string log_format = "text";  // or "json": one object a line
  std::string log_file;             // empty: standard error
};

// One scalar setting: a TOML key at top level, and the flag of the same name with '-' for '_'.
// Tables (peers, cells, sites) and the list `mirrors` are not scalars and are handled by name.
using SettingValue = std::variant<bool, std::int64_t, double, std::string>;
enum class SettingKind { kBool, kInteger, kNumber, kText };

struct Setting {
  std::string key;
  std::string help;
  SettingKind kind = SettingKind::kText;
  // kInvalidConfig, naming the key, when the value does not fit the type.
  std::function<Status(GnbConfig&, const SettingValue&)> set;
  std::function<SettingValue(const GnbConfig&)> get;
};
const std::vector<Setting>& gnb_settings();
std::string flag_of(std::string_view key);  // "cell_size_m" -> "--cell-size-m"

// Values as they stand on a command line. All name `key` in their errors.
Status set_from_text(GnbConfig& config, const Setting& setting, const std::string& text);
Status add_peer(GnbConfig& config, const std::string& text);  // NAME=HOST:PORT
Status add_cell(GnbConfig& config, const std::string& text);  // CELL=GNB
Status add_site(GnbConfig& config, const std::string& text);  // CELL=X,Y

// Reads TOML over `config`. Errors are "<name>:<line>: ..." and leave `config` half changed.
Status read_toml(GnbConfig& config, std::string_view toml, const std::string& name);
Status read_toml_file(GnbConfig& config, const std::string& path);
// A commented file that read_toml turns into the same configuration.
std::string to_toml(const GnbConfig& config);

// Everything that can be checked without opening a file or a port.
Status check(const GnbConfig& config);

// What needs the engine to be known: kInvalidConfig for settings that it cannot serve.
Status check_abilities(const GnbConfig& config, const engine::EngineInfo& engine);

struct HostPort {
  std::string host;
  std::uint16_t port = 0;
};
// "host:port" or "[v6]:port"; `field` names it in errors.
Result<HostPort> parse_host_port(std::string_view text, std::string_view field);
bool is_loopback(std::string_view host);
// What a gNB, a cell or a peer may be called: 1 to 128 letters, digits, '-', '_' or '.'.
bool is_node_name(const std::string& text);
// Whether peer links are under TLS.
inline bool has_peer_tls(const GnbConfig& config) {
  return !config.peer_cert.empty();
}
inline bool has_api_tls(const GnbConfig& config) {
  return !config.api_cert.empty();
}

}  // namespace pallas::app
