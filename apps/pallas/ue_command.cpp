// `pallas ue`: a local OpenAI endpoint whose sessions follow the UE from cell to cell, or a chat in
// the terminal over the same machinery.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>

#include "commands.h"
#include "net/asio_clock.h"
#include "ue/gnb_api.h"
#include "ue/local_endpoint.h"
#include "ue/local_server.h"
#include "ue/terminal_chat.h"
#include "ue/ue_settings.h"

namespace pallas::app {
namespace {

constexpr const char* kExamples = R"(
Examples:
  pallas ue --gnb gnb-a=127.0.0.1:8080 --gnb gnb-b=127.0.0.1:8081 --ue veh2
      an OpenAI endpoint at http://127.0.0.1:8090/v1; each gNB is a cell of its own name
  pallas ue --gnb gnb-a=127.0.0.1:8080 --gnb gnb-b=127.0.0.1:8081 \
    --cell cell_0_0=gnb-a --cell cell_1_0=gnb-b --cell-now cell_0_0 --listen 127.0.0.1:9000
      `pallas drive --ue-endpoint 127.0.0.1:9000` then tells it where its radio is; or by hand:
      curl 127.0.0.1:9000/v1/handovers -d '{"ue":"","seq":1,"phase":"execution",
                                            "source":"cell_0_0","target":"cell_1_0"}'
  pallas ue --config ue.toml --chat
      a conversation in the terminal; '/cell cell_1_0' moves it in the middle of an answer
  echo 'What is a handover?' | pallas ue --gnb a=127.0.0.1:8080 --chat --json

ue.toml:
  listen = "127.0.0.1:9000"
  ue = "veh2"
  cell_now = "cell_0_0"
  [gnbs]
  gnb-a = "127.0.0.1:8080"
  gnb-b = "127.0.0.1:8081"
  [cells]
  cell_0_0 = "gnb-a"
  cell_1_0 = "gnb-b"
)";

struct Options {
  std::string config, listen, ue, cell_now, gnb_ca, api_key_file;
  std::vector<std::string> gnbs, cells;
  bool allow_remote = false, chat = false, json = false, dry_run = false;
  ue::ChatOptions conversation;
};

using Pairs = std::vector<std::pair<std::string, std::string>>;

Status read_pairs(const char* flag, const std::vector<std::string>& texts, Pairs& out) {
  if (!texts.empty()) out.clear();  // a flag replaces what the file says
  for (const auto& text : texts) {
    auto pair = ue::parse_assignment(flag, text);
    if (!pair) return Failure(pair.error());
    out.push_back(std::move(*pair));
  }
  return {};
}

Result<ue::UeSettings> read_settings(const Options& options) {
  ue::UeSettings settings;
  if (!options.config.empty()) {
    std::ifstream file(options.config, std::ios::binary);
    std::stringstream text;
    if (!file || !(text << file.rdbuf())) {
      return fail(Errc::kIo, "--config: cannot read '" + options.config + "'");
    }
    auto read = ue::parse_ue_toml(text.str(), options.config);
    if (!read) return Failure(read.error());
    settings = std::move(*read);
  }
  if (!options.listen.empty()) settings.listen = options.listen;
  if (!options.ue.empty()) settings.ue = options.ue;
  if (!options.cell_now.empty()) settings.cell_now = options.cell_now;
  if (!options.gnb_ca.empty()) settings.gnb_ca = options.gnb_ca;
  if (!options.api_key_file.empty()) settings.api_key_file = options.api_key_file;
  if (auto status = read_pairs("--gnb", options.gnbs, settings.gnbs); !status) {
    return Failure(status.error());
  }
  if (auto status = read_pairs("--cell", options.cells, settings.cells); !status) {
    return Failure(status.error());
  }
  return settings;
}

// A chat listens only when it was told to.
Result<std::optional<ue::Address>> listen_address(const Options& options,
                                                  const ue::UeSettings& settings) {
  if (options.chat && options.listen.empty() && options.config.empty()) return std::nullopt;
  auto address = ue::parse_address(settings.listen);
  if (!address) return fail(Errc::kInvalidConfig, "--listen: " + address.error().message);
  if (!options.allow_remote && !ue::is_loopback(*address)) {
    return fail(Errc::kInvalidConfig,
                "--listen: " + address->text() +
                    " is not this machine's loopback, and whoever reaches it can use it; "
                    "--allow-remote if that is meant");
  }
  return *address;
}

// Runs until a signal or the end of the chat; then sessions are stopped at their gNBs.
class UeProgram {
 public:
  explicit UeProgram(const Options& options) : options_(options), signals_(io_, SIGINT, SIGTERM) {}

  int run(const ue::FollowerConfig& config, const std::optional<ue::Address>& address) {
    auto follower = ue::Follower::create(io_, clock_, config);
    if (!follower) return complain(follower.error().message, kExitUsage);
    follower_ = std::move(*follower);
    if (address) {
      auto endpoint = ue::LocalEndpoint::listen(io_, *follower_, *address);
      if (!endpoint) return complain(endpoint.error().message, kExitFailed);
      endpoint_ = std::move(*endpoint);
      announce(*address);
    }
    signals_.async_wait([this](const boost::system::error_code& error, int) {
      if (!error) leave();
    });
    if (options_.chat) start_chat();
    io_.run();
    if (options_.json && !options_.chat) {
      std::printf("%s\n", ue::to_json(follower_->report(), false).c_str());
    }
    return exit_code_;
  }

 private:
  static int complain(const std::string& what, int code) {
    std::fprintf(stderr, "pallas ue: %s\n", what.c_str());
    return code;
  }

  void announce(const ue::Address& address) const {
    const std::string at = ue::Address{address.host, endpoint_->port()}.text();
    if (options_.json) {
      if (!options_.chat) std::printf("{\"listening\":\"%s\"}\n", at.c_str());
    } else {
      std::printf("UE '%s' in cell %s of gNB %s; OpenAI endpoint: http://%s/v1\n",
                  follower_->config().ue.value.c_str(), follower_->cell().value.c_str(),
                  follower_->gnb().value.c_str(), at.c_str());
    }
    std::fflush(stdout);
  }

  // The first model of the gNB, unless one was named.
  void start_chat() {
    ue::ChatOptions conversation = options_.conversation;
    conversation.json = options_.json;
    conversation.colour = !options_.json && ::isatty(STDOUT_FILENO) == 1;
    if (!conversation.model.empty()) return converse(conversation);
    follower_->fetch(
        "/v1/models", [this, conversation](const Result<ue::HttpReply>& reply) mutable {
          const Result<std::string> model =
              reply ? ue::parse_first_model(reply->status, reply->body) : Failure(reply.error());
          if (!model) {
            exit_code_ = complain(model.error().message, kExitFailed);
            return leave();
          }
          conversation.model = *model;
          converse(conversation);
        });
  }

  void converse(const ue::ChatOptions& conversation) {
    chat_ = std::make_unique<ue::TerminalChat>(
        *follower_, conversation,
        [](std::string_view text) {
          std::fwrite(text.data(), 1, text.size(), stdout);
          std::fflush(stdout);
        },
        [this](bool all_answered) {
          if (!all_answered) exit_code_ = kExitFailed;
          leave();
        });
    chat_->greet();
    input_ = std::make_unique<ue::LineReader>(
        io_, STDIN_FILENO, [this](std::string line) { chat_->on_line(std::move(line)); },
        [this] { chat_->on_end_of_input(); });
  }

  // The gNBs get a moment to hear that the sessions are not wanted any more.
  void leave() {
    follower_->stop_all();
    deadline_.arm(std::chrono::seconds(1), [this] { io_.stop(); });
    poll_deletes();
  }
  void poll_deletes() {
    if (follower_->pending_deletes() == 0) return io_.stop();
    poll_.arm(std::chrono::milliseconds(5), [this] { poll_deletes(); });
  }

  const Options& options_;
  boost::asio::io_context io_{1};
  net::AsioClock clock_{io_};
  boost::asio::signal_set signals_;
  Timer deadline_{clock_}, poll_{clock_};
  std::unique_ptr<ue::Follower> follower_;
  std::unique_ptr<ue::LocalEndpoint> endpoint_;
  std::unique_ptr<ue::TerminalChat> chat_;
  std::unique_ptr<ue::LineReader> input_;
  int exit_code_ = kExitOk;
};

int run(const Options& options) {
  const auto refuse = [](const Error& error) {
    std::fprintf(stderr, "pallas ue: %s\n", error.message.c_str());
    return kExitUsage;
  };
  const auto settings = read_settings(options);
  if (!settings) return refuse(settings.error());
  const auto config = ue::to_follower_config(*settings);
  if (!config) return refuse(config.error());
  const auto address = listen_address(options, *settings);
  if (!address) return refuse(address.error());
  if (options.dry_run) {
    std::puts("The settings are good.");
    return kExitOk;
  }
  return UeProgram(options).run(*config, *address);
}

}  // namespace

int ue_command(std::vector<std::string> args) {
  CLI::App app("A local OpenAI endpoint, or a chat, whose sessions follow the UE from cell to cell",
               "pallas ue");
  app.footer(kExamples);
  Options options;
  app.add_option("--config", options.config, "TOML file; flags take precedence");
  app.add_option("--listen", options.listen,
                 "HOST:PORT of the local endpoint (default 127.0.0.1:8090; port 0: a free one)");
  app.add_option("--ue", options.ue, "This UE's name in the RAN feed of the gNBs");
  app.add_option("--gnb", options.gnbs,
                 "NAME=HOST:PORT: HTTP interface of a gNB, https:// before HOST if under TLS "
                 "(repeatable)");
  app.add_option("--gnb-ca", options.gnb_ca, "PEM file: the authority behind https:// addresses");
  app.add_option("--api-key-file", options.api_key_file,
                 "Its first line is the key that the gNBs want");
  app.add_option("--cell", options.cells,
                 "CELL=GNB: which gNB serves a cell (repeatable; default: each gNB is a cell)");
  app.add_option("--cell-now", options.cell_now,
                 "Where the UE is at the start; default: the first");
  app.add_flag("--allow-remote", options.allow_remote, "Let --listen be reachable from elsewhere");
  app.add_flag("--chat", options.chat, "Talk in the terminal; listens only if told where");
  app.add_option("--model", options.conversation.model, "Model of the chat; default: the gNB's");
  app.add_option("--system", options.conversation.system, "System prompt of the chat");
  app.add_option("--max-tokens", options.conversation.max_tokens, "Longest answer of the chat")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--temperature", options.conversation.temperature, "Of the chat")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 2.0));
  app.add_flag(
      "--json", options.json,
      "Chat: one JSON object an answer. Else: where it listens, and at the end the report");
  app.add_flag("--dry-run", options.dry_run, "Check the settings and end");
  try {
    std::reverse(args.begin(), args.end());
    app.parse(args);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  return run(options);
}

}  // namespace pallas::app
