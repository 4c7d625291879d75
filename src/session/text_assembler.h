#pragma once
// Turns the pieces of a token stream into text that a client may see: whole UTF-8 characters only,
// nothing of a stop string. A pure function of the pieces so far, however they are split, so a node
// that takes over rebuilds its state by pushing the pieces of the session's ids again.
//
// A stop string hits where its last character completes; the hit that completes first counts, and
// of several completing at once the one that starts first. Bytes that are not UTF-8 become U+FFFD,
// one for each maximal invalid part (Unicode 15, section 3.9).

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace pallas::session {

class TextAssembler {
 public:
  struct Output {
    std::string text;   // to emit now: complete UTF-8, may be empty
    bool stop = false;  // a stop string was hit; text ends before it, and nothing comes after
    friend bool operator==(const Output&, const Output&) = default;
  };

  // Empty stop strings are ignored.
  explicit TextAssembler(const std::vector<std::string>& stop_strings = {});

  // The bytes of the next token.
  Output push(std::string_view piece);
  // The end of the stream: what was held back comes out.
  Output finish();
  bool stopped() const { return stopped_; }
  // Bytes that wait for what follows.
  std::size_t held() const { return partial_size_ + held_.size(); }

 private:
  void decode(std::string_view bytes, std::string& text);
  void end_partial(std::string& text);
  Output match(std::string_view text);
  std::size_t possible_stop() const;

  std::vector<std::string> stops_;
  // An incomplete character: its bytes so far, how many it needs, and the range of the next byte.
  std::array<char, 4> partial_{};
  std::size_t partial_size_ = 0;
  std::size_t partial_needs_ = 0;
  unsigned char next_low_ = 0x80;
  unsigned char next_high_ = 0xBF;
  std::string held_;  // may be the beginning of a stop string
  bool stopped_ = false;
};

}  // namespace pallas::session
