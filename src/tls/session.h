#pragma once
// TLS 1.3 on one connected socket, with a certificate from both ends. It reads the socket itself,
// straight into OpenSSL's buffer, and never waits; what has to be sent is put into an output, and
// its owner sends it. No event loop, no timers.
//
//   SHAKING HANDS --the peer's certificate was accepted--> ESTABLISHED
//        |                                                     |
//        +--------------> FAILED, an alert in the output <-----+

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "tls/credentials.h"

namespace pallas::tls {

enum class Role : std::uint8_t { kDials, kAccepts };

class Session {
 public:
  // `names`: who the peer may be. Its certificate must carry one of them, byte for byte.
  static Result<std::unique_ptr<Session>> create(const Credentials& credentials, Role role,
                                                 std::vector<std::string> names);
  virtual ~Session() = default;

  // Before everything else. `socket` is connected, does not block, and stays the caller's.
  virtual Status attach(int socket) = 0;

  // Errors of these three end the session. kUnreachable: the connection broke. Others are to be
  // told to an operator; the output may then hold an alert for the peer.
  //
  // True: established. False: more must come from the peer first.
  virtual Result<bool> handshake() = 0;
  // Once established: bytes put into `into`; 0: more must come first.
  virtual Result<std::size_t> read(std::span<std::byte> into) = 0;
  // Once established: seals all of `bytes` into the output.
  virtual Status write(std::span<const std::byte> bytes) = 0;

  virtual bool has_output() const = 0;
  // Swaps the output with `into`, which is empty.
  virtual void take_output(std::vector<std::byte>& into) = 0;

  virtual bool established() const = 0;  // and not failed
  // False: what the peer sent first is no TLS.
  virtual bool peer_speaks_tls() const = 0;
  // Of the peer's accepted certificate; none before.
  virtual const std::vector<std::string>& peer_names() const = 0;
  // Bytes wait in OpenSSL's buffer.
  virtual bool has_unread() const = 0;

  // Records that are sealed with one key; then comes the next (RFC 8446, 5.5).
  virtual void set_records_a_key(std::uint64_t records) = 0;
  virtual std::uint64_t key_changes() const = 0;
};

}  // namespace pallas::tls
