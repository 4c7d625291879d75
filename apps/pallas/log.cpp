// The only file that sees spdlog.

#include "log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include "http/json_writer.h"

namespace pallas::app {
namespace {

spdlog::level::level_enum level_of(LogLevel level) {
  switch (level) {
    case LogLevel::kTrace:
      return spdlog::level::trace;
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

bool is_plain(const std::string& text) {
  return !text.empty() && text.find_first_of(" \"\\\n\r\t=") == std::string::npos;
}

std::string quoted(const std::string& text) {
  http::JsonWriter json;
  json.value(text);
  return json.take();
}

}  // namespace

class Log::Impl {
 public:
  Impl(spdlog::sink_ptr sink, const std::string& level, bool as_json)
      : logger_("pallas", std::move(sink)), json_(as_json) {
    logger_.set_level(spdlog::level::from_str(level));
    logger_.flush_on(spdlog::level::info);
    logger_.set_pattern(json_ ? R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l",%v})"
                              : "%Y-%m-%dT%H:%M:%S.%e %-7l %v");
  }

  void write(LogLevel level, std::string_view event, const Values& values) {
    const auto severity = level_of(level);
    if (!logger_.should_log(severity)) return;
    std::string line = json_ ? "\"event\":" + quoted(std::string(event)) : std::string(event);
    for (const auto& [name, value] : values) {
      if (json_) {
        line += "," + quoted(std::string(name)) + ":" + quoted(value);
      } else {
        line += " " + std::string(name) + "=" + (is_plain(value) ? value : quoted(value));
      }
    }
    logger_.log(severity, spdlog::string_view_t(line));  // as it is: no format string
  }

 private:
  spdlog::logger logger_;
  bool json_;
};

Log::Log(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Log::~Log() = default;

Result<std::unique_ptr<Log>> Log::open(const std::string& level, const std::string& format,
                                       const std::string& file) {
  try {
    spdlog::sink_ptr sink;
    if (file.empty()) {
      sink = std::make_shared<spdlog::sinks::stderr_sink_st>();
    } else {
      sink = std::make_shared<spdlog::sinks::basic_file_sink_st>(file);
    }
    auto impl = std::make_unique<Impl>(std::move(sink), level, format == "json");
    return std::unique_ptr<Log>(new Log(std::move(impl)));
  } catch (const spdlog::spdlog_ex& error) {
    return fail(Errc::kIo, std::string("log_file: ") + error.what());
  }
}

void Log::write(LogLevel level, std::string_view event, const Values& values) {
  impl_->write(level, event, values);
}

}  // namespace pallas::app
