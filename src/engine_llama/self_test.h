#pragma once
// Proves on this machine, with this model and settings, which ways to rebuild a session are
// bit-equal to never having moved. Backends, quantizations and CPUs differ; nothing is assumed.

#include "base/result.h"
#include "engine/profile.h"
#include "engine_llama/decoder.h"

namespace pallas::engine {

// On an idle decoder, which it leaves empty. A session is computed once undisturbed; then copies of
// it are rebuilt in each way and decoded side by side, and the logits of 64 steps compared. About
// 7 s for a model of 135 million parameters.
Result<Capabilities> measure_capabilities(Decoder& decoder, TokenPosition chunk_tokens);

}  // namespace pallas::engine
