#include "sim/scenario.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/random.h"
#include "plan/scheme.h"

namespace pallas::sim {
namespace {

Failure bad(std::string what) {
  return fail(Errc::kInvalidConfig, std::move(what));
}

// Kept after the last trajectory ended, so that its last handover is seen to its end.
constexpr Seconds kTail{5};

Result<std::unique_ptr<mobility::CellLayout>> layout_of(const Scenario& s) {
  if (s.grid) {
    return mobility::make_square_cells(s.grid->size_m, s.grid->offset_x_m, s.grid->offset_y_m);
  }
  if (!s.sites.empty()) return mobility::make_nearest_site_cells(s.sites);
  return mobility::make_rectangle_cells(s.rectangles);
}

std::vector<GnbSettings> gnbs_of(const Scenario& s) {
  if (s.grid) return gnbs_of_grid(s.grid->columns, s.grid->rows);
  std::vector<GnbSettings> gnbs;
  for (const auto& site : s.sites) gnbs.push_back({"gnb-" + site.cell.value, {site.cell}, {}});
  for (const auto& r : s.rectangles) gnbs.push_back({"gnb-" + r.cell.value, {r.cell}, {}});
  return gnbs;
}

// For A3: one in the middle of each cell that has no own.
std::vector<mobility::Site> sites_of(const Scenario& s) {
  if (!s.sites.empty()) return s.sites;
  std::vector<mobility::Site> sites;
  for (const auto& r : s.rectangles) {
    sites.push_back({r.cell, {r.x_m + r.width_m / 2, r.y_m + r.height_m / 2}});
  }
  if (!s.grid) return sites;
  for (const GnbSettings& g : gnbs_of_grid(s.grid->columns, s.grid->rows)) {
    const std::size_t n = sites.size();
    sites.push_back(
        {g.cells.front(),
         {s.grid->offset_x_m + s.grid->size_m * (0.5 + std::floor(n / s.grid->rows)),
          s.grid->offset_y_m + s.grid->size_m * (0.5 + static_cast<double>(n % s.grid->rows))}});
  }
  return sites;
}

std::vector<mobility::Trajectory> trajectories_of(const Scenario& s, std::uint64_t seed) {
  if (s.walks) {
    Walks walks = *s.walks;
    walks.duration = s.duration;
    walks.side_m = s.grid->size_m * std::min(s.grid->columns, s.grid->rows);
    auto made = random_walks(walks, mix(seed, "walks"));
    for (auto& t : made) {
      for (auto& sample : t.samples) {
        sample.position.x_m += s.grid->offset_x_m;
        sample.position.y_m += s.grid->offset_y_m;
      }
    }
    return made;
  }
  auto cut = cut_to(s.trajectories, s.duration);
  if (!s.rotate_and_shift) return cut;
  return rotated_and_shifted(cut, s.grid->size_m, mix(seed, "rotation"));
}

WorldSettings world_of(const Scenario& s, const std::string& scheme, std::uint64_t seed,
                       const mobility::CellLayout* layout) {
  WorldSettings settings;
  settings.gnbs = gnbs_of(s);
  settings.scheme = scheme;
  settings.engine = s.engine;
  settings.network = s.network;
  settings.node = s.node;
  settings.layout = layout;
  settings.keep_arrivals = false;
  settings.seed = seed;
  return settings;
}

Roaming roaming_of(const Scenario& s, std::uint64_t seed) {
  Roaming roaming;
  roaming.trajectories = trajectories_of(s, seed);
  roaming.ue = s.session;
  roaming.report_interval = s.report_interval;
  roaming.predictor = s.predictor;
  roaming.horizon = s.horizon;
  roaming.error = s.error;
  roaming.cvh_sigma = s.cvh_sigma;
  roaming.cvh_confidence = s.cvh_confidence;
  roaming.a3 = s.a3;
  if (s.a3) roaming.sites = sites_of(s);
  roaming.seed = mix(seed, "roaming");
  return roaming;
}

Status check_cells(const Scenario& s) {
  const int kinds = (s.grid ? 1 : 0) + (s.sites.empty() ? 0 : 1) + (s.rectangles.empty() ? 0 : 1);
  if (kinds != 1) return bad("cells: exactly one of a grid, sites and rectangles is needed");
  if (s.grid) {
    if (s.grid->columns == 0 || s.grid->rows == 0) return bad("cells.columns, rows: at least 1");
    if (std::uint64_t{s.grid->columns} * s.grid->rows > 10'000) {
      return bad("cells.columns, rows: more than 10000 cells");
    }
  }
  if (auto layout = layout_of(s); !layout) return bad("cells." + layout.error().message);
  return {};
}

Status check_ues(const Scenario& s) {
  if (!std::isfinite(s.duration.count()) || s.duration.count() <= 0) {
    return bad("duration_s: must be above 0");
  }
  if (s.walks && !s.trajectories.empty()) {
    return bad("mobility: trajectories and walks exclude each other");
  }
  if (s.walks) {
    if (!s.grid) return bad("mobility.walks: need a grid");
    if (s.walks->ues == 0) return bad("mobility.ues: must be at least 1");
    if (!(s.walks->low_mps > 0) || !(s.walks->high_mps >= s.walks->low_mps) ||
        !std::isfinite(s.walks->high_mps)) {
      return bad("mobility.low_mps, high_mps: must be above 0 and ascend");
    }
    if (!std::isfinite(s.walks->turn.count()) || s.walks->turn.count() <= 0) {
      return bad("mobility.turn_s: must be above 0");
    }
  }
  if (s.rotate_and_shift && (!s.grid || s.walks)) {
    return bad("mobility.rotate_and_shift: needs a grid and given trajectories");
  }
  if (s.predictor != PredictorKind::kCvh && (s.cvh_sigma || s.cvh_confidence)) {
    return bad("mobility.cvh_sigma_ms, cvh_confidence: contradict a predictor other than cvh");
  }
  return {};
}

void summarize_handovers(const Scenario& scenario, ScenarioRun& run) {
  std::vector<double> sit, gap, early, available, waste, lead;
  for (const HandoverRecord& r : run.records) {
    ++run.handovers;
    if (r.failed) ++run.failed;
    if (r.prepared) ++run.prepared;
    if (r.sit_ms) sit.push_back(*r.sit_ms);
    if (r.gap_ms) gap.push_back(*r.gap_ms);
    if (r.early_s) early.push_back(*r.early_s);
    available.push_back(r.available_s.value_or(0));
    waste.push_back(r.waste_s);
    if (r.lead_s) lead.push_back(*r.lead_s);
    run.recomputed += r.recomputed;
    run.received += r.received;
  }
  run.sit_ms = summarize(std::move(sit));
  run.gap_ms = summarize(std::move(gap));
  run.early_s = summarize(std::move(early));
  run.available_s = summarize(std::move(available));
  run.waste_s = summarize(std::move(waste));
  run.lead_s = summarize(std::move(lead));
  for (const PreparationRecord& p : run.preparations) {
    if (!p.moved || p.end == PreparationRecord::End::kClaimed) continue;
    const HandoverRecord& h = run.records[*p.moved];
    if (p.target != h.target) ++run.wrong_target;
    run.waste_over_bound_s =
        std::max(run.waste_over_bound_s, waste_over_bound_s(p, h, scenario.node, scenario.network));
  }
}

Result<ScenarioRun> run_one(const Scenario& scenario, const std::string& scheme, std::uint64_t seed,
                            const std::function<void(double)>& progress) {
  auto layout = layout_of(scenario);
  if (!layout) return Failure(layout.error());
  World world(world_of(scenario, scheme, seed, layout->get()));
  Roaming roaming = roaming_of(scenario, seed);
  roaming.progress = progress;
  if (auto ok = run(world, roaming, kTail); !ok) return Failure(ok.error());

  ScenarioRun result;
  result.scheme = scheme;
  result.seed = seed;
  result.ues = world.ues().size();
  result.gnbs = world.names().size();
  result.events = world.clock.events_run();
  TokenTimes times;
  for (const auto& ue : world.ues()) {
    result.tokens += ue->received();
    times.arrival.add(ue->times().arrival);
    times.latency.add(ue->times().latency);
  }
  result.itl_avg_ms = times.arrival.avg_ms();
  result.itl_latency_avg_ms = times.latency.avg_ms();
  result.kv_bytes = world.network().stats().kv_bytes;
  result.breaches = world.breaches();
  result.records = world.handovers();
  result.preparations = world.preparations();
  summarize_handovers(scenario, result);
  if (!scenario.keep_reports) {
    result.records.clear();
    result.preparations.clear();
  }
  return result;
}

}  // namespace

Status check(const Scenario& s) {
  if (s.schemes.empty()) return bad("schemes: there is none");
  for (const std::string& scheme : s.schemes) {
    if (auto made = plan::make_scheme(scheme); !made)
      return bad("schemes: " + made.error().message);
  }
  if (s.seeds.empty()) return bad("seeds: there is none");
  if (auto ok = check_cells(s); !ok) return ok;
  if (auto ok = check_ues(s); !ok) return ok;
  if (s.session.prompt_tokens >= s.engine.context_tokens) {
    return bad("session.prompt_tokens: the context holds " +
               std::to_string(s.engine.context_tokens));
  }
  for (const std::string& scheme : s.schemes) {
    if (auto ok = check(world_of(s, scheme, s.seeds.front(), nullptr)); !ok) {
      return bad(ok.error().message);
    }
  }
  if (auto ok = check(roaming_of(s, s.seeds.front())); !ok) return bad(ok.error().message);
  return {};
}

double waste_over_bound_s(const PreparationRecord& p, const HandoverRecord& h,
                          const node::NodeConfig& node, const NetworkSettings& network) {
  if (p.end == PreparationRecord::End::kClaimed || p.end == PreparationRecord::End::kOpen) return 0;
  const double waste = p.freed_s.value_or(p.ended_s) - p.requested_s;
  const double early = std::max(h.at_s - p.expected_s, 0.0);
  const double bound =
      std::max(to_seconds(node.t_max).count() + early - h.available_s.value_or(0), 0.0);  // Eq. 10
  const double slack =
      to_seconds(node.control_period).count() + 2 * to_seconds(network.control_latency).count();
  return std::max(waste - bound - slack, 0.0);
}

Result<std::vector<ScenarioRun>> run(const Scenario& scenario, const Progress& progress) {
  std::vector<ScenarioRun> runs;
  const auto all = static_cast<double>(scenario.schemes.size() * scenario.seeds.size());
  for (const std::string& scheme : scenario.schemes) {
    for (const std::uint64_t seed : scenario.seeds) {
      const auto before = static_cast<double>(runs.size());
      const auto tell = [&](double done) {
        if (progress) progress((before + done) / all, scheme);
      };
      auto one = run_one(scenario, scheme, seed, tell);
      if (!one) return Failure(one.error());
      runs.push_back(std::move(*one));
    }
  }
  return runs;
}

}  // namespace pallas::sim
