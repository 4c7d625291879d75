#include "trace_input.h"

#include <cmath>
#include <numbers>
#include <sstream>

#include "gzip_file.h"

namespace pallas::experiments {

Result<std::vector<mobility::Trajectory>> read_trajectories(const Settings& settings) {
  const std::string path =
      settings.trace.value_or(settings.data + "/sumo_grid_64ue_300s_2hz.csv.gz");
  auto text = app::read_text_file(path);
  if (!text) return Failure(text.error());
  std::istringstream in(std::move(*text));
  auto all = mobility::parse_trajectories(in);
  if (!all) return fail(all.error().code, path + ": " + all.error().message);
  return all;
}

mobility::Trajectory moved(const mobility::Trajectory& trajectory, double angle_rad,
                           double shift_x_m, double shift_y_m) {
  mobility::Trajectory result = trajectory;
  const double c = std::cos(angle_rad), s = std::sin(angle_rad);
  for (auto& sample : result.samples) {
    const mobility::Point p = sample.position;
    sample.position = {c * p.x_m - s * p.y_m + shift_x_m, s * p.x_m + c * p.y_m + shift_y_m};
    // Headings run clockwise, the turn counterclockwise.
    if (sample.heading_deg) {
      const double turned = *sample.heading_deg - angle_rad * 180 / std::numbers::pi;
      sample.heading_deg = turned - 360 * std::floor(turned / 360);
    }
  }
  return result;
}

}  // namespace pallas::experiments
