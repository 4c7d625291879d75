// gnb.toml in and out. The only file that sees toml++.

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "gnb_config.h"

namespace pallas::app {
namespace {

constexpr std::size_t kMaxFileBytes = 1 << 20;

class Reader {
 public:
  Reader(GnbConfig& config, std::string name) : config_(config), name_(std::move(name)) {}

  Status read(const toml::table& root) {
    for (const auto& [key, node] : root) {
      if (auto status = read_entry(std::string(key.str()), node); !status) return status;
    }
    return {};
  }

 private:
  Failure wrong(const toml::node& node, const std::string& why) const {
    return fail(Errc::kInvalidConfig,
                fmt::format("{}:{}: {}", name_, node.source().begin.line, why));
  }
  Status located(const toml::node& node, Status status) const {
    if (status) return status;
    return wrong(node, status.error().message);
  }

  Status read_entry(const std::string& key, const toml::node& node) {
    if (key == "peers" || key == "cells") return read_names(key, node);
    if (key == "sites") return read_sites(node);
    if (key == "mirrors") return read_mirrors(node);
    const auto& settings = gnb_settings();
    const auto setting = std::find_if(settings.begin(), settings.end(),
                                      [&](const Setting& s) { return s.key == key; });
    if (setting == settings.end()) return wrong(node, "unknown key '" + key + "'");
    if (auto v = node.value_exact<bool>()) return located(node, setting->set(config_, *v));
    if (auto v = node.value_exact<std::int64_t>()) return located(node, setting->set(config_, *v));
    if (auto v = node.value_exact<double>()) return located(node, setting->set(config_, *v));
    if (auto v = node.value_exact<std::string>()) return located(node, setting->set(config_, *v));
    return wrong(node, key + ": must be a single value");
  }

  Status read_names(const std::string& key, const toml::node& node) {
    const auto* table = node.as_table();
    if (table == nullptr) return wrong(node, key + ": must be a table of names");
    for (const auto& [name, value] : *table) {
      const auto text = value.value_exact<std::string>();
      if (!text) return wrong(value, fmt::format("{}.{}: must be a string", key, name.str()));
      if (key == "peers") {
        config_.peers[NodeId(std::string(name.str()))] = *text;
      } else {
        config_.node.cells[CellId(std::string(name.str()))] = NodeId(*text);
      }
    }
    return {};
  }

  Status read_sites(const toml::node& node) {
    const auto* table = node.as_table();
    if (table == nullptr) return wrong(node, "sites: must be a table of points");
    for (const auto& [name, value] : *table) {
      const auto* point = value.as_array();
      const auto x =
          point != nullptr && point->size() == 2 ? point->at(0).value<double>() : std::nullopt;
      const auto y = x ? point->at(1).value<double>() : std::nullopt;
      if (!y) return wrong(value, fmt::format("sites.{}: must be [x, y] in metres", name.str()));
      config_.sites[CellId(std::string(name.str()))] = {*x, *y};
    }
    return {};
  }

  Status read_mirrors(const toml::node& node) {
    const auto* list = node.as_array();
    if (list == nullptr) return wrong(node, "mirrors: must be a list of names");
    config_.node.mirrors.clear();
    for (const auto& item : *list) {
      const auto text = item.value_exact<std::string>();
      if (!text) return wrong(item, "mirrors: must be a list of names");
      config_.node.mirrors.emplace_back(*text);
    }
    return {};
  }

  GnbConfig& config_;
  std::string name_;
};

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += fmt::format("\\u{:04X}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  // The shortest text that reads back the same; "5" reads as 5. "-0" would read as 0.
  return fmt::format("{}", value == 0 ? 0.0 : value);
}

std::string text_of(const SettingValue& value) {
  if (const auto* b = std::get_if<bool>(&value)) return *b ? "true" : "false";
  if (const auto* i = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *i);
  if (const auto* d = std::get_if<double>(&value)) return number(*d);
  return quoted(std::get<std::string>(value));
}

}  // namespace

Status read_toml(GnbConfig& config, std::string_view text, const std::string& name) {
  try {
    return Reader(config, name).read(toml::parse(text));
  } catch (const toml::parse_error& error) {
    return fail(Errc::kInvalidConfig,
                fmt::format("{}:{}: {}", name, error.source().begin.line, error.description()));
  }
}

Status read_toml_file(GnbConfig& config, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::error_code ignored;
  // A folder opens like a file and reads as an empty one.
  if (!file || std::filesystem::is_directory(path, ignored))
    return fail(Errc::kNotFound, "config: cannot read '" + path + "'");
  std::string text;
  char chunk[4096];
  while (file.read(chunk, sizeof chunk) || file.gcount() > 0) {
    text.append(chunk, static_cast<std::size_t>(file.gcount()));
    if (text.size() > kMaxFileBytes) {
      return fail(Errc::kTooLarge, "config: '" + path + "' is larger than 1 MiB");
    }
  }
  return read_toml(config, text, path);
}

std::string to_toml(const GnbConfig& config) {
  std::string out;
  for (const auto& setting : gnb_settings()) {
    out += fmt::format("# {}\n{} = {}\n", setting.help, setting.key, text_of(setting.get(config)));
  }
  out += "# gNBs that always get this one's token ids\nmirrors = [";
  for (std::size_t i = 0; i < config.node.mirrors.size(); ++i) {
    out += (i == 0 ? "" : ", ") + quoted(config.node.mirrors[i].value);
  }
  out += "]\n\n# Other gNBs: name and address of their peer_listen\n[peers]\n";
  for (const auto& [name, address] : config.peers) {
    out += fmt::format("{} = {}\n", quoted(name.value), quoted(address));
  }
  out += "\n# Which gNB serves a cell\n[cells]\n";
  for (const auto& [cell, name] : config.node.cells) {
    out += fmt::format("{} = {}\n", quoted(cell.value), quoted(name.value));
  }
  if (!config.sites.empty()) {
    out += "\n# Cells by nearest site, instead of squares\n[sites]\n";
    for (const auto& [cell, at] : config.sites) {
      out += fmt::format("{} = [{}, {}]\n", quoted(cell.value), number(at.x_m), number(at.y_m));
    }
  }
  return out;
}

}  // namespace pallas::app
