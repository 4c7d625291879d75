#include "child_process.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

namespace pallas::app {
namespace {

constexpr const char* kOurselves = "/proc/self/exe";

// Only calls that are safe between fork and exec.
[[noreturn]] void become(const char* program, char* const* argv, int out, int err, pid_t parent,
                         const cpu_set_t& cores) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // it died before prctl
  if (CPU_COUNT(&cores) > 0) sched_setaffinity(0, sizeof cores, &cores);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  const int null = open("/dev/null", O_RDONLY);
  if (null >= 0) dup2(null, STDIN_FILENO);
  execvp(program, argv);
  _exit(127);
}

}  // namespace

Result<std::unique_ptr<ChildProcess>> ChildProcess::start(const std::vector<std::string>& args,
                                                          const std::string& out_file,
                                                          const std::string& err_file,
                                                          const std::vector<int>& cores) {
  return start_program(kOurselves, args, out_file, err_file, cores);
}

Result<std::unique_ptr<ChildProcess>> ChildProcess::start_program(
    const std::string& program, const std::vector<std::string>& args, const std::string& out_file,
    const std::string& err_file, const std::vector<int>& cores) {
  const auto create = [](const std::string& path) {
    return open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  };
  const int out = create(out_file);
  const int err = create(err_file);
  if (out < 0 || err < 0) {
    const std::string why = std::strerror(errno);
    if (out >= 0) close(out);
    return fail(Errc::kIo, "cannot write '" + (out < 0 ? out_file : err_file) + "': " + why);
  }
  std::string name = program == kOurselves ? "pallas" : program;
  std::vector<std::string> words = args;
  std::vector<char*> argv{name.data()};
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  for (const int core : cores) CPU_SET(static_cast<std::size_t>(core), &allowed);

  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) become(program.c_str(), argv.data(), out, err, parent, allowed);
  const std::string why = std::strerror(errno);
  close(out);
  close(err);
  if (pid < 0) return fail(Errc::kIo, "cannot start a process: " + why);
  return std::unique_ptr<ChildProcess>(new ChildProcess(pid));
}

ChildProcess::~ChildProcess() {
  stop();
}

std::optional<std::string> ChildProcess::ended() {
  int status = 0;
  if (!ended_ && waitpid(pid_, &status, WNOHANG) == pid_) {
    ended_ = WIFSIGNALED(status) ? "killed by signal " + std::to_string(WTERMSIG(status))
                                 : "exited with " + std::to_string(WEXITSTATUS(status));
  }
  return ended_;
}

void ChildProcess::terminate() {
  if (!ended()) kill(pid_, SIGTERM);
}

void ChildProcess::stop() {
  using namespace std::chrono_literals;
  terminate();
  // A gNB takes the second one for "at once".
  for (int i = 0; i < 300 && !ended(); ++i) {
    if (i == 50) terminate();
    std::this_thread::sleep_for(10ms);
  }
  if (!ended()) {
    kill(pid_, SIGKILL);
    while (!ended()) std::this_thread::sleep_for(1ms);
  }
}

std::vector<int> allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(static_cast<std::size_t>(i), &set)) cores.push_back(i);
  }
  return cores;
}

}  // namespace pallas::app
