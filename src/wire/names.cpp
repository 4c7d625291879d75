// Names of messages and enumerators, as logs, reports and the HTTP interface show them.

#include <array>

#include "wire/messages.h"

namespace pallas::wire {

std::string_view to_string(FinishReason reason) {
  switch (reason) {
    case FinishReason::kNone:
      return "none";
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kError:
      return "error";
  }
  return "unknown";
}

std::string_view to_string(Cause cause) {
  switch (cause) {
    case Cause::kUnknown:
      return "unknown";
    case Cause::kNoResources:
      return "no_resources";
    case Cause::kIncompatible:
      return "incompatible";
    case Cause::kUnknownSession:
      return "unknown_session";
    case Cause::kStaleEpoch:
      return "stale_epoch";
    case Cause::kModelNotLoaded:
      return "model_not_loaded";
    case Cause::kDraining:
      return "draining";
    case Cause::kConsistency:
      return "consistency";
    case Cause::kWithdrawn:
      return "withdrawn";
    case Cause::kFinished:
      return "finished";
    case Cause::kLeaseExpired:
      return "lease_expired";
    case Cause::kEngineFailed:
      return "engine_failed";
    case Cause::kContextExceeded:
      return "context_exceeded";
    case Cause::kWrongTarget:
      return "wrong_target";
  }
  return "unknown";
}

std::string_view name_of(const Message& message) {
  static constexpr std::array<std::string_view, std::variant_size_v<Message>> kNames = {
      "Hello",
      "Credit",
      "KeepAlive",
      "ErrorMessage",
      "HandoverRequest",
      "HandoverRequestAcknowledge",
      "HandoverPreparationFailure",
      "TokenUpdate",
      "KvBlock",
      "PreparationProgress",
      "SnStatusTransfer",
      "HandoverSuccess",
      "UeContextRelease",
      "UeContextReleaseAck",
      "LeaseRenew",
      "Moved",
      "StaleEpoch",
      "HandoverCancel",
      "HandoverCancelAck",
      "RetrieveUeContextRequest",
      "RetrieveUeContextResponse",
      "RetrieveUeContextFailure",
      "ResourceStatus",
  };
  return kNames[message.index()];
}

}  // namespace pallas::wire
