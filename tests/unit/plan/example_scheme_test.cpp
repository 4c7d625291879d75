// The example of docs/schemes.md compiles, works, and stands in the page word for word.

#include "example_scheme.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "inputs.h"

namespace pallas::plan {
namespace {

std::string content(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(ExampleScheme, decides_as_the_page_says) {
  const HalfAndHalf scheme;
  const Decision d = scheme.decide(at_handover(demo()));
  EXPECT_TRUE(d.trigger);
  EXPECT_EQ(d.plan.recompute_end, 496u);
  EXPECT_EQ(d.plan.send_begin, 496u);
  EXPECT_EQ(d.expected_bytes, 504 * 23'040.0);
  EXPECT_FALSE(scheme.decide(demo()).trigger);
}

TEST(ExampleScheme, stands_in_the_docs) {
  const std::string example = content(PALLAS_SOURCE_DIR "/tests/unit/plan/example_scheme.h");
  ASSERT_FALSE(example.empty());
  EXPECT_NE(content(PALLAS_SOURCE_DIR "/docs/schemes.md").find(example), std::string::npos);
}

}  // namespace
}  // namespace pallas::plan
