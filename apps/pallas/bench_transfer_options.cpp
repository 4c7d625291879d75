#include "bench_transfer_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "request_choices.h"

namespace pallas::app {
namespace {

constexpr std::string_view kModelTypes[] = {"q4_0", "q8_0", "f16"};
constexpr std::size_t kMaxNameOfControl = 15;  // TCP_CA_NAME_MAX without its end

Failure wrong(std::string_view field, const std::string& why) {
  return fail(Errc::kInvalidArgument, fmt::format("{}: {}", field, why));
}

template <class T>
Status check_range(std::string_view field, T value, T low, T high) {
  if (value >= low && value <= high) return {};
  return wrong(field, fmt::format("{} is not from {} to {}", value, low, high));
}

Status check(const TransferOptions& options) {
  if (options.block_tokens.empty()) return wrong("block_tokens", "needs a value");
  for (const auto tokens : options.block_tokens) {
    if (auto s = check_range<TokenPosition>("block_tokens", tokens, 1, options.context); !s) {
      return s;
    }
  }
  for (const auto& status : {check_range<TokenPosition>("context", options.context, 16, 100'000),
                             check_range<std::uint32_t>("megabytes", options.megabytes, 1, 100'000),
                             check_range<std::uint32_t>("repeat", options.repeat, 1, 1000)}) {
    if (!status) return status;
  }
  if (options.congestion_control.size() > kMaxNameOfControl) {
    return wrong("congestion_control", "'" + options.congestion_control + "' is too long");
  }
  if (options.model_types.empty() && options.models.empty()) {
    return wrong("model_type", "needs a value");
  }
  return check_engine(options.engine, options.with_llama);
}

}  // namespace

const std::vector<TransferPath>& transfer_paths() {
  static const std::vector<TransferPath> kAll = {
      {"memcpy", "copied inside the source"},
      {"tcp", "a plain TCP stream"},
      {kYardstickPath, "TCP, XXH3 of each block at both ends"},
      {"tls", "TLS 1.3 (OpenSSL)"},
      {kTlsYardstickPath, "TLS 1.3, XXH3 of each block at both ends"},
      {"nixl", "NIXL over UCX's TCP, both sides polling", true},
      {"nixl-thread", "NIXL over UCX's TCP, with its progress thread", true},
      {kPallasPath, "out of a KV cache, over a peer link, into a KV cache"},
      {kPallasTlsPath, "the same over a peer link under TLS 1.3, certificates at both ends"},
  };
  return kAll;
}

std::vector<std::size_t> TransferPlan::order(std::uint32_t round) const {
  std::vector<std::size_t> order(paths.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = (i + round) % order.size();
  return order;
}

Result<TransferPlan> make_transfer_plan(const TransferOptions& options) {
  if (auto status = check(options); !status) return Failure(status.error());
  TransferPlan plan;
  plan.options = options;
  std::set<std::string> seen;
  for (const auto& name : options.paths) {
    const auto& all = transfer_paths();
    const auto known =
        std::find_if(all.begin(), all.end(), [&](const auto& path) { return path.name == name; });
    if (known == all.end()) {
      std::string names;
      for (const auto& path : all)
        names += fmt::format("{}{}", names.empty() ? "" : ", ", path.name);
      return wrong("path", fmt::format("'{}' is none of {}", name, names));
    }
    if (!seen.insert(name).second) return wrong("path", "'" + name + "' is given twice");
    plan.paths.push_back(*known);
  }
  if (plan.paths.empty()) plan.paths = transfer_paths();
  if (options.engine == "fake") {
    plan.models.push_back({"fake", "", ""});
    return plan;
  }
  for (const auto& type : options.model_types) {
    if (std::find(std::begin(kModelTypes), std::end(kModelTypes), type) == std::end(kModelTypes)) {
      return wrong("model_type", "'" + type + "' is none of q4_0, q8_0, f16");
    }
    plan.models.push_back({type, type, ""});
  }
  for (const auto& file : options.models) {
    plan.models.push_back({std::filesystem::path(file).stem().string(), "", file});
  }
  return plan;
}

}  // namespace pallas::app
