#pragma once
// Random messages that keep every promise of wire/messages.h, from a seed.

#include <cstddef>
#include <random>

#include "wire/messages.h"

namespace pallas::wire {

class MessageGenerator {
 public:
  explicit MessageGenerator(std::uint64_t seed) : random_(seed) {}

  // `index` is the alternative in Message.
  Message make(std::size_t index);

 private:
  std::uint64_t below(std::uint64_t limit);  // in [0, limit)
  std::uint64_t any();                       // edges of the type more often than chance
  std::uint32_t any32() { return static_cast<std::uint32_t>(any()); }
  bool flip() { return below(2) == 1; }
  double between(double low, double high);
  std::string word(std::size_t most = 24);  // may be empty, may hold several bytes a letter
  std::string name();                       // not empty
  SessionId session() { return SessionId(name()); }
  NodeId node() { return NodeId(name()); }
  Epoch epoch() { return Epoch(any()); }
  Attempt attempt();
  FinishReason finish() { return static_cast<FinishReason>(below(5)); }
  Cause cause() { return static_cast<Cause>(below(14)); }
  TokenPosition position();
  std::vector<TokenId> ids(std::size_t most);
  std::vector<kv::TokenRange> ranges();
  Compatibility compatibility();
  SessionParams params();
  SessionSnapshot snapshot();
  Plan plan();
  HeldAttempt held();

  std::mt19937_64 random_;
};

}  // namespace pallas::wire
