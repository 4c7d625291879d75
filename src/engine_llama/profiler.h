#pragma once
// Measures what an engine costs on this machine.

#include "base/result.h"
#include "engine/profile.h"
#include "engine_llama/decoder.h"

namespace pallas::engine {

// On an idle decoder, which it leaves empty. At depths up to about 1,500 tokens (rows of zeros,
// which cost what others cost); about 3 s for a model of 135 million parameters; for larger ones
// fewer points after 20 s.
Result<Profile> measure_profile(Decoder& decoder);

}  // namespace pallas::engine
