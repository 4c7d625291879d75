#pragma once
// Where the output of child processes goes.

#include <filesystem>
#include <memory>
#include <string>

#include "base/result.h"

namespace pallas::app {

class LogFolder {
 public:
  // `kept`: this folder, made if need be; empty: a temporary one that goes with the object. Errors
  // name `field`.
  static Result<std::unique_ptr<LogFolder>> create(const std::string& kept,
                                                   const std::string& field);
  ~LogFolder();
  LogFolder(const LogFolder&) = delete;
  LogFolder& operator=(const LogFolder&) = delete;

  std::string path() const { return path_.string(); }
  // A folder in it, made if need be.
  std::string folder(const std::string& name) const;

 private:
  LogFolder() = default;
  std::filesystem::path path_;
  bool temporary_ = false;
};

}  // namespace pallas::app
