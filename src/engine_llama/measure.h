#pragma once
// Profile and self-test, measured once and kept.

#include "base/result.h"
#include "engine_llama/decoder.h"
#include "engine_llama/llama_config.h"

namespace pallas::engine {

// config.measured if given; else from config.cache_dir; else measured now, by one process at a time
// (the others wait for its result), and kept there. A profile that other work disturbed is measured
// again by a later start. A cache that cannot be written costs only time.
Result<Measured> measured_of(Decoder& decoder, const CompatibilityRecord& record,
                             const LlamaConfig& config);

}  // namespace pallas::engine
