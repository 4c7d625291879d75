#include "gnb_config.h"

#include <gtest/gtest.h>

#include <limits>
#include <ostream>

namespace pallas::app {
namespace {

GnbConfig good() {
  GnbConfig config;
  config.node.name = NodeId("gnb-a");
  config.peers[NodeId("gnb-b")] = "127.0.0.1:7081";
  config.node.cells[CellId("cell_0_0")] = NodeId("gnb-a");
  config.node.cells[CellId("cell_0_1")] = NodeId("gnb-b");
  return config;
}

TEST(GnbConfig, a_good_one_passes) {
  const auto status = check(good());
  EXPECT_TRUE(status) << status.error().message;
}

struct BadField {
  const char* field;  // what the message must begin with
  void (*spoil)(GnbConfig&);
  std::size_t number = 0;
};
// What the test is called.
void PrintTo(const BadField& bad, std::ostream* out) {
  *out << bad.field << " " << bad.number;
}
template <class Bad>
std::vector<Bad> numbered(std::vector<Bad> all) {
  for (std::size_t i = 0; i < all.size(); ++i) all[i].number = i;
  return all;
}
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinite = std::numeric_limits<double>::infinity();

class EveryBadField : public testing::TestWithParam<BadField> {};

TEST_P(EveryBadField, is_refused_by_name) {
  GnbConfig config = good();
  GetParam().spoil(config);
  const auto status = check(config);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Errc::kInvalidConfig);
  EXPECT_TRUE(status.error().message.starts_with(std::string(GetParam().field) + ":"))
      << status.error().message;
}

INSTANTIATE_TEST_SUITE_P(
    GnbConfig, EveryBadField,
    testing::ValuesIn(numbered<BadField>({
        BadField{"name", [](GnbConfig& c) { c.node.name = NodeId(""); }},
        BadField{"name", [](GnbConfig& c) { c.node.name = NodeId("a b"); }},
        BadField{"name", [](GnbConfig& c) { c.node.name = NodeId(std::string(129, 'a')); }},
        BadField{"http_listen", [](GnbConfig& c) { c.http_listen = "8080"; }},
        BadField{"http_listen", [](GnbConfig& c) { c.http_listen = "127.0.0.1:65536"; }},
        BadField{"http_listen", [](GnbConfig& c) { c.http_listen = "127.0.0.1:"; }},
        BadField{"http_listen", [](GnbConfig& c) { c.http_listen = "::1:8080"; }},
        BadField{"http_listen", [](GnbConfig& c) { c.http_listen = "0.0.0.0:8080"; }},
        BadField{"http_listen", [](GnbConfig& c) { c.http_listen = "127.example.org:80"; }},
        BadField{"peer_listen", [](GnbConfig& c) { c.peer_listen = "10.0.0.1:7080"; }},
        BadField{"peer_listen", [](GnbConfig& c) { c.peer_listen = c.http_listen; }},
        BadField{"peer_listen",
                 [](GnbConfig& c) {
                   c.peer_listen = "0.0.0.0:7080";
                   c.allow_remote = true;
                 }},
        BadField{"peer_key", [](GnbConfig& c) { c.peer_cert = "a.crt"; }},
        BadField{"api_key", [](GnbConfig& c) { c.api_cert = "a.crt"; }},
        BadField{"api_cert", [](GnbConfig& c) { c.api_key = "a.key"; }},
        BadField{"api_keys_file", [](GnbConfig& c) { c.api_keys_file = "keys"; }},
        BadField{"operator_listen", [](GnbConfig& c) { c.operator_listen = "8081"; }},
        BadField{"operator_listen", [](GnbConfig& c) { c.operator_listen = "10.0.0.1:8081"; }},
        BadField{"operator_listen", [](GnbConfig& c) { c.operator_listen = c.peer_listen; }},
        BadField{"operator_listen", [](GnbConfig& c) { c.operator_listen = c.http_listen; }},
        BadField{"peer_cert",
                 [](GnbConfig& c) {
                   c.peer_key = "a.key";
                   c.peer_ca = "ca.crt";
                 }},
        BadField{"peers.gnb-c", [](GnbConfig& c) { c.peers[NodeId("gnb-c")] = "10.0.0.1:7080"; }},
        BadField{"peers", [](GnbConfig& c) { c.peers[NodeId("b c")] = "127.0.0.1:1"; }},
        BadField{"peers.gnb-a", [](GnbConfig& c) { c.peers[NodeId("gnb-a")] = "127.0.0.1:1"; }},
        BadField{"peers.gnb-c", [](GnbConfig& c) { c.peers[NodeId("gnb-c")] = "127.0.0.1:0"; }},
        BadField{"peers.gnb-c", [](GnbConfig& c) { c.peers[NodeId("gnb-c")] = "127.0.0.1"; }},
        BadField{"peers.gnb-c", [](GnbConfig& c) { c.peers[NodeId("gnb-c")] = "127.0.0.1:7081"; }},
        BadField{"cells.cell_9_9",
                 [](GnbConfig& c) { c.node.cells[CellId("cell_9_9")] = NodeId("gnb-z"); }},
        BadField{"cells", [](GnbConfig& c) { c.node.cells[CellId("")] = NodeId("gnb-a"); }},
        BadField{"mirrors", [](GnbConfig& c) { c.node.mirrors.emplace_back("gnb-z"); }},
        BadField{"cell_size_m", [](GnbConfig& c) { c.cell_size_m = 0; }},
        BadField{"cell_size_m", [](GnbConfig& c) { c.cell_size_m = kNan; }},
        BadField{"cell_offset_m", [](GnbConfig& c) { c.cell_offset_m = kInfinite; }},
        BadField{"sites.b",
                 [](GnbConfig& c) {
                   c.sites[CellId("a")] = {1, 2};
                   c.sites[CellId("b")] = {1, 2};
                 }},
        BadField{"sites.a",
                 [](GnbConfig& c) {
                   c.sites[CellId("a")] = {kNan, 2};
                 }},
        BadField{"engine", [](GnbConfig& c) { c.engine = "gpt"; }},
        BadField{"slots", [](GnbConfig& c) { c.slots = 0; }},
        BadField{"context_tokens", [](GnbConfig& c) { c.context_tokens = 1; }},
        BadField{"threads", [](GnbConfig& c) { c.threads = 0; }},
        BadField{"scheme", [](GnbConfig& c) { c.node.scheme = "teleport"; }},
        BadField{"alpha", [](GnbConfig& c) { c.node.alpha = 1.1; }},
        BadField{"alpha", [](GnbConfig& c) { c.node.alpha = kNan; }},
        BadField{"unmeasured_rate", [](GnbConfig& c) { c.node.unmeasured_rate = 1.5; }},
        BadField{"ewma", [](GnbConfig& c) { c.node.ewma = 0; }},
        BadField{"utility_threshold", [](GnbConfig& c) { c.node.utility.threshold = 1; }},
        BadField{"utility_steepness", [](GnbConfig& c) { c.node.utility.steepness = kNan; }},
        BadField{"partial_fraction", [](GnbConfig& c) { c.node.partial_fraction = 0; }},
        BadField{"partial_fraction", [](GnbConfig& c) { c.node.partial_fraction = kNan; }},
        BadField{"slo_ms", [](GnbConfig& c) { c.node.slo_ms = kNan; }},
        BadField{"goodput_mbps", [](GnbConfig& c) { c.goodput_mbps = -1; }},
        BadField{"goodput_mbps", [](GnbConfig& c) { c.goodput_mbps = kNan; }},
        BadField{"goodput_trace",
                 [](GnbConfig& c) {
                   c.goodput_mbps = 50;
                   c.goodput_trace = "trace.csv";
                 }},
        BadField{"initial_goodput_mbps",
                 [](GnbConfig& c) { c.node.initial_goodput = BytesPerSecond(kNan); }},
        BadField{"control_period_ms", [](GnbConfig& c) { c.node.control_period = Duration{0}; }},
        BadField{"lease_s", [](GnbConfig& c) { c.node.lease = Duration{0}; }},
        BadField{"max_sessions", [](GnbConfig& c) { c.node.max_sessions = 0; }},
        BadField{"log_level", [](GnbConfig& c) { c.log_level = "loud"; }},
        BadField{"log_format", [](GnbConfig& c) { c.log_format = "xml"; }}})));

TEST(GnbConfig, partial_needs_an_engine_with_holes_and_is_refused_by_the_setting) {
  const auto refused = [](const GnbConfig& config, bool holes, bool flash = false) {
    engine::EngineInfo engine;
    engine.compatibility.engine_build = "rigid 1";
    engine.compatibility.flash_attention = flash;
    engine.capabilities.holes = holes;
    const Status status = check_abilities(config, engine);
    return status ? std::string() : status.error().message;
  };
  GnbConfig config = good();
  EXPECT_EQ(refused(config, false), "");
  config.node.scheme = "partial";
  EXPECT_TRUE(check(config));
  EXPECT_EQ(refused(config, true), "");
  EXPECT_TRUE(refused(config, false).starts_with("scheme: partial needs"));
  EXPECT_NE(refused(config, false).find("rigid 1"), std::string::npos);
  config.node.partial_ordering = engine::Ordering::kObservationWindow;
  EXPECT_EQ(refused(config, true), "");
  EXPECT_TRUE(refused(config, true, true).starts_with("partial_ordering:"));
  config = good();
  config.node.partial_fallback = std::chrono::milliseconds(500);
  EXPECT_TRUE(refused(config, false).starts_with("partial_fallback_ms:"));
}

TEST(GnbConfig, other_addresses_than_loopback_need_consent) {
  GnbConfig config = good();
  config.http_listen = "0.0.0.0:8080";
  EXPECT_FALSE(check(config));
  config.allow_remote = true;
  EXPECT_TRUE(check(config));
}

TEST(GnbConfig, clients_elsewhere_need_tls_keys_and_operators_of_their_own) {
  GnbConfig config = good();
  config.http_listen = "0.0.0.0:8080";
  config.api_cert = "a.crt";
  config.api_key = "a.key";
  EXPECT_FALSE(check(config)) << "no keys";
  config.api_keys_file = "keys";
  config.operator_key_file = "operator";
  EXPECT_FALSE(check(config)) << "operators share the interface";
  config.operator_listen = "127.0.0.1:8081";
  EXPECT_TRUE(check(config));
  config.operator_listen = "0.0.0.0:8081";
  EXPECT_TRUE(check(config));
  config.operator_key_file.clear();
  EXPECT_FALSE(check(config)) << "operators without a key";
  config.allow_remote = true;
  EXPECT_TRUE(check(config));
}

TEST(GnbConfig, peers_elsewhere_need_tls_or_consent_in_words) {
  GnbConfig config = good();
  config.peer_listen = "0.0.0.0:7080";
  config.peers[NodeId("gnb-c")] = "10.0.0.1:7080";
  config.allow_remote = true;
  const auto refused = check(config);
  ASSERT_FALSE(refused);
  for (const char* word : {"0.0.0.0", "peer_cert", "pallas certs", "insecure_peers"}) {
    EXPECT_NE(refused.error().message.find(word), std::string::npos) << refused.error().message;
  }
  config.insecure_peers = true;
  EXPECT_TRUE(check(config));
  config.insecure_peers = false;
  config.peer_cert = "a.crt";
  config.peer_key = "a.key";
  config.peer_ca = "ca.crt";
  EXPECT_TRUE(check(config));
}

TEST(GnbConfig, printed_toml_reads_back_the_same) {
  GnbConfig config = good();
  config.node.scheme = "pallas";
  config.node.default_consistency = wire::Consistency::kExact;
  config.node.shadow = node::Shadow::kAlways;
  config.node.link_sharing = plan::LinkSharing::kWaterFilling;
  config.node.utility.shape = plan::UtilityShape::kLogistic;
  config.node.lease = std::chrono::milliseconds(1500);
  config.node.initial_goodput = BytesPerSecond::from_mbps(50);
  config.node.mirrors.emplace_back("gnb-b");
  config.model = "a \"quoted\" \\ path\n";
  config.sites[CellId("west")] = {-1.25, 1e9};
  config.allow_remote = true;
  GnbConfig back;
  const auto status = read_toml(back, to_toml(config), "x");
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(to_toml(back), to_toml(config));
  EXPECT_EQ(back.node.lease, config.node.lease);
  EXPECT_EQ(back.node.shadow, config.node.shadow);
  EXPECT_EQ(back.model, config.model);
  EXPECT_EQ(back.node.mirrors, config.node.mirrors);
  EXPECT_EQ(back.sites.at(CellId("west")).x_m, -1.25);
}

TEST(GnbConfig, every_setting_survives_its_own_value) {
  GnbConfig config;
  for (const auto& setting : gnb_settings()) {
    const auto status = setting.set(config, setting.get(config));
    EXPECT_TRUE(status) << setting.key;
  }
  EXPECT_EQ(to_toml(config), to_toml(GnbConfig{}));
}

TEST(GnbConfig, every_whole_time_is_printed_as_it_was_given) {
  for (const auto& setting : gnb_settings()) {
    if (!setting.key.ends_with("_ms") && setting.key != "grace_s") continue;
    for (std::int64_t given = 1; given < 20'000; ++given) {
      GnbConfig config;
      if (!setting.set(config, SettingValue(given))) break;  // another range
      const auto printed = setting.get(config);
      const auto* number = std::get_if<double>(&printed);
      if (number == nullptr) break;  // not a time
      ASSERT_EQ(*number, static_cast<double>(given)) << setting.key;
    }
  }
}

TEST(GnbConfig, a_site_at_minus_zero_is_printed_as_zero) {
  GnbConfig config;
  ASSERT_TRUE(add_site(config, "west=6,-0"));
  GnbConfig back;
  ASSERT_TRUE(read_toml(back, to_toml(config), "gnb.toml"));
  EXPECT_EQ(to_toml(back), to_toml(config));
}

struct BadToml {
  const char* text;
  const char* message;  // begins with
  std::size_t number = 0;
};
void PrintTo(const BadToml& bad, std::ostream* out) {
  *out << "line " << bad.number;
}
class EveryBadToml : public testing::TestWithParam<BadToml> {};

TEST_P(EveryBadToml, is_refused_with_its_line) {
  GnbConfig config;
  const auto status = read_toml(config, GetParam().text, "gnb.toml");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Errc::kInvalidConfig);
  EXPECT_TRUE(status.error().message.starts_with(GetParam().message)) << status.error().message;
}

INSTANTIATE_TEST_SUITE_P(
    GnbConfig, EveryBadToml,
    testing::ValuesIn(numbered<BadToml>(
        {BadToml{"name = \"a\"\nnmae = \"b\"\n", "gnb.toml:2: unknown key 'nmae'"},
         BadToml{"name = \"a\nslots = 1\n", "gnb.toml:1: "},
         BadToml{"name = \"a\"\nname = \"b\"\n", "gnb.toml:2: "},
         BadToml{"\nslots = \"four\"\n", "gnb.toml:2: slots: must be a whole number"},
         BadToml{"slots = -1\n", "gnb.toml:1: slots: is out of range"},
         BadToml{"slots = 4294967296\n", "gnb.toml:1: slots: is out of range"},
         BadToml{"lease_s = nan\n", "gnb.toml:1: lease_s: must be a time"},
         BadToml{"lease_s = -1\n", "gnb.toml:1: lease_s: must be a time"},
         BadToml{"allow_remote = 1\n", "gnb.toml:1: allow_remote: must be true or"},
         BadToml{"default_consistency = \"maybe\"\n",
                 "gnb.toml:1: default_consistency: must be exact"},
         BadToml{"shadow = true\n", "gnb.toml:1: shadow: must be off, idle or always"},
         BadToml{"name = 1979-05-27\n", "gnb.toml:1: name: must be a single value"},
         BadToml{"peers = 3\n", "gnb.toml:1: peers: must be a table"},
         BadToml{"[peers]\ngnb-b = 7\n", "gnb.toml:2: peers.gnb-b: must be a string"},
         BadToml{"[sites]\na = [1]\n", "gnb.toml:2: sites.a: must be [x, y]"},
         BadToml{"mirrors = [1]\n", "gnb.toml:1: mirrors: must be a list"}})));

TEST(GnbConfig, a_missing_file_is_named) {
  GnbConfig config;
  const auto status = read_toml_file(config, "/nonexistent/gnb.toml");
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("/nonexistent/gnb.toml"), std::string::npos);
}

const Setting& setting_of(const std::string& key) {
  for (const auto& setting : gnb_settings()) {
    if (setting.key == key) return setting;
  }
  throw std::out_of_range(key);
}

TEST(GnbConfig, flags_are_read_by_the_type_of_their_setting) {
  GnbConfig config;
  EXPECT_TRUE(set_from_text(config, setting_of("lease_s"), "2.5"));
  EXPECT_EQ(config.node.lease, std::chrono::milliseconds(2500));
  EXPECT_TRUE(set_from_text(config, setting_of("repeat_ms"), "150"));
  EXPECT_EQ(config.node.repeat, std::chrono::milliseconds(150));
  EXPECT_TRUE(set_from_text(config, setting_of("name"), "7"));
  EXPECT_EQ(config.node.name, NodeId("7"));
  EXPECT_TRUE(set_from_text(config, setting_of("mirror_on_prediction"), "false"));
  EXPECT_FALSE(config.node.mirror_on_prediction);
  EXPECT_FALSE(set_from_text(config, setting_of("model"), "m\xff.gguf"));  // TOML cannot hold it
  EXPECT_FALSE(set_from_text(config, setting_of("slots"), "4x"));
  EXPECT_FALSE(set_from_text(config, setting_of("slots"), ""));
  EXPECT_FALSE(set_from_text(config, setting_of("alpha"), "half"));
  EXPECT_EQ(flag_of("cell_size_m"), "--cell-size-m");
}

TEST(GnbConfig, pairs_on_the_command_line_must_be_whole_and_distinct) {
  GnbConfig config;
  EXPECT_TRUE(add_peer(config, "gnb-b=127.0.0.1:7081"));
  EXPECT_FALSE(add_peer(config, "gnb-b=127.0.0.1:7082"));
  EXPECT_FALSE(add_peer(config, "gnb-c"));
  EXPECT_FALSE(add_peer(config, "gnb-\xd0=127.0.0.1:7082"));
  EXPECT_FALSE(add_peer(config, "=127.0.0.1:7081"));
  EXPECT_TRUE(add_cell(config, "cell_0_0=gnb-b"));
  EXPECT_FALSE(add_cell(config, "cell_0_0=gnb-c"));
  EXPECT_TRUE(add_site(config, "west=-1.5,2"));
  EXPECT_EQ(config.sites.at(CellId("west")).x_m, -1.5);
  EXPECT_FALSE(add_site(config, "east=1"));
  EXPECT_FALSE(add_site(config, "east=1,y"));
}

}  // namespace
}  // namespace pallas::app
