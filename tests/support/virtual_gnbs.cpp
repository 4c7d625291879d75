#include "virtual_gnbs.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "wire/version.h"

namespace pallas::test {
namespace {

constexpr std::uint64_t kSeed = 42;

sim::WorldSettings settings_of(const VirtualGnbs::Options& options) {
  sim::WorldSettings settings;
  for (const std::string& name : options.names) settings.gnbs.push_back({name, {}, {}});
  settings.scheme = options.scheme;
  settings.node = {};  // the product's own clocks and limits
  settings.network.control_latency = options.link.latency;
  settings.network.data_latency = options.link.latency;
  settings.network.rate = sim::FixedRate{options.link.rate};
  settings.network.sight = sim::GoodputSight::kCurrent;
  settings.configure = options.configure;
  settings.check_codec = true;
  settings.make_engine = [config = options.engine](Clock& clock) {
    return std::make_unique<engine::FakeEngine>(clock, config);
  };
  settings.make_text = [] { return std::make_unique<engine::FakeTextCodec>(); };
  settings.make_ue = [] { return std::make_unique<VirtualUe>(); };
  return settings;
}

}  // namespace

void VirtualUe::on_token(const NodeId& emitter, int by, const node::TokenEvent& token,
                         TimePoint now) {
  const std::size_t before = transcript.entries().size();
  transcript.add({token.index, token.id, token.epoch, token.by, emitter, now});
  if (transcript.entries().size() == before) return;
  text += token.text;
  sim::Ue::on_token(emitter, by, token, now);
}

void VirtualUe::on_finish(const node::FinishEvent& event) {
  text += event.text;
  sim::Ue::on_finish(event);
}

std::vector<TokenId> VirtualUe::prompt() const {
  if (!prompt_ids.empty()) return prompt_ids;
  std::vector<TokenId> ids;
  for (TokenPosition p = 0; p < prompt_tokens; ++p) {
    ids.push_back(static_cast<TokenId>(20 + (p * 7 + place + 1) % 900));
  }
  return ids;
}

node::UeContext VirtualUe::context(const std::vector<std::string>&) const {
  node::UeContext all{params, prompt(), transcript.ids(), {}};
  for (const auto& entry : transcript.entries()) {
    if (all.sampled_by.empty() || all.sampled_by.back().first != entry.by) {
      all.sampled_by.emplace_back(entry.by, 0);
    }
    ++all.sampled_by.back().second;
  }
  return all;
}

Duration VirtualUe::gap_at(Epoch attachment) const {
  const auto& all = transcript.entries();
  const auto first =
      std::find_if(all.begin(), all.end(), [&](const auto& e) { return e.epoch >= attachment; });
  Duration longest{0};
  if (first == all.begin() || first == all.end()) return longest;
  const auto last = std::min<std::ptrdiff_t>(all.end() - first, 8);
  for (auto it = first - 1; it != first + last - 1; ++it) {
    longest = std::max(longest, Duration((it + 1)->at - it->at));
  }
  return longest;
}

VirtualGnbs::VirtualGnbs(Options options)
    : options_(std::move(options)), world_(settings_of(options_)), clock(world_.clock) {
  world_.on_sent = [this](int from, int to, const wire::Message& message) {
    log_[{from, to}].emplace_back(wire::name_of(message));
    minors_[{from, to}].push_back(wire::minor_of(message));
    if (const auto* failure = std::get_if<wire::HandoverPreparationFailure>(&message)) {
      last_reason_ = failure->message;
    }
  };
}

engine::FakeEngine& VirtualGnbs::engine(const std::string& name) {
  return dynamic_cast<engine::FakeEngine&>(world_.engine(name));
}

VirtualUe& VirtualGnbs::open(const std::string& gnb, TokenPosition prompt_tokens,
                             const std::function<void(wire::SessionParams&)>& adjust) {
  sim::UeSettings settings;
  settings.prompt_tokens = prompt_tokens;
  settings.max_tokens = 400;
  settings.consistency = wire::Consistency::kExact;
  settings.adjust = [&adjust](wire::SessionParams& params) {
    params.seed = kSeed;
    if (adjust) adjust(params);
  };
  return dynamic_cast<VirtualUe&>(world_.open(gnb, settings));
}

void VirtualGnbs::predict(VirtualUe& ue, const std::string& serving, const std::string& target,
                          Duration in) {
  sim::World::Forecast forecast;
  forecast.target = target;
  forecast.in = in;
  world_.predict(ue, forecast, serving);
}

void VirtualGnbs::withdraw(VirtualUe& ue, const std::string& serving) {
  world_.withdraw(ue, serving);
}

void VirtualGnbs::hand_over(VirtualUe& ue, const std::string& source, const std::string& target,
                            Duration prediction) {
  if (prediction.count() > 0) {
    predict(ue, source, target, prediction);
    clock.run_for(prediction);
  }
  ran(ue, mobility::HandoverPhase::kExecution, source, target);
  if (auto attached = attach(ue, target); !attached) {
    throw std::logic_error(attached.error().describe());
  }
  ran(ue, mobility::HandoverPhase::kCompleted, source, target);
}

std::vector<TokenId> VirtualGnbs::reference(const VirtualUe& ue, std::size_t tokens) {
  return reference_after(ue, 0, tokens);
}

std::vector<TokenId> VirtualGnbs::reference_after(const VirtualUe& ue, std::size_t known,
                                                  std::size_t tokens) {
  Options alone;
  alone.names = {"first", "reference"};
  alone.engine = options_.engine;
  VirtualGnbs one(std::move(alone));
  const std::string begins = known > 0 ? "first" : "reference";
  VirtualUe& real = one.open(begins, ue.prompt_tokens, [&](wire::SessionParams& params) {
    dynamic_cast<VirtualUe&>(*one.world_.ues().back()).prompt_ids = ue.prompt();
    params = ue.params;
    params.consistency = wire::Consistency::kExact;
    params.max_token_rate = 0;
    params.max_tokens =
        static_cast<std::uint32_t>(std::min<std::size_t>(tokens, ue.params.max_tokens));
  });
  if (known > 0) {
    // It brings the ids, and nobody has KV of them.
    one.kill("first");
    const auto& entries = ue.transcript.entries();
    for (std::size_t i = 0; i < std::min(known, entries.size()); ++i) {
      const node::TokenEvent token{Epoch(1), entries[i].index, entries[i].id, "", NodeId("first")};
      real.on_token(NodeId("first"), 0, token, one.clock.now());
    }
    if (!one.attach(real, "reference")) return {};
  }
  one.clock.run_until([&] { return real.finished.has_value(); }, std::chrono::minutes(10));
  return real.transcript.ids();
}

std::vector<std::string> VirtualGnbs::messages(const std::string& from,
                                               const std::string& to) const {
  const auto found = log_.find({world_.index(from), world_.index(to)});
  return found == log_.end() ? std::vector<std::string>() : found->second;
}

std::size_t VirtualGnbs::newer(const std::string& from, const std::string& to,
                               std::uint32_t minor) const {
  const auto found = minors_.find({world_.index(from), world_.index(to)});
  if (found == minors_.end()) return 0;
  return static_cast<std::size_t>(std::count_if(found->second.begin(), found->second.end(),
                                                [&](std::uint32_t m) { return m > minor; }));
}

std::size_t VirtualGnbs::count(const std::string& from, const std::string& to,
                               const std::string& name) const {
  std::size_t n = 0;
  for (const std::string& m : messages(from, to)) n += m == name ? 1 : 0;
  return n;
}

}  // namespace pallas::test
