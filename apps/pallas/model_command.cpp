// `pallas model`: the model file that gNBs use, made ready and described.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "commands.h"
#include "http/json_writer.h"
#include "model_setup.h"
#ifdef PALLAS_HAVE_LLAMA
#include "engine_llama/model_store.h"
#endif

namespace pallas::app {
namespace {

constexpr const char* kExamples = R"(
Examples:
  pallas model                     prepare the shipped model, say where it is
  pallas model show                what it is, and whether its sessions can move
  pallas model show --gguf x.gguf  the same of another file
  pallas model prepare --gguf x.gguf
                                   re-quantize a file to Q4_0, which is fast on a CPU
)";

struct Options {
  std::string action = "prepare";
  std::string gguf;
  bool json = false;
};

#ifdef PALLAS_HAVE_LLAMA
Result<std::filesystem::path> file_of(const Options& options) {
  if (options.gguf.empty() || options.action == "show") return model_file(options.gguf);
  return engine::prepare_model(options.gguf, cache_folder());
}

Status show(const std::filesystem::path& file, bool json) {
  const auto model = engine::describe_model(file);
  if (!model) return Failure(model.error());
  if (json) {
    http::JsonWriter line;
    line.begin_object()
        .member("file", file.string())
        .member("name", model->name)
        .member("architecture", model->architecture)
        .member("quantization", model->quantization)
        .member("parameters", model->parameters)
        .member("weight_bytes", model->weight_bytes)
        .member("layers", model->layers)
        .member("kv_heads", model->kv_heads)
        .member("context_tokens", model->context_tokens)
        .member("kv_bytes_per_token", model->kv_bytes_per_token)
        .member("movable", model->movable)
        .member("why_not", model->why_not)
        .end_object();
    fmt::print("{}\n", line.take());
    return {};
  }
  fmt::print(
      "file            {}\nname            {}\narchitecture    {}\nquantization    {}\n"
      "parameters      {:.1f} million\nweights         {:.1f} MB\nlayers          {}, {} KV heads\n"
      "context         {} tokens\nKV of a token   {} bytes\nsessions move   {}\n",
      file.string(), model->name, model->architecture, model->quantization,
      static_cast<double>(model->parameters) / 1e6, static_cast<double>(model->weight_bytes) / 1e6,
      model->layers, model->kv_heads, model->context_tokens, model->kv_bytes_per_token,
      model->movable ? "yes" : "no: " + model->why_not);
  return {};
}

Status run(const Options& options) {
  const auto file = file_of(options);
  if (!file) return Failure(file.error());
  if (options.action == "show") return show(*file, options.json);
  if (options.json) {
    http::JsonWriter line;
    line.begin_object().member("file", file->string()).end_object();
    fmt::print("{}\n", line.take());
  } else {
    fmt::print("{}\n", file->string());
  }
  return {};
}
#else
Status run(const Options& options) {
  const auto file = model_file(options.gguf);
  return file ? Status() : Failure(file.error());
}
#endif

}  // namespace

int model_command(std::vector<std::string> args) {
  CLI::App app("Prepares the model file that gNBs use, or shows what a file is", "pallas model");
  app.footer(kExamples);
  Options options;
  app.add_option("action", options.action, "prepare (default) or show")
      ->check(CLI::IsMember({"prepare", "show"}));
  app.add_option("--gguf", options.gguf, "A GGUF file instead of the shipped model");
  app.add_flag("--json", options.json, "One JSON object");
  try {
    std::reverse(args.begin(), args.end());
    app.parse(args);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  if (auto status = run(options); !status) {
    fmt::print(stderr, "pallas model: {}\n", status.error().message);
    return kExitFailed;
  }
  return kExitOk;
}

}  // namespace pallas::app
