#pragma once
// Measures what an engine costs on this machine.

#include "base/result.h"
#include "engine/profile.h"
#include "engine_llama/decoder.h"

namespace pallas::engine {

struct MeasuredProfile {
  Profile profile;
  bool disturbed = false;  // of some point every run was interrupted by other work
};
// On an idle decoder, which it leaves empty. At depths up to about 1,500 tokens (rows of zeros,
// which cost what others cost); about 3 s for a model of 135 million parameters; for larger ones
// fewer points after 20 s.
Result<MeasuredProfile> measure_profile(Decoder& decoder);

// The shorter cost of each point that both have: other work only ever adds. `now` alone where the
// two chose other chunks.
Profile shorter_of(Profile now, const Profile& before);

}  // namespace pallas::engine
