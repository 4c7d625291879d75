#include "gzip_file.h"

#include <zlib.h>

#include <filesystem>
#include <memory>
#include <vector>

namespace pallas::app {

Result<std::string> read_text_file(const std::string& path, std::size_t max_bytes) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return fail(Errc::kNotFound, "'" + path + "' is a folder");
  }
  // gzopen reads plain files as they are.
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (file == nullptr) return fail(Errc::kNotFound, "cannot read '" + path + "'");
  std::string text;
  std::vector<char> chunk(64 << 10);
  for (;;) {
    const int got = gzread(file.get(), chunk.data(), static_cast<unsigned>(chunk.size()));
    int code = Z_OK;
    const char* why = gzerror(file.get(), &code);
    // A file that ends in the middle of its gzip stream reads as Z_BUF_ERROR at its end.
    if (got < 0 || (got == 0 && code != Z_OK && code != Z_STREAM_END)) {
      return fail(Errc::kParse, "'" + path + "' is damaged: " + why);
    }
    if (got == 0) return text;
    text.append(chunk.data(), static_cast<std::size_t>(got));
    if (text.size() > max_bytes) {
      return fail(Errc::kTooLarge,
                  "'" + path + "' has more than " + std::to_string(max_bytes) + " bytes");
    }
  }
}

}  // namespace pallas::app
