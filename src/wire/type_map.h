#pragma once
// Which protobuf message stands for which native one, and error codes by their wire numbers.
// Included by to_protobuf.cpp and from_protobuf.cpp only.

#include <array>
#include <cstdint>

#include "wire/messages.h"
#include "wire/pallas.pb.h"

namespace pallas::wire {

template <class Native>
struct ProtoFor;
#define PALLAS_WIRE_SAME_NAME(name) \
  template <>                       \
  struct ProtoFor<name> {           \
    using type = pb::name;          \
  }
PALLAS_WIRE_SAME_NAME(Hello);
PALLAS_WIRE_SAME_NAME(Credit);
PALLAS_WIRE_SAME_NAME(KeepAlive);
PALLAS_WIRE_SAME_NAME(ErrorMessage);
PALLAS_WIRE_SAME_NAME(HandoverRequest);
PALLAS_WIRE_SAME_NAME(HandoverRequestAcknowledge);
PALLAS_WIRE_SAME_NAME(HandoverPreparationFailure);
PALLAS_WIRE_SAME_NAME(TokenUpdate);
PALLAS_WIRE_SAME_NAME(KvBlock);
PALLAS_WIRE_SAME_NAME(PreparationProgress);
PALLAS_WIRE_SAME_NAME(SnStatusTransfer);
PALLAS_WIRE_SAME_NAME(HandoverSuccess);
PALLAS_WIRE_SAME_NAME(UeContextRelease);
PALLAS_WIRE_SAME_NAME(UeContextReleaseAck);
PALLAS_WIRE_SAME_NAME(LeaseRenew);
PALLAS_WIRE_SAME_NAME(Moved);
PALLAS_WIRE_SAME_NAME(StaleEpoch);
PALLAS_WIRE_SAME_NAME(HandoverCancel);
PALLAS_WIRE_SAME_NAME(HandoverCancelAck);
PALLAS_WIRE_SAME_NAME(RetrieveUeContextRequest);
PALLAS_WIRE_SAME_NAME(RetrieveUeContextResponse);
PALLAS_WIRE_SAME_NAME(RetrieveUeContextFailure);
PALLAS_WIRE_SAME_NAME(ResourceStatus);
#undef PALLAS_WIRE_SAME_NAME

template <class Native>
using ProtoOf = typename ProtoFor<Native>::type;

// The position is the number on the wire; append only. A number that we do not know comes from a
// newer peer and reads as kInternal: errors only inform.
inline constexpr std::array kErrorNumbers = {
    Errc::kInternal,
    Errc::kInvalidArgument,
    Errc::kInvalidConfig,
    Errc::kParse,
    Errc::kNotFound,
    Errc::kAlreadyExists,
    Errc::kUnsupported,
    Errc::kIncompatible,
    Errc::kContextExceeded,
    Errc::kResourceExhausted,
    Errc::kStaleEpoch,
    Errc::kStaleAttempt,
    Errc::kNotOwner,
    Errc::kChecksum,
    Errc::kTooLarge,
    Errc::kUnreachable,
    Errc::kTimeout,
    Errc::kCancelled,
    Errc::kRateLimited,
    Errc::kUnauthorized,
    Errc::kOutOfOrder,
    Errc::kEngine,
    Errc::kIo,
};

inline std::uint32_t errc_to_wire(Errc code) {
  for (std::uint32_t i = 0; i < kErrorNumbers.size(); ++i) {
    if (kErrorNumbers[i] == code) return i;
  }
  return 0;
}

inline Errc errc_from_wire(std::uint32_t number) {
  return number < kErrorNumbers.size() ? kErrorNumbers[number] : Errc::kInternal;
}

}  // namespace pallas::wire
