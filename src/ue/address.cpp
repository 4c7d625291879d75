#include <charconv>

#include "ue/gnb_client.h"

namespace pallas::ue {

std::string Address::text() const {
  const bool v6 = host.find(':') != std::string::npos;
  return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Result<Address> parse_address(std::string_view text) {
  const std::string shown(text);
  const bool tls = text.starts_with("https://");
  if (tls) text.remove_prefix(8);
  if (text.starts_with("http://")) text.remove_prefix(7);
  if (text.ends_with('/')) text.remove_suffix(1);
  const std::size_t colon = text.rfind(':');
  const auto bad = [&](const std::string& why) {
    return fail(Errc::kInvalidArgument, "address '" + shown + "' " + why);
  };
  if (colon == std::string_view::npos) return bad("has no port; write host:port");
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return bad("has a host with colons; write an IPv6 address in brackets");
  }
  if (host.empty()) return bad("has no host; write host:port");
  if (host.find_first_of(" \t\r\n/@?#[]") != std::string_view::npos) {
    return bad("has a host with a character that no host name has");
  }
  Address address{std::string(host), 0, tls};
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, address.port);
  if (digits.empty() || error != std::errc{} || stop != end) {
    return bad("has a port that is not a number from 0 to 65535");
  }
  return address;
}

}  // namespace pallas::ue
