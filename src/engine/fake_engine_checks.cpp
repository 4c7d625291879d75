// What FakeEngine refuses, and by which name.
#include <cmath>
#include <string>

#include "engine/fake_engine.h"

namespace pallas::engine {
namespace {

Failure not_at_front(const char* what, std::uint64_t at, TokenPosition front) {
  return fail(Errc::kOutOfOrder, std::string(what) + " at position " + std::to_string(at) +
                                     ", the front is " + std::to_string(front));
}

}  // namespace

Status FakeEngine::check(const Slot& slot, const Command& command) const {
  const TokenPosition front = slot.kv.front();
  if (slot.decoding && command.kind != CommandKind::kPause &&
      command.kind != CommandKind::kExport && command.kind != CommandKind::kRank) {
    return fail(Errc::kOutOfOrder, "the slot decodes");
  }
  switch (command.kind) {
    case CommandKind::kPrefill:
      if (command.first != front) return not_at_front("prefill", command.first, front);
      return check_tokens(slot, command.first, command.tokens);
    case CommandKind::kReplay:
      if (command.first != front) return not_at_front("replay", command.first, front);
      return check_tokens(slot, command.first, command.tokens);
    case CommandKind::kAttach:
      if (command.first != front) return not_at_front("attach", command.first, front);
      return check_rows(slot, std::uint64_t{front} + command.count, command.count, command.rows);
    case CommandKind::kScatter: {
      if (!info().capabilities.holes) return fail(Errc::kUnsupported, "no holes in the cache");
      if (command.positions.empty()) return check_rows(slot, front, 0, command.rows);
      const auto& ranges = command.positions.ranges();
      if (ranges.front().begin < front) return not_at_front("attach", ranges.front().begin, front);
      return check_rows(slot, ranges.back().end, command.count, command.rows);
    }
    case CommandKind::kExport:
      if (!slot.kv.holds(command.range)) {
        return fail(Errc::kOutOfOrder, "export up to " + std::to_string(command.range.end) +
                                           ", the front is " + std::to_string(front) +
                                           ", and holes are below it or none");
      }
      return {};
    case CommandKind::kTruncate:
      if (command.first > front) return not_at_front("truncate", command.first, front);
      if (command.first > 0 && !slot.kv.holds({command.first - 1, command.first})) {
        return fail(Errc::kOutOfOrder,
                    "truncate to " + std::to_string(command.first) + ", which follows a hole");
      }
      return {};
    case CommandKind::kRank:
      return check_rank(slot, command.rank);
    case CommandKind::kDecode:
      return check_decode(slot, command.decode);
    case CommandKind::kPause:
    case CommandKind::kAbort:
      return {};
  }
  return {};
}

Status FakeEngine::check_rows(const Slot& slot, std::uint64_t end, TokenPosition count,
                              const kv::Bytes& rows) const {
  if (end > slot.reserved) {
    return fail(Errc::kContextExceeded,
                "attach up to position " + std::to_string(end) + " exceeds the reservation");
  }
  const std::uint64_t expected = count * info().geometry.bytes_per_token();
  if (rows.size() == expected) return {};
  return fail(Errc::kInvalidArgument, "rows have " + std::to_string(rows.size()) +
                                          " bytes, expected " + std::to_string(expected));
}

Status FakeEngine::check_rank(const Slot& slot, const RankRequest& request) const {
  const TokenPosition front = slot.kv.front();
  if (!slot.kv.holds({0, front})) return fail(Errc::kOutOfOrder, "rank: the cache has holes");
  if (request.ordering != Ordering::kObservationWindow) return {};
  if (auto status = check_window(request); !status) return status;
  return check_tokens(slot, front, request.window);
}

Status FakeEngine::check_tokens(const Slot& slot, TokenPosition first,
                                const std::vector<TokenId>& ids) const {
  for (const TokenId id : ids) {
    if (id < 0 || id >= fake_id::kVocabulary) {
      return fail(Errc::kInvalidArgument,
                  "token id " + std::to_string(id) + " is outside the vocabulary");
    }
  }
  if (ids.size() > slot.reserved - first) {
    return fail(Errc::kContextExceeded, std::to_string(ids.size()) + " tokens at " +
                                            std::to_string(first) + " exceed the reservation of " +
                                            std::to_string(slot.reserved));
  }
  return {};
}

Status FakeEngine::check_decode(const Slot& slot, const DecodeParams& params) const {
  const TokenPosition front = slot.kv.front();
  if (params.tokens.empty()) return fail(Errc::kInvalidArgument, "decode without tokens");
  if (params.tokens.size() != front + std::size_t{1}) {
    return not_at_front("decode with its last token", params.tokens.size() - 1, front);
  }
  if (params.prompt_tokens > params.tokens.size()) {
    return fail(Errc::kInvalidArgument, "prompt_tokens is above the number of tokens");
  }
  if (params.last_position < params.tokens.size()) {
    return fail(Errc::kInvalidArgument, "last_position is below the first token to sample");
  }
  if (!(params.max_token_rate.value >= 0) || !std::isfinite(params.max_token_rate.value)) {
    return fail(Errc::kInvalidArgument, "max_token_rate is not a rate");
  }
  return check_tokens(slot, 0, {params.tokens.back()});
}

}  // namespace pallas::engine
