#include "session/text_assembler.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace pallas::session {
namespace {

using Output = TextAssembler::Output;

struct Whole {
  std::string text;
  bool stop = false;
  friend bool operator==(const Whole&, const Whole&) = default;
};

Whole assemble(const std::vector<std::string>& pieces, const std::vector<std::string>& stops) {
  TextAssembler assembler(stops);
  Whole whole;
  const auto take = [&](const Output& output) {
    whole.text += output.text;
    whole.stop = output.stop;
  };
  for (const std::string& piece : pieces) {
    take(assembler.push(piece));
    if (whole.stop) return whole;
  }
  take(assembler.finish());
  return whole;
}

std::vector<std::string> bytes_of(const std::string& text) {
  std::vector<std::string> bytes;
  for (const char c : text) bytes.emplace_back(1, c);
  return bytes;
}

TEST(TextAssembler, emits_plain_text_at_once) {
  TextAssembler assembler;
  EXPECT_EQ(assembler.push(" hello"), (Output{" hello", false}));
  EXPECT_EQ(assembler.push(""), (Output{"", false}));
  EXPECT_EQ(assembler.finish(), (Output{"", false}));
}

TEST(TextAssembler, holds_back_an_incomplete_character) {
  TextAssembler assembler;
  EXPECT_EQ(assembler.push("a\xF0\x9F"), (Output{"a", false}));
  EXPECT_EQ(assembler.held(), 2u);
  EXPECT_EQ(assembler.push("\x98"), (Output{"", false}));
  EXPECT_EQ(assembler.push("\x80!"), (Output{"\xF0\x9F\x98\x80!", false}));
  EXPECT_EQ(assembler.held(), 0u);
}

TEST(TextAssembler, holds_back_what_may_begin_a_stop_string_and_releases_it_otherwise) {
  TextAssembler assembler({"END"});
  EXPECT_EQ(assembler.push("the E"), (Output{"the ", false}));
  EXPECT_EQ(assembler.push("N"), (Output{"", false}));
  EXPECT_EQ(assembler.push("E"), (Output{"EN", false}));  // the last E may begin another
  EXPECT_EQ(assembler.push("ND of it"), (Output{"", true}));
  EXPECT_TRUE(assembler.stopped());
}

TEST(TextAssembler, emits_the_text_before_a_stop_string_and_nothing_after_it) {
  TextAssembler assembler({"\n\n"});
  EXPECT_EQ(assembler.push("one\n"), (Output{"one", false}));
  EXPECT_EQ(assembler.push("\ntwo"), (Output{"", true}));
  EXPECT_EQ(assembler.push("three"), (Output{"", true}));
  EXPECT_EQ(assembler.finish(), (Output{"", true}));
}

TEST(TextAssembler, finish_flushes_what_was_held_back) {
  TextAssembler assembler({"STOP"});
  EXPECT_EQ(assembler.push("a STO"), (Output{"a ", false}));
  EXPECT_EQ(assembler.finish(), (Output{"STO", false}));
}

TEST(TextAssembler, finds_a_stop_string_inside_a_repetition_of_its_beginning) {
  EXPECT_EQ(assemble(bytes_of("aaab"), {"aab"}), (Whole{"a", true}));
  EXPECT_EQ(assemble({"aaab"}, {"aab"}), (Whole{"a", true}));
  EXPECT_EQ(assemble(bytes_of("ababac"), {"abac"}), (Whole{"ab", true}));
}

TEST(TextAssembler, the_stop_string_that_completes_first_counts) {
  for (const auto& pieces : {bytes_of("xabcd"), std::vector<std::string>{"xabcd"}}) {
    EXPECT_EQ(assemble(pieces, {"abcd", "bc"}), (Whole{"xa", true}));
    // Both end there, in whichever order they are given.
    EXPECT_EQ(assemble(pieces, {"bc", "abc"}), (Whole{"x", true}));
    EXPECT_EQ(assemble(pieces, {"abc", "bc"}), (Whole{"x", true}));
  }
}

TEST(TextAssembler, stop_strings_may_hold_characters_of_several_bytes) {
  EXPECT_EQ(assemble(bytes_of("caf\xC3\xA9 \xE2\x82\xAC"), {"\xC3\xA9 "}), (Whole{"caf", true}));
  // An e with grave accent shares its first byte with the stop string's first character.
  EXPECT_EQ(assemble(bytes_of("\xC3\xA8 "), {"\xC3\xA9 "}), (Whole{"\xC3\xA8 ", false}));
}

TEST(TextAssembler, an_empty_stop_string_stops_nothing) {
  EXPECT_EQ(assemble({"text"}, {""}), (Whole{"text", false}));
}

TEST(TextAssembler, bytes_that_are_not_utf8_become_replacement_characters) {
  const std::string r = "\xEF\xBF\xBD";
  EXPECT_EQ(assemble({"a\xFF\x62"}, {}).text, "a" + r + "b");
  EXPECT_EQ(assemble({"\x80"}, {}).text, r);                          // a continuation alone
  EXPECT_EQ(assemble({"\xC3", "x"}, {}).text, r + "x");               // cut by another character
  EXPECT_EQ(assemble({"\xE2\x82"}, {}).text, r);                      // cut by the end
  EXPECT_EQ(assemble({"\xC0\xAF"}, {}).text, r + r);                  // overlong
  EXPECT_EQ(assemble({"\xED\xA0\x80"}, {}).text, r + r + r);          // a surrogate
  EXPECT_EQ(assemble({"\xF4\x90\x80\x80"}, {}).text, r + r + r + r);  // above U+10FFFF
  // Unicode 15, table 3-8.
  EXPECT_EQ(assemble({"\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"}, {}).text, r + r + r + r + "A");
}

// Text out of few characters, so that stop strings, their beginnings, whole and broken characters
// all occur often.
std::string any_text() {
  static const std::vector<std::string> kParts{
      "a",        "b",    "ab",   "STOP", "ST",   "OP",           "\xC3\xA9",
      "\xC3\xA8", "\xC3", "\xA9", " ",    "\xFF", "\xE2\x82\xAC", "\xF0\x9F\x98\x80",
      "\xF0\x9F"};
  std::string text;
  for (const std::string& part :
       *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(kParts))) {
    text += part;
  }
  return text;
}

std::vector<std::string> any_split(const std::string& text) {
  std::vector<std::string> pieces;
  for (std::size_t at = 0; at < text.size();) {
    if (*rc::gen::inRange(0, 4) == 1) pieces.emplace_back();  // a control token
    const auto size = *rc::gen::inRange<std::size_t>(1, 5);
    pieces.push_back(text.substr(at, size));
    at += size;
  }
  return pieces;
}

std::vector<std::string> any_stops() {
  static const std::vector<std::string> kStops{
      "STOP", "ab",  "ba", "abab", "\xC3\xA9", "b ", "aa\xE2\x82\xAC", "\xF0\x9F\x98\x80 ",
      "OPST", "\xC3"};
  return *rc::gen::resize(3,
                          rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(kStops)));
}

TEST(TextAssembler, any_split_gives_the_text_and_the_stop_of_the_whole) {
  EXPECT_TRUE(rc::check([] {
    const std::string text = any_text();
    const auto stops = any_stops();
    RC_ASSERT(assemble(any_split(text), stops) == assemble({text}, stops));
  }));
}

TEST(TextAssembler, what_is_emitted_is_whole_characters_free_of_stop_strings) {
  EXPECT_TRUE(rc::check([] {
    const auto stops = any_stops();
    TextAssembler assembler(stops);
    std::string emitted;
    for (const std::string& piece : any_split(any_text())) {
      const Output output = assembler.push(piece);
      emitted += output.text;
      // Emitted text is UTF-8 as it stands: assembling it again changes nothing.
      RC_ASSERT(assemble({output.text}, {}).text == output.text);
    }
    emitted += assembler.finish().text;
    for (const std::string& stop : stops) {
      if (assemble({stop}, {}).text == stop) RC_ASSERT(emitted.find(stop) == std::string::npos);
    }
  }));
}

TEST(TextAssembler, pushing_the_pieces_again_rebuilds_its_state) {
  EXPECT_TRUE(rc::check([] {
    const auto stops = any_stops();
    const auto pieces = any_split(any_text());
    const auto moved_at = *rc::gen::inRange<std::size_t>(0, pieces.size() + 1);
    TextAssembler stayed(stops), moved(stops);
    for (std::size_t i = 0; i < moved_at; ++i) {
      stayed.push(pieces[i]);
      moved.push(pieces[i]);
    }
    for (std::size_t i = moved_at; i < pieces.size(); ++i) {
      RC_ASSERT(stayed.push(pieces[i]) == moved.push(pieces[i]));
    }
    RC_ASSERT(stayed.finish() == moved.finish());
  }));
}

}  // namespace
}  // namespace pallas::session
