// The one place of the project that two threads share, with both of them: needs no llama.cpp, so
// that ThreadSanitizer sees it.

#include "engine_llama/mailbox.h"

#include <gtest/gtest.h>

#include <thread>

namespace pallas::engine {
namespace {

using namespace std::chrono_literals;

Command prefill(TokenPosition first) {
  return {SlotId(1), command::Prefill{first, std::vector<TokenId>(16, 7)}};
}

TEST(Mailbox, brings_every_command_once_and_in_order_to_the_other_thread) {
  constexpr TokenPosition kCommands = 20'000;
  Mailbox mailbox(64);
  std::vector<TokenPosition> came;
  std::jthread engine([&] {
    std::vector<Command> taken;
    while (mailbox.take(taken, true, steady_now() + 1ms)) {
      for (const Command& one : taken) came.push_back(std::get<command::Prefill>(one.what).first);
      taken.clear();
      if (came.size() == kCommands) return;
    }
  });
  for (TokenPosition n = 0; n < kCommands; ++n) {
    // Full now and then; what frees resources is never turned away.
    while (!mailbox.push(prefill(n), n % 100 == 0)) std::this_thread::yield();
  }
  engine.join();
  ASSERT_EQ(came.size(), kCommands);
  for (TokenPosition n = 0; n < kCommands; ++n) ASSERT_EQ(came[n], n);
}

TEST(Mailbox, wakes_whoever_waits_when_it_closes) {
  for (int i = 0; i < 200; ++i) {
    Mailbox mailbox(4);
    bool open = true;
    std::jthread engine([&] {
      std::vector<Command> taken;
      open = mailbox.take(taken, true, std::nullopt);
    });
    mailbox.close();
    engine.join();
    EXPECT_FALSE(open);
  }
}

TEST(Mailbox, turns_commands_away_when_it_is_full_but_not_a_release) {
  Mailbox mailbox(1);
  EXPECT_TRUE(mailbox.push(prefill(0), false));
  EXPECT_FALSE(mailbox.push(prefill(1), false));
  EXPECT_TRUE(mailbox.push({SlotId(1), command::Release{}}, true));
  std::vector<Command> taken;
  EXPECT_TRUE(mailbox.take(taken, false, std::nullopt));
  EXPECT_EQ(taken.size(), 2u);
}

}  // namespace
}  // namespace pallas::engine
