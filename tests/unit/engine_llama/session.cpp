#include "session.h"

namespace pallas::test {

std::vector<TokenId> some_ids(TokenPosition count, unsigned text) {
  std::vector<TokenId> ids;
  for (TokenPosition i = 0; i < count; ++i) {
    ids.push_back(static_cast<TokenId>(300 + (i + 1000 * text) * 7919u % 20011));
  }
  return ids;
}

engine::SamplingParams hot_sampling(std::uint64_t seed) {
  engine::SamplingParams sampling;
  sampling.temperature = 0.8;
  sampling.seed = seed;
  sampling.repeat_penalty = 1.1;
  sampling.presence_penalty = 0.3;
  sampling.frequency_penalty = 0.1;
  sampling.ignore_eos = true;
  return sampling;
}

engine::DecodeParams decode_params(std::vector<TokenId> ids, TokenPosition prompt_tokens,
                                   TokenIndex count, engine::SamplingParams sampling) {
  engine::DecodeParams params;
  params.prompt_tokens = prompt_tokens;
  params.last_position = static_cast<TokenPosition>(ids.size()) + count - 1;
  params.tokens = std::move(ids);
  params.sampling = std::move(sampling);
  params.digest_logits = true;
  return params;
}

std::vector<TokenId> slice(const std::vector<TokenId>& ids, std::size_t begin, std::size_t end) {
  return {ids.begin() + static_cast<std::ptrdiff_t>(begin),
          ids.begin() + static_cast<std::ptrdiff_t>(end)};
}

testing::AssertionResult same_run(const std::vector<engine::Sampled>& a,
                                  const std::vector<engine::Sampled>& b) {
  if (a.size() != b.size()) {
    return testing::AssertionFailure() << a.size() << " tokens against " << b.size();
  }
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].position == b[i].position && a[i].id == b[i].id &&
        a[i].logits_digest == b[i].logits_digest) {
      continue;
    }
    return testing::AssertionFailure()
           << "token " << i << ": position " << a[i].position << " id " << a[i].id << " against "
           << b[i].position << " id " << b[i].id << ", logits "
           << (a[i].logits_digest == b[i].logits_digest ? "equal" : "differ");
  }
  return testing::AssertionSuccess();
}

}  // namespace pallas::test
