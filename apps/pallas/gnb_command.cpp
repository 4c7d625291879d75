// `pallas gnb`: flags over gnb.toml over defaults, then the daemon.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>

#include "commands.h"
#include "gnb_config.h"
#include "gnb_daemon.h"
#include "plan/scheme.h"

namespace pallas::app {
namespace {

constexpr const char* kExamples = R"(
Examples:
  pallas gnb --name gnb-a                        a single gNB with the default model
  pallas gnb --config gnb.toml --scheme pallas   a file, and one value changed
  pallas gnb --config gnb.toml --dry-run         only check it
  pallas gnb --name gnb-a --print-config > gnb.toml
  pallas gnb --name gnb-a --peer gnb-b=127.0.0.1:7081 \
    --cell cell_0_0=gnb-a --cell cell_0_1=gnb-b  two gNBs, this is one of them

Schemes:
)";

struct Flags {
  std::string config_file;
  std::map<std::string, std::string> values;  // by setting, those that were given
  std::vector<std::string> peers, cells, sites, mirrors;
  bool print_config = false;
  bool dry_run = false;
  bool json = false;
};

std::string footer() {
  std::string text = kExamples;
  for (const auto name : plan::scheme_names()) {
    if (auto scheme = plan::make_scheme(name)) {
      text += fmt::format("  {:<14} {}\n", name, (*scheme)->summary());
    }
  }
  return text;
}

void declare(CLI::App& app, Flags& flags, std::map<std::string, std::string>& texts) {
  app.add_option("--config", flags.config_file, "TOML file; flags win over it");
  app.add_flag("--print-config", flags.print_config, "Print the configuration as TOML and end");
  app.add_flag("--dry-run", flags.dry_run, "Only check the configuration");
  app.add_flag("--json", flags.json, "Print the ready line as a JSON object");
  app.add_option("--peer", flags.peers, "NAME=HOST:PORT of another gNB (repeatable)");
  app.add_option("--cell", flags.cells, "CELL=GNB: which gNB serves a cell (repeatable)");
  app.add_option("--site", flags.sites, "CELL=X,Y: cells by nearest site (repeatable)");
  app.add_option("--mirror", flags.mirrors, "A peer that always gets the token ids (repeatable)");

  const GnbConfig defaults;
  for (const auto& setting : gnb_settings()) {
    std::string& text = texts[setting.key];  // stable address in a map
    if (setting.kind == SettingKind::kBool) {
      const std::string flag = flag_of(setting.key);
      app.add_flag(fmt::format("{}{{true}},--no-{}{{false}}", flag, flag.substr(2)), text,
                   setting.help);
    } else {
      app.add_option(flag_of(setting.key), text, setting.help)->type_name("");
    }
  }
}

Result<GnbConfig> configure(const Flags& flags) {
  GnbConfig config;
  if (!flags.config_file.empty()) {
    if (auto s = read_toml_file(config, flags.config_file); !s) return Failure(s.error());
  }
  for (const auto& setting : gnb_settings()) {
    const auto given = flags.values.find(setting.key);
    if (given == flags.values.end()) continue;
    if (auto s = set_from_text(config, setting, given->second); !s) return Failure(s.error());
  }
  // A table given by flags replaces the file's.
  if (!flags.peers.empty()) config.peers.clear();
  if (!flags.cells.empty()) config.node.cells.clear();
  if (!flags.sites.empty()) config.sites.clear();
  if (!flags.mirrors.empty()) config.node.mirrors.clear();
  for (const auto& text : flags.peers) {
    if (auto s = add_peer(config, text); !s) return Failure(s.error());
  }
  for (const auto& text : flags.cells) {
    if (auto s = add_cell(config, text); !s) return Failure(s.error());
  }
  for (const auto& text : flags.sites) {
    if (auto s = add_site(config, text); !s) return Failure(s.error());
  }
  for (const auto& name : flags.mirrors) config.node.mirrors.emplace_back(name);
  if (auto s = check(config); !s) return Failure(s.error());
  return config;
}

}  // namespace

int gnb_command(std::vector<std::string> args) {
  CLI::App app("Serves a model at one gNB: OpenAI API, RAN feed, sessions that move to its peers",
               "pallas gnb");
  app.footer(footer());
  Flags flags;
  std::map<std::string, std::string> texts;
  declare(app, flags, texts);
  try {
    std::reverse(args.begin(), args.end());  // as CLI11 wants a vector
    app.parse(args);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  for (const auto& setting : gnb_settings()) {
    if (app.count(flag_of(setting.key)) > 0) flags.values[setting.key] = texts[setting.key];
  }

  const auto config = configure(flags);
  if (!config) {
    fmt::print(stderr, "pallas gnb: {}\n", config.error().message);
    return kExitUsage;
  }
  if (flags.print_config) {
    fmt::print("{}", to_toml(*config));
    return kExitOk;
  }
  if (flags.dry_run) {
    fmt::print("{}: the configuration is good\n", config->node.name.value);
    return kExitOk;
  }
  const auto left = run_gnb(*config, flags.json);
  if (!left) {
    fmt::print(stderr, "pallas gnb: {}\n", left.error().message);
    return kExitFailed;
  }
  return *left > 0 ? kExitLeft : kExitOk;
}

}  // namespace pallas::app
