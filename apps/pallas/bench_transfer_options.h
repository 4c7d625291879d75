#pragma once
// What `pallas bench transfer` is asked to measure, and the runs that follow from it. Pure.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace pallas::app {

// One way for bytes to get from the source to the target.
struct TransferPath {
  std::string_view name;
  std::string_view summary;
  bool library = false;  // moved by the helper in Python, not by this program
};
const std::vector<TransferPath>& transfer_paths();

inline constexpr std::string_view kPallasPath = "pallas";
inline constexpr std::string_view kPallasTlsPath = "pallas-tls";
inline constexpr std::string_view kYardstickPath = "tcp-xxh3";
inline constexpr std::string_view kTlsYardstickPath = "tls-xxh3";
// Whether both ends of the path have an engine's KV cache.
inline bool has_engines(std::string_view path) {
  return path == kPallasPath || path == kPallasTlsPath;
}

struct TransferOptions {
  std::vector<std::string> paths;  // empty: all
  std::vector<TokenPosition> block_tokens = {16, 64, 256};
  std::vector<std::string> model_types = {"q4_0"};  // of the shipped model
  std::vector<std::string> models;                  // GGUF files beside it
  TokenPosition context = 1024;
  std::uint32_t megabytes = 500;
  std::uint32_t repeat = 5;
  std::string congestion_control;  // empty: the system's
  std::string python = "python3";
  std::string engine = "llama";
  bool pin = true;
  bool json = false;
  bool plain = false;
  std::string out;
  std::string keep_logs;
  bool with_llama = false;  // what this program was built with
};

// Whose rows travel: the shipped model in `type`, or `file`.
struct TransferModel {
  std::string label, type, file;
};

struct TransferPlan {
  TransferOptions options;
  std::vector<TransferPath> paths;
  std::vector<TransferModel> models;

  // In which order the paths are measured in this round: it rotates, so that drift of the machine
  // hits all alike.
  std::vector<std::size_t> order(std::uint32_t round) const;
};

// Checked; errors name the option. kInvalidArgument.
Result<TransferPlan> make_transfer_plan(const TransferOptions& options);

}  // namespace pallas::app
