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
  std::string gnb_ca;                                      // PEM file; for gNBs with https
  std::string api_key_file;                                // its first line is the key
  double connect_timeout_s = 1;
  double answer_timeout_s = 5;
  double silence_timeout_s = 5;
  double give_up_s = 30;
};

// "name=value" of a repeatable flag; kInvalidConfig names the flag.
Result<std::pair<std::string, std::string>> parse_assignment(std::string_view flag,
                                                             std::string_view text);

// A TOML file: listen, ue, cell_now, gnb_ca, api_key_file, connect_timeout_s, answer_timeout_s,
// silence_timeout_s, give_up_s, and the tables [gnbs] name = "host:port" and [cells] cell = "gnb".
// Unknown keys are refused. The message has the line.
Result<UeSettings> parse_ue_toml(std::string_view text, std::string_view file_name);

// The first line of a file that only its owner and group can read; kInvalidConfig or kIo.
Result<std::string> read_key_file(const std::string& setting, const std::string& path);

// Checks everything and reads the key; the message names the setting. Without cells, each gNB is a
// cell of its name.
Result<FollowerConfig> to_follower_config(const UeSettings& settings);

}  // namespace pallas::ue
