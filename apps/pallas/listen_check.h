#pragma once
// Whether an address can be listened on, asked before a model is loaded for minutes in vain.

#include <cstdint>
#include <string>

#include "base/result.h"

namespace pallas::app {

// `setting` is named in the message. `host`: a numeric IP address. kAlreadyExists when the port is
// in use, kIo otherwise. Takes the port and gives it back at once.
Status check_can_listen(const std::string& setting, const std::string& host, std::uint16_t port);

}  // namespace pallas::app
