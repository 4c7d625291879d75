#include "engine_llama/sampler.h"

#include <llama.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "engine_llama/log.h"
#include "engine_llama/random.h"

namespace pallas::engine {
namespace {

constexpr std::size_t kMaxGrammarBytes = 256 * 1024;
constexpr std::size_t kMaxLogitBias = 4096;
constexpr std::int32_t kMaxPenaltyTokens = 1 << 16;
constexpr float kNever = -std::numeric_limits<float>::infinity();

Failure out_of_range(const char* field) {
  return fail(Errc::kInvalidArgument, std::string(field) + " is out of range");
}

bool within(double value, double low, double high) {
  return value >= low && value <= high;  // false for NaN
}

}  // namespace

Status check(const SamplingParams& p, TokenId vocabulary_size) {
  if (!within(p.temperature, 0, 1000)) return out_of_range("temperature");
  if (!within(p.top_p, 0, 1) || p.top_p == 0) return out_of_range("top_p");
  if (p.top_k < 0) return out_of_range("top_k");
  if (!within(p.min_p, 0, 1)) return out_of_range("min_p");
  if (!within(p.repeat_penalty, 1e-3, 1e3)) return out_of_range("repeat_penalty");
  if (!within(p.presence_penalty, -2, 2)) return out_of_range("presence_penalty");
  if (!within(p.frequency_penalty, -2, 2)) return out_of_range("frequency_penalty");
  if (p.penalty_last_n < 0) return out_of_range("penalty_last_n");
  if (p.grammar.size() > kMaxGrammarBytes) {
    return fail(Errc::kTooLarge,
                "grammar is longer than " + std::to_string(kMaxGrammarBytes) + " bytes");
  }
  if (p.logit_bias.size() > kMaxLogitBias) {
    return fail(Errc::kTooLarge,
                "logit_bias has more than " + std::to_string(kMaxLogitBias) + " entries");
  }
  for (const auto& [id, bias] : p.logit_bias) {
    if (id < 0 || id >= vocabulary_size) return out_of_range("logit_bias token id");
    if (std::isnan(bias) || bias > 1e6f) return out_of_range("logit_bias value");
  }
  return {};
}

struct TokenSampler::Candidates {
  std::vector<llama_token_data> data;
  llama_token_data_array array{};
};

void TokenSampler::Free::operator()(llama_sampler* sampler) const {
  llama_sampler_free(sampler);
}

TokenSampler::TokenSampler() = default;
TokenSampler::TokenSampler(TokenSampler&&) noexcept = default;
TokenSampler& TokenSampler::operator=(TokenSampler&&) noexcept = default;
TokenSampler::~TokenSampler() = default;

Result<TokenSampler> TokenSampler::make(const llama_vocab* vocab, const SamplingParams& params,
                                        std::span<const TokenId> ids, TokenPosition prompt_tokens) {
  const TokenId vocabulary = llama_vocab_n_tokens(vocab);
  if (Status status = check(params, vocabulary); !status) return tl::unexpected(status.error());

  TokenSampler made;
  made.vocab_ = vocab;
  made.params_ = params;
  made.candidates_ = std::make_unique<Candidates>();
  for (TokenId id = 0; id < vocabulary; ++id) {
    if (llama_vocab_is_eog(vocab, id)) made.end_ids_.push_back(id);
  }

  made.chain_.reset(llama_sampler_chain_init(llama_sampler_chain_default_params()));
  llama_sampler* chain = made.chain_.get();
  std::vector<llama_logit_bias> biases;
  for (const auto& [id, bias] : params.logit_bias) biases.push_back({id, bias});
  std::int32_t suppressed = 0;
  const llama_token* suppress = llama_vocab_get_suppress_tokens(vocab, &suppressed);
  for (std::int32_t i = 0; i < suppressed; ++i) biases.push_back({suppress[i], kNever});
  if (!biases.empty()) {
    llama_sampler_chain_add(
        chain, llama_sampler_init_logit_bias(vocabulary, static_cast<std::int32_t>(biases.size()),
                                             biases.data()));
  }
  llama_sampler_chain_add(chain, llama_sampler_init_penalties(
                                     vocabulary, std::min(params.penalty_last_n, kMaxPenaltyTokens),
                                     static_cast<float>(params.repeat_penalty),
                                     static_cast<float>(params.frequency_penalty),
                                     static_cast<float>(params.presence_penalty)));
  if (params.temperature > 0) {
    if (params.top_k > 0) llama_sampler_chain_add(chain, llama_sampler_init_top_k(params.top_k));
    if (params.top_p < 1) {
      llama_sampler_chain_add(chain, llama_sampler_init_top_p(static_cast<float>(params.top_p), 1));
    }
    if (params.min_p > 0) {
      llama_sampler_chain_add(chain, llama_sampler_init_min_p(static_cast<float>(params.min_p), 1));
    }
    llama_sampler_chain_add(chain, llama_sampler_init_temp(static_cast<float>(params.temperature)));
  }

  if (!params.grammar.empty()) {
    take_backend_errors();
    try {
      made.grammar_.reset(llama_sampler_init_grammar(vocab, params.grammar.c_str(), "root"));
    } catch (const std::exception& e) {
      return fail(Errc::kInvalidArgument, std::string("grammar: ") + e.what());
    }
    if (!made.grammar_) {
      return fail(Errc::kInvalidArgument, "grammar does not parse " + take_backend_errors());
    }
  }
  for (std::size_t i = 0; i < ids.size(); ++i) {
    // llama.cpp aborts the process on some ids that a grammar does not allow, so ask first.
    if (made.grammar_ && i >= prompt_tokens) {
      if (!made.fits_grammar(ids[i])) {
        return fail(Errc::kInvalidArgument,
                    "tokens: position " + std::to_string(i) + " does not fit the grammar");
      }
      llama_sampler_accept(made.grammar_.get(), ids[i]);
    }
    llama_sampler_accept(chain, ids[i]);
  }
  return made;
}

bool TokenSampler::is_end(TokenId id) const {
  return llama_vocab_is_eog(vocab_, id);
}

bool TokenSampler::fits_grammar(TokenId id) {
  llama_token_data one{id, 1.0f, 0.0f};
  llama_token_data_array array{&one, 1, -1, false};
  llama_sampler_apply(grammar_.get(), &array);
  return one.logit != kNever;
}

void TokenSampler::fill(std::span<const float> logits, TokenIndex index) {
  std::vector<llama_token_data>& data = candidates_->data;
  data.resize(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) {
    data[i] = {static_cast<llama_token>(i), logits[i], 0.0f};
  }
  if (params_.ignore_eos || index < params_.min_tokens) {
    for (const TokenId id : end_ids_) data[static_cast<std::size_t>(id)].logit = kNever;
  }
  candidates_->array = {data.data(), data.size(), -1, false};
}

// Greedy takes the largest logit, of equals the lowest id. Otherwise the candidates' probabilities
// are summed in the order that the samplers left them in until the random number is reached.
Result<TokenId> TokenSampler::choose(TokenIndex index, std::uint32_t draw, bool grammar_first) {
  llama_token_data_array& array = candidates_->array;
  if (grammar_first) llama_sampler_apply(grammar_.get(), &array);
  llama_sampler_apply(chain_.get(), &array);

  const llama_token_data* best = nullptr;
  for (std::size_t i = 0; i < array.size; ++i) {
    const llama_token_data& c = array.data[i];
    if (c.logit == kNever) continue;
    if (best == nullptr || c.logit > best->logit || (c.logit == best->logit && c.id < best->id)) {
      best = &c;
    }
  }
  if (best == nullptr) return TokenId{-1};
  if (params_.temperature == 0) return TokenId{best->id};

  const float largest = best->logit;
  double total = 0;
  for (std::size_t i = 0; i < array.size; ++i) {
    llama_token_data& c = array.data[i];
    c.p = std::exp(c.logit - largest);
    total += c.p;
  }
  const double wanted = uniform(params_.seed, index, draw) * total;
  double sum = 0;
  TokenId last = best->id;
  for (std::size_t i = 0; i < array.size; ++i) {
    if (array.data[i].p <= 0) continue;
    last = array.data[i].id;
    sum += array.data[i].p;
    if (sum > wanted) break;
  }
  return last;
}

Result<TokenId> TokenSampler::sample(std::span<const float> logits, TokenIndex index) {
  bool numbers = !logits.empty();
  for (const float logit : logits) {
    numbers &= logit <= std::numeric_limits<float>::max();  // false for NaN and +infinity
  }
  if (!numbers) return fail(Errc::kEngine, "the model's logits are not numbers");

  try {
    fill(logits, index);
    Result<TokenId> id = choose(index, 0, false);
    if (id && grammar_ && (*id < 0 || !fits_grammar(*id))) {
      fill(logits, index);
      id = choose(index, 1, true);
    }
    if (id && *id < 0) {
      // Nothing but the end is possible any more (a grammar that is complete): then it ends, even
      // before min_tokens.
      TokenId end = -1;
      for (const TokenId e : end_ids_) {
        if (!grammar_ || fits_grammar(e)) {
          end = e;
          break;
        }
      }
      if (end < 0) return fail(Errc::kEngine, "no token is possible");
      id = end;
    }
    if (!id) return id;
    if (grammar_) llama_sampler_accept(grammar_.get(), *id);
    llama_sampler_accept(chain_.get(), *id);
    return id;
  } catch (const std::exception& e) {
    return fail(Errc::kEngine, std::string("sampling: ") + e.what());
  }
}

}  // namespace pallas::engine
