#include "demo_view.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace pallas::app {
namespace {

class SilentView : public DemoView {
  void text(const NodeId&, const std::string&) override {}
  void live(const LiveState&) override {}
  void end() override {}
};

class PlainView : public DemoView {
  void text(const NodeId&, const std::string& text) override {
    std::fputs(printable(text).c_str(), stdout);
    std::fflush(stdout);
  }
  void live(const LiveState&) override {}
  void end() override { std::fputs("\n\n", stdout); }
};

// The last row is kept out of the scrolling region (DECSTBM) and holds the live line; the text's
// cursor is saved around every visit there.
class TerminalView : public DemoView {
 public:
  explicit TerminalView(const std::vector<NodeId>& gnbs) {
    constexpr int kColours[] = {36, 33, 32, 35, 34, 31, 96, 93};
    std::string legend = "Text by ";
    for (std::size_t i = 0; i < gnbs.size(); ++i) {
      colours_[gnbs[i]] = kColours[i % std::size(kColours)];
      legend +=
          fmt::format("{}\x1b[{}m{}\x1b[0m", i == 0 ? "" : ", ", colours_[gnbs[i]], gnbs[i].value);
    }
    write(legend + "\n\n");
    fit();
  }
  ~TerminalView() override { TerminalView::end(); }
  TerminalView(const TerminalView&) = delete;
  TerminalView& operator=(const TerminalView&) = delete;

  void text(const NodeId& by, const std::string& text) override {
    const auto colour = colours_.find(by);
    write(fmt::format("\x1b[{}m{}\x1b[0m", colour == colours_.end() ? 0 : colour->second,
                      printable(text)));
  }

  void live(const LiveState& state) override {
    if (ended_) return;
    fit();
    const auto line = live_line(state, columns_ - 1);
    write(fmt::format("\x1b[s\x1b[{};1H\x1b[7m{:<{}}\x1b[0m\x1b[u", rows_, line, columns_ - 1));
  }

  void end() override {
    if (ended_) return;
    ended_ = true;
    write(fmt::format("\x1b[s\x1b[{};1H\x1b[2K\x1b[r\x1b[u\n\n", rows_));
  }

 private:
  static void write(const std::string& bytes) {
    std::fwrite(bytes.data(), 1, bytes.size(), stdout);
    std::fflush(stdout);
  }

  // Sets the scrolling region to the window's size, at the start and when it changed.
  void fit() {
    winsize size{};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row < 3 || size.ws_col < 20) {
      size.ws_row = 24;
      size.ws_col = 80;
    }
    columns_ = size.ws_col;
    if (size.ws_row == rows_) return;
    rows_ = size.ws_row;
    // The line feed makes room when the cursor stands in the last row.
    write(fmt::format("\n\x1b[1A\x1b[s\x1b[1;{}r\x1b[u", rows_ - 1));
  }

  std::map<NodeId, int> colours_;
  unsigned rows_ = 0;
  std::size_t columns_ = 80;
  bool ended_ = false;
};

}  // namespace

std::unique_ptr<DemoView> make_silent_view() {
  return std::make_unique<SilentView>();
}
std::unique_ptr<DemoView> make_plain_view() {
  return std::make_unique<PlainView>();
}
std::unique_ptr<DemoView> make_terminal_view(const std::vector<NodeId>& gnbs) {
  return std::make_unique<TerminalView>(gnbs);
}

bool stdout_is_terminal() {
  const char* term = std::getenv("TERM");
  return isatty(STDOUT_FILENO) == 1 && term != nullptr && std::string_view(term) != "dumb";
}

std::string printable(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7F) continue;
    // C1 control characters, U+0080 to U+009F.
    if (c == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0) {
      ++i;
      continue;
    }
    out += text[i];
  }
  return out;
}

std::string live_line(const LiveState& state, std::size_t columns) {
  std::string line =
      fmt::format(" {} {} | {} tokens", state.cell.value, state.gnb.value, state.tokens);
  if (state.to_handover_s) line += fmt::format(" | handover in {:.1f} s", *state.to_handover_s);
  if (!state.next.value.empty()) {
    line += fmt::format(" | {}: window {:.1f} s, front {}, {} rows", state.next.value,
                        state.window_s, state.front, state.received);
  }
  if (line.size() > columns) line.resize(columns);
  return line;
}

}  // namespace pallas::app
