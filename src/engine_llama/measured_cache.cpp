#include "engine_llama/measured_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#include <xxhash.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

namespace pallas::engine {
namespace {

using nlohmann::json;

constexpr int kFormat = 2;

std::string cpu_model() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 1);
  }
  return "unknown";
}

json to_json(const Measured& m) {
  json prefill = json::array();
  for (const auto& p : m.profile.prefill) {
    prefill.push_back({{"depth", p.depth}, {"per_token_s", p.per_token.count()}});
  }
  json decode = json::array();
  for (const auto& p : m.profile.decode) {
    decode.push_back({{"batch", p.batch}, {"depth", p.depth}, {"step_s", p.step.count()}});
  }
  const Capabilities& c = m.capabilities;
  return {{"disturbed", m.disturbed},
          {"profile",
           {{"chunk_tokens", m.profile.chunk_tokens},
            {"prefill", prefill},
            {"decode", decode},
            {"export_per_token_s", m.profile.export_per_token.count()},
            {"attach_per_token_s", m.profile.attach_per_token.count()}}},
          {"capabilities",
           {{"exact_chunked_prompt", c.exact_chunked_prompt},
            {"exact_chunked_generated", c.exact_chunked_generated},
            {"exact_single_step", c.exact_single_step},
            {"exact_attach", c.exact_attach}}}};
}

Measured from_json(const json& j) {
  Measured m;
  const json& profile = j.at("profile");
  m.profile.chunk_tokens = profile.at("chunk_tokens");
  for (const json& p : profile.at("prefill")) {
    m.profile.prefill.push_back({p.at("depth"), Seconds(p.at("per_token_s").get<double>())});
  }
  for (const json& p : profile.at("decode")) {
    m.profile.decode.push_back(
        {p.at("batch"), p.at("depth"), Seconds(p.at("step_s").get<double>())});
  }
  m.profile.export_per_token = Seconds(profile.at("export_per_token_s").get<double>());
  m.profile.attach_per_token = Seconds(profile.at("attach_per_token_s").get<double>());
  m.disturbed = j.at("disturbed");
  const json& c = j.at("capabilities");
  m.capabilities.exact_chunked_prompt = c.at("exact_chunked_prompt");
  m.capabilities.exact_chunked_generated = c.at("exact_chunked_generated");
  m.capabilities.exact_single_step = c.at("exact_single_step");
  m.capabilities.exact_attach = c.at("exact_attach");
  return m;
}

}  // namespace

std::string measured_key(const CompatibilityRecord& r, std::uint32_t slots) {
  return r.model_hash + "; " + r.engine_build + "; " + r.instruction_set + ";" + cpu_model() +
         "; threads=" + std::to_string(r.threads) +
         " flash_attention=" + std::to_string(r.flash_attention) +
         " slots=" + std::to_string(slots) + " context=" + std::to_string(r.context_tokens) +
         " block=" + std::to_string(r.block_tokens);
}

MeasuredCache::MeasuredCache(std::filesystem::path dir, std::string key)
    : dir_(std::move(dir)), key_(std::move(key)) {}

std::filesystem::path MeasuredCache::path() const {
  std::array<char, 40> name{};
  std::snprintf(name.data(), name.size(), "measured-%016llx.json",
                static_cast<unsigned long long>(XXH3_64bits(key_.data(), key_.size())));
  return dir_ / name.data();
}

std::optional<Measured> MeasuredCache::load() const {
  std::ifstream in(path());
  if (!in) return std::nullopt;
  try {
    const json j = json::parse(in);
    if (j.at("format") != kFormat || j.at("key") != key_) return std::nullopt;
    return from_json(j);
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

std::chrono::seconds MeasuredCache::age() const {
  std::error_code error;
  const auto stored = std::filesystem::last_write_time(path(), error);
  if (error) return std::chrono::seconds(0);
  const auto age = std::filesystem::file_time_type::clock::now() - stored;
  return std::chrono::duration_cast<std::chrono::seconds>(age);
}

void MeasuredCache::store(const Measured& measured) const {
  std::error_code error;
  std::filesystem::create_directories(dir_, error);
  json j = to_json(measured);
  j["format"] = kFormat;
  j["key"] = key_;
  const std::filesystem::path next = path().string() + ".new";
  {
    std::ofstream out(next);
    out << j.dump(2) << '\n';
    if (!out.flush()) return;
  }
  std::filesystem::rename(next, path(), error);
}

FileLock::FileLock(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file_ >= 0) {
    while (::flock(file_, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
}

FileLock::~FileLock() {
  if (file_ >= 0) ::close(file_);
}

}  // namespace pallas::engine
