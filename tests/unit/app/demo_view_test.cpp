#include "demo_view.h"

#include <gtest/gtest.h>

namespace pallas::app {
namespace {

TEST(Printable, model_output_cannot_steer_the_terminal) {
  EXPECT_EQ(printable("a\x1b[2Jb\r\x07\x7f"), "a[2Jb");
  EXPECT_EQ(printable("a\xc2\x9b"
                      "2Jb"),
            "a2Jb");  // U+009B, the one-character CSI
  EXPECT_EQ(printable("line\n\tnext"), "line\n\tnext");
  EXPECT_EQ(printable("é€😀"), "é€😀");
}

TEST(LiveLine, tells_of_the_preparation_only_while_there_is_one) {
  LiveState state;
  state.cell = CellId("cell_0_1");
  state.gnb = NodeId("gnb-a");
  state.tokens = 900;
  EXPECT_EQ(live_line(state, 200), " cell_0_1 gnb-a | 900 tokens");
  state.to_handover_s = 1.25;
  state.next = NodeId("gnb-b");
  state.window_s = 2;
  state.front = 128;
  state.received = 64;
  const auto line = live_line(state, 200);
  EXPECT_NE(line.find("handover in 1.2 s"), std::string::npos) << line;
  EXPECT_NE(line.find("gnb-b: window 2.0 s, front 128, 64 rows"), std::string::npos) << line;
}

TEST(LiveLine, never_exceeds_the_terminal) {
  LiveState state;
  state.cell = CellId(std::string(100, 'c'));
  EXPECT_EQ(live_line(state, 40).size(), 40u);
}

}  // namespace
}  // namespace pallas::app
