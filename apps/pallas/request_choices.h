#pragma once
// What programs that start sessions by themselves choose alike.

#include <string>
#include <string_view>

#include "base/result.h"

namespace pallas::app {

// The strictest consistency that the scheme can keep at full speed: those that move KV and
// recompute only prompts are exact; the others recompute generated tokens in chunks, as in the
// papers.
std::string default_consistency(std::string_view scheme);

// kInvalidArgument, naming the field.
Status check_consistency(std::string_view text);
Status check_engine(std::string_view text, bool with_llama);  // `with_llama`: as it was built

}  // namespace pallas::app
