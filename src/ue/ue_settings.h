#pragma once
// What `pallas ue` is told, by flags or a file, and its translation into a follower's
// configuration.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "ue/follower.h"

namespace pallas::ue {

// As written by the user: not checked against each other yet.
struct UeSettings {
  std::string listen = "127.0.0.1:8090";
  std::string ue;
  std::vector<std::pair<std::string, std::string>> gnbs;   // name, host:port
  std::vector<std::pair<std::string, std::string>> cells;  // cell, gNB
  std::string cell_now;                                    // empty: the first cell
  double connect_timeout_s = 1;
  double answer_timeout_s = 5;
  double silence_timeout_s = 5;
  double give_up_s = 30;
};

// "name=value" of a repeatable flag; kInvalidConfig names the flag.
Result<std::pair<std::string, std::string>> parse_assignment(std::string_view flag,
                                                             std::string_view text);

// A TOML file: listen, ue, cell_now, connect_timeout_s, answer_timeout_s, silence_timeout_s,
// give_up_s, and the tables [gnbs] name = "host:port" and [cells] cell = "gnb". Unknown keys are
// refused. The message has the line.
Result<UeSettings> parse_ue_toml(std::string_view text, std::string_view file_name);

// Checks everything; the message names the setting. Without cells, each gNB is a cell of its name.
Result<FollowerConfig> to_follower_config(const UeSettings& settings);

}  // namespace pallas::ue
