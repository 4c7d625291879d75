#include "model_setup.h"

#ifdef PALLAS_HAVE_LLAMA
#include "engine_llama/model_store.h"
#endif

namespace pallas::app {
namespace {

namespace fs = std::filesystem;

// Programs lie in build/<preset>/bin, so what belongs to the project is a few folders up.
Result<fs::path> find_upwards(const fs::path& relative, const std::string& what) {
  std::error_code error;
  fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (int level = 0; level < 5 && !folder.empty(); ++level) {
    if (fs::exists(folder / relative, error)) return folder / relative;
    if (folder == folder.root_path()) break;
    folder = folder.parent_path();
  }
  return fail(Errc::kNotFound,
              what + " '" + relative.filename().string() + "' was not found near this program");
}

}  // namespace

bool has_llama() {
#ifdef PALLAS_HAVE_LLAMA
  return true;
#else
  return false;
#endif
}

fs::path cache_folder() {
#ifdef PALLAS_HAVE_LLAMA
  return engine::default_cache_dir();
#else
  return {};
#endif
}

Result<fs::path> data_file(const std::string& name) {
  return find_upwards(fs::path("data") / name, "the data file");
}

Result<fs::path> bench_script(const std::string& name) {
  return find_upwards(fs::path("bench") / name, "the script");
}

Result<fs::path> shipped_model(const std::string& type) {
#ifdef PALLAS_HAVE_LLAMA
  const auto shipped =
      find_upwards(fs::path("third_party/models") / (std::string(kShippedModel) + ".Q4_1.gguf"),
                   "the shipped model");
  if (!shipped) return Failure(shipped.error());
  const auto weights = type == "f16"    ? engine::WeightType::kF16
                       : type == "q8_0" ? engine::WeightType::kQ8_0
                                        : engine::WeightType::kQ4_0;
  return engine::prepare_model(*shipped, cache_folder(), weights);
#else
  return fail(Errc::kUnsupported, "model in " + type + ": this program has no llama.cpp engine");
#endif
}

Result<fs::path> model_file(const std::string& path) {
#ifdef PALLAS_HAVE_LLAMA
  if (!path.empty()) {
    std::error_code error;
    if (!fs::is_regular_file(path, error)) {
      return fail(Errc::kNotFound, "there is no model file '" + path + "'");
    }
    return fs::path(path);
  }
  return shipped_model("q4_0");
#else
  return fail(Errc::kUnsupported, "model '" + path + "': this program has no llama.cpp engine");
#endif
}

}  // namespace pallas::app
