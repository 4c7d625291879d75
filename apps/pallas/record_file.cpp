#include "record_file.h"

#include <filesystem>
#include <fstream>
#include <iterator>

namespace pallas::app {

Result<RecordFile> RecordFile::open(const std::string& folder, bool resume) {
  RecordFile records;
  if (folder.empty()) return records;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return fail(Errc::kIo, "out: '" + folder + "': " + error.message());
  records.path_ = folder + "/" + kRecordFile;
  if (std::filesystem::exists(records.path_, error)) {
    if (!resume) {
      return fail(Errc::kInvalidArgument, "out: '" + folder +
                                              "' holds measurements; --resume keeps them, or take "
                                              "another folder");
    }
    std::ifstream file(records.path_, std::ios::binary);
    if (!file) return fail(Errc::kIo, "out: cannot read '" + records.path_ + "'");
    records.kept_.assign(std::istreambuf_iterator<char>(file), {});
    records.kept_.resize(records.kept_.rfind('\n') + 1);
  }
  std::ofstream file(records.path_, std::ios::binary | std::ios::trunc);
  file << records.kept_;
  if (!file.flush()) return fail(Errc::kIo, "out: cannot write '" + records.path_ + "'");
  return records;
}

Status RecordFile::append(const std::string& line) const {
  if (path_.empty()) return {};
  std::ofstream file(path_, std::ios::binary | std::ios::app);
  file << line << '\n';
  if (!file.flush()) return fail(Errc::kIo, "out: cannot write '" + path_ + "'");
  return {};
}

}  // namespace pallas::app
