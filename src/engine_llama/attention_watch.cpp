#include "engine_llama/attention_watch.h"

#include <ggml-backend.h>
#include <ggml.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace pallas::engine {
namespace {

// What llama.cpp calls the normalized attention; it exists without flash attention only.
constexpr std::string_view kAttention = "kq_soft_max";

}  // namespace

void AttentionWatch::begin(TokenPosition cells, std::uint32_t key_heads) {
  watching_ = true;
  cells_ = cells;
  key_heads_ = key_heads;
  heads_.clear();
}

std::vector<std::vector<double>> AttentionWatch::end() {
  watching_ = false;
  return std::exchange(heads_, {});
}

bool AttentionWatch::on_node(ggml_tensor* tensor, bool ask, void* self) {
  auto& watch = *static_cast<AttentionWatch*>(self);
  const bool wanted =
      watch.watching_ && std::string_view(ggml_get_name(tensor)).starts_with(kAttention);
  if (ask) return wanted;
  if (wanted) watch.take(*tensor);
  return true;  // go on
}

// Cells by tokens by query heads; neighbouring query heads share a key head.
void AttentionWatch::take(ggml_tensor& tensor) {
  const auto row = static_cast<std::size_t>(tensor.ne[0]);
  const auto tokens = static_cast<std::size_t>(tensor.ne[1]);
  const auto queries = static_cast<std::size_t>(tensor.ne[2]);
  if (tensor.type != GGML_TYPE_F32 || !ggml_is_contiguous(&tensor) || tensor.ne[3] != 1 ||
      row < cells_ || queries % key_heads_ != 0) {
    return;
  }
  values_.resize(row * tokens * queries);
  ggml_backend_tensor_get(&tensor, values_.data(), 0, values_.size() * sizeof(float));
  const std::size_t group = queries / key_heads_;
  for (std::size_t head = 0; head < key_heads_; ++head) {
    std::vector<double>& sums = heads_.emplace_back(cells_, 0.0);
    const float* from = values_.data() + head * group * tokens * row;
    for (std::size_t i = 0; i < group * tokens; ++i, from += row) {
      for (TokenPosition cell = 0; cell < cells_; ++cell) sums[cell] += double{from[cell]};
    }
  }
}

}  // namespace pallas::engine
