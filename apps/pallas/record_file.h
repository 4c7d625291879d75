#pragma once
// The lines that a long measurement leaves as it goes, so that --resume can go on from them.

#include <string>

#include "base/result.h"

namespace pallas::app {

inline constexpr const char* kRecordFile = "runs.jsonl";

class RecordFile {
 public:
  // In `folder`, which is made if need be; empty: nothing is kept. Lines that are there are kept
  // with `resume`, without a last one that was cut off, and refused otherwise. Messages begin with
  // `out`.
  static Result<RecordFile> open(const std::string& folder, bool resume);

  const std::string& path() const { return path_; }
  const std::string& kept() const { return kept_; }  // the lines that were there
  Status append(const std::string& line) const;

 private:
  std::string path_;
  std::string kept_;
};

}  // namespace pallas::app
