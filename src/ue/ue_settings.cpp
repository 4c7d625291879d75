#include "ue/ue_settings.h"

#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "tls/trust.h"

namespace pallas::ue {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

// Walks one file's keys; the first complaint wins.
class TomlReader {
 public:
  explicit TomlReader(std::string_view file_name) : file_(file_name) {}

  void text(const toml::key& key, const toml::node& node, std::string& out) {
    if (const auto value = node.value_exact<std::string>()) {
      out = *value;
    } else {
      complain(node, std::string(key.str()) + " is not a string");
    }
  }

  void number(const toml::key& key, const toml::node& node, double& out) {
    if (const auto value = node.value<double>(); value && node.is_number()) {
      out = *value;
    } else {
      complain(node, std::string(key.str()) + " is not a number");
    }
  }

  // In the order of the file: the first cell is where the UE is.
  void table(const toml::key& key, const toml::node& node, Pairs& out) {
    const toml::table* table = node.as_table();
    if (table == nullptr) return complain(node, std::string(key.str()) + " is not a table");
    std::vector<std::pair<toml::source_position, std::pair<std::string, std::string>>> found;
    for (const auto& [name, value] : *table) {
      const auto word = value.value_exact<std::string>();
      if (!word) {
        return complain(
            value, std::string(key.str()) + "." + std::string(name.str()) + " is not a string");
      }
      found.emplace_back(name.source().begin, std::pair(std::string(name.str()), *word));
    }
    std::sort(found.begin(), found.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    out.clear();
    for (auto& [position, pair] : found) out.push_back(std::move(pair));
  }

  void complain(const toml::node& node, const std::string& what) {
    if (!complaint_) {
      complaint_ = file_ + ", line " + std::to_string(node.source().begin.line) + ": " + what;
    }
  }
  const std::optional<std::string>& complaint() const { return complaint_; }

 private:
  std::string file_;
  std::optional<std::string> complaint_;
};

Status check_positive(const char* name, double value) {
  if (std::isfinite(value) && value > 0 && value <= 3600) return {};
  return fail(Errc::kInvalidConfig, std::string(name) + " is not between 0 and 3600 seconds");
}

}  // namespace

Result<std::pair<std::string, std::string>> parse_assignment(std::string_view flag,
                                                             std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0 || equals + 1 == text.size()) {
    return fail(Errc::kInvalidConfig,
                std::string(flag) + " '" + std::string(text) + "' is not of the form name=value");
  }
  return std::pair(std::string(text.substr(0, equals)), std::string(text.substr(equals + 1)));
}

Result<UeSettings> parse_ue_toml(std::string_view text, std::string_view file_name) {
  toml::table root;
  try {
    root = toml::parse(text, file_name);
  } catch (const toml::parse_error& error) {
    return fail(Errc::kInvalidConfig, std::string(file_name) + ", line " +
                                          std::to_string(error.source().begin.line) + ": " +
                                          std::string(error.description()));
  }
  UeSettings settings;
  TomlReader in(file_name);
  for (const auto& [key, node] : root) {
    const std::string_view name = key.str();
    if (name == "listen") {
      in.text(key, node, settings.listen);
    } else if (name == "ue") {
      in.text(key, node, settings.ue);
    } else if (name == "cell_now") {
      in.text(key, node, settings.cell_now);
    } else if (name == "gnb_ca") {
      in.text(key, node, settings.gnb_ca);
    } else if (name == "api_key_file") {
      in.text(key, node, settings.api_key_file);
    } else if (name == "connect_timeout_s") {
      in.number(key, node, settings.connect_timeout_s);
    } else if (name == "answer_timeout_s") {
      in.number(key, node, settings.answer_timeout_s);
    } else if (name == "silence_timeout_s") {
      in.number(key, node, settings.silence_timeout_s);
    } else if (name == "give_up_s") {
      in.number(key, node, settings.give_up_s);
    } else if (name == "gnbs") {
      in.table(key, node, settings.gnbs);
    } else if (name == "cells") {
      in.table(key, node, settings.cells);
    } else {
      in.complain(node, std::string(name) + " is no setting of a UE");
    }
  }
  if (in.complaint()) return fail(Errc::kInvalidConfig, *in.complaint());
  return settings;
}

Result<std::string> read_key_file(const std::string& setting, const std::string& path) {
  const tls::File file{setting, path};
  const auto text = tls::read_file(file, true);
  if (!text) return Failure(text.error());
  std::string key = text->substr(0, text->find('\n'));
  if (!key.empty() && key.back() == '\r') key.pop_back();
  const bool printable =
      std::all_of(key.begin(), key.end(), [](unsigned char c) { return c > ' ' && c < 0x7f; });
  if (key.empty() || !printable) return tls::wrong_file(file, "holds no key in its first line");
  return key;
}

Result<FollowerConfig> to_follower_config(const UeSettings& settings) {
  FollowerConfig config;
  const bool printable = std::all_of(settings.ue.begin(), settings.ue.end(),
                                     [](unsigned char c) { return c > ' ' && c != 0x7f; });
  if (!printable || settings.ue.size() > 128) {
    return fail(Errc::kInvalidConfig, "ue: a name has at most 128 characters and no spaces");
  }
  config.ue = UeId(settings.ue);
  if (settings.gnbs.empty()) {
    return fail(Errc::kInvalidConfig, "gnb: at least one is needed, as name=host:port");
  }
  for (const auto& [name, where] : settings.gnbs) {
    const Result<Address> address = parse_address(where);
    if (!address) {
      return fail(Errc::kInvalidConfig, "gnb '" + name + "': " + address.error().message);
    }
    if (address->port == 0) return fail(Errc::kInvalidConfig, "gnb '" + name + "': port 0");
    if (!config.gnbs.try_emplace(NodeId(name), *address).second) {
      return fail(Errc::kInvalidConfig, "gnb '" + name + "' is given twice");
    }
  }
  const bool any_tls = std::any_of(config.gnbs.begin(), config.gnbs.end(),
                                   [](const auto& gnb) { return gnb.second.tls; });
  if (any_tls && settings.gnb_ca.empty()) {
    return fail(Errc::kInvalidConfig, "gnb_ca: a gNB with https needs the file of its authority");
  }
  if (!settings.gnb_ca.empty()) {
    const auto good = tls::Trust::load({"gnb_ca", settings.gnb_ca});
    if (!good) return tl::unexpected(good.error());
    config.access.authority = settings.gnb_ca;
  }
  if (!settings.api_key_file.empty()) {
    auto key = read_key_file("api_key_file", settings.api_key_file);
    if (!key) return tl::unexpected(key.error());
    config.access.key = std::move(*key);
  }
  for (const auto& [cell, gnb] : settings.cells) {
    if (!config.gnbs.contains(NodeId(gnb))) {
      return fail(Errc::kInvalidConfig,
                  "cell '" + cell + "': there is no gNB '" + gnb + "'; give it with --gnb");
    }
    if (!config.cells.try_emplace(CellId(cell), NodeId(gnb)).second) {
      return fail(Errc::kInvalidConfig, "cell '" + cell + "' is given twice");
    }
  }
  if (settings.cells.empty()) {
    for (const auto& [name, where] : settings.gnbs) config.cells[CellId(name)] = NodeId(name);
  }
  const std::string first =
      settings.cells.empty() ? settings.gnbs.front().first : settings.cells.front().first;
  config.cell = CellId(settings.cell_now.empty() ? first : settings.cell_now);
  if (!config.cells.contains(config.cell)) {
    return fail(Errc::kInvalidConfig,
                "cell-now: '" + config.cell.value + "' is not among the cells");
  }
  for (const auto& [name, value] : {std::pair{"connect_timeout_s", settings.connect_timeout_s},
                                    std::pair{"answer_timeout_s", settings.answer_timeout_s},
                                    std::pair{"silence_timeout_s", settings.silence_timeout_s},
                                    std::pair{"give_up_s", settings.give_up_s}}) {
    if (Status status = check_positive(name, value); !status) {
      return tl::unexpected(status.error());
    }
  }
  config.http.connect = to_duration(Seconds(settings.connect_timeout_s));
  config.http.answer = to_duration(Seconds(settings.answer_timeout_s));
  config.http.silence = to_duration(Seconds(settings.silence_timeout_s));
  config.client.give_up = to_duration(Seconds(settings.give_up_s));
  return config;
}

}  // namespace pallas::ue
