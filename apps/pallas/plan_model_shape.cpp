#include "plan_model_shape.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <map>

namespace pallas::app {
namespace {

// Rates and T_0 as they fit the paper's tables (Pallas on A6000).
struct Known {
  const char* name;
  std::uint64_t kv_bytes;
  double prefill_rate, decode_rate, activation_s;
};
constexpr std::array<Known, 3> kKnown{{{"llama-3-8b", 131'072, 6526, 39.8, 0.152},
                                       {"qwen3-14b", 163'840, 3434, 22.0, 0.2355},
                                       {"qwen3-32b", 262'144, 1808, 15.0, 0.322}}};

constexpr std::uint64_t kMaxPairs = 1u << 16;
constexpr std::uint64_t kMaxKeyBytes = 1u << 12;
constexpr std::uint64_t kMaxStringBytes = 1u << 26;
constexpr std::uint64_t kMaxItems = 1u << 24;  // of one array; a vocabulary has some 10^5
constexpr std::uint64_t kMaxLayers = 4096, kMaxHeads = 1u << 16, kMaxWidth = 1u << 24;

// Types of values in a GGUF header.
enum class Type : std::uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};

// 0 for those without a fixed size, and for types that do not exist.
std::size_t size_of(Type type) {
  switch (type) {
    case Type::kUint8:
    case Type::kInt8:
    case Type::kBool:
      return 1;
    case Type::kUint16:
    case Type::kInt16:
      return 2;
    case Type::kUint32:
    case Type::kInt32:
    case Type::kFloat32:
      return 4;
    case Type::kUint64:
    case Type::kInt64:
    case Type::kFloat64:
      return 8;
    case Type::kString:
    case Type::kArray:
      return 0;
  }
  return 0;
}

bool is_whole(Type type) {
  return size_of(type) > 0 && type != Type::kFloat32 && type != Type::kFloat64 &&
         type != Type::kBool;
}

Failure bad(const std::string& what) {
  return fail(Errc::kParse, "not a GGUF header that can be read: " + what);
}

// What the shape is computed from: whole numbers, alone or in lists, and the architecture.
struct Header {
  std::string architecture;
  std::map<std::string, std::vector<std::uint64_t>> numbers;
};

class HeaderReader {
 public:
  explicit HeaderReader(std::istream& in) : in_(in) {}

  Result<Header> read() {
    char magic[4] = {};
    if (!in_.read(magic, 4) || std::memcmp(magic, "GGUF", 4) != 0) {
      return bad("it does not begin with 'GGUF'");
    }
    const auto version = number(4);
    if (!version || *version < 2 || *version > 3) return bad("its version is neither 2 nor 3");
    const auto tensors = number(8), pairs = number(8);
    if (!tensors || !pairs) return bad("it ends early");
    if (*pairs > kMaxPairs) return bad("it claims " + std::to_string(*pairs) + " keys");
    for (std::uint64_t k = 0; k < *pairs; ++k) {
      if (auto status = read_pair(); !status) return Failure(status.error());
    }
    return std::move(header_);
  }

 private:
  // Little-endian, none at the end of the file.
  std::optional<std::uint64_t> number(std::size_t bytes) {
    std::array<unsigned char, 8> raw{};
    if (!in_.read(reinterpret_cast<char*>(raw.data()), static_cast<std::streamsize>(bytes))) {
      return std::nullopt;
    }
    std::uint64_t value = 0;
    for (std::size_t k = bytes; k-- > 0;) value = value << 8 | raw[k];
    return value;
  }

  // None when it is longer than `limit` or the file ends.
  std::optional<std::string> text(std::uint64_t limit) {
    const auto size = number(8);
    if (!size || *size > limit) return std::nullopt;
    std::string value(static_cast<std::size_t>(*size), '\0');
    if (!in_.read(value.data(), static_cast<std::streamsize>(*size))) return std::nullopt;
    return value;
  }

  bool skip(std::uint64_t bytes) {
    in_.ignore(static_cast<std::streamsize>(bytes));
    return static_cast<std::uint64_t>(in_.gcount()) == bytes;
  }

  bool skip_text() {
    const auto size = number(8);
    return size && *size <= kMaxStringBytes && skip(*size);
  }

  Status read_pair() {
    const auto key = text(kMaxKeyBytes);
    if (!key) return bad("a key is too long, or the file ends");
    const auto type = number(4);
    if (!type) return bad("it ends after key '" + *key + "'");
    const auto t = static_cast<Type>(*type);
    const Failure broken = bad("the value of '" + *key + "'");
    if (t == Type::kString) {
      if (*key != "general.architecture") return skip_text() ? Status{} : Status(broken);
      const auto name = text(kMaxKeyBytes);
      if (!name) return broken;
      header_.architecture = *name;
      return {};
    }
    if (t == Type::kArray) return read_array(*key, broken);
    if (size_of(t) == 0) return broken;
    const auto value = number(size_of(t));
    if (!value) return broken;
    if (is_whole(t)) header_.numbers[*key] = {*value};
    return {};
  }

  Status read_array(const std::string& key, const Failure& broken) {
    const auto type = number(4), count = number(8);
    if (!type || !count || *count > kMaxItems) return broken;
    const auto t = static_cast<Type>(*type);
    if (t == Type::kString) {
      for (std::uint64_t k = 0; k < *count; ++k) {
        if (!skip_text()) return broken;
      }
      return {};
    }
    const std::size_t size = size_of(t);
    if (size == 0) return broken;
    if (!is_whole(t) || *count > kMaxLayers) return skip(*count * size) ? Status{} : Status(broken);
    std::vector<std::uint64_t> values;
    for (std::uint64_t k = 0; k < *count; ++k) {
      const auto value = number(size);
      if (!value) return broken;
      values.push_back(*value);
    }
    header_.numbers[key] = std::move(values);
    return {};
  }

  std::istream& in_;
  Header header_;
};

Result<ModelShape> shape_of(const Header& header) {
  if (header.architecture.empty()) return bad("'general.architecture' is missing");
  const auto list = [&](const std::string& name) -> const std::vector<std::uint64_t>* {
    const auto found = header.numbers.find(header.architecture + "." + name);
    return found == header.numbers.end() || found->second.empty() ? nullptr : &found->second;
  };
  const auto one = [&](const std::string& name, std::uint64_t limit) -> Result<std::uint64_t> {
    const auto* values = list(name);
    const std::string key = "'" + header.architecture + "." + name + "'";
    if (values == nullptr) return bad(key + " is missing");
    if (values->front() == 0 || values->front() > limit) return bad(key + " is out of range");
    return values->front();
  };
  const auto layers = one("block_count", kMaxLayers);
  if (!layers) return Failure(layers.error());

  // Rows of K and V: as given, else an equal share of the model's width.
  std::uint64_t width = 0;
  for (const char* name : {"attention.key_length", "attention.value_length"}) {
    if (list(name) != nullptr) {
      const auto given = one(name, kMaxWidth);
      if (!given) return Failure(given.error());
      width += *given;
      continue;
    }
    const auto all = one("embedding_length", kMaxWidth);
    if (!all) return Failure(all.error());
    const auto heads = one("attention.head_count", kMaxHeads);
    if (!heads) return Failure(heads.error());
    width += *all / *heads;
  }

  // One number for all layers, or one for each; absent where every head has its own K and V.
  const std::string heads_name = list("attention.head_count_kv") != nullptr
                                     ? "attention.head_count_kv"
                                     : "attention.head_count";
  const auto* heads = list(heads_name);
  if (heads == nullptr) return bad("'" + header.architecture + "." + heads_name + "' is missing");
  if (heads->size() != 1 && heads->size() != *layers) {
    return bad("'" + header.architecture + "." + heads_name + "' has not one value a layer");
  }
  std::uint64_t total = 0;
  for (std::uint64_t k = 0; k < *layers; ++k) {
    const std::uint64_t in_layer = heads->size() == 1 ? heads->front() : (*heads)[k];
    if (in_layer > kMaxHeads) {
      return bad("'" + header.architecture + "." + heads_name + "' is out of range");
    }
    total += in_layer;
  }
  constexpr std::uint64_t kBytesPerNumber = 2;
  ModelShape shape;
  shape.name = header.architecture;
  shape.kv_bytes_per_token = total * width * kBytesPerNumber;
  if (shape.kv_bytes_per_token == 0) return bad("it describes a model without a KV cache");
  return shape;
}

}  // namespace

std::vector<std::string> known_model_shapes() {
  std::vector<std::string> names;
  for (const Known& known : kKnown) names.emplace_back(known.name);
  return names;
}

Result<ModelShape> find_model_shape(const std::string& name_or_path) {
  std::string names;
  for (const Known& known : kKnown) {
    if (name_or_path == known.name) {
      return ModelShape{known.name, known.kv_bytes, known.prefill_rate, known.decode_rate,
                        known.activation_s};
    }
    names += (names.empty() ? "" : ", ") + std::string(known.name);
  }
  std::ifstream in(name_or_path, std::ios::binary);
  if (!in) {
    return fail(Errc::kNotFound, "'" + name_or_path + "' is neither one of " + names +
                                     " nor a file that can be opened");
  }
  auto shape = read_gguf_shape(in);
  if (!shape) return fail(shape.error().code, "'" + name_or_path + "': " + shape.error().message);
  return shape;
}

Result<ModelShape> read_gguf_shape(std::istream& in) {
  const auto header = HeaderReader(in).read();
  if (!header) return Failure(header.error());
  return shape_of(*header);
}

}  // namespace pallas::app
