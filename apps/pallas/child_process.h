#pragma once
// A process of ours that ends with us.

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace pallas::app {

class ChildProcess {
 public:
  // Starts this very program (/proc/self/exe) with `args`, in a process group of its own (so that
  // Ctrl-C reaches only us, who end it in order), killed by the kernel when we die. Its standard
  // output and error go to these files, created anew. It stays on `cores`, unless there are none.
  static Result<std::unique_ptr<ChildProcess>> start(const std::vector<std::string>& args,
                                                     const std::string& out_file,
                                                     const std::string& err_file,
                                                     const std::vector<int>& cores = {});
  // The same of another program, found as a shell finds it.
  static Result<std::unique_ptr<ChildProcess>> start_program(const std::string& program,
                                                             const std::vector<std::string>& args,
                                                             const std::string& out_file,
                                                             const std::string& err_file,
                                                             const std::vector<int>& cores = {});
  // stop()
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  // "exited with 1", "killed by signal 9"; none while it runs.
  std::optional<std::string> ended();
  void terminate();  // SIGTERM; returns at once
  // SIGTERM, again after half a second, SIGKILL after three; waits for the end.
  void stop();

 private:
  explicit ChildProcess(pid_t pid) : pid_(pid) {}
  pid_t pid_;
  std::optional<std::string> ended_;
};

// Those on which this process may run.
std::vector<int> allowed_cores();

}  // namespace pallas::app
