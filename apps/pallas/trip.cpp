#include "trip.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "gzip_file.h"

namespace pallas::app {
namespace {

std::string some_names(const std::vector<mobility::Trajectory>& all) {
  constexpr std::size_t kShown = 10;
  std::string names;
  for (std::size_t i = 0; i < std::min(all.size(), kShown); ++i) {
    names += (i == 0 ? "" : ", ") + all[i].ue.value;
  }
  if (all.size() > kShown) names += ", ... (" + std::to_string(all.size()) + " in all)";
  return names;
}

}  // namespace

Result<Trip> make_trip(const mobility::Trajectory& whole, std::optional<Seconds> from,
                       std::optional<Seconds> to, const mobility::CellLayout& cells) {
  for (const auto& bound : {from, to}) {
    if (bound && !std::isfinite(bound->count())) {
      return fail(Errc::kInvalidArgument, "from and to must be numbers of seconds");
    }
  }
  const Seconds begin = std::max(from.value_or(whole.begin()), whole.begin());
  const Seconds end = std::min(to.value_or(whole.end()), whole.end());
  if (!(begin < end)) {
    std::ostringstream text;
    text << "vehicle '" << whole.ue.value << "' is on the way from " << whole.begin().count()
         << " to " << whole.end().count() << " s, not in the time asked for";
    return fail(Errc::kInvalidArgument, text.str());
  }
  Trip trip;
  trip.trajectory.ue = whole.ue;
  trip.trajectory.samples.push_back(*whole.at(begin));
  for (const auto& sample : whole.samples) {
    if (sample.t > begin && sample.t < end) trip.trajectory.samples.push_back(sample);
  }
  trip.trajectory.samples.push_back(*whole.at(end));

  trip.first_cell = cells.cell_at(trip.trajectory.samples.front().position);
  trip.crossings = mobility::crossings(trip.trajectory, cells);
  if (trip.crossings.empty()) {
    return fail(Errc::kNotFound, "vehicle '" + whole.ue.value + "' never leaves its cell " +
                                     trip.first_cell.value +
                                     " in this time: no handover would happen");
  }
  return trip;
}

Result<Trip> load_trip(const TripOptions& options, const mobility::CellLayout& cells) {
  auto text = read_text_file(options.file);
  if (!text) return Failure(text.error());
  std::istringstream in(std::move(*text));
  const auto all = mobility::parse_trajectories(in);
  if (!all) return fail(all.error().code, options.file + ": " + all.error().message);

  const mobility::Trajectory* found = nullptr;
  if (!options.vehicle.empty()) {
    found = mobility::find_trajectory(*all, UeId(options.vehicle));
    if (found == nullptr) {
      return fail(Errc::kNotFound, options.file + " has no vehicle '" + options.vehicle +
                                       "'; it has " + some_names(*all));
    }
  } else if (all->size() == 1) {
    found = &all->front();
  } else {
    return fail(Errc::kInvalidArgument,
                options.file + " has several vehicles; choose one of " + some_names(*all));
  }
  const auto seconds = [](std::optional<double> value) -> std::optional<Seconds> {
    if (!value) return std::nullopt;
    return Seconds(*value);
  };
  return make_trip(*found, seconds(options.from_s), seconds(options.to_s), cells);
}

}  // namespace pallas::app
