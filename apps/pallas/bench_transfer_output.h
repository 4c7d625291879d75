#pragma once
// What `pallas bench transfer` found, as text and JSON. Pure.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench_transfer_options.h"

namespace pallas::app {

// One transfer of one path.
struct TransferSample {
  double seconds = 0;  // from the source's first call to the target's last byte in place
  double source_cpu_s = 0, target_cpu_s = 0;  // user and system time of the processes
};

// One path in one setting.
struct TransferRow {
  std::string path;
  std::string model;
  TokenPosition block_tokens = 0;
  std::uint64_t block_bytes = 0, bytes = 0;  // of a block, and of one sample
  std::vector<TransferSample> samples;       // none: `why_not` says what is missing
  std::string why_not;                       // also of samples that failed
  std::string detail;                        // e.g. the cipher
  std::optional<bool> rows_equal;            // of a KV cache: those of the target are the source's
};

// What all rows share.
struct TransferScene {
  std::string congestion_control;
  std::string cores;  // where the two processes ran, as a sentence
};

// Medians over the samples of a row; those of a ratio are of the row over a yardstick of the same
// setting, the plain one or that with TLS. None without samples.
struct TransferFigures {
  std::optional<double> bytes_per_s, cpu_s_per_gb, source_cpu_s_per_gb, target_cpu_s_per_gb;
  std::optional<double> speed_ratio, cpu_ratio;
  std::optional<double> tls_speed_ratio, tls_cpu_ratio;
};
std::vector<TransferFigures> transfer_figures(const std::vector<TransferRow>& rows);

// A table for each setting.
std::string transfer_table(const std::vector<TransferRow>& rows, const TransferScene& scene);
// A list of objects, one a row.
std::string transfer_json(const std::vector<TransferRow>& rows, const TransferScene& scene);

}  // namespace pallas::app
