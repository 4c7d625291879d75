#pragma once
// What messages.h promises about every value, as one check: used on what arrives before anybody
// sees it, and on what leaves, so that we never send what our peer would refuse.

#include <string_view>

#include "wire/messages.h"

namespace pallas::wire {

// Ok, or the first field that breaks a rule, by its full name ("HandoverRequest.snapshot.tokens:
// ..."): kTooLarge when it exceeds a limit, kInvalidArgument otherwise.
Status validate(const Message& message);

// Well-formed UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF.
bool is_utf8(std::string_view text);

}  // namespace pallas::wire
