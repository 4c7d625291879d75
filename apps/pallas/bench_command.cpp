// `pallas bench`: measurements of the real engine, side by side, and of gNBs under load.

#include <fmt/format.h>

#include <cstdio>
#include <iterator>

#include "commands.h"

namespace pallas::app {
namespace {

struct Bench {
  const char* name;
  const char* summary;
  int (*run)(std::vector<std::string>);
};

constexpr Bench kBenches[] = {
    {"handover", "every scheme moves the same sessions between real gNBs", bench_handover_command},
    {"utility", "how well the model answers with a part of the KV", bench_utility_command},
    {"load", "how many sessions one gNB holds, and a wave of arrivals", bench_load_command},
    {"transfer", "KV rows from cache to cache, beside plain TCP, TLS and a library",
     bench_transfer_command},
};

void print_help(std::FILE* to) {
  fmt::print(
      to,
      "Measures the real engine, and gNBs under load\n\nUsage: pallas bench WHAT [OPTIONS]\n\n");
  for (const auto& bench : kBenches) fmt::print(to, "  {:<10} {}\n", bench.name, bench.summary);
  fmt::print(to, "\n'pallas bench WHAT --help' shows the options, with examples.\n");
}

}  // namespace

int bench_command(std::vector<std::string> args) {
  const std::string word = args.empty() ? "" : args.front();
  if (word == "--help" || word == "-h") {
    print_help(stdout);
    return kExitOk;
  }
  if (word == "transfer-end")
    return bench_transfer_end_command({std::next(args.begin()), args.end()});
  for (const auto& bench : kBenches) {
    if (word == bench.name) return bench.run({std::next(args.begin()), args.end()});
  }
  if (!word.empty()) fmt::print(stderr, "pallas bench: unknown measurement '{}'\n\n", word);
  print_help(stderr);
  return kExitUsage;
}

}  // namespace pallas::app
