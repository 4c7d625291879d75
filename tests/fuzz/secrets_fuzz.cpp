// libFuzzer target over the files that hold secrets: API keys, the header that shows one, and PEM
// files of certificates, keys and authorities, either as the input has them or as good ones of
// which the input changes some letters (so that what lies behind PEM is reached, too).

#include <cstdint>
#include <string>

#include "http/api_keys.h"
#include "input_reader.h"
#include "test_certificates.h"
#include "tls/trust.h"

namespace {

using namespace pallas;
using fuzz::InputReader;
using fuzz::require;

// `text` with letters changed where the input says.
std::string changed(std::string text, InputReader& input) {
  while (!input.empty() && !text.empty()) {
    const std::size_t at = input.up_to(static_cast<std::uint32_t>(text.size() - 1));
    text[at] = static_cast<char>(input.byte());
  }
  return text;
}

struct Good {
  test::TestCertificates folder;
  tls::KeyPair pair = folder.pair("gnb-a");
};

void read_pem(std::uint8_t which, InputReader& input) {
  static Good good;
  std::string certificate = good.pair.certificate, key = good.pair.key,
              authority = good.folder.authority().own().certificate;
  std::string& file = which % 3 == 0 ? certificate : which % 3 == 1 ? key : authority;
  const bool as_it_is = which / 3 % 2 == 0;
  file = as_it_is ? std::string(input.rest()) : changed(std::move(file), input);
  good.folder.write("gnb-a.crt", certificate);
  good.folder.write("gnb-a.key", key);
  good.folder.write("ca.crt", authority);
  const auto files = good.folder.files("gnb-a");
  if (const auto loaded = tls::Credentials::load(files, "gnb-a"); !loaded) {
    require(loaded.error().message.starts_with("peer_") ||
            loaded.error().message.starts_with("TLS"));
  } else {
    require((*loaded)->context() != nullptr);
  }
  if (which % 3 == 2) (void)tls::Trust::load(files.authority);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  InputReader input(data, size);
  const std::uint8_t kind = input.byte();
  if (kind % 4 == 0) {
    if (const auto keys = http::ApiKeys::parse(input.rest()); !keys) {
      require(keys.error().code == Errc::kInvalidConfig);
    }
  } else if (kind % 4 == 1) {
    static const auto keys = http::ApiKeys::parse("red red-key-0123456789\n");
    const std::string_view header = input.rest();
    const auto shown = http::bearer_key(header);
    const bool taken = shown && keys->tenant_of(*shown).has_value();
    require(!taken || header.find("red-key-0123456789") != std::string_view::npos);
  } else {
    read_pem(kind / 4, input);
  }
  return 0;
}
