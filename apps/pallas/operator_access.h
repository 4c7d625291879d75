#pragma once
// What commands show to gNBs that ask for it.

#include <string>

#include "ue/gnb_client.h"

namespace pallas::app {

// Both may be empty. kInvalidArgument names the flag (--gnb-ca, --operator-key-file) and its file.
Result<ue::HttpAccess> operator_access(const std::string& gnb_ca, const std::string& key_file);

}  // namespace pallas::app
