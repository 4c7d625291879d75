// libFuzzer target over gnb.toml: what is read can be written, and is then read as the same again.
// The first byte says whether a line of the input is a file or the value of a flag.

#include <cstdint>
#include <string>

#include "gnb_config.h"
#include "input_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pallas;
  using fuzz::require;
  fuzz::InputReader input(data, size);
  const std::uint8_t kind = input.byte();
  app::GnbConfig config;
  if (kind % 4 == 1) {
    const auto& settings = app::gnb_settings();
    const auto& setting = settings[input.byte() % settings.size()];
    const std::string text(input.rest());
    if (!app::set_from_text(config, setting, text)) return 0;
  } else if (kind % 4 == 2) {
    const std::string text(input.rest());
    (void)app::add_peer(config, text);
    (void)app::add_cell(config, text);
    (void)app::add_site(config, text);
    (void)app::parse_host_port(text, "field");
  } else {
    if (const auto read = app::read_toml(config, input.rest(), "gnb.toml"); !read) {
      require(read.error().message.starts_with("gnb.toml:"));
      return 0;
    }
  }
  // Whether it makes sense or not: both must come to an end.
  if (const auto good = app::check(config); !good) require(!good.error().message.empty());
  const std::string written = app::to_toml(config);
  app::GnbConfig again;
  require(app::read_toml(again, written, "again").has_value());
  require(app::to_toml(again) == written);
  return 0;
}
