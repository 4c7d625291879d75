#pragma once
// A normal OpenAI endpoint on the UE's own machine. Any OpenAI client may be pointed at it; behind
// it, each request is a session that follows the UE from cell to cell.
//
//   POST /v1/chat/completions, /v1/completions   as OpenAI defines them, streaming or not
//   GET  /v1/models, /v1/models/{id}             the answer of the gNB
//   POST /v1/handovers                           RAN feed (docs/client-api.md): moves the UE
//   GET  /v1/handovers                           what each handover cost
//   GET  /health

#include <memory>

#include "base/result.h"
#include "ue/follower.h"

namespace pallas::ue {

class LocalEndpoint {
 public:
  // `follower` outlives it. Errors of LocalServer::listen.
  static Result<std::unique_ptr<LocalEndpoint>> listen(boost::asio::io_context& io,
                                                       Follower& follower, const Address& address);
  ~LocalEndpoint();
  LocalEndpoint(const LocalEndpoint&) = delete;
  LocalEndpoint& operator=(const LocalEndpoint&) = delete;

  std::uint16_t port() const;

 private:
  class Impl;
  explicit LocalEndpoint(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pallas::ue
