#pragma once
// Who may use the API: keys that clients show ("Authorization: Bearer KEY"), each of a tenant.

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "tls/secrets.h"

namespace pallas::http {

class ApiKeys {
 public:
  // A line for each key: `TENANT KEY`, or `TENANT sha256:DIGEST` with the key's SHA-256 in hex. '#'
  // begins a comment. A tenant may have several keys, which is how one replaces another. A key has
  // 16 to 256 printable characters. Errors (kInvalidConfig) name the line, never a key.
  static Result<ApiKeys> parse(std::string_view text);

  // Takes as long for a wrong key as for a right one.
  std::optional<std::string> tenant_of(std::string_view key) const;
  std::size_t size() const { return tenants_.size(); }

 private:
  std::map<std::string, std::string> tenants_;  // by the SHA-256 of a key
};

// From a file that others cannot read. Errors name setting and file.
Result<ApiKeys> read_keys(const tls::File& file);

// The key of an Authorization header; none when it is another kind of header.
std::optional<std::string_view> bearer_key(std::string_view header);

// What a node keeps as the token of a session whose client was given `token`: who has another
// tenant's token has one that fits nowhere.
std::string bind_token(std::string_view tenant, std::string_view token);

// The id of the session that `token` opens, `token` being what a node keeps: 128 bits of its
// SHA-256. So any gNB can tell whether a token fits an id, even of a session that it never heard
// of, and nobody can take the place of another's session where that has not come yet.
std::string session_of(std::string_view token);

}  // namespace pallas::http
