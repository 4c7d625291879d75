#include "bench_sizing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "demo_prompt.h"

namespace pallas::app {
namespace {

// No scheme's window is longer at the rates that are of interest.
constexpr double kMostAvailable = 12;
// Of the context at the handover, generated tokens are at most this part unless times are given.
constexpr double kGeneratedShare = 0.5;
constexpr std::uint32_t kLeastPrompt = 16;
// Sessions may go faster than they were sized for.
constexpr double kHeadroom = 1.4;

// A number that reads well in results, as three significant digits.
double rounded(double value) {
  if (value <= 0) return 0;
  const double unit = std::pow(10.0, std::floor(std::log10(value)) - 2);
  return std::round(value / unit) * unit;
}

}  // namespace

Result<RunLayout> lay_out(const BenchSetting& setting, const Sizing& sizing,
                          std::uint32_t context_tokens) {
  double rate = 1000 / sizing.step_ms;
  if (setting.max_token_rate > 0) rate = std::min(rate, setting.max_token_rate);
  RunLayout layout;
  layout.goodput_mbps = setting.goodput.value;
  if (setting.goodput.multiple) {
    layout.goodput_mbps =
        rounded(setting.goodput.value * rate * static_cast<double>(sizing.kv_bytes) * 8 / 1e6);
  }
  const double usual =
      std::clamp(kGeneratedShare * setting.context / rate - kLeadIn.count(), 0.2, kMostAvailable);
  layout.available = Seconds(setting.window_s.value_or(setting.available_s.value_or(usual)));
  const Seconds apart = kLeadIn + layout.available;
  for (std::uint32_t i = 1; i <= setting.trip_handovers; ++i) {
    layout.handovers.push_back(apart * static_cast<double>(i));
  }
  const double generated = rate * apart.count();
  const auto words = [&](double prompt) {
    return static_cast<std::uint32_t>(
        std::lround((prompt - sizing.tokens_beside) / sizing.tokens_per_word));
  };
  const double more = setting.mover_spread * setting.context;
  const double prompt = setting.context - generated;
  if (prompt - more < kLeastPrompt + sizing.tokens_beside) {
    return fail(
        Errc::kInvalidArgument,
        fmt::format("context: {:.0f} tokens are too few: {:.0f} are generated in the {:.1f} "
                    "s before the handover",
                    setting.context - more, generated, apart.count()));
  }
  layout.prompt_words = words(prompt);
  for (std::uint32_t i = 0; i < setting.movers; ++i) {
    const double place = setting.movers > 1 ? 2.0 * i / (setting.movers - 1) - 1 : 0;
    layout.mover_words.push_back(words(prompt + place * more));
  }
  layout.max_tokens = static_cast<std::uint32_t>(
      std::ceil(kHeadroom * generated * setting.trip_handovers + 2 * kTailTokens + 50));
  if (prompt + more + layout.max_tokens > context_tokens) {
    return fail(
        Errc::kInvalidArgument,
        fmt::format("context_tokens: a session of {:.0f} tokens at the first of {} handovers "
                    "needs up to {:.0f}, and gNBs have {}",
                    setting.context + more, setting.trip_handovers,
                    prompt + more + layout.max_tokens, context_tokens));
  }
  layout.resident_words = static_cast<std::uint32_t>(std::lround(
      std::max(0.25 * setting.context - sizing.tokens_beside, 16.0) / sizing.tokens_per_word));
  return layout;
}

std::string bench_prompt(std::uint32_t words, std::uint32_t start) {
  std::istringstream text(demo_prompt());
  std::vector<std::string> all;
  for (std::string word; text >> word;) all.push_back(word);
  std::string prompt;
  for (std::uint32_t i = 0; i < words; ++i) {
    prompt += (i == 0 ? "" : " ") + all[(std::size_t{start} + i) % all.size()];
  }
  return prompt;
}

std::vector<std::vector<int>> share_cores(const std::vector<int>& allowed, std::size_t gnbs) {
  if (gnbs == 0 || allowed.size() < gnbs) return {};
  const std::size_t each = allowed.size() / gnbs;
  std::vector<std::vector<int>> shares;
  for (std::size_t i = 0; i < gnbs; ++i) {
    const auto first = allowed.begin() + static_cast<std::ptrdiff_t>(i * each);
    shares.emplace_back(first, first + static_cast<std::ptrdiff_t>(each));
  }
  return shares;
}

}  // namespace pallas::app
