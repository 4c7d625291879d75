// The `pallas` program: the first word chooses a command, the command does the rest.

#include <malloc.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "commands.h"

namespace {

struct Command {
  const char* name;
  const char* summary;
  int (*run)(std::vector<std::string>);
};

constexpr Command kCommands[] = {
    {"demo", "watch a model talk to a driving user across cells", pallas::app::demo_command},
    {"gnb", "serve a model at one gNB, and its sessions as they move", pallas::app::gnb_command},
    {"ue", "a local OpenAI endpoint that follows its sessions", pallas::app::ue_command},
    {"drive", "replay a trajectory: post positions and handovers", pallas::app::drive_command},
    {"plan", "show what each scheme would do about one handover", pallas::app::plan_command},
    {"bench", "measure the schemes side by side on the real engine", pallas::app::bench_command},
    {"experiment", "make a table or figure of the papers again", pallas::app::experiment_command},
    {"sim", "run a scenario of many cells and users on virtual time", pallas::app::sim_command},
    {"trace", "one handover as a trace, all nodes on one time line", pallas::app::trace_command},
    {"move", "move one session to another gNB", pallas::app::move_command},
    {"drain", "end a gNB in order: no new sessions, those here move or end",
     pallas::app::drain_command},
    {"model", "prepare the model file, or show it", pallas::app::model_command},
    {"certs", "make certificates for gNBs, for tests and small sites", pallas::app::certs_command},
};

void print_help(std::FILE* to) {
  std::fputs(
      "pallas: LLM sessions that stay alive while their user moves between cells\n\n"
      "Usage: pallas COMMAND [OPTIONS]\n\nCommands:\n",
      to);
  for (const auto& command : kCommands) {
    std::fprintf(to, "  %-10s %s\n", command.name, command.summary);
  }
  std::fputs(
      "\n'pallas COMMAND --help' shows the options of a command, with examples.\n"
      "'pallas --version' shows the version.\n",
      to);
}

// Blocks of rows come and go all the time. As malloc is set by itself it gives their pages back to
// the system and gets them again, filled with zeros, for the next block.
void keep_freed_memory() {
  constexpr int kMiB = 1 << 20;
  mallopt(M_MMAP_THRESHOLD, 32 * kMiB);
  mallopt(M_TRIM_THRESHOLD, 256 * kMiB);
}

}  // namespace

int main(int argc, char** argv) {
  keep_freed_memory();
  const std::string word = argc > 1 ? argv[1] : "";
  if (word == "--help" || word == "-h" || word == "help") {
    print_help(stdout);
    return pallas::app::kExitOk;
  }
  if (word == "--version") {
    std::puts("pallas " PALLAS_VERSION);
    return pallas::app::kExitOk;
  }
  for (const auto& command : kCommands) {
    if (word != command.name) continue;
    try {
      return command.run(std::vector<std::string>(argv + 2, argv + argc));
    } catch (const std::exception& error) {
      std::fprintf(stderr, "pallas %s: %s\n", command.name, error.what());
      return pallas::app::kExitFailed;
    }
  }
  if (!word.empty()) std::fprintf(stderr, "pallas: unknown command '%s'\n\n", word.c_str());
  print_help(stderr);
  return pallas::app::kExitUsage;
}
