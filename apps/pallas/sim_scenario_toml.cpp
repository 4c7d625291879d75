// Scenario files in. Each section reads the keys that it knows and refuses the others; what the
// values must be like is sim::check's, and its complaints get the line of the field they name.

#include <fmt/format.h>
#include <toml++/toml.h>

#include <cmath>
#include <map>
#include <set>
#include <sstream>

#include "gzip_file.h"
#include "sim_scenario.h"

namespace pallas::app {
namespace {

using Lines = std::map<std::string, std::uint32_t, std::less<>>;  // of each key read

constexpr std::size_t kMaxScenarioBytes = 1 << 20;

struct Place {
  const std::string& name;  // of the file
  const std::filesystem::path& folder;
  Lines& lines;
};

Failure at_line(const Place& place, std::uint32_t line, const std::string& why) {
  return fail(Errc::kInvalidConfig, fmt::format("{}:{}: {}", place.name, line, why));
}

// One table. The first fault counts; later reads do nothing.
class Section {
 public:
  Section(const Place& place, std::string name, const toml::table* table)
      : place_(place), name_(std::move(name)), table_(table) {}

  bool given() const { return table_ != nullptr; }
  bool has(std::string_view key) const { return table_ != nullptr && table_->contains(key); }
  const Status& status() const { return status_; }

  void number(std::string_view key, double& out) {
    const toml::node* node = take(key);
    if (node == nullptr) return;
    const auto value = node->value<double>();
    if (!node->is_number() || !value || !std::isfinite(*value)) {
      wrong(*node, key, "must be a finite number");
    } else {
      out = *value;
    }
  }
  // A number in another unit than the field's.
  void seconds(std::string_view key, Seconds& out, double unit = 1) {
    double value = out.count() / unit;
    number(key, value);
    out = Seconds(value * unit);
  }
  void duration(std::string_view key, Duration& out, double unit) {
    Seconds value = to_seconds(out);
    if (!has(key)) return;
    seconds(key, value, unit);
    if (std::abs(value.count()) > 1e9) {
      wrong(*table_->get(key), key, "is too long");
    } else {
      out = to_duration(value);
    }
  }
  void mbps(std::string_view key, BytesPerSecond& out) {
    double value = out.mbps();
    number(key, value);
    out = BytesPerSecond::from_mbps(value);
  }
  template <class Count>
  void count(std::string_view key, Count& out) {
    const toml::node* node = take(key);
    if (node == nullptr) return;
    const auto value = node->value_exact<std::int64_t>();
    if (!value || *value < 0 || *value > 4'000'000'000) {
      wrong(*node, key, "must be a whole number of at least 0");
    } else {
      out = static_cast<Count>(*value);
    }
  }
  void flag(std::string_view key, bool& out) {
    const toml::node* node = take(key);
    if (node == nullptr) return;
    const auto value = node->value_exact<bool>();
    if (value) {
      out = *value;
    } else {
      wrong(*node, key, "must be true or false");
    }
  }
  void text(std::string_view key, std::string& out) {
    const toml::node* node = take(key);
    if (node == nullptr) return;
    const auto value = node->value_exact<std::string>();
    if (value) {
      out = *value;
    } else {
      wrong(*node, key, "must be a text");
    }
  }
  // One of `names`; its place among them. The default is the first.
  std::size_t choice(std::string_view key, const std::vector<std::string_view>& names) {
    std::string value(names.front());
    text(key, value);
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i] == value) return i;
    }
    std::string known;
    for (const auto n : names) known += (known.empty() ? "" : ", ") + std::string(n);
    if (status_) wrong(*table_->get(key), key, "'" + value + "' is none of " + known);
    return 0;
  }
  // The text of a file that the key names; empty when it is not given.
  std::optional<std::string> file(std::string_view key) {
    std::string path;
    text(key, path);
    if (path.empty() || !status_) return std::nullopt;
    auto content = read_text_file((place_.folder / path).string());
    if (content) return std::move(*content);
    wrong(*table_->get(key), key, content.error().message);
    return std::nullopt;
  }
  const toml::array* list(std::string_view key) {
    const toml::node* node = take(key);
    if (node == nullptr) return nullptr;
    if (node->as_array() == nullptr) wrong(*node, key, "must be a list");
    return node->as_array();
  }
  Section table(std::string_view key) {
    const toml::node* node = take(key);
    if (node != nullptr && node->as_table() == nullptr) wrong(*node, key, "must be a table");
    return {place_, std::string(key), node == nullptr ? nullptr : node->as_table()};
  }

  // The key only means something under another setting.
  void only_with(std::string_view key, bool meaningful, std::string_view setting) {
    if (meaningful || !has(key)) return;
    wrong(*table_->get(key), key, fmt::format("has no effect without {}", setting));
  }
  void fault(std::string_view key, const std::string& why) {
    if (has(key)) wrong(*table_->get(key), key, why);
  }
  // All is read: whatever is left is unknown.
  Status end() {
    if (table_ == nullptr || !status_) return status_;
    for (const auto& [key, node] : *table_) {
      if (read_.contains(std::string(key.str()))) continue;
      return at_line(place_, node.source().begin.line,
                     fmt::format("unknown key '{}'{}", key.str(),
                                 name_.empty() ? "" : fmt::format(" in [{}]", name_)));
    }
    return {};
  }

 private:
  const toml::node* take(std::string_view key) {
    if (table_ == nullptr || !status_) return nullptr;
    const toml::node* node = table_->get(key);
    read_.insert(std::string(key));
    if (node == nullptr) return nullptr;
    const std::uint32_t line = node->source().begin.line;
    place_.lines.emplace(std::string(key), line);
    place_.lines.emplace(name_.empty() ? std::string(key) : fmt::format("{}.{}", name_, key), line);
    return node;
  }
  void wrong(const toml::node& node, std::string_view key, const std::string& why) {
    if (!status_) return;
    status_ = at_line(place_, node.source().begin.line,
                      fmt::format("{}{}: {}", name_.empty() ? "" : name_ + ".", key, why));
  }

  Place place_;
  std::string name_;
  const toml::table* table_;
  std::set<std::string> read_;
  Status status_;
};

class Reader {
 public:
  explicit Reader(const Place& place) : place_(place) {}

  Result<sim::Scenario> read(const toml::table& root) {
    Section top(place_, "", &root);
    top.text("name", s_.name);
    top.seconds("duration_s", s_.duration);
    top.flag("reports", s_.keep_reports);
    schemes(top);
    seeds(top);
    Section parts[] = {top.table("cells"), top.table("engine"),  top.table("network"),
                       top.table("node"),  top.table("session"), top.table("mobility")};
    void (Reader::*const readers[])(Section&) = {&Reader::cells,   &Reader::engine,
                                                 &Reader::network, &Reader::node,
                                                 &Reader::session, &Reader::mobility};
    if (auto ok = top.end(); !ok) return Failure(ok.error());
    for (std::size_t i = 0; i < std::size(parts); ++i) {
      (this->*readers[i])(parts[i]);
      if (!status_) return Failure(status_.error());
      if (auto ok = parts[i].end(); !ok) return Failure(ok.error());
    }
    if (auto ok = sim::check(s_); !ok) return located(ok.error());
    return std::move(s_);
  }

 private:
  // The line of the field that a message begins with, by its full or its last name.
  Failure located(const Error& error) const {
    std::string_view field(error.message);
    field = field.substr(0, field.find_first_of(":, "));
    for (;;) {
      if (const auto found = place_.lines.find(field); found != place_.lines.end()) {
        return at_line(place_, found->second, error.message);
      }
      const std::size_t dot = field.find('.');
      if (dot == std::string_view::npos) break;
      field.remove_prefix(dot + 1);
    }
    return fail(error.code, place_.name + ": " + error.message);
  }

  void schemes(Section& top) {
    const toml::array* list = top.list("schemes");
    if (list == nullptr) return;
    s_.schemes.clear();
    for (const auto& item : *list) {
      const auto name = item.value_exact<std::string>();
      if (!name) return top.fault("schemes", "must be a list of names");
      s_.schemes.push_back(*name);
    }
  }
  void seeds(Section& top) {
    const toml::array* list = top.list("seeds");
    if (list == nullptr) return;
    s_.seeds.clear();
    for (const auto& item : *list) {
      const auto seed = item.value_exact<std::int64_t>();
      if (!seed || *seed < 0) return top.fault("seeds", "must be a list of whole numbers");
      s_.seeds.push_back(static_cast<std::uint64_t>(*seed));
    }
  }

  // Each table of a list of tables.
  template <class Read>
  void each(Section& section, std::string_view key, Read read) {
    const toml::array* list = section.list(key);
    if (list == nullptr) return;
    for (const auto& item : *list) {
      Section one(place_, fmt::format("cells.{}", key), item.as_table());
      if (!one.given()) return section.fault(key, "must be a list of tables");
      read(one);
      status_ = one.end();
      if (!status_) return;
    }
  }
  void cells(Section& in) {
    const bool grid = in.has("size_m") || in.has("columns") || in.has("rows");
    if (grid) {
      s_.grid.emplace();
      in.number("size_m", s_.grid->size_m);
      in.count("columns", s_.grid->columns);
      in.count("rows", s_.grid->rows);
      in.number("offset_x_m", s_.grid->offset_x_m);
      in.number("offset_y_m", s_.grid->offset_y_m);
    }
    each(in, "site", [this](Section& one) {
      mobility::Site site;
      one.text("cell", site.cell.value);
      one.number("x_m", site.position.x_m);
      one.number("y_m", site.position.y_m);
      s_.sites.push_back(std::move(site));
    });
    each(in, "rectangle", [this](Section& one) {
      mobility::Rectangle r;
      one.text("cell", r.cell.value);
      one.number("x_m", r.x_m);
      one.number("y_m", r.y_m);
      one.number("width_m", r.width_m);
      one.number("height_m", r.height_m);
      s_.rectangles.push_back(std::move(r));
    });
    keep(in);
  }

  void engine(Section& in) {
    sim::EngineModel& m = s_.engine;
    std::string model = "qwen3-14b";
    const bool measured = in.has("profile");
    if (measured && in.has("model")) in.fault("profile", "contradicts model");
    if (measured) {
      // Everything that a profile does not say must be said here.
      m = sim::EngineModel{};
      m.name = "measured";
      if (const auto json = in.file("profile")) {
        const auto engine = parse_measured_engine(*json);
        if (engine) {
          m.profile = engine->profile;
          m.capabilities = engine->capabilities;
          m.kv_bytes_per_token = engine->kv_bytes_per_token.value_or(m.kv_bytes_per_token);
          m.block_tokens = engine->block_tokens.value_or(m.block_tokens);
          m.context_tokens = engine->context_tokens.value_or(m.context_tokens);
          m.slots = engine->slots.value_or(m.slots);
        } else {
          in.fault("profile", engine.error().message);
        }
      }
      in.only_with("prefill_rate", false, "a model in place of the profile");
      in.only_with("decode_rate", false, "a model in place of the profile");
      in.only_with("batch_cost", false, "a model in place of the profile");
    } else {
      in.text("model", model);
      auto paper = sim::paper_model(model);
      if (!paper) {
        in.fault("model", paper.error().message);
        return keep(in);
      }
      m = std::move(*paper);
      double prefill = m.profile.prefill_rate(0, 0).value;
      double decode = 1 / m.profile.decode_step(1, 0).count();
      double batch_cost = sim::kPaperBatchCost;
      in.number("prefill_rate", prefill);
      in.number("decode_rate", decode);
      in.number("batch_cost", batch_cost);
      m.profile = sim::constant_profile(TokensPerSecond(prefill), TokensPerSecond(decode),
                                        batch_cost, m.profile.chunk_tokens);
    }
    in.count("chunk_tokens", m.profile.chunk_tokens);
    in.count("chunk_beside_decode", m.chunk_beside_decode);
    in.count("kv_bytes_per_token", m.kv_bytes_per_token);
    in.count("block_tokens", m.block_tokens);
    in.count("context_tokens", m.context_tokens);
    in.count("slots", m.slots);
    in.seconds("activation_ms", m.activation, 1e-3);
    in.seconds("load_s", m.profile.load);
    in.flag("prefill_fcfs", m.prefill_fcfs);
    in.number("fused_decode_share", m.fused_decode_share);
    in.number("told_prefill_share", m.told_prefill_share);
    keep(in);
  }

  // "<prefix>rate" says which kind of rate; the other keys belong to one of the kinds.
  void rate(Section& in, const std::string& prefix, sim::RateSettings& out) {
    const auto key = [&](const char* name) { return prefix + name; };
    const std::size_t kind = in.choice(key("rate"), {"fixed", "normal", "trace"});
    in.only_with(key("mbps"), kind != 2, "rate = \"fixed\" or \"normal\"");
    for (const char* name : {"sd_mbps", "floor_mbps", "period_s"}) {
      in.only_with(key(name), kind == 1, "rate = \"normal\"");
    }
    for (const char* name : {"trace", "shift"}) {
      in.only_with(key(name), kind == 2, "rate = \"trace\"");
    }
    if (kind == 0) {
      sim::FixedRate fixed;
      in.mbps(key("mbps"), fixed.rate);
      out = fixed;
    } else if (kind == 1) {
      sim::DrawnRate drawn;
      in.mbps(key("mbps"), drawn.mean);
      in.mbps(key("sd_mbps"), drawn.sd);
      in.mbps(key("floor_mbps"), drawn.floor);
      in.duration(key("period_s"), drawn.period, 1);
      out = drawn;
    } else {
      if (!in.has(key("trace"))) return in.fault(key("rate"), "needs trace, a file");
      const auto csv = in.file(key("trace"));
      if (!csv) return;
      auto trace = kv::RateTrace::parse(*csv);
      if (!trace) return in.fault(key("trace"), trace.error().message);
      sim::TracedRate traced{std::move(*trace), true};
      in.flag(key("shift"), traced.shift);
      out = std::move(traced);
    }
  }
  void network(Section& in) {
    sim::NetworkSettings& n = s_.network;
    rate(in, "", n.rate);
    n.sharing =
        static_cast<sim::Sharing>(in.choice("sharing", {"none", "egress", "ingress", "total"}));
    const bool shared = n.sharing != sim::Sharing::kNone;
    for (const char* name : {"shared_rate", "shared_mbps", "shared_sd_mbps", "shared_floor_mbps",
                             "shared_period_s", "shared_trace", "shared_shift"}) {
      in.only_with(name, shared, "sharing");
    }
    if (shared) rate(in, "shared_", n.shared);
    in.duration("control_latency_ms", n.control_latency, 1e-3);
    in.duration("data_latency_ms", n.data_latency, 1e-3);
    if (in.has("relay_hop_ms")) in.duration("relay_hop_ms", n.relay_hop_latency.emplace(), 1e-3);
    n.sight = static_cast<sim::GoodputSight>(in.choice("estimate", {"meter", "current", "first"}));
    if (in.has("first_estimate_mbps")) in.mbps("first_estimate_mbps", n.first_estimate.emplace());
    keep(in);
  }

  void node(Section& in) {
    node::NodeConfig& n = s_.node;
    in.number("alpha", n.alpha);
    in.number("ewma", n.ewma);
    in.number("unmeasured_rate", n.unmeasured_rate);
    in.duration("control_period_ms", n.control_period, 1e-3);
    in.duration("window_margin_ms", n.window_margin, 1e-3);
    in.number("window_margin_share", n.window_margin_share);
    in.count("preparation_spacing", n.preparation_spacing);
    in.duration("t_max_s", n.t_max, 1);
    in.duration("lease_s", n.lease, 1);
    in.duration("flap_s", n.flap, 1);
    in.duration("retain_s", n.retain, 1);
    in.duration("frozen_s", n.frozen, 1);
    in.duration("resume_s", n.resume, 1);
    n.shadow = static_cast<node::Shadow>(in.choice("shadow", {"off", "idle", "always"}));
    const auto& rules = plan::kLinkSharingNames;
    n.link_sharing =
        static_cast<plan::LinkSharing>(in.choice("link_sharing", {rules.begin(), rules.end()}));
    in.flag("mirror_on_prediction", n.mirror_on_prediction);
    in.flag("use_uncertainty", n.use_uncertainty);
    keep(in);
  }

  void session(Section& in) {
    in.count("prompt_tokens", s_.session.prompt_tokens);
    in.count("max_tokens", s_.session.max_tokens);
    in.number("max_token_rate", s_.session.max_token_rate);
    const std::size_t kind = in.choice("consistency", {"fast", "prefer-exact", "exact"});
    s_.session.consistency = kind == 0   ? wire::Consistency::kFast
                             : kind == 1 ? wire::Consistency::kPreferExact
                                         : wire::Consistency::kExact;
    keep(in);
  }

  void mobility(Section& in) {
    if (in.has("ues")) {
      sim::Walks walks;
      in.count("ues", walks.ues);
      in.number("low_mps", walks.low_mps);
      in.number("high_mps", walks.high_mps);
      in.seconds("turn_s", walks.turn);
      s_.walks = walks;
    }
    for (const char* name : {"low_mps", "high_mps", "turn_s"}) {
      in.only_with(name, s_.walks.has_value(), "ues");
    }
    if (const auto csv = in.file("trajectories")) {
      std::istringstream lines(*csv);
      auto read = mobility::parse_trajectories(lines);
      if (!read) return in.fault("trajectories", read.error().message), keep(in);
      s_.trajectories = std::move(*read);
    }
    in.flag("rotate_and_shift", s_.rotate_and_shift);
    s_.predictor = std::array{
        sim::PredictorKind::kCvh, sim::PredictorKind::kOracle, sim::PredictorKind::kGiven,
        sim::PredictorKind::kNone}[in.choice("predictor", {"cvh", "oracle", "given", "none"})];
    const bool known =
        s_.predictor == sim::PredictorKind::kOracle || s_.predictor == sim::PredictorKind::kGiven;
    in.only_with("horizon_s", known, "predictor = \"oracle\" or \"given\"");
    for (const char* name : {"bias_s", "sd_s", "wrong_target", "tell_sigma", "confidence"}) {
      in.only_with(name, s_.predictor == sim::PredictorKind::kGiven, "predictor = \"given\"");
    }
    in.seconds("horizon_s", s_.horizon);
    in.seconds("report_interval_s", s_.report_interval);
    in.seconds("bias_s", s_.error.bias);
    in.seconds("sd_s", s_.error.sd);
    in.number("wrong_target", s_.error.wrong_target);
    in.flag("tell_sigma", s_.error.tell_sigma);
    if (in.has("confidence")) in.number("confidence", s_.error.confidence.emplace(1));
    if (in.has("cvh_sigma_ms")) in.duration("cvh_sigma_ms", s_.cvh_sigma.emplace(), 1e-3);
    if (in.has("cvh_confidence")) in.number("cvh_confidence", s_.cvh_confidence.emplace(1));
    const bool a3 = in.choice("trigger", {"boundary", "a3"}) == 1;
    for (const char* name :
         {"hysteresis_db", "offset_db", "time_to_trigger_ms", "path_loss_exponent"}) {
      in.only_with(name, a3, "trigger = \"a3\"");
    }
    if (a3) {
      mobility::A3Settings& settings = s_.a3.emplace();
      in.number("hysteresis_db", settings.hysteresis_db);
      in.number("offset_db", settings.offset_db);
      in.duration("time_to_trigger_ms", settings.time_to_trigger, 1e-3);
      in.number("path_loss_exponent", settings.path_loss_exponent);
    }
    keep(in);
  }

  void keep(const Section& section) {
    if (status_ && !section.status()) status_ = section.status();
  }

  const Place& place_;
  sim::Scenario s_;
  Status status_;
};

}  // namespace

Result<sim::Scenario> read_scenario(std::string_view text, const std::string& name,
                                    const std::filesystem::path& folder) {
  try {
    const toml::table root = toml::parse(text);
    Lines lines;
    const Place place{name, folder, lines};
    return Reader(place).read(root);
  } catch (const toml::parse_error& error) {
    return fail(Errc::kParse,
                fmt::format("{}:{}: {}", name, error.source().begin.line, error.description()));
  }
}

Result<sim::Scenario> read_scenario_file(const std::string& path) {
  auto text = read_text_file(path, kMaxScenarioBytes);
  if (!text) return Failure(text.error());
  return read_scenario(*text, path, std::filesystem::path(path).parent_path());
}

}  // namespace pallas::app
