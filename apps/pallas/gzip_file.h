#pragma once
// Text files, gzipped or not.

#include <cstddef>
#include <string>

#include "base/result.h"

namespace pallas::app {

// The whole content, unpacked when it is gzip (by its first bytes, not its name). kNotFound when it
// cannot be opened, kTooLarge above `max_bytes` unpacked, kParse for damaged gzip.
Result<std::string> read_text_file(const std::string& path, std::size_t max_bytes = 256u << 20);

}  // namespace pallas::app
