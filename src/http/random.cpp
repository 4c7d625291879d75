#include "http/random.h"

#include <sys/random.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace pallas::http {

std::uint64_t system_random() {
  std::uint64_t bits = 0;
  for (;;) {
    const auto got = ::getrandom(&bits, sizeof bits, 0);
    if (got == static_cast<ssize_t>(sizeof bits)) return bits;
    if (got < 0 && errno == EINTR) continue;
    std::fputs("pallas: the system has no random numbers\n", stderr);
    std::abort();
  }
}

}  // namespace pallas::http
