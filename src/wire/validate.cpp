#include "wire/validate.h"

#include <cmath>
#include <limits>

namespace pallas::wire {
namespace {

constexpr std::uint8_t kLastConsistency = static_cast<std::uint8_t>(Consistency::kFast);
constexpr std::uint8_t kLastFinish = static_cast<std::uint8_t>(FinishReason::kError);
constexpr std::uint8_t kLastOrder = static_cast<std::uint8_t>(SendOrder::kByImportance);
constexpr std::uint8_t kLastChannel = static_cast<std::uint8_t>(Channel::kData);
constexpr double kSmallestShare = 1e-6;
constexpr double kUnbounded = std::numeric_limits<double>::max();

// Where a value stands, as a chain through the callers' frames; becomes text only for an error.
class At {
 public:
  explicit At(std::string_view name) : name_(name) {}
  At operator/(std::string_view name) const { return At(this, name); }
  std::string str() const {
    return up_ == nullptr ? std::string(name_) : up_->str() + "." + std::string(name_);
  }

 private:
  At(const At* up, std::string_view name) : up_(up), name_(name) {}
  const At* up_ = nullptr;
  std::string_view name_;
};

enum class Empty { kRefused, kAllowed };

class Validator {
 public:
  Status status() && {
    if (error_) return Failure(std::move(*error_));
    return {};
  }

  void check(const At& at, const Hello& m) {
    name(at / "node", m.node.value);
    in_enum(at / "channel", m.channel, kLastChannel);
    check(at / "compatibility", m.compatibility);
    at_most(at / "held", m.held.size(), kMaxRanges, "attempts");
    for (const HeldAttempt& held : m.held) check(at / "held", held);
  }
  void check(const At&, const Credit&) {}
  void check(const At&, const KeepAlive&) {}
  void check(const At& at, const ErrorMessage& m) {
    text(at / "message", m.message);
    name(at / "session", m.session.value, Empty::kAllowed);
  }
  void check(const At& at, const HandoverRequest& m) {
    name(at / "session", m.session.value);
    check(at / "attempt", m.attempt);
    check(at / "snapshot", m.snapshot);
    check(at / "compatibility", m.compatibility);
    check(at / "plan", m.plan);
    at_most(at / "source_front", m.source_front, m.snapshot.tokens.size(), "tokens");
    non_negative(at / "token_rate", m.token_rate);
  }
  void check(const At& at, const HandoverRequestAcknowledge& m) {
    name(at / "session", m.session.value);
    check(at / "attempt", m.attempt);
    non_negative(at / "prefill_rate", m.prefill_rate);
    ranges(at / "held", m.held);
  }
  void check(const At& at, const HandoverPreparationFailure& m) {
    name(at / "session", m.session.value);
    check(at / "attempt", m.attempt);
    text(at / "message", m.message);
  }
  void check(const At& at, const TokenUpdate& m) {
    name(at / "session", m.session.value);
    if (m.attempt) check(at / "attempt", *m.attempt);
    tokens(at / "ids", m.first, m.ids);
    name(at / "by", m.by.value, Empty::kAllowed);
    in_enum(at / "finish", m.finish, kLastFinish);
    if (m.snapshot) check(at / "snapshot", *m.snapshot);
  }
  void check(const At& at, const KvBlock& m) {
    name(at / "session", m.session.value);
    check(at / "attempt", m.attempt);
    at_least_one(at / "count", m.count);
    at_most(at / "count", m.count, kMaxTokens, "positions");
    position(at / "first", std::uint64_t{m.first} + m.count);
    at_least_one(at / "payload_bytes", m.payload_bytes);
    at_most(at / "payload_bytes", m.payload_bytes, kMaxKvBytes, "bytes");
    if (m.count != 0 && m.payload_bytes % m.count != 0) {
      refuse(at / "payload_bytes", Errc::kInvalidArgument,
             std::to_string(m.payload_bytes) + " bytes do not divide into " +
                 std::to_string(m.count) + " equal rows");
    }
    if (!m.positions.empty()) check_positions(at / "positions", m);
  }
  void check(const At& at, const PreparationProgress& m) {
    name(at / "session", m.session.value);
    check(at / "attempt", m.attempt);
    position(at / "front", m.front);
    position(at / "prefill_goal", m.prefill_goal);
    ranges(at / "staged", m.staged);
    position(at / "tokens_known", m.tokens_known);
    position(at / "sampled_to", m.sampled_to);
  }
  void check(const At& at, const SnStatusTransfer& m) {
    name(at / "session", m.session.value);
    check(at / "attempt", m.attempt, Empty::kAllowed);
    position(at / "n", m.n);
    tokens(at / "ids", m.first, m.ids);
    in_enum(at / "finish", m.finish, kLastFinish);
    name(at / "by", m.by.value, Empty::kAllowed);
  }
  void check(const At& at, const HandoverSuccess& m) {
    name(at / "session", m.session.value);
    check(at / "attempt", m.attempt, Empty::kAllowed);
    position(at / "next_index", m.next_index);
  }
  void check(const At& at, const UeContextRelease& m) {
    name(at / "session", m.session.value);
    check(at / "attempt", m.attempt, Empty::kAllowed);
  }
  void check(const At& at, const UeContextReleaseAck& m) { name(at / "session", m.session.value); }
  void check(const At& at, const LeaseRenew& m) {
    name(at / "session", m.session.value);
    check(at / "attempt", m.attempt);
  }
  void check(const At& at, const Moved& m) {
    name(at / "session", m.session.value);
    name(at / "node", m.node.value, Empty::kAllowed);
    if (m.snapshot) check(at / "snapshot", *m.snapshot);
  }
  void check(const At& at, const StaleEpoch& m) {
    name(at / "session", m.session.value);
    name(at / "node", m.node.value, Empty::kAllowed);
  }
  void check(const At& at, const HandoverCancel& m) {
    name(at / "session", m.session.value);
    check(at / "attempt", m.attempt);
  }
  void check(const At& at, const HandoverCancelAck& m) {
    name(at / "session", m.session.value);
    check(at / "attempt", m.attempt);
  }
  void check(const At& at, const RetrieveUeContextRequest& m) {
    name(at / "session", m.session.value);
    position(at / "next_index", m.next_index);
    position(at / "tokens_known", m.tokens_known);
    at_most(at / "kv_front", m.kv_front, m.tokens_known, "tokens known");
    check(at / "compatibility", m.compatibility);
    name(at / "resume_token", m.resume_token, Empty::kAllowed);
    non_negative(at / "prefill_rate", m.prefill_rate);
  }
  void check(const At& at, const RetrieveUeContextResponse& m) {
    name(at / "session", m.session.value);
    check(at / "attempt", m.attempt, Empty::kAllowed);
    check(at / "snapshot", m.snapshot);
    check(at / "compatibility", m.compatibility);
    check(at / "plan", m.plan);
    at_most(at / "source_front", m.source_front, m.snapshot.tokens.size(), "tokens");
  }
  void check(const At& at, const ResourceStatus& m) {
    number(at / "prefill_share", m.prefill_share, kSmallestShare, 1);
  }
  void check(const At& at, const RetrieveUeContextFailure& m) {
    name(at / "session", m.session.value);
    text(at / "message", m.message);
  }

 private:
  // --- parts of messages ---

  void check_positions(const At& at, const KvBlock& m) {
    ranges(at, m.positions);
    std::uint64_t count = 0;
    for (const kv::TokenRange& range : m.positions) count += range.size();
    if (count != m.count) {
      refuse(at, Errc::kInvalidArgument,
             std::to_string(count) + " positions for " + std::to_string(m.count) + " rows");
    }
    if (m.positions.front().begin != m.first) {
      refuse(at, Errc::kInvalidArgument, "do not begin at first");
    }
  }

  void check(const At& at, const Attempt& a, Empty empty = Empty::kRefused) {
    name(at / "owner", a.owner.value, empty);
  }
  void check(const At& at, const HeldAttempt& h) {
    name(at / "session", h.session.value);
    check(at / "attempt", h.attempt);
    position(at / "tokens_known", h.tokens_known);
    ranges(at / "ranges", h.ranges);
  }
  void check(const At& at, const Compatibility& c) {
    text(at / "model_hash", c.model_hash);
    text(at / "tokenizer_hash", c.tokenizer_hash);
    text(at / "rope", c.rope);
    text(at / "kv_types", c.kv_types);
    text(at / "kv_layout", c.kv_layout);
    text(at / "adapter", c.adapter);
    text(at / "instruction_set", c.instruction_set);
    text(at / "engine_build", c.engine_build);
  }
  void check(const At& at, const kv::TransferPlan& p) {
    name(at / "scheme", p.scheme, Empty::kAllowed);
    in_enum(at / "order", p.order, kLastOrder);
    number(at / "partial_fraction", p.partial_fraction, 0, 1);
    non_negative(at / "partial_deadline_s", p.partial_deadline_s);
    non_negative(at / "window_s", p.window_s);
    number(at / "expected_in_s", p.expected_in_s, -kUnbounded, kUnbounded);
    number(at / "expected_sit_s", p.expected_sit_s, -kUnbounded, kUnbounded);
  }
  void check(const At& at, const SessionParams& p) {
    name(at / "model", p.model, Empty::kAllowed);
    name(at / "tenant", p.tenant, Empty::kAllowed);
    name(at / "ue", p.ue.value, Empty::kAllowed);
    non_negative(at / "temperature", p.temperature);
    number(at / "top_p", p.top_p, std::numeric_limits<double>::min(), 1);
    number(at / "top_k", p.top_k, 0, std::numeric_limits<std::int32_t>::max());
    number(at / "min_p", p.min_p, 0, 1);
    number(at / "repeat_penalty", p.repeat_penalty, std::numeric_limits<double>::min(), kUnbounded);
    number(at / "presence_penalty", p.presence_penalty, -2, 2);
    number(at / "frequency_penalty", p.frequency_penalty, -2, 2);
    number(at / "penalty_last_n", p.penalty_last_n, 0, std::numeric_limits<std::int32_t>::max());
    text(at / "grammar", p.grammar);
    at_most(at / "logit_bias", p.logit_bias.size(), kMaxRanges, "entries");
    for (const auto& [token, bias] : p.logit_bias) {
      number(at / "logit_bias", token, 0, std::numeric_limits<TokenId>::max());
      number(at / "logit_bias", double{bias}, -kUnbounded, kUnbounded);
    }
    at_least_one(at / "max_tokens", p.max_tokens);
    at_most(at / "stop", p.stop.size(), kMaxRanges, "strings");
    for (const std::string& stop : p.stop) text(at / "stop", stop);
    non_negative(at / "max_token_rate", p.max_token_rate);
    in_enum(at / "consistency", p.consistency, kLastConsistency);
    name(at / "completion_id", p.completion_id, Empty::kAllowed);
    name(at / "resume_token", p.resume_token, Empty::kAllowed);
  }
  void check(const At& at, const SessionSnapshot& s) {
    check(at / "params", s.params);
    at_least_one(at / "prompt_tokens", s.prompt_tokens);
    tokens(at / "tokens", 0, s.tokens);
    at_most(at / "prompt_tokens", s.prompt_tokens, s.tokens.size(), "tokens");
    at_most(at / "sampled_by", s.sampled_by.size(), kMaxTokens, "runs");
    std::uint64_t sampled = 0;
    for (const auto& [node, count] : s.sampled_by) {
      name(at / "sampled_by", node.value, Empty::kAllowed);
      at_least_one(at / "sampled_by", count);
      sampled += count;
    }
    if (s.prompt_tokens <= s.tokens.size()) {
      at_most(at / "sampled_by", sampled, s.tokens.size() - s.prompt_tokens, "generated tokens");
    }
    in_enum(at / "finish", s.finish, kLastFinish);
  }

  // --- rules ---

  void refuse(const At& at, Errc code, std::string_view why) {
    if (!error_) error_ = Error{code, at.str() + ": " + std::string(why)};
  }
  void at_most(const At& at, std::uint64_t value, std::uint64_t limit, std::string_view unit) {
    if (value <= limit) return;
    refuse(at, Errc::kTooLarge,
           std::to_string(value) + " " + std::string(unit) + ", at most " + std::to_string(limit));
  }
  void at_least_one(const At& at, std::uint64_t value) {
    if (value == 0) refuse(at, Errc::kInvalidArgument, "is 0, at least 1");
  }
  // A session has at most kMaxTokens tokens, so no position or count of its tokens lies above.
  void position(const At& at, std::uint64_t end) { at_most(at, end, kMaxTokens, "tokens"); }
  void number(const At& at, double value, double low, double high) {
    if (std::isfinite(value) && value >= low && value <= high) return;
    refuse(at, Errc::kInvalidArgument, std::to_string(value) + " is out of range");
  }
  void non_negative(const At& at, double value) { number(at, value, 0, kUnbounded); }
  template <class E>
  void in_enum(const At& at, E value, std::uint8_t last) {
    if (static_cast<std::uint8_t>(value) <= last) return;
    refuse(at, Errc::kInvalidArgument, "is not a value of this enumeration");
  }
  void tokens(const At& at, TokenPosition first, const std::vector<TokenId>& ids) {
    at_most(at, ids.size(), kMaxTokens, "ids");
    at_most(at, std::uint64_t{first} + ids.size(), kMaxTokens, "tokens");
    for (TokenId id : ids) {
      if (id < 0) return refuse(at, Errc::kInvalidArgument, "a token id is negative");
    }
  }
  void ranges(const At& at, const std::vector<kv::TokenRange>& list) {
    at_most(at, list.size(), kMaxRanges, "ranges");
    TokenPosition last = 0;
    for (const kv::TokenRange& range : list) {
      if (range.empty()) return refuse(at, Errc::kInvalidArgument, "a range is empty");
      if (range.begin < last) {
        return refuse(at, Errc::kInvalidArgument, "ranges are not ascending and disjoint");
      }
      last = range.end;
    }
    position(at, last);
  }
  void text(const At& at, const std::string& value) {
    at_most(at, value.size(), kMaxTextBytes, "bytes");
    if (!is_utf8(value)) refuse(at, Errc::kInvalidArgument, "is not UTF-8");
  }
  // A name also has no control characters: it is shown in logs and tables.
  void name(const At& at, const std::string& value, Empty empty = Empty::kRefused) {
    if (value.empty() && empty == Empty::kRefused) refuse(at, Errc::kInvalidArgument, "is empty");
    at_most(at, value.size(), kMaxNameBytes, "bytes");
    for (char c : value) {
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
        return refuse(at, Errc::kInvalidArgument, "has a control character");
      }
    }
    if (!is_utf8(value)) refuse(at, Errc::kInvalidArgument, "is not UTF-8");
  }

  std::optional<Error> error_;
};

}  // namespace

Status validate(const Message& message) {
  Validator validator;
  const At at(name_of(message));
  std::visit([&](const auto& m) { validator.check(at, m); }, message);
  return std::move(validator).status();
}

bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(text[k]); };
    const unsigned lead = byte(i);
    if (lead < 0x80) {
      ++i;
      continue;
    }
    const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc2 || lead > 0xf4 || text.size() - i < length) return false;
    std::uint32_t point = lead & (0xffu >> (length + 1));
    for (std::size_t k = i + 1; k < i + length; ++k) {
      if ((byte(k) & 0xc0) != 0x80) return false;
      point = (point << 6) | (byte(k) & 0x3fu);
    }
    static constexpr std::uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
    if (point < kSmallest[length] || point > 0x10ffff) return false;
    if (point >= 0xd800 && point <= 0xdfff) return false;
    i += length;
  }
  return true;
}

}  // namespace pallas::wire
