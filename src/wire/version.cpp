#include "wire/version.h"

namespace pallas::wire {
namespace {

bool uses_scattered_rows(const Plan& plan) {
  return plan.partial() || plan.order == SendOrder::kByImportance;
}

}  // namespace

std::uint32_t minor_of(const Message& message) {
  if (std::holds_alternative<ResourceStatus>(message)) return 1;
  if (const auto* block = std::get_if<KvBlock>(&message)) return block->positions.empty() ? 0 : 1;
  if (const auto* request = std::get_if<HandoverRequest>(&message)) {
    return uses_scattered_rows(request->plan) ? 1 : 0;
  }
  if (const auto* response = std::get_if<RetrieveUeContextResponse>(&message)) {
    return uses_scattered_rows(response->plan) ? 1 : 0;
  }
  return 0;
}

}  // namespace pallas::wire
