#pragma once
// The two processes of a transfer, as `pallas bench transfer` sees them.

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench_transfer_channel.h"
#include "bench_transfer_output.h"
#include "child_process.h"

namespace pallas::app {

struct TransferProgram {
  std::string program;              // empty: this one
  std::vector<std::string> before;  // arguments before the role and the descriptor
  std::vector<std::string> after;   // and after them
};

// One end; ends with the object.
class TransferProcess {
 public:
  // `error_file` gets what it writes to standard error.
  static Result<std::unique_ptr<TransferProcess>> start(const TransferProgram& program,
                                                        const std::string& role,
                                                        const std::string& error_file,
                                                        const std::vector<int>& cores);
  // Errors name the role.
  Status send(const Line& line);
  Result<Line> receive();
  Result<Line> ask(const Line& line);

 private:
  TransferProcess(std::string role, LineChannel channel, std::unique_ptr<ChildProcess> process)
      : role_(std::move(role)), channel_(std::move(channel)), process_(std::move(process)) {}
  std::string role_;
  LineChannel channel_;
  std::unique_ptr<ChildProcess> process_;
};

class TransferPair {
 public:
  struct Start {
    TransferProgram program;
    std::string log_folder;
    std::string name;                     // of the log files
    std::vector<std::vector<int>> cores;  // of source and target; empty: anywhere
  };
  // Both are ready. `missing()` tells of a helper that lacks its library.
  static Result<std::unique_ptr<TransferPair>> start(const Start& start);

  bool missing() const { return missing_; }
  std::uint64_t bytes_per_token() const { return bytes_per_token_; }
  std::uint64_t session_bytes() const { return session_bytes_; }

  struct Order {
    std::string path;
    std::uint64_t block_bytes = 0, bytes = 0;
    std::string congestion_control;
  };
  // A new connection, `session_bytes` that do not count, then the sample.
  Result<TransferSample> measure(const Order& order);
  // Of the last order.
  const std::string& detail() const { return detail_; }
  // Whether the target's cache holds the source's rows, after at least one transfer of them.
  Result<bool> rows_equal();

 private:
  TransferPair() = default;
  Result<TransferSample> run(std::uint64_t bytes);

  std::unique_ptr<TransferProcess> source_, target_;
  bool missing_ = false;
  std::uint64_t bytes_per_token_ = 0, session_bytes_ = 0;
  std::string detail_;
};

}  // namespace pallas::app
