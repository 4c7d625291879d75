#include "session/text_assembler.h"

#include <algorithm>

namespace pallas::session {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

}  // namespace

TextAssembler::TextAssembler(const std::vector<std::string>& stop_strings) {
  for (const std::string& stop : stop_strings) {
    // Seen as the text will be, so that a match begins and ends between characters.
    std::string text;
    decode(stop, text);
    end_partial(text);
    if (!text.empty()) stops_.push_back(std::move(text));
  }
}

TextAssembler::Output TextAssembler::push(std::string_view piece) {
  if (stopped_) return {{}, true};
  if (piece.empty()) return {};
  std::string text;
  decode(piece, text);
  return match(text);
}

TextAssembler::Output TextAssembler::finish() {
  if (stopped_) return {{}, true};
  std::string text;
  end_partial(text);
  Output last = match(text);
  if (!last.stop) last.text += held_;
  held_.clear();
  return last;
}

// The table of well-formed byte sequences (Unicode 15, table 3-7), a byte at a time.
void TextAssembler::decode(std::string_view bytes, std::string& text) {
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (partial_size_ > 0) {
      if (byte >= next_low_ && byte <= next_high_) {
        partial_[partial_size_++] = c;
        next_low_ = 0x80;
        next_high_ = 0xBF;
        if (partial_size_ == partial_needs_) {
          text.append(partial_.data(), partial_size_);
          partial_size_ = 0;
        }
        continue;
      }
      end_partial(text);  // and this byte begins anew
    }
    if (byte < 0x80) {
      text.push_back(c);
      continue;
    }
    if (byte < 0xC2 || byte > 0xF4) {
      text.append(kReplacement);
      continue;
    }
    partial_[0] = c;
    partial_size_ = 1;
    partial_needs_ = byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
    next_low_ = byte == 0xE0 ? 0xA0 : byte == 0xF0 ? 0x90 : 0x80;
    next_high_ = byte == 0xED ? 0x9F : byte == 0xF4 ? 0x8F : 0xBF;
  }
}

void TextAssembler::end_partial(std::string& text) {
  if (partial_size_ > 0) text.append(kReplacement);
  partial_size_ = 0;
}

// Everything before held_ was emitted and cannot belong to a stop string.
TextAssembler::Output TextAssembler::match(std::string_view text) {
  const std::size_t before = held_.size();
  held_ += text;
  for (std::size_t end = before + 1; end <= held_.size() && !stops_.empty(); ++end) {
    const std::string_view seen(held_.data(), end);
    std::size_t longest = 0;
    for (const std::string& stop : stops_) {
      if (seen.ends_with(stop)) longest = std::max(longest, stop.size());
    }
    if (longest > 0) {
      Output hit{held_.substr(0, end - longest), true};
      stopped_ = true;
      held_.clear();
      partial_size_ = 0;
      return hit;
    }
  }
  const std::size_t keep = possible_stop();
  Output output{held_.substr(0, held_.size() - keep), false};
  held_.erase(0, held_.size() - keep);
  return output;
}

// Length of the longest suffix of held_ that begins some stop string.
std::size_t TextAssembler::possible_stop() const {
  std::size_t longest = 0;
  for (const std::string& stop : stops_) {
    for (std::size_t n = std::min(stop.size() - 1, held_.size()); n > longest; --n) {
      if (std::string_view(held_).ends_with(std::string_view(stop).substr(0, n))) longest = n;
    }
  }
  return longest;
}

}  // namespace pallas::session
