#pragma once
// One function a subcommand: takes the words after its name, parses them itself, returns the
// process's exit code (0 done, 1 it failed, 2 it was asked wrongly).

#include <string>
#include <vector>

namespace pallas::app {

int gnb_command(std::vector<std::string> args);
int move_command(std::vector<std::string> args);
int drain_command(std::vector<std::string> args);
int ue_command(std::vector<std::string> args);
int drive_command(std::vector<std::string> args);
int bench_command(std::vector<std::string> args);
int bench_handover_command(std::vector<std::string> args);
int bench_load_command(std::vector<std::string> args);
int bench_utility_command(std::vector<std::string> args);
int bench_transfer_command(std::vector<std::string> args);
// For bench_transfer_command alone.
int bench_transfer_end_command(std::vector<std::string> args);
int certs_command(std::vector<std::string> args);
int demo_command(std::vector<std::string> args);
int experiment_command(std::vector<std::string> args);
int model_command(std::vector<std::string> args);
int plan_command(std::vector<std::string> args);
int sim_command(std::vector<std::string> args);
int trace_command(std::vector<std::string> args);

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitLeft = 3;  // `gnb`, `drain`: sessions were cut off

}  // namespace pallas::app
