#include "engine_llama/kv_rows.h"

#include <llama-batch.h>
#include <llama-io.h>
#include <llama-kv-cache.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <typeinfo>

namespace pallas::engine {
namespace {

constexpr TokenPosition kAppendTokens = 64;  // cells taken at once

// llama.cpp has no public access to the V tensors; its state writer shows all of them.
class TensorRecorder : public llama_io_write_i {
 public:
  struct Seen {
    ggml_tensor* tensor = nullptr;
    std::size_t calls = 0;
    std::size_t bytes = 0;  // of one cell
  };

  void write(const void*, std::size_t size) override { count_ += size; }
  void write_tensor(ggml_tensor* tensor, std::size_t, std::size_t size) override {
    if (seen_.empty() || seen_.back().tensor != tensor) seen_.push_back({tensor, 0, 0});
    seen_.back().calls += 1;
    seen_.back().bytes += size;
    count_ += size;
  }
  std::size_t n_bytes() override { return count_; }
  const std::vector<Seen>& seen() const { return seen_; }

 private:
  std::vector<Seen> seen_;
  std::size_t count_ = 0;
};

// One layer's K or V over all streams.
struct Plane {
  ggml_tensor* tensor = nullptr;
  std::byte* host = nullptr;      // its bytes, if they lie in host memory
  std::size_t stream_stride = 0;  // bytes from one stream to the next
};

// Can an element be no number? Then all of its exponent bits are set.
template <class Word>
bool all_finite(std::span<const std::byte> bytes, Word exponent) {
  Word bad = 0;
  for (std::size_t i = 0; i + sizeof(Word) <= bytes.size(); i += sizeof(Word)) {
    Word value;
    std::memcpy(&value, bytes.data() + i, sizeof(Word));
    bad |= static_cast<Word>((value & exponent) == exponent);
  }
  return bad == 0;
}

bool all_finite(std::span<const std::byte> bytes, ggml_type type) {
  switch (type) {
    case GGML_TYPE_F16:
      return all_finite<std::uint16_t>(bytes, 0x7c00);
    case GGML_TYPE_BF16:
      return all_finite<std::uint16_t>(bytes, 0x7f80);
    default:
      return all_finite<std::uint32_t>(bytes, 0x7f800000);
  }
}

Failure not_movable(const std::string& why) {
  return fail(Errc::kUnsupported, "this model's memory cannot be moved: " + why);
}

constexpr std::size_t kTile = 8;

// A tile of 8 times 8 elements, rows and lines any number of elements apart.
template <class T>
void transpose_tile(const T* from, std::size_t from_stride, T* to, std::size_t to_stride) {
  for (std::size_t i = 0; i < kTile; ++i) {
    for (std::size_t j = 0; j < kTile; ++j) to[j * to_stride + i] = from[i * from_stride + j];
  }
}

// Half of all bytes of a session pass here: lines of eight, merged three times.
template <>
void transpose_tile(const std::uint16_t* from, std::size_t from_stride, std::uint16_t* to,
                    std::size_t to_stride) {
  using Line = std::uint16_t __attribute__((vector_size(16)));
  Line lines[kTile];
  for (std::size_t i = 0; i < kTile; ++i) {
    std::memcpy(&lines[i], from + i * from_stride, sizeof(Line));
  }
  for (int merges = 0; merges < 3; ++merges) {
    Line next[kTile];
    for (std::size_t i = 0; i < kTile / 2; ++i) {
      const Line a = lines[i];
      const Line b = lines[i + kTile / 2];
      next[2 * i] = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
      next[2 * i + 1] = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
    }
    std::copy(std::begin(next), std::end(next), std::begin(lines));
  }
  for (std::size_t j = 0; j < kTile; ++j) std::memcpy(to + j * to_stride, &lines[j], sizeof(Line));
}

// Writes the transpose of a matrix of `rows` times `columns` elements, whose rows lie
// `from_stride` and `to_stride` elements apart. The side with the longer stride is the cache, each
// of whose rows lies in another page. It goes by stretches of eight of the cache's rows, as wide
// as a line of the processor's cache: each line of either side is there once, and those of the
// stretch after the next were asked for.
template <class T>
void transpose(const T* from, std::size_t from_stride, std::size_t rows, std::size_t columns, T* to,
               std::size_t to_stride) {
  constexpr std::size_t kLine = 64 / sizeof(T);
  const std::size_t whole_rows = rows / kTile * kTile;
  const std::size_t whole_columns = columns / kTile * kTile;
  const auto tile = [&](std::size_t r, std::size_t c) {
    transpose_tile(from + r * from_stride + c, from_stride, to + c * to_stride + r, to_stride);
  };
  if (from_stride > to_stride) {
    for (std::size_t left = 0; left < whole_columns; left += kLine) {
      const std::size_t end = std::min(left + kLine, whole_columns);
      for (std::size_t r = 0; r < whole_rows; r += kTile) {
        for (std::size_t i = r + 2 * kTile; i < std::min(r + 3 * kTile, rows); ++i) {
          __builtin_prefetch(from + i * from_stride + left);
        }
        for (std::size_t c = left; c < end; c += kTile) tile(r, c);
      }
    }
  } else {
    for (std::size_t top = 0; top < whole_rows; top += kLine) {
      const std::size_t end = std::min(top + kLine, whole_rows);
      for (std::size_t c = 0; c < whole_columns; c += kTile) {
        for (std::size_t i = c + 2 * kTile; i < std::min(c + 3 * kTile, columns); ++i) {
          __builtin_prefetch(to + i * to_stride + top, 1);
        }
        for (std::size_t r = top; r < end; r += kTile) tile(r, c);
      }
    }
  }
  for (std::size_t r = 0; r < whole_rows; ++r) {
    for (std::size_t c = whole_columns; c < columns; ++c) {
      to[c * to_stride + r] = from[r * from_stride + c];
    }
  }
  for (std::size_t r = whole_rows; r < rows; ++r) {
    for (std::size_t c = 0; c < columns; ++c) to[c * to_stride + r] = from[r * from_stride + c];
  }
}

// Each row of V lies in another page, so a block of rows touches thousands of them, and finding a
// page costs more than its bytes. Large pages end that where the system has some to give.
void use_large_pages(ggml_backend_buffer_t buffer) {
  constexpr std::uintptr_t kLargePage = 2u << 20;
#ifdef MADV_COLLAPSE
  constexpr int kCollapse = MADV_COLLAPSE;
#else
  constexpr int kCollapse = 25;  // since Linux 6.1
#endif
  const auto base = reinterpret_cast<std::uintptr_t>(ggml_backend_buffer_get_base(buffer));
  const std::uintptr_t begin = (base + kLargePage - 1) / kLargePage * kLargePage;
  const std::uintptr_t end =
      (base + ggml_backend_buffer_get_size(buffer)) / kLargePage * kLargePage;
  if (end <= begin) return;
  void* const at = reinterpret_cast<void*>(begin);
  madvise(at, end - begin, MADV_HUGEPAGE);
  madvise(at, end - begin, kCollapse);
}

}  // namespace

struct KvRows::Inside {
  llama_kv_cache* cache = nullptr;
  std::optional<llama_batch_allocr> allocator;
  std::vector<Plane> k;
  std::vector<Plane> v;
  bool v_transposed = false;
  ggml_type k_type = GGML_TYPE_F16;
  ggml_type v_type = GGML_TYPE_F16;
  std::size_t cells = 0;           // of one stream
  std::vector<std::byte> scratch;  // for tensors that are not in host memory

  llama_ubatch batch_of(std::uint32_t stream, TokenPosition first, TokenPosition count);
  // The cell of the first of these positions, if all of them are there.
  std::optional<std::size_t> cell_of(std::uint32_t stream, kv::TokenRange range) const;
  void read(const Plane& plane, std::uint32_t stream, std::size_t offset, std::size_t bytes,
            std::byte* to) const;
  void read_v(const Plane& plane, std::uint32_t stream, std::size_t cell, std::size_t count,
              std::size_t row_bytes, std::byte* to);
  void write_v(const Plane& plane, std::uint32_t stream, std::size_t cell, std::size_t count,
               std::size_t row_bytes, const std::byte* from);
};

// The batch's seq_id pointers point into its own `data`.
llama_ubatch KvRows::Inside::batch_of(std::uint32_t stream, TokenPosition first,
                                      TokenPosition count) {
  llama_ubatch batch = allocator->ubatch_reserve(count, 1);
  batch.data->seq_id_data.assign(count, static_cast<llama_seq_id>(stream));
  for (TokenPosition i = 0; i < count; ++i) {
    batch.pos[i] = static_cast<llama_pos>(first + i);
    batch.n_seq_id[i] = 1;
    batch.seq_id[i] = &batch.data->seq_id_data[i];
  }
  batch.seq_id_unq[0] = static_cast<llama_seq_id>(stream);
  return batch;
}

std::optional<std::size_t> KvRows::Inside::cell_of(std::uint32_t stream,
                                                   kv::TokenRange range) const {
  const llama_kv_cells& in = cache->get_cells(static_cast<llama_seq_id>(stream));
  // Positions ascend with the cells, of which the used ones come first.
  std::size_t cell = 0;
  for (std::size_t count = in.used_max_p1(); count > 0;) {
    const std::size_t middle = cell + count / 2;
    if (!in.is_empty(static_cast<std::uint32_t>(middle)) &&
        in.pos_get(static_cast<std::uint32_t>(middle)) < static_cast<llama_pos>(range.begin)) {
      count -= middle - cell + 1;
      cell = middle + 1;
    } else {
      count = middle - cell;
    }
  }
  if (cell + range.size() > cells) return std::nullopt;
  for (TokenPosition i = 0; i < range.size(); ++i) {
    const auto at = static_cast<std::uint32_t>(cell + i);
    if (in.is_empty(at) || in.pos_get(at) != static_cast<llama_pos>(range.begin + i)) {
      return std::nullopt;
    }
  }
  return cell;
}

void KvRows::Inside::read(const Plane& plane, std::uint32_t stream, std::size_t offset,
                          std::size_t bytes, std::byte* to) const {
  offset += stream * plane.stream_stride;
  if (plane.host != nullptr) {
    std::memcpy(to, plane.host + offset, bytes);
  } else {
    ggml_backend_tensor_get(plane.tensor, to, offset, bytes);
  }
}

void KvRows::Inside::read_v(const Plane& plane, std::uint32_t stream, std::size_t cell,
                            std::size_t count, std::size_t row_bytes, std::byte* to) {
  const std::size_t element = ggml_type_size(v_type);
  const std::size_t rows = row_bytes / element;
  const std::size_t offset = stream * plane.stream_stride + cell * element;
  const std::byte* from = plane.host;
  std::size_t stride = cells;  // in elements
  if (from != nullptr) {
    from += offset;
  } else {
    scratch.resize(rows * count * element);
    ggml_backend_tensor_get_2d(plane.tensor, scratch.data(), offset, count * element, rows,
                               cells * element, count * element);
    from = scratch.data();
    stride = count;
  }
  if (element == 2) {
    transpose(reinterpret_cast<const std::uint16_t*>(from), stride, rows, count,
              reinterpret_cast<std::uint16_t*>(to), rows);
  } else {
    transpose(reinterpret_cast<const std::uint32_t*>(from), stride, rows, count,
              reinterpret_cast<std::uint32_t*>(to), rows);
  }
}

void KvRows::Inside::write_v(const Plane& plane, std::uint32_t stream, std::size_t cell,
                             std::size_t count, std::size_t row_bytes, const std::byte* from) {
  const std::size_t element = ggml_type_size(v_type);
  const std::size_t rows = row_bytes / element;
  const std::size_t offset = stream * plane.stream_stride + cell * element;
  std::byte* to = plane.host;
  std::size_t stride = cells;
  if (to != nullptr) {
    to += offset;
  } else {
    scratch.resize(rows * count * element);
    to = scratch.data();
    stride = count;
  }
  if (element == 2) {
    transpose(reinterpret_cast<const std::uint16_t*>(from), rows, count, rows,
              reinterpret_cast<std::uint16_t*>(to), stride);
  } else {
    transpose(reinterpret_cast<const std::uint32_t*>(from), rows, count, rows,
              reinterpret_cast<std::uint32_t*>(to), stride);
  }
  if (plane.host == nullptr) {
    ggml_backend_tensor_set_2d(plane.tensor, scratch.data(), offset, count * element, rows,
                               cells * element, count * element);
  }
}

KvRows::KvRows(std::unique_ptr<Inside> inside) : inside_(std::move(inside)) {}
KvRows::~KvRows() = default;
KvRows::KvRows(KvRows&&) noexcept = default;
KvRows& KvRows::operator=(KvRows&&) noexcept = default;

Result<KvRows> KvRows::open(llama_context* context, std::uint32_t block_tokens) {
  llama_memory_i* memory = llama_get_memory(context);
  if (memory == nullptr) return not_movable("it keeps none between tokens");
  const llama_model* model = llama_get_model(context);
  if (llama_model_is_hybrid(model)) return not_movable("hybrid (attention and recurrent state)");
  if (llama_model_is_recurrent(model)) return not_movable("recurrent state");
  if (llama_model_n_swa(model) > 0) return not_movable("sliding-window attention");
  if (typeid(*memory) != typeid(llama_kv_cache)) {
    return not_movable("it is not one plain KV cache");
  }
  auto inside = std::make_unique<Inside>();
  inside->cache = static_cast<llama_kv_cache*>(memory);
  if (inside->cache->has_cell_ext()) {
    return not_movable("its cells hold more than a position (M-RoPE or n-gram inputs)");
  }
  inside->allocator.emplace(1u);
  inside->cells = inside->cache->get_size();

  // One cell without data makes the writer show every tensor.
  TensorRecorder recorder;
  {
    const llama_ubatch one = inside->batch_of(0, 0, 1);
    const auto slot = inside->cache->find_slot(one, true);
    if (slot.empty()) return fail(Errc::kInternal, "an empty KV cache has no room for one token");
    inside->cache->apply_ubatch(slot, one);
    inside->cache->state_write(recorder, 0, 0);
    inside->cache->seq_rm(0, -1, -1);
  }

  const std::size_t layers = inside->cache->get_layer_ids().size();
  if (layers == 0 || recorder.seen().size() != 2 * layers) {
    return not_movable("it does not keep one K and one V for each layer (MLA or shared layers)");
  }
  const std::uint32_t streams = inside->cache->get_n_stream();
  for (std::size_t i = 0; i < 2 * layers; ++i) {
    const auto& seen = recorder.seen()[i];
    const bool is_k = i < layers;
    const auto& first = recorder.seen()[is_k ? 0 : layers];
    ggml_tensor* whole = seen.tensor->view_src != nullptr ? seen.tensor->view_src : seen.tensor;
    if (seen.bytes != first.bytes || seen.calls != first.calls ||
        seen.tensor->type != first.tensor->type) {
      return not_movable("its layers differ in size");
    }
    const ggml_type type = seen.tensor->type;
    if (type != GGML_TYPE_F16 && type != GGML_TYPE_BF16 && type != GGML_TYPE_F32) {
      return not_movable(std::string("KV type ") + ggml_type_name(type));
    }
    if (whole->ne[2] != static_cast<std::int64_t>(streams)) {
      return not_movable("its streams share cells");
    }
    if (!is_k && seen.calls > 1 &&
        whole->nb[2] != seen.calls * inside->cells * ggml_type_size(type)) {
      return not_movable("its V is padded");
    }
    Plane plane;
    plane.tensor = whole;
    plane.stream_stride = whole->nb[2];
    if (whole->buffer != nullptr && ggml_backend_buffer_is_host(whole->buffer)) {
      plane.host = static_cast<std::byte*>(whole->data);
      if (i == 0) use_large_pages(whole->buffer);
    }
    (is_k ? inside->k : inside->v).push_back(plane);
  }
  const auto& k = recorder.seen().front();
  const auto& v = recorder.seen().back();
  inside->k_type = k.tensor->type;
  inside->v_type = v.tensor->type;
  inside->v_transposed = v.calls > 1;

  KvRows rows(std::move(inside));
  rows.geometry_.layers = static_cast<std::uint32_t>(layers);
  rows.geometry_.k_row_bytes = static_cast<std::uint32_t>(k.bytes);
  rows.geometry_.v_row_bytes = static_cast<std::uint32_t>(v.bytes);
  rows.geometry_.block_tokens = block_tokens;
  const auto heads = static_cast<std::uint32_t>(std::max(llama_model_n_head_kv(model), 1));
  const std::size_t elements = k.bytes / ggml_type_size(k.tensor->type);
  if (elements % heads == 0) rows.key_heads_ = heads;
  return rows;
}

bool KvRows::holds(std::uint32_t stream, kv::TokenRange range) const {
  return range.empty() || inside_->cell_of(stream, range).has_value();
}

void KvRows::read_keys(std::uint32_t stream, std::uint32_t layer, std::uint32_t head,
                       TokenPosition count, std::vector<float>& keys) const {
  const ggml_type type = inside_->k_type;
  const std::size_t head_bytes = geometry_.k_row_bytes / key_heads_;
  const std::size_t dimension = head_bytes / ggml_type_size(type);
  keys.resize(count * dimension);
  std::vector<std::byte> row(head_bytes);
  for (TokenPosition i = 0; i < count; ++i) {
    inside_->read(inside_->k[layer], stream, i * geometry_.k_row_bytes + head * head_bytes,
                  head_bytes, row.data());
    float* const to = keys.data() + i * dimension;
    if (type == GGML_TYPE_F16) {
      ggml_fp16_to_fp32_row(reinterpret_cast<const ggml_fp16_t*>(row.data()), to,
                            static_cast<std::int64_t>(dimension));
    } else if (type == GGML_TYPE_BF16) {
      ggml_bf16_to_fp32_row(reinterpret_cast<const ggml_bf16_t*>(row.data()), to,
                            static_cast<std::int64_t>(dimension));
    } else {
      std::memcpy(to, row.data(), head_bytes);
    }
  }
}

std::string KvRows::types() const {
  return std::string("k=") + ggml_type_name(inside_->k_type) +
         ",v=" + ggml_type_name(inside_->v_type);
}

std::string KvRows::layout() const {
  return "rows-v1,layers=" + std::to_string(geometry_.layers) +
         ",k=" + std::to_string(geometry_.k_row_bytes) +
         ",v=" + std::to_string(geometry_.v_row_bytes);
}

Status KvRows::check(std::span<const std::byte> rows, TokenPosition count) const {
  const std::uint64_t expected = count * geometry_.bytes_per_token();
  if (rows.size() != expected) {
    return fail(Errc::kInvalidArgument, "rows: " + std::to_string(rows.size()) + " bytes for " +
                                            std::to_string(count) + " positions, expected " +
                                            std::to_string(expected));
  }
  const std::size_t k_bytes = std::size_t{count} * geometry_.layers * geometry_.k_row_bytes;
  if (!all_finite(rows.first(k_bytes), inside_->k_type) ||
      !all_finite(rows.subspan(k_bytes), inside_->v_type)) {
    return fail(Errc::kInvalidArgument, "rows: hold NaN or infinity");
  }
  return {};
}

Status KvRows::copy_out(std::uint32_t stream, kv::TokenRange part, kv::TokenRange whole,
                        std::span<std::byte> rows) const {
  const std::optional<std::size_t> cell = inside_->cell_of(stream, part);
  if (!cell) {
    return fail(Errc::kOutOfOrder, "range: positions " + std::to_string(part.begin) + " to " +
                                       std::to_string(part.end) + " are not all computed");
  }
  const std::size_t count = whole.size();
  const std::size_t skip = part.begin - whole.begin;
  const std::size_t k_row = geometry_.k_row_bytes;
  const std::size_t v_row = geometry_.v_row_bytes;
  std::byte* to = rows.data();
  for (std::size_t l = 0; l < geometry_.layers; ++l) {
    inside_->read(inside_->k[l], stream, *cell * k_row, part.size() * k_row,
                  to + (l * count + skip) * k_row);
  }
  to += geometry_.layers * count * k_row;
  for (std::size_t l = 0; l < geometry_.layers; ++l) {
    std::byte* at = to + (l * count + skip) * v_row;
    if (inside_->v_transposed) {
      inside_->read_v(inside_->v[l], stream, *cell, part.size(), v_row, at);
    } else {
      inside_->read(inside_->v[l], stream, *cell * v_row, part.size() * v_row, at);
    }
  }
  return {};
}

Status KvRows::append(std::uint32_t stream, kv::TokenRange part, kv::TokenRange whole,
                      std::span<const std::byte> rows) {
  const std::size_t count = whole.size();
  const std::size_t k_row = geometry_.k_row_bytes;
  const std::size_t v_row = geometry_.v_row_bytes;
  const auto end = static_cast<TokenPosition>(
      inside_->cache->seq_pos_max(static_cast<llama_seq_id>(stream)) + 1);
  if (part.begin < end) {
    return fail(Errc::kOutOfOrder, "first: " + std::to_string(part.begin) +
                                       " is below the front, which is " + std::to_string(end));
  }
  const std::size_t cell =
      inside_->cache->get_cells(static_cast<llama_seq_id>(stream)).used_max_p1();
  if (cell + part.size() > inside_->cells) {
    return fail(Errc::kContextExceeded, "count: position " + std::to_string(part.end) +
                                            " is beyond the stream's " +
                                            std::to_string(inside_->cells) + " cells");
  }
  // Cells are taken first: that is the only thing that can fail.
  for (TokenPosition at = part.begin; at < part.end; at += kAppendTokens) {
    const TokenPosition n = std::min(kAppendTokens, part.end - at);
    const llama_ubatch batch = inside_->batch_of(stream, at, n);
    const auto slot = inside_->cache->find_slot(batch, true);
    if (slot.empty() || slot.head() != cell + (at - part.begin) || !slot.is_contiguous()) {
      inside_->cache->seq_rm(static_cast<llama_seq_id>(stream), static_cast<llama_pos>(part.begin),
                             -1);
      return fail(Errc::kEngine, "the KV cache has no room at position " + std::to_string(at));
    }
    inside_->cache->apply_ubatch(slot, batch);
  }
  const std::size_t skip = part.begin - whole.begin;
  const std::byte* from = rows.data();
  for (std::size_t l = 0; l < geometry_.layers; ++l) {
    const Plane& plane = inside_->k[l];
    const std::size_t offset = stream * plane.stream_stride + cell * k_row;
    const std::byte* source = from + (l * count + skip) * k_row;
    if (plane.host != nullptr) {
      std::memcpy(plane.host + offset, source, part.size() * k_row);
    } else {
      ggml_backend_tensor_set(plane.tensor, source, offset, part.size() * k_row);
    }
  }
  from += geometry_.layers * count * k_row;
  for (std::size_t l = 0; l < geometry_.layers; ++l) {
    const Plane& plane = inside_->v[l];
    const std::byte* source = from + (l * count + skip) * v_row;
    if (inside_->v_transposed) {
      inside_->write_v(plane, stream, cell, part.size(), v_row, source);
      continue;
    }
    const std::size_t offset = stream * plane.stream_stride + cell * v_row;
    if (plane.host != nullptr) {
      std::memcpy(plane.host + offset, source, part.size() * v_row);
    } else {
      ggml_backend_tensor_set(plane.tensor, source, offset, part.size() * v_row);
    }
  }
  return {};
}

}  // namespace pallas::engine
