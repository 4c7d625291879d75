#include "experiment_files.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "experiment_output.h"

namespace pallas::app {
namespace {

Status write_file(const std::string& path, const std::string& content) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << content;
  if (!file.flush()) return fail(Errc::kIo, "cannot write '" + path + "'");
  return {};
}

}  // namespace

std::string run_gnuplot(const std::string& folder, const std::string& script) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  // Its complaints would stand in the middle of our text; who wants them runs the script.
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::string program = "gnuplot", file = script;
  char* const arguments[] = {program.data(), file.data(), nullptr};
  pid_t pid = 0;
  const int error = posix_spawnp(&pid, "gnuplot", &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return "gnuplot is not installed; on Debian: apt-get install gnuplot-nox";
  int status = 0;
  if (waitpid(pid, &status, 0) != pid || status != 0) {
    return "gnuplot failed; its script is " + folder + "/" + script;
  }
  return {};
}

Result<WrittenFiles> write_outcome(const std::string& folder,
                                   const experiments::Experiment& experiment,
                                   const experiments::Settings& settings,
                                   const experiments::Outcome& outcome) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return fail(Errc::kIo, "out: '" + folder + "': " + error.message());
  WrittenFiles files;
  const auto write = [&](const std::string& name, const std::string& content) -> Status {
    const std::string path = folder + "/" + name;
    if (auto status = write_file(path, content); !status) return status;
    files.paths.push_back(path);
    return {};
  };
  const std::string name(experiment.name);
  if (auto status = write(name + ".csv", outcome_csv(outcome)); !status) {
    return Failure(status.error());
  }
  if (auto status = write(name + ".json", outcome_json(experiment, settings, outcome)); !status) {
    return Failure(status.error());
  }
  for (const auto& figure : outcome.figures) {
    if (auto status = write(figure.name + "-data.csv", figure_csv(figure)); !status) {
      return Failure(status.error());
    }
    const std::string script = figure_script(figure);
    if (script.empty()) continue;
    const std::string file = figure.name + ".gp";
    if (auto status = write(file, script); !status) return Failure(status.error());
    if (!files.no_figures.empty()) continue;
    files.no_figures = run_gnuplot(folder, file);
    if (!files.no_figures.empty()) continue;
    files.paths.push_back(folder + "/" + figure.name + ".svg");
    files.paths.push_back(folder + "/" + figure.name + ".png");
  }
  return files;
}

}  // namespace pallas::app
