#include "ue/terminal_chat.h"

#include <cstdio>
#include <deque>
#include <nlohmann/json.hpp>

namespace pallas::ue {
namespace {

using Json = nlohmann::json;

// Readable on dark and light grounds: cyan, yellow, magenta, green, blue, red.
constexpr const char* kColours[] = {"\x1b[36m", "\x1b[33m", "\x1b[35m",
                                    "\x1b[32m", "\x1b[34m", "\x1b[31m"};
constexpr const char* kPlain = "\x1b[0m";

std::string milliseconds(const std::optional<double>& value) {
  if (!value) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.0f ms", *value);
  return text;
}

std::string describe(const HandoverStats& h) {
  return h.from.value + " -> " + h.to.value + ": gap " + milliseconds(h.gap_ms) + ", SIT " +
         milliseconds(h.sit_ms) + (h.relayed ? " (relayed)" : "");
}

}  // namespace

class TerminalChat::Impl {
 public:
  Impl(Follower& follower, ChatOptions options, std::function<void(std::string_view)> write,
       std::function<void(bool)> done)
      : follower_(follower),
        options_(std::move(options)),
        write_(std::move(write)),
        done_(std::move(done)) {
    forget_conversation();
  }
  ~Impl() {
    if (session_ != 0) follower_.stop(session_);
  }

  void greet() {
    note("Cell " + follower_.cell().value + " of gNB " + follower_.gnb().value +
         ". Ask something; /cell NAME moves to another cell, /handovers lists what moves cost, "
         "/quit ends.\n");
    prompt();
  }

  void on_line(std::string line) {
    if (over_) return;
    if (line.ends_with('\r')) line.pop_back();
    if (line.starts_with('/')) {
      command(line);
    } else if (line.find_first_not_of(" \t") == std::string::npos) {
      if (session_ == 0) prompt();
    } else if (session_ != 0) {
      waiting_.push_back(std::move(line));
    } else {
      ask(line);
    }
  }

  void on_end_of_input() {
    ended_ = true;
    if (session_ == 0) finish();
  }

 private:
  void command(const std::string& line) {
    if (line == "/quit" || line == "/exit") {
      if (session_ != 0) follower_.stop(std::exchange(session_, 0));
      return finish();
    }
    if (line == "/reset") {
      forget_conversation();
      note("The conversation starts anew.\n");
    } else if (line == "/handovers") {
      for (const SessionReport& session : follower_.report().sessions) {
        for (const HandoverStats& h : session.handovers) note(describe(h) + "\n");
      }
    } else if (line.starts_with("/cell ")) {
      const CellId cell(line.substr(6));
      if (Status moved = follower_.on_cell(cell); !moved) note(moved.error().message + "\n");
    } else {
      note("No such command: " + line + "\n");
    }
    if (session_ == 0) prompt();
  }

  void forget_conversation() {
    messages_ = Json::array();
    if (!options_.system.empty()) {
      messages_.push_back({{"role", "system"}, {"content", options_.system}});
    }
  }

  void ask(const std::string& question) {
    messages_.push_back({{"role", "user"}, {"content", question}});
    const Json body{{"model", options_.model},
                    {"messages", messages_},
                    {"max_tokens", options_.max_tokens},
                    {"temperature", options_.temperature},
                    {"stream", true}};
    answer_.clear();
    shown_by_ = {};
    FollowerCallbacks calls;
    calls.on_token = [this](const TokenRecord& token) { show(token); };
    calls.on_finish = [this](const std::string& reason, const std::string& text,
                             const std::optional<Usage>&) {
      answer_ += text;
      if (!options_.json) write_(text);
      on_answer(reason);
    };
    calls.on_error = [this](const ApiError& error) { on_failure(error); };
    const auto started = follower_.start(body.dump(-1, ' ', false, Json::error_handler_t::replace),
                                         Endpoint::kChat, calls);
    if (started) {
      session_ = *started;
    } else {
      on_failure(ApiError{
          .status = 400, .message = started.error().message, .type = {}, .param = {}, .code = {}});
    }
  }

  // Each part is marked by the gNB whose engine made it.
  void show(const TokenRecord& token) {
    answer_ += token.text;
    if (options_.json || token.text.empty()) return;
    if (token.by != shown_by_) {
      shown_by_ = token.by;
      write_(colour_of(token.by) + "[" + token.by.value + "] ");
    }
    write_(token.text);
  }

  std::string colour_of(const NodeId& gnb) const {
    if (!options_.colour) return {};
    const auto& gnbs = follower_.config().gnbs;
    const auto at = std::distance(gnbs.begin(), gnbs.find(gnb));
    return kColours[static_cast<std::size_t>(at) % std::size(kColours)];
  }

  void on_answer(const std::string& reason) {
    messages_.push_back({{"role", "assistant"}, {"content", answer_}});
    const std::optional<SessionReport> report = follower_.report(session_);
    if (options_.json) {
      Json json{{"text", answer_}, {"finish_reason", reason}};
      if (report) json["report"] = Json::parse(to_json(*report, false));
      write_(json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
    } else {
      write_(options_.colour ? std::string(kPlain) + "\n" : "\n");
      if (report) {
        for (const HandoverStats& h : report->handovers) note(describe(h) + "\n");
      }
    }
    proceed();
  }

  void on_failure(const ApiError& error) {
    failed_ = true;
    messages_.erase(messages_.size() - 1);  // the question may be asked again
    if (options_.json) {
      const Json json{{"error", {{"message", error.message}, {"code", error.code}}}};
      write_(json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
    } else {
      write_(options_.colour ? std::string(kPlain) + "\n" : "\n");
      note("The answer failed: " + error.message + "\n");
    }
    proceed();
  }

  void proceed() {
    session_ = 0;
    if (!waiting_.empty()) {
      const std::string next = std::move(waiting_.front());
      waiting_.pop_front();
      on_line(next);
    } else if (ended_) {
      finish();
    } else {
      prompt();
    }
  }

  void finish() {
    if (std::exchange(over_, true)) return;
    done_(!failed_);
  }

  void note(const std::string& text) {
    if (!options_.json) write_(text);
  }
  void prompt() {
    if (!ended_) note("> ");
  }

  Follower& follower_;
  ChatOptions options_;
  std::function<void(std::string_view)> write_;
  std::function<void(bool)> done_;
  Json messages_;
  std::deque<std::string> waiting_;
  std::string answer_;
  NodeId shown_by_;
  Follower::SessionNo session_ = 0;
  bool ended_ = false;
  bool over_ = false;
  bool failed_ = false;
};

TerminalChat::TerminalChat(Follower& follower, ChatOptions options,
                           std::function<void(std::string_view)> write,
                           std::function<void(bool)> done)
    : impl_(std::make_unique<Impl>(follower, std::move(options), std::move(write),
                                   std::move(done))) {}

TerminalChat::~TerminalChat() = default;

void TerminalChat::greet() {
  impl_->greet();
}
void TerminalChat::on_line(std::string line) {
  impl_->on_line(std::move(line));
}
void TerminalChat::on_end_of_input() {
  impl_->on_end_of_input();
}

}  // namespace pallas::ue
