#include "engine_llama/measure.h"

#include "engine_llama/measured_cache.h"
#include "engine_llama/profiler.h"
#include "engine_llama/self_test.h"

namespace pallas::engine {
namespace {

Result<Measured> measure(Decoder& decoder) {
  auto profile = measure_profile(decoder);
  if (!profile) return tl::unexpected(profile.error());
  auto capabilities = measure_capabilities(decoder, profile->profile.chunk_tokens);
  if (!capabilities) return tl::unexpected(capabilities.error());
  return Measured{std::move(profile->profile), *capabilities, profile->disturbed};
}

// What a busy machine made slower than it is, measured again; what is exact stays.
Result<Measured> measure_again(Decoder& decoder, const Measured& before) {
  auto profile = measure_profile(decoder);
  if (!profile) return tl::unexpected(profile.error());
  return Measured{shorter_of(std::move(profile->profile), before.profile), before.capabilities,
                  profile->disturbed};
}

// A disturbed profile is good enough for this long: gNBs that start together measure once.
constexpr std::chrono::minutes kDisturbedLasts(10);

}  // namespace

Result<Measured> measured_of(Decoder& decoder, const CompatibilityRecord& record,
                             const LlamaConfig& config) {
  if (config.measured) return *config.measured;
  if (config.cache_dir.empty()) return measure(decoder);
  const MeasuredCache cache(config.cache_dir, measured_key(record, config.slots));
  const auto good = [&](const std::optional<Measured>& kept) {
    return kept && (!kept->disturbed || cache.age() < kDisturbedLasts);
  };
  if (auto kept = cache.load(); good(kept)) return *kept;
  const FileLock lock(cache.lock_path());
  const auto kept = cache.load();
  if (good(kept)) return *kept;
  auto measured = kept ? measure_again(decoder, *kept) : measure(decoder);
  if (measured) cache.store(*measured);
  return measured;
}

}  // namespace pallas::engine
