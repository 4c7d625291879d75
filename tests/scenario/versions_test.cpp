// gNBs of minor versions N and N-1 beside each other, as in a rolling upgrade: whoever is older,
// and whichever way a session goes, it arrives whole, and nobody is sent what he does not know.

#include <gtest/gtest.h>

#include <algorithm>

#include "scenario_checks.h"
#include "wire/version.h"

namespace pallas::test {
namespace {

using namespace std::chrono_literals;

// Everything that a newer version does is switched on.
VirtualGnbs::Options newest(const std::string& scheme) {
  VirtualGnbs::Options options;
  options.scheme = scheme;
  options.configure = [](node::NodeConfig& config) { config.shadow = node::Shadow::kAlways; };
  options.engine.info.capabilities.holes = true;
  return options;
}

// The link speaks as of N-1 at both ends: what net/ tells the nodes when one of them is older.
void speak_as_before(VirtualGnbs& world, const std::string& x, const std::string& y) {
  const auto hear = [&](const std::string& who, const std::string& whom) {
    node::PeerHello hello;
    hello.node = NodeId(whom);
    hello.boot = BootId(77);
    hello.compatibility = world.node(whom).compatibility();
    hello.minor = wire::kOldestMinorVersion;
    world.node(who).on_peer_up(hello);
  };
  hear(x, y);
  hear(y, x);
}

struct Upgrade {
  const char* scheme;
  bool foreseen;
};

class Versions : public testing::TestWithParam<Upgrade> {};

// a is the older one: target first, then source of the way back.
TEST_P(Versions, a_session_goes_to_an_older_gnb_and_back_whole) {
  VirtualGnbs world(newest(GetParam().scheme));
  const bool partial = std::string(GetParam().scheme) == "partial";
  speak_as_before(world, "a", "b");
  VirtualUe& ue = world.open("b", 200, [&](auto& p) {
    p.max_tokens = 200;
    p.max_token_rate = 25;
    if (partial) p.consistency = wire::Consistency::kFast;
  });
  world.clock.run_for(2s);
  const Duration ahead = GetParam().foreseen ? Duration(2s) : Duration(0);
  world.hand_over(ue, "b", "a", ahead);
  world.clock.run_for(2s);
  world.hand_over(ue, "a", "b", ahead);
  if (partial) {
    EXPECT_TRUE(world.clock.run_until([&] { return ue.finished.has_value(); }, 60s));
    expect_clean(world, ue);
    EXPECT_EQ(ue.transcript.entries().size(), 200u);
  } else {
    expect_whole(world, ue);
  }
  for (const auto& [from, to] : {std::pair{"a", "b"}, std::pair{"b", "a"}}) {
    EXPECT_EQ(world.count(from, to, "ResourceStatus"), 0u);
    EXPECT_EQ(world.newer(from, to, wire::kOldestMinorVersion), 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Every, Versions,
                         testing::Values(Upgrade{"two-front", true}, Upgrade{"two-front", false},
                                         Upgrade{"partial", true}, Upgrade{"partial", false},
                                         Upgrade{"ctho", false}, Upgrade{"detour", false}),
                         [](const auto& each) {
                           std::string name = each.param.scheme;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name + (each.param.foreseen ? "_foreseen" : "_by_surprise");
                         });

TEST(Versions, of_one_age_use_all_that_they_have) {
  VirtualGnbs world(newest("partial"));
  VirtualUe& ue = world.open("b", 200, [](auto& p) {
    p.max_tokens = 200;
    p.max_token_rate = 25;
    p.consistency = wire::Consistency::kFast;
  });
  world.clock.run_for(2s);
  world.hand_over(ue, "b", "a", 0s);
  EXPECT_TRUE(world.clock.run_until([&] { return ue.finished.has_value(); }, 60s));
  expect_clean(world, ue);
  EXPECT_GT(world.newer("b", "a", wire::kOldestMinorVersion), 0u);
}

}  // namespace
}  // namespace pallas::test
