#pragma once
// Unpredictable numbers for session ids, resume tokens and seeds.

#include <cstdint>

namespace pallas::http {

// 64 bits from the operating system. Ends the process when it has none to give, rather than hand
// out ids that could be guessed.
std::uint64_t system_random();

}  // namespace pallas::http
