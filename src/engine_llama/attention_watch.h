#pragma once
// Looks into llama.cpp's computation: how much the tokens of a call attend to each cell.

#include <cstdint>
#include <vector>

#include "base/units.h"

struct ggml_tensor;

namespace pallas::engine {

// Engine thread only. A context's evaluation callback (llama_context_params::cb_eval) for as long
// as the context lives; costs nothing to speak of while it does not watch.
class AttentionWatch {
 public:
  // The next calls are of one stream, whose first `cells` cells are of interest.
  void begin(TokenPosition cells, std::uint32_t key_heads);
  // What was seen: for each layer and key head, in the order of computation, the attention to each
  // cell summed over the call's tokens and the query heads of that key head.
  std::vector<std::vector<double>> end();

  static bool on_node(ggml_tensor* tensor, bool ask, void* self);

 private:
  void take(ggml_tensor& tensor);

  bool watching_ = false;
  TokenPosition cells_ = 0;
  std::uint32_t key_heads_ = 1;
  std::vector<std::vector<double>> heads_;
  std::vector<float> values_;
};

}  // namespace pallas::engine
