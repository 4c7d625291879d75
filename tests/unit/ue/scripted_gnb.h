#pragma once
// A gNB that says what a test tells it to, on a loopback port; and the loop that runs both ends.

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "net/asio_clock.h"
#include "ue/local_server.h"

namespace pallas::ue {

class Loop {
 public:
  // Runs until `done` holds; a test fails when it does not within `limit`.
  void until(const std::function<bool()>& done, const char* what,
             Duration limit = std::chrono::seconds(5)) {
    const TimePoint end = clock.now() + limit;
    while (!done()) {
      if (clock.now() > end) {
        FAIL() << "in vain waited for: " << what;
      }
      io.restart();
      io.run_one_for(std::chrono::milliseconds(20));
    }
  }
  void for_a_while(Duration span) {
    const TimePoint end = clock.now() + span;
    io.restart();
    while (clock.now() < end) io.run_one_for(std::chrono::milliseconds(1));
  }

  boost::asio::io_context io{1};
  net::AsioClock clock{io};
};

class ScriptedGnb {
 public:
  using Exchange = LocalServer::Exchange;
  using Script = std::function<void(Exchange, const IncomingRequest&)>;

  ScriptedGnb(Loop& loop, std::string node, std::uint16_t port = 0);

  Address address() const { return {"127.0.0.1", server->port()}; }

  // --- what it says ---
  void session(Exchange e, std::uint64_t epoch);
  void role(Exchange e);
  // Index i has id 100 + i and the text word(i).
  void token(Exchange e, TokenIndex i, std::uint64_t epoch, const std::string& by = {});
  void tokens(Exchange e, TokenIndex from, TokenIndex to, std::uint64_t epoch);
  void event(Exchange e, const std::string& type, const std::string& node);
  void done(Exchange e, TokenIndex count);
  void refuse(Exchange e, int status, const std::string& code, std::uint64_t current = 0);

  std::string name;
  Script on_open = [](Exchange, const IncomingRequest&) {};
  Script on_attach = [](Exchange, const IncomingRequest&) {};
  // What came.
  std::vector<IncomingRequest> opens, attaches, deletes;
  std::vector<Exchange> gone;
  Exchange last = 0;  // of the latest open or attach
  std::unique_ptr<LocalServer> server;

 private:
  void on_request(Exchange e, const IncomingRequest& request);
};

// "w<i> "
std::string word(TokenIndex i);
// "w0 w1 ... " up to index n - 1.
std::string words(TokenIndex n);

}  // namespace pallas::ue
