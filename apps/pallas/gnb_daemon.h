#pragma once
// One gNB as a process: reactor, engine, HTTP server, peer links and the node between them.

#include "base/result.h"
#include "gnb_config.h"

namespace pallas::app {

// Serves until SIGINT or SIGTERM. `config` has passed check(). Prints one line on standard output
// when it serves: `ready name=gnb-a http=127.0.0.1:8080 peer=127.0.0.1:7080`, or the same as JSON.
// kAlreadyExists when a port is taken.
Status run_gnb(const GnbConfig& config, bool json);

}  // namespace pallas::app
