#include "message_generator.h"

#include <array>
#include <limits>

namespace pallas::wire {

std::uint64_t MessageGenerator::below(std::uint64_t limit) {
  return random_() % limit;
}

std::uint64_t MessageGenerator::any() {
  static constexpr std::array<std::uint64_t, 6> kEdges = {
      0,
      1,
      127,
      std::numeric_limits<std::uint32_t>::max(),
      std::uint64_t{1} << 32,
      std::numeric_limits<std::uint64_t>::max()};
  return flip() ? kEdges[below(kEdges.size())] : random_();
}

double MessageGenerator::between(double low, double high) {
  switch (below(4)) {
    case 0:
      return low;
    case 1:
      return high;
    default:
      return std::uniform_real_distribution<double>(low, high)(random_);
  }
}

std::string MessageGenerator::word(std::size_t most) {
  static constexpr std::array<std::string_view, 5> kLetters = {"a", "7", "-", "é", "𝄞"};
  std::string text;
  for (std::uint64_t n = below(most + 1); n > 0; --n) text += kLetters[below(kLetters.size())];
  return text;
}

std::string MessageGenerator::name() {
  std::string text = "n";
  return text.append(word());
}

Attempt MessageGenerator::attempt() {
  return Attempt{node(), BootId(any()), any()};
}

TokenPosition MessageGenerator::position() {
  return static_cast<TokenPosition>(flip() ? below(kMaxTokens + 1) : below(64));
}

std::vector<TokenId> MessageGenerator::ids(std::size_t most) {
  std::vector<TokenId> list(below(most + 1));
  for (TokenId& id : list) {
    id = flip() ? static_cast<TokenId>(below(50000)) : std::numeric_limits<TokenId>::max();
  }
  return list;
}

std::vector<kv::TokenRange> MessageGenerator::ranges() {
  std::vector<kv::TokenRange> list;
  TokenPosition at = 0;
  for (std::uint64_t n = below(6); n > 0; --n) {
    const auto begin = static_cast<TokenPosition>(at + below(40));
    at = static_cast<TokenPosition>(begin + 1 + below(40));
    list.push_back({begin, at});
  }
  return list;
}

Compatibility MessageGenerator::compatibility() {
  Compatibility c;
  c.model_hash = word();
  c.tokenizer_hash = word();
  c.context_tokens = any32();
  c.rope = word();
  c.kv_types = word();
  c.kv_layout = word();
  c.block_tokens = any32();
  c.adapter = word();
  c.instruction_set = word();
  c.engine_build = word();
  c.threads = any32();
  c.flash_attention = flip();
  return c;
}

SessionParams MessageGenerator::params() {
  SessionParams p;
  p.model = word();
  p.tenant = word();
  p.ue = UeId(word());
  p.temperature = between(0, 2);
  p.top_p = between(0.01, 1);
  p.top_k = static_cast<std::int32_t>(below(1u << 31));
  p.min_p = between(0, 1);
  p.repeat_penalty = between(0.5, 2);
  p.presence_penalty = between(-2, 2);
  p.frequency_penalty = between(-2, 2);
  p.penalty_last_n = static_cast<std::int32_t>(below(1000));
  p.seed = any();
  p.min_tokens = any32();
  p.ignore_eos = flip();
  p.grammar = word(200);
  for (std::uint64_t n = below(4); n > 0; --n) {
    p.logit_bias.emplace_back(static_cast<TokenId>(below(50000)),
                              static_cast<float>(between(-100, 100)));
  }
  p.max_tokens = static_cast<std::uint32_t>(1 + below(100000));
  for (std::uint64_t n = below(4); n > 0; --n) p.stop.push_back(word());
  p.max_token_rate = between(0, 100);
  p.consistency = static_cast<Consistency>(below(3));
  p.chat = flip();
  p.include_usage = flip();
  p.completion_id = word();
  p.created_unix_s = static_cast<std::int64_t>(any());
  p.resume_token = word();
  return p;
}

SessionSnapshot MessageGenerator::snapshot() {
  SessionSnapshot s;
  s.params = params();
  s.tokens = ids(60);
  s.tokens.push_back(1);
  s.prompt_tokens = static_cast<TokenPosition>(1 + below(s.tokens.size()));
  for (std::uint64_t left = s.tokens.size() - s.prompt_tokens; left > 0;) {
    const std::uint64_t run = 1 + below(left);
    s.sampled_by.emplace_back(node(), static_cast<std::uint32_t>(run));
    left -= run;
  }
  s.lineage = Lineage(any());
  s.finish = finish();
  s.epoch = epoch();
  return s;
}

Plan MessageGenerator::plan() {
  Plan p;
  p.scheme = word();
  p.relay = flip();
  p.recompute_end = any32();
  p.order = static_cast<SendOrder>(below(4));
  p.send_begin = any32();
  p.meet = flip();
  p.partial_ranges = flip();
  p.window_s = between(0, 10);
  p.expected_in_s = between(-1, 10);
  p.expected_sit_s = between(0, 10);
  p.oracle = flip();
  p.partial_fraction = between(0, 1);
  p.partial_deadline_s = between(0, 10);
  return p;
}

HeldAttempt MessageGenerator::held() {
  return HeldAttempt{session(), attempt(), position(), any(), ranges()};
}

Message MessageGenerator::make(std::size_t index) {
  switch (index) {
    case 0: {
      Hello m{any32(),         any32(), node(), BootId(any()), static_cast<Channel>(below(2)),
              compatibility(), {},      flip()};
      for (std::uint64_t n = below(4); n > 0; --n) m.held.push_back(held());
      return m;
    }
    case 1:
      return Credit{any()};
    case 2:
      return KeepAlive{any(), flip()};
    case 3:
      return ErrorMessage{static_cast<Errc>(below(23)), word(100), SessionId(word())};
    case 4: {
      HandoverRequest m{session(), attempt(), snapshot(), compatibility(), plan(),
                        0,         any32(),   position(), between(0, 1000)};
      m.source_front = static_cast<TokenPosition>(below(m.snapshot.tokens.size() + 1));
      return m;
    }
    case 5:
      return HandoverRequestAcknowledge{session(),         attempt(), any32(),
                                        between(0, 10000), flip(),    ranges()};
    case 6:
      return HandoverPreparationFailure{session(), attempt(), cause(), word(100)};
    case 7: {
      TokenUpdate m{session(), {}, epoch(), position() / 2, ids(20), NodeId(word()), finish(), {}};
      if (flip()) m.attempt = attempt();
      if (flip()) m.snapshot = snapshot();
      return m;
    }
    case 8: {
      KvBlock m{session(), attempt(), position() / 2, static_cast<TokenPosition>(1 + below(64)),
                any(),     any(),     Lineage(any()), 0,
                {}};
      if (flip()) {  // scattered
        m.positions = {{m.first, m.first + 1}};
        m.count = 1;
        for (std::uint64_t n = below(20); n > 0; --n) {
          const auto begin = static_cast<TokenPosition>(m.positions.back().end + below(5));
          m.positions.push_back({begin, static_cast<TokenPosition>(begin + 1 + below(4))});
          m.count += m.positions.back().size();
        }
      }
      m.payload_bytes = m.count * (1 + below(40000));
      return m;
    }
    case 9:
      return PreparationProgress{session(), attempt(),  position(), position(),
                                 ranges(),  position(), any(),      any(),
                                 any32(),   any(),      flip(),     position()};
    case 10:
      return SnStatusTransfer{session(),      epoch(), attempt(), position(),
                              position() / 2, ids(20), any(),     Lineage(any()),
                              finish(),       any32(), flip(),    NodeId(word())};
    case 11:
      return HandoverSuccess{session(), epoch(), attempt(), position(), flip(), flip()};
    case 12:
      return UeContextRelease{session(), epoch(), attempt()};
    case 13:
      return UeContextReleaseAck{session(), epoch()};
    case 14:
      return LeaseRenew{session(), attempt(), any32()};
    case 15: {
      Moved m{session(), NodeId(word()), epoch(), {}};
      if (flip()) m.snapshot = snapshot();
      return m;
    }
    case 16:
      return StaleEpoch{session(), epoch(), NodeId(word())};
    case 17:
      return HandoverCancel{session(), attempt(), cause()};
    case 18:
      return HandoverCancelAck{session(), attempt()};
    case 19: {
      RetrieveUeContextRequest m;
      m.session = session();
      m.epoch = epoch();
      m.next_index = position();
      m.tokens_known = position();
      m.token_hash = any();
      m.kv_front = static_cast<TokenPosition>(below(m.tokens_known + 1u));
      m.lineage = Lineage(any());
      m.compatibility = compatibility();
      m.resume_token = word();
      m.prefill_rate = between(0, 10000);
      m.stop = flip();
      return m;
    }
    case 20: {
      RetrieveUeContextResponse m{session(),       epoch(), attempt(), snapshot(),
                                  compatibility(), plan(),  0};
      m.source_front = static_cast<TokenPosition>(below(m.snapshot.tokens.size() + 1));
      return m;
    }
    case 21:
      return RetrieveUeContextFailure{session(), epoch(), cause(), word(100)};
    default:
      return ResourceStatus{between(1e-6, 1)};
  }
}

}  // namespace pallas::wire
