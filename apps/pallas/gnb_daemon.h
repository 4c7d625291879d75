#pragma once
// One gNB as a process: reactor, engine, HTTP server, peer links and the node between them.

#include "base/result.h"
#include "gnb_config.h"

namespace pallas::app {

// Serves until SIGTERM or an order to drain has brought it to its end, or SIGINT ends it at once.
// `config` has passed check(). Prints one line on standard output when it serves: `ready name=gnb-a
// http=127.0.0.1:8080 peer=127.0.0.1:7080`, or the same as JSON. How many sessions were cut off at
// the end; kAlreadyExists when a port is taken.
Result<std::uint32_t> run_gnb(const GnbConfig& config, bool json);

}  // namespace pallas::app
