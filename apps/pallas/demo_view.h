#pragma once
// What the demo shows while it runs.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"

namespace pallas::app {

// The live line.
struct LiveState {
  CellId cell;
  NodeId gnb;
  std::optional<double> to_handover_s;
  NodeId next;                 // being prepared; empty: none
  double window_s = 0;         // chosen for it
  TokenPosition front = 0;     // KV at the next gNB reaches [0, front)
  TokenPosition received = 0;  // rows that arrived there
  TokenPosition tokens = 0;    // of the session, prompt included
};

class DemoView {
 public:
  virtual ~DemoView() = default;
  virtual void text(const NodeId& by, const std::string& text) = 0;
  virtual void live(const LiveState& state) = 0;
  virtual void end() = 0;  // the text is complete; the screen is given back
};

// Shows nothing.
std::unique_ptr<DemoView> make_silent_view();
// The text as it is, nothing else.
std::unique_ptr<DemoView> make_plain_view();
// A colour for each of `gnbs`, and the live line in the terminal's last row.
std::unique_ptr<DemoView> make_terminal_view(const std::vector<NodeId>& gnbs);

// Is standard output a terminal that understands colours and cursor moves?
bool stdout_is_terminal();

// Without control characters (but newline and tab): model output must not steer a terminal.
std::string printable(const std::string& text);
// At most `columns` characters.
std::string live_line(const LiveState& state, std::size_t columns);

}  // namespace pallas::app
