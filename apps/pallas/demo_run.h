#pragma once
// One trip over a fleet of gNBs: a UE that follows its session, a driver that moves it.

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "demo_options.h"
#include "demo_report.h"
#include "demo_view.h"
#include "event_loop.h"
#include "fleet.h"
#include "trip.h"

namespace pallas::app {

// What the same request came to at one gNB without a handover, as fast as it goes.
struct Reference {
  std::vector<TokenId> ids;
  std::vector<double> itl_ms;
};

// Flags of every gNB of the demo.
std::vector<std::string> demo_gnb_flags(const DemoOptions& options, const std::string& scheme);

class DemoRun {
 public:
  DemoRun(EventLoop& loop, Clock& clock, const DemoOptions& options, const Trip& trip,
          const FleetPlan& plan)
      : loop_(loop), clock_(clock), options_(options), trip_(trip), plan_(plan) {}

  // The session starts first and the vehicle at its first token. Returns when both have ended and
  // the reports are collected; reference fields are left empty.
  Result<DemoInput> drive(Fleet& fleet, const std::string& scheme, DemoView& view);
  // At the gNB of the trip's last cell.
  Result<Reference> reference(Fleet& fleet, const std::string& scheme);

 private:
  std::string request(const std::string& model, const std::string& scheme, bool capped) const;
  std::uint32_t max_tokens() const;

  EventLoop& loop_;
  Clock& clock_;
  const DemoOptions& options_;
  const Trip& trip_;
  const FleetPlan& plan_;
};

}  // namespace pallas::app
