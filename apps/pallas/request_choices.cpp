#include "request_choices.h"

namespace pallas::app {

std::string default_consistency(std::string_view scheme) {
  return scheme == "two-front" || scheme == "full-copy" || scheme == "detour" ||
                 scheme == "pallas-no-rc"
             ? "exact"
             : "fast";
}

Status check_consistency(std::string_view text) {
  if (text == "exact" || text == "prefer-exact" || text == "fast") return {};
  return fail(Errc::kInvalidArgument, "consistency: must be exact, prefer-exact or fast");
}

Status check_engine(std::string_view text, bool with_llama) {
  if (text != "llama" && text != "fake") {
    return fail(Errc::kInvalidArgument, "engine: must be llama or fake");
  }
  if (text == "llama" && !with_llama) {
    return fail(Errc::kInvalidArgument,
                "engine: this program was built without llama; --engine fake works");
  }
  return {};
}

}  // namespace pallas::app
