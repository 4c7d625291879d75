#pragma once
// The model that FakeEngine pretends to run: its costs, and how it chooses tokens.

#include <cstdint>

#include "engine/engine.h"

namespace pallas::engine {

// What the demo's model and CPU measure, roughly: prefill at 300 tokens/s, steps of 17 ms and a
// little more for each further session. A KV row is small: 2 layers, 32 bytes a token.
Profile fake_profile();
EngineInfo fake_engine_info();

// The id after params.tokens. `logits` stands for the whole cache. The first part of a character is
// followed by the others; a logit bias of 100 or more decides; otherwise all parameters, and seed
// and index unless greedy, choose as by chance.
TokenId fake_sample(const DecodeParams& params, std::uint64_t logits, double end_probability);

}  // namespace pallas::engine
