#pragma once
// JSON of what an operator and a client may see of a node.

#include <string>
#include <vector>

#include "engine/profile.h"
#include "http/json_writer.h"
#include "http/wall_clock.h"
#include "node/node.h"
#include "node/report.h"

namespace pallas::http {

std::string model_json(const std::string& name, std::int64_t created_unix_s);
std::string models_json(const std::string& name, std::int64_t created_unix_s);
std::string sessions_json(const std::vector<node::SessionInfo>& sessions);
// Only those of `session` unless it is empty. `anchor` dates them.
std::string handovers_json(const std::vector<node::HandoverReport>& reports,
                           const std::vector<node::DepartureReport>& departures,
                           const std::string& session, const ClockAnchor& anchor);
std::string handover_json(const node::HandoverReport& report, const ClockAnchor& anchor);
std::string departure_json(const node::DepartureReport& report, const ClockAnchor& anchor);
// "clock" and "phases" of a source, from `zero` on.
void write_source_phases(JsonWriter& json, const node::SourcePhases& phases, TimePoint zero,
                         const ClockAnchor& anchor);
// What the engine is and costs: capacity, geometry, what is exact, measured costs.
std::string engine_json(const engine::EngineInfo& info);
std::string health_json(bool ready, const NodeId& node, const std::string& model,
                        const node::NodeStats& stats);

}  // namespace pallas::http
