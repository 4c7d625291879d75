#include "http/api_keys.h"

#include <algorithm>

#include "tls/secrets.h"
#include "wire/messages.h"

namespace pallas::http {
namespace {

constexpr std::size_t kMinKey = 16, kMaxKey = 256, kMaxTenant = wire::kMaxNameBytes;
constexpr std::string_view kDigestMark = "sha256:";
constexpr std::size_t kDigestDigits = 64;
constexpr std::size_t kSessionBytes = 16;

Failure wrong_line(std::size_t number, const std::string& why) {
  return fail(Errc::kInvalidConfig, "line " + std::to_string(number) + " " + why);
}

std::string_view trim(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

bool is_printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}

std::optional<int> hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

std::optional<std::string> from_hex(std::string_view digits) {
  if (digits.size() != kDigestDigits) return std::nullopt;
  std::string bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    const auto high = hex_value(digits[i]), low = hex_value(digits[i + 1]);
    if (!high || !low) return std::nullopt;
    bytes += static_cast<char>(*high * 16 + *low);
  }
  return bytes;
}

}  // namespace

Result<ApiKeys> ApiKeys::parse(std::string_view text) {
  ApiKeys keys;
  std::size_t number = 0;
  while (!text.empty()) {
    ++number;
    const auto end = text.find('\n');
    auto line = trim(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    if (line.empty() || line.front() == '#') continue;
    const auto space = line.find_first_of(" \t");
    const auto tenant = line.substr(0, space);
    const auto key = space == std::string_view::npos ? "" : trim(line.substr(space));
    if (key.empty()) return wrong_line(number, "is not of the form TENANT KEY");
    if (tenant.size() > kMaxTenant || !is_printable(tenant)) {
      return wrong_line(number, "names a tenant by more than 128 or by unprintable characters");
    }
    std::optional<std::string> digest;
    if (key.starts_with(kDigestMark)) {
      digest = from_hex(key.substr(kDigestMark.size()));
      if (!digest) return wrong_line(number, "has a digest that is not 64 hex digits");
    } else if (key.size() < kMinKey || key.size() > kMaxKey || !is_printable(key)) {
      return wrong_line(number, "has a key that is not 16 to 256 printable characters");
    } else {
      digest = tls::sha256(key);
    }
    if (!keys.tenants_.emplace(std::move(*digest), std::string(tenant)).second) {
      return wrong_line(number, "has a key that stands there already");
    }
  }
  if (keys.tenants_.empty()) return fail(Errc::kInvalidConfig, "holds no key");
  return keys;
}

Result<ApiKeys> read_keys(const tls::File& file) {
  const auto text = tls::read_file(file, true);
  if (!text) return Failure(text.error());
  auto keys = ApiKeys::parse(*text);
  if (!keys) return tls::wrong_file(file, keys.error().message);
  return keys;
}

std::optional<std::string> ApiKeys::tenant_of(std::string_view key) const {
  // The search goes by a digest, which nobody can steer towards one that is there.
  const auto found = tenants_.find(tls::sha256(key));
  if (found == tenants_.end()) return std::nullopt;
  return found->second;
}

std::optional<std::string_view> bearer_key(std::string_view header) {
  static constexpr std::string_view kScheme = "bearer ";
  if (header.size() <= kScheme.size()) return std::nullopt;
  const bool is_bearer =
      std::equal(kScheme.begin(), kScheme.end(), header.begin(), [](char a, char b) {
        return a == (b >= 'A' && b <= 'Z' ? static_cast<char>(b - 'A' + 'a') : b);
      });
  if (!is_bearer) return std::nullopt;
  return trim(header.substr(kScheme.size()));
}

std::string bind_token(std::string_view tenant, std::string_view token) {
  // The length keeps "ab" + "c" and "a" + "bc" apart.
  return tls::to_hex(
      tls::sha256(std::to_string(tenant.size()) + ":" + std::string(tenant) + std::string(token)));
}

std::string session_of(std::string_view token) {
  const std::string digest = tls::sha256("pallas-session:" + std::string(token));
  return tls::to_hex(std::string_view(digest).substr(0, kSessionBytes));
}

}  // namespace pallas::http
