#include "engine_llama/measure.h"

#include "engine_llama/measured_cache.h"
#include "engine_llama/profiler.h"
#include "engine_llama/self_test.h"

namespace pallas::engine {
namespace {

Result<Measured> measure(Decoder& decoder) {
  auto profile = measure_profile(decoder);
  if (!profile) return tl::unexpected(profile.error());
  auto capabilities = measure_capabilities(decoder, profile->chunk_tokens);
  if (!capabilities) return tl::unexpected(capabilities.error());
  return Measured{std::move(*profile), *capabilities};
}

}  // namespace

Result<Measured> measured_of(Decoder& decoder, const CompatibilityRecord& record,
                             const LlamaConfig& config) {
  if (config.measured) return *config.measured;
  if (config.cache_dir.empty()) return measure(decoder);
  const MeasuredCache cache(config.cache_dir, measured_key(record, config.slots));
  if (auto kept = cache.load()) return *kept;
  const FileLock lock(cache.lock_path());
  if (auto kept = cache.load()) return *kept;
  auto measured = measure(decoder);
  if (measured) cache.store(*measured);
  return measured;
}

}  // namespace pallas::engine
