#include "operator_access.h"

#include "tls/trust.h"
#include "ue/ue_settings.h"

namespace pallas::app {

Result<ue::HttpAccess> operator_access(const std::string& gnb_ca, const std::string& key_file) {
  ue::HttpAccess access;
  if (!gnb_ca.empty()) {
    const auto good = tls::Trust::load({"--gnb-ca", gnb_ca});
    if (!good) return fail(Errc::kInvalidArgument, good.error().message);
    access.authority = gnb_ca;
  }
  if (!key_file.empty()) {
    auto key = ue::read_key_file("--operator-key-file", key_file);
    if (!key) return fail(Errc::kInvalidArgument, key.error().message);
    access.key = std::move(*key);
  }
  return access;
}

}  // namespace pallas::app
