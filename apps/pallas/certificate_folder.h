#pragma once
// A folder with an authority and the certificates that it signed:
//
//   ca.crt  ca.key   the authority
//   NAME.crt  NAME.key   one pair a gNB
//
// Keys are for the owner alone (mode 0600).

#include <chrono>
#include <string>
#include <vector>

#include "base/result.h"

namespace pallas::app {

struct CertificateOrder {
  std::string folder;  // made if it does not exist
  std::vector<std::string> names;
  std::vector<std::string>
      hosts;  // DNS names and IP addresses that stand in every certificate, too
  std::chrono::hours lifetime{24 * 365};
};

// Makes what is missing: an authority where there is none, and a new pair for each name, in the
// place of an older one. Returns the files written. Errors name the option or the file; what was
// there before is then whole.
Result<std::vector<std::string>> make_certificates(const CertificateOrder& order);

}  // namespace pallas::app
