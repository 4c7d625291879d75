#pragma once
// Measured values in a JSON file, one for each model, build, CPU and setting.

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

#include "engine_llama/llama_config.h"

namespace pallas::engine {

// Everything that measured values depend on, as text.
std::string measured_key(const CompatibilityRecord& record, std::uint32_t slots);

class MeasuredCache {
 public:
  MeasuredCache(std::filesystem::path dir, std::string key);
  // None when there is no file, or it is of another key or damaged.
  std::optional<Measured> load() const;
  // Replaces the file at once; does nothing when the folder cannot be written.
  void store(const Measured& measured) const;
  // Since it was stored; 0 when there is none.
  std::chrono::seconds age() const;
  std::filesystem::path path() const;
  std::filesystem::path lock_path() const { return dir_ / "measured.lock"; }

 private:
  std::filesystem::path dir_;
  std::string key_;
};

// Holds an exclusive lock on a file while it lives, waiting for other processes; makes its folder.
// Holds nothing when the file cannot be made.
class FileLock {
 public:
  explicit FileLock(const std::filesystem::path& path);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int file_ = -1;
};

}  // namespace pallas::engine
