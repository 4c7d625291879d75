#include "base/result.h"

#include <set>
#include <string>

namespace pallas {
namespace {

constexpr int kCodes = static_cast<int>(Errc::kInternal) + 1;

Result<int> parsed(bool good) {
  if (!good) return fail(Errc::kParse, "line 3 has 4 fields, expected 5");
  return 7;
}
Status checked(bool good) {
  if (!good) return fail(Errc::kTimeout, "no answer in 5 s");
  return {};
}

TEST(Result, holds_a_value_or_an_error_with_code_and_message) {
  EXPECT_EQ(*parsed(true), 7);
  const auto bad = parsed(false);
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code, Errc::kParse);
  EXPECT_EQ(bad.error().describe(), "parse_error: line 3 has 4 fields, expected 5");
}

TEST(Result, a_status_says_only_that_something_worked) {
  EXPECT_TRUE(checked(true));
  EXPECT_EQ(checked(false).error(), (Error{Errc::kTimeout, "no answer in 5 s"}));
}

TEST(Errc, there_are_at_most_25) {
  EXPECT_LE(kCodes, 25);
}

TEST(Errc, every_code_has_its_own_name_and_sentence) {
  std::set<std::string> names, sentences;
  for (int i = 0; i < kCodes; ++i) {
    const auto code = static_cast<Errc>(i);
    const std::string name(to_string(code));
    const std::string sentence(to_sentence(code));
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), std::string::npos) << name;
    ASSERT_FALSE(sentence.empty()) << name;
    EXPECT_EQ(sentence.back(), '.') << name;
    names.insert(name);
    sentences.insert(sentence);
  }
  EXPECT_EQ(names.size(), std::size_t{kCodes});
  EXPECT_EQ(sentences.size(), std::size_t{kCodes});
}

}  // namespace
}  // namespace pallas
