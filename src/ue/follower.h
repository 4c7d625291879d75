#pragma once
// One UE: its sessions, and which cell its radio is attached to. Each session goes from gNB to gNB
// as the radio does; whoever started it sees one uninterrupted stream of tokens.
//
// Everything happens on the thread of the io_context. Callbacks may call back into the follower,
// but must not destroy it.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "base/units.h"
#include "ue/client_machine.h"
#include "ue/gnb_client.h"
#include "ue/report.h"

namespace pallas::ue {

struct FollowerConfig {
  UeId ue;  // as the RAN feed of the gNBs calls it; may be empty
  std::map<NodeId, Address> gnbs;
  std::map<CellId, NodeId> cells;  // each to one of `gnbs`
  CellId cell;                     // where the UE is at the start
  ClientConfig client;
  HttpTimeouts http;
  HttpAccess access;
  std::size_t keep_ended = 16;  // ended sessions that report() still tells of
};

// How a session says what it does. Each may be empty. on_finish or on_error comes last, once; none
// comes after stop().
struct FollowerCallbacks {
  std::function<void(const SessionEvent&)> on_session;  // once, before any token
  std::function<void(const TokenRecord&)> on_token;     // each index once, in order
  // `text`: the last of the text, which belongs to no token.
  std::function<void(const std::string& reason, const std::string& text,
                     const std::optional<Usage>& usage)>
      on_finish;
  std::function<void(const ApiError&)> on_error;
  std::function<void()> on_keep_alive;  // the gNB showed that it is at work
};

class Follower {
 public:
  using SessionNo = std::uint64_t;  // 0 is never a session

  // kInvalidConfig names what is missing: no gNB, a cell of an unknown gNB, an unknown start cell.
  static Result<std::unique_ptr<Follower>> create(boost::asio::io_context& io, Clock& clock,
                                                  FollowerConfig config);
  ~Follower();
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

  // `body`: an OpenAI request, streaming or not. kInvalidArgument if it is not even an object; what
  // the gNB refuses comes by on_error. No callback is made from inside.
  Result<SessionNo> start(std::string_view body, Endpoint endpoint, FollowerCallbacks callbacks);
  // Ends it here and at the gNB. No effect on a session that has ended.
  void stop(SessionNo session);
  // stop() for all.
  void stop_all();

  // The radio is attached to this cell now. kNotFound for a cell without a gNB: nothing changes.
  Status on_cell(const CellId& cell);

  // GET of something that every gNB has (models), from the gNB of the UE's cell.
  void fetch(const std::string& target, std::function<void(Result<HttpReply>)> done);

  const FollowerConfig& config() const;
  const CellId& cell() const;
  const NodeId& gnb() const;  // of that cell
  std::size_t active() const;
  // DELETEs that were sent and not answered yet: worth a moment before a program exits.
  std::size_t pending_deletes() const;
  std::optional<SessionReport> report(SessionNo session) const;
  UeReport report() const;
  const GnbClient::Counters& connections() const;

 private:
  class Impl;
  explicit Follower(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pallas::ue
