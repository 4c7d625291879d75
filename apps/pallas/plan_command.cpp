// `pallas plan`: what each scheme would do about one handover.

#include <fmt/format.h>
#include <stdlib.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "commands.h"
#include "experiment_files.h"
#include "experiment_output.h"
#include "plan_output.h"
#include "plan_request.h"

namespace pallas::app {
namespace {

constexpr const char* kExamples = R"(
Without --model-shape and --kv-bytes-per-token it is Qwen3-14B. Named models bring the rates and T_0 that
the Pallas paper's tables imply; a GGUF file only its KV bytes a token.

Examples:
  pallas plan                                 the paper's central case under every scheme
  pallas plan --goodput-mbps 20 --scheme pallas --scheme two-front
                                              a link slower than the decoder
  pallas plan --sigma 0.5 --confidence 0.9    a prediction that is not exact
  pallas plan --model-shape model.gguf --prefill-rate 270 --decode-rate 25 --goodput-mbps 50
  pallas plan --plot window.svg               interruption and exposure over the window
)";

struct Flags {
  PlanOptions options;
  bool json = false;
};

void add_flags(CLI::App& app, Flags& flags) {
  PlanOptions& o = flags.options;
  std::string schemes;
  for (const auto name : plan::scheme_names()) {
    schemes += (schemes.empty() ? "" : ", ") + std::string(name);
  }
  std::string shapes;
  for (const auto& name : known_model_shapes()) shapes += name + ", ";
  app.add_option("--scheme", o.schemes, "Only this one (repeatable): " + schemes)
      ->allow_extra_args(false)
      ->take_all();
  app.add_option("--context", o.context, "Tokens of the session now (3000)");
  app.add_option("--prefill-rate", o.prefill_rate, "Tokens/s that the target prefills");
  app.add_option("--decode-rate", o.decode_rate, "Tokens/s that the source decodes");
  app.add_option("--goodput-mbps", o.goodput_mbps, "Between the two gNBs (300)");
  app.add_option("--kv-bytes-per-token", o.kv_bytes_per_token, "KV of one token");
  app.add_option("--model-shape", o.model_shape, "Instead: " + shapes + "or a GGUF file");
  app.add_option("--remaining", o.remaining, "Seconds to the handover (4); 0: the UE leaves now");
  app.add_option("--alpha", o.alpha, "Weight of the interruption against early exposure (0.8)");
  app.add_option("--step", o.step, "Grid of Algorithm 1, in seconds (0.1)");
  app.add_option("--t-max", o.t_max, "Largest window, in seconds (5)");
  app.add_option("--activation", o.activation, "T_0 in seconds");
  app.add_option("--load", o.load, "Seconds to load the model at the target (0)");
  app.add_option("--sigma", o.sigma, "Standard deviation of --remaining, in seconds");
  app.add_option("--confidence", o.confidence, "That the target is right, 0 to 1");
  app.add_option("--partial-fraction", o.partial_fraction,
                 "Of the KV that partial decodes with (0.4)");
  app.add_flag("--json", flags.json, "A list of objects, one a scheme");
  app.add_option("--plot", o.plot, "Draws SIT and early exposure over the window into this SVG");
}

// Draws in a folder of its own, since the script names its files by the figure.
Status draw(const experiments::Figure& figure, const std::string& file) {
  std::string pattern = (std::filesystem::temp_directory_path() / "pallas-plan-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) return fail(Errc::kIo, "--plot: no temporary folder");
  const std::filesystem::path folder = pattern;
  std::string why;
  {
    std::ofstream script(folder / "plan.gp");
    script << figure_script(figure);
    if (!script.flush()) why = "cannot write the script for gnuplot";
  }
  if (why.empty()) why = run_gnuplot(folder.string(), "plan.gp");
  std::error_code error;
  if (why.empty()) {
    std::filesystem::copy_file(folder / "plan.svg", file,
                               std::filesystem::copy_options::overwrite_existing, error);
    if (error) why = "cannot write '" + file + "': " + error.message();
  }
  std::filesystem::remove_all(folder, error);
  if (!why.empty()) return fail(Errc::kIo, "--plot: " + why);
  return {};
}

}  // namespace

int plan_command(std::vector<std::string> args) {
  CLI::App app("Shows what each scheme would do about one handover", "pallas plan");
  app.footer(kExamples);
  Flags flags;
  add_flags(app, flags);
  try {
    std::reverse(args.begin(), args.end());
    app.parse(args);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  const auto request = to_request(flags.options);
  if (!request) {
    fmt::print(stderr, "pallas plan: {}\n", request.error().message);
    return kExitUsage;
  }
  const auto plans = make_plans(*request);
  if (flags.json) {
    fmt::print("{}\n", plans_json(*request, plans));
  } else {
    fmt::print("{}", plans_text(*request, plans));
  }
  if (!request->plot) return kExitOk;
  if (auto drawn = draw(tradeoff(*request), *request->plot); !drawn) {
    fmt::print(stderr, "pallas plan: {}\n", drawn.error().message);
    return kExitFailed;
  }
  return kExitOk;
}

}  // namespace pallas::app
