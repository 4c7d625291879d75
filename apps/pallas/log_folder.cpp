#include "log_folder.h"

#include <cstdlib>

namespace pallas::app {

Result<std::unique_ptr<LogFolder>> LogFolder::create(const std::string& kept,
                                                     const std::string& field) {
  std::unique_ptr<LogFolder> folder(new LogFolder);
  std::error_code error;
  if (!kept.empty()) {
    std::filesystem::create_directories(kept, error);
    if (error) return fail(Errc::kIo, field + ": '" + kept + "': " + error.message());
    folder->path_ = kept;
    return folder;
  }
  std::string name = (std::filesystem::temp_directory_path(error) / "pallas-logs-XXXXXX").string();
  if (error || mkdtemp(name.data()) == nullptr) {
    return fail(Errc::kIo, "cannot make a temporary folder");
  }
  folder->path_ = name;
  folder->temporary_ = true;
  return folder;
}

LogFolder::~LogFolder() {
  std::error_code ignored;
  if (temporary_) std::filesystem::remove_all(path_, ignored);
}

std::string LogFolder::folder(const std::string& name) const {
  std::error_code ignored;  // whoever writes there says what is wrong
  std::filesystem::create_directories(path_ / name, ignored);
  return (path_ / name).string();
}

}  // namespace pallas::app
