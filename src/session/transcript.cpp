#include "session/transcript.h"

#include <algorithm>
#include <utility>

namespace pallas::session {

void Transcript::add(Entry entry) {
  const auto breach = [&](std::string what) {
    breaches_.push_back("index " + std::to_string(entry.index) + ": " + std::move(what));
  };
  const auto expected = static_cast<TokenIndex>(entries_.size());
  if (entry.index < expected) {
    breach(entries_[entry.index].id == entry.id ? "came twice" : "came again with another id");
    return;
  }
  if (entry.index > expected) breach("expected " + std::to_string(expected) + ", tokens are lost");
  if (!entries_.empty() && entry.epoch < entries_.back().epoch) breach("its epoch is stale");
  if (!entry.emitter.value.empty()) {
    const auto [it, fresh] = emitters_.emplace(entry.epoch, entry.emitter);
    if (!fresh && it->second != entry.emitter) {
      breach("epoch " + std::to_string(entry.epoch.value) + " has two emitters, " +
             it->second.value + " and " + entry.emitter.value);
    }
  }
  entries_.push_back(std::move(entry));
}

std::vector<TokenId> Transcript::ids() const {
  std::vector<TokenId> ids;
  ids.reserve(entries_.size());
  for (const Entry& entry : entries_) ids.push_back(entry.id);
  return ids;
}

std::optional<TokenIndex> Transcript::first_difference(
    const std::vector<TokenId>& reference) const {
  const std::size_t common = std::min(reference.size(), entries_.size());
  for (std::size_t i = 0; i < common; ++i) {
    if (entries_[i].id != reference[i]) return static_cast<TokenIndex>(i);
  }
  return std::nullopt;
}

}  // namespace pallas::session
