#pragma once
// Questions to gNBs that are answered at once. Each waits in the loop, ten seconds at most.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "event_loop.h"
#include "gnb_report.h"
#include "ue/gnb_client.h"

namespace pallas::app {

// The name of the model that this gNB serves.
Result<std::string> model_of(EventLoop& loop, const ue::Address& gnb);

// What all of them report about the session's handovers.
Result<std::vector<GnbReport>> handover_reports(EventLoop& loop,
                                                const std::map<NodeId, ue::Address>& gnbs,
                                                const SessionId& session);
// The same at its sources.
Result<std::vector<SourceReport>> source_reports(EventLoop& loop,
                                                 const std::map<NodeId, ue::Address>& gnbs,
                                                 const SessionId& session);

// KV bytes of a token in this gNB's engine.
Result<std::uint64_t> kv_bytes_per_token(EventLoop& loop, const ue::Address& gnb);

}  // namespace pallas::app
