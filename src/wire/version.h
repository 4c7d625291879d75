#pragma once
// Minor versions of the protocol in use on one link (docs/protocol-framing.md, "Versions").

#include <cstdint>

#include "wire/messages.h"

namespace pallas::wire {

// Peers of this minor version and newer work together with this program, and it can itself speak
// as of this one (`wire_minor`), as its predecessor in a rolling upgrade does.
inline constexpr std::uint32_t kOldestMinorVersion = kMinorVersion - 1;

// The minor version that brought this message, or what it uses of it. Fields that only inform do
// not count: who does not know them skips them.
std::uint32_t minor_of(const Message& message);

}  // namespace pallas::wire
