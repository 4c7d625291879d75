#include "experiment_files.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "experiment_output.h"

namespace pallas::app {
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

Status write_text(const std::string& folder, const std::string& name, const std::string& content,
                  WrittenFiles& files) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return fail(Errc::kIo, "out: '" + folder + "': " + error.message());
  const std::string path = folder + "/" + name;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << content;
  if (!file.flush()) return fail(Errc::kIo, "cannot write '" + path + "'");
  files.paths.push_back(path);
  return {};
}

Status write_figure(const std::string& folder, const experiments::Figure& figure,
                    WrittenFiles& files) {
  if (auto s = write_text(folder, figure.name + "-data.csv", figure_csv(figure), files); !s) {
    return s;
  }
  const std::string script = figure_script(figure);
  if (script.empty()) return {};
  const std::string file = figure.name + ".gp";
  if (auto s = write_text(folder, file, script, files); !s) return s;
  if (files.no_figures.empty()) files.no_figures = run_gnuplot(folder, file);
  if (!files.no_figures.empty()) return {};
  files.paths.push_back(folder + "/" + figure.name + ".svg");
  files.paths.push_back(folder + "/" + figure.name + ".png");
  return {};
}

Result<WrittenFiles> write_outcome(const std::string& folder,
                                   const experiments::Experiment& experiment,
                                   const experiments::Settings& settings,
                                   const experiments::Outcome& outcome) {
  WrittenFiles files;
  const std::string name(experiment.name);
  if (auto s = write_text(folder, name + ".csv", outcome_csv(outcome), files); !s) {
    return Failure(s.error());
  }
  if (auto s =
          write_text(folder, name + ".json", outcome_json(experiment, settings, outcome), files);
      !s) {
    return Failure(s.error());
  }
  for (const auto& figure : outcome.figures) {
    if (auto s = write_figure(folder, figure, files); !s) return Failure(s.error());
  }
  return files;
}

}  // namespace pallas::app
