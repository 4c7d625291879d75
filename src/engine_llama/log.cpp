#include "engine_llama/log.h"

#include <llama.h>
#include <log.h>

#include <algorithm>
#include <mutex>
#include <utility>

namespace pallas::engine {
namespace {

constexpr std::size_t kKeptBytes = 1000;

std::string& errors_of_this_thread() {
  thread_local std::string errors;
  return errors;
}

void keep_errors(ggml_log_level level, const char* text, void*) {
  if (level != GGML_LOG_LEVEL_ERROR || text == nullptr) return;
  std::string& errors = errors_of_this_thread();
  if (errors.size() < kKeptBytes) errors += text;
}

}  // namespace

void start_backend() {
  static std::once_flag once;
  std::call_once(once, [] {
    llama_log_set(keep_errors, nullptr);
    common_log_set_verbosity_thold(-1000);
    llama_backend_init();
  });
}

std::string take_backend_errors() {
  std::string text = std::exchange(errors_of_this_thread(), {});
  std::replace(text.begin(), text.end(), '\n', ' ');
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

}  // namespace pallas::engine
