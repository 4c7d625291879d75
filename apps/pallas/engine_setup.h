#pragma once
// From settings to a ready engine.

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "engine/engine.h"
#include "gnb_config.h"

namespace boost::asio {
class io_context;
}

namespace pallas::app {

struct EngineKit {
  std::unique_ptr<engine::TextCodec> owned_text;  // none when the engine owns it
  std::unique_ptr<engine::Engine> engine;
  const engine::TextCodec* text = nullptr;
};

// Whether the engine knows what it costs. One that does not starts at once and is good for moving
// rows, not for planning; what it computes is the same.
enum class EngineCosts { kMeasured, kUnknown };

// `io` runs the engine's results, and outlives the kit. kUnsupported for "llama" in a program that
// was built without it.
Result<EngineKit> make_engine(const GnbConfig& config, boost::asio::io_context& io, Clock& clock,
                              EngineCosts costs = EngineCosts::kMeasured);

// Measures what engines of this model, context and slots need, unless it is known already, so that
// processes started afterwards find it.
Status warm_engine_cache(const std::string& model, std::uint32_t context_tokens,
                         std::uint32_t slots);

}  // namespace pallas::app
