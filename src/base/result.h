#pragma once
// Errors as values: Result<T> is T or an Error, and every project error has one of the codes below.

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace pallas {

// What went wrong, for programs. At most 25, each with a sentence in to_sentence().
enum class Errc {
  kInvalidArgument,  // a value is out of its range or malformed; the message names the field
  kInvalidConfig,    // configuration file or flags contradict or are malformed
  kParse,            // a file or a frame does not have its format; the message names line or field
  kNotFound,         // no such session, model, cell, node or file
  kAlreadyExists,    // an id or a port is taken
  kUnsupported,      // a feature that this build or engine does not have, named
  kIncompatible,     // two nodes' engines differ in something that must agree, named
  kContextExceeded,  // more tokens than the model's context or the session's reservation
  kResourceExhausted,  // no slot, no memory, too many sessions: try again later
  kStaleEpoch,         // somebody attached the UE later
  kStaleAttempt,       // the preparation that this belongs to is over
  kNotOwner,           // the session lives at another node
  kChecksum,           // bytes do not have the checksum that they came with
  kTooLarge,           // a frame, body or file above its limit
  kUnreachable,        // the peer or server cannot be reached
  kTimeout,            // a wait ended by its own clock
  kCancelled,          // stopped on request
  kRateLimited,        // too many requests from one sender
  kUnauthorized,       // a token or key is missing or wrong
  kOutOfOrder,         // a message that this state does not expect
  kEngine,             // the inference engine failed; the message is its own
  kIo,                 // the operating system refused; the message is its own
  kInternal,           // a fault of ours
};

// The code's name as it appears in JSON and logs, e.g. "stale_epoch".
std::string_view to_string(Errc code);
// One sentence that a user can act on.
std::string_view to_sentence(Errc code);

struct Error {
  Errc code = Errc::kInternal;
  std::string message;  // names what is wrong; never contains prompts, keys or tokens

  // "<code>: <message>"
  std::string describe() const;
  friend bool operator==(const Error&, const Error&) = default;
};

template <class T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using tl::expected<T, Error>::expected;
};

using Failure = tl::unexpected<Error>;

inline Failure fail(Errc code, std::string message) {
  return Failure(Error{code, std::move(message)});
}

// A value that says only that something worked.
using Status = Result<void>;

}  // namespace pallas
