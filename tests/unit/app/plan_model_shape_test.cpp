#include "plan_model_shape.h"

#include <gtest/gtest.h>

#include <sstream>

namespace pallas::app {
namespace {

// Writes GGUF headers, good and bad.
class Gguf {
 public:
  explicit Gguf(std::uint32_t version = 3) : version_(version) {}

  Gguf& number(const std::string& key, std::uint32_t value) {
    begin(key, 4);
    put(value, 4);
    return *this;
  }
  Gguf& text(const std::string& key, const std::string& value) {
    begin(key, 8);
    put_text(value);
    return *this;
  }
  Gguf& list(const std::string& key, const std::vector<std::uint32_t>& values) {
    begin(key, 9);
    put(4, 4);
    put(values.size(), 8);
    for (const auto value : values) put(value, 4);
    return *this;
  }
  Gguf& texts(const std::string& key, const std::vector<std::string>& values) {
    begin(key, 9);
    put(8, 4);
    put(values.size(), 8);
    for (const auto& value : values) put_text(value);
    return *this;
  }
  Gguf& raw(const std::string& key, std::uint32_t type, const std::string& bytes) {
    begin(key, type);
    pairs_ += bytes;
    return *this;
  }
  std::string bytes() const {
    Gguf head(version_);
    head.put(version_, 4);
    head.put(7, 8);  // tensors; they are not read
    head.put(count_, 8);
    return "GGUF" + head.pairs_ + pairs_;
  }

 private:
  void begin(const std::string& key, std::uint32_t type) {
    ++count_;
    put_text(key);
    put(type, 4);
  }
  void put(std::uint64_t value, int bytes) {
    for (int k = 0; k < bytes; ++k) pairs_ += static_cast<char>(value >> (8 * k) & 0xff);
  }
  void put_text(const std::string& value) {
    put(value.size(), 8);
    pairs_ += value;
  }

  std::uint32_t version_;
  std::uint64_t count_ = 0;
  std::string pairs_;
};

Result<ModelShape> read(const std::string& bytes) {
  std::istringstream in(bytes);
  return read_gguf_shape(in);
}

// SmolLM2-135M: 30 layers, 3 of 9 heads with KV, 576 wide.
Gguf smol() {
  Gguf gguf;
  gguf.text("general.architecture", "llama")
      .text("general.name", "small")
      .texts("tokenizer.ggml.tokens", {"a", "", "longer"})
      .number("llama.block_count", 30)
      .number("llama.embedding_length", 576)
      .number("llama.attention.head_count", 9)
      .number("llama.attention.head_count_kv", 3);
  return gguf;
}

TEST(ModelShape, the_papers_models_have_the_papers_bytes) {
  EXPECT_EQ(find_model_shape("llama-3-8b")->kv_bytes_per_token, 131'072u);
  EXPECT_EQ(find_model_shape("qwen3-14b")->kv_bytes_per_token, 163'840u);
  EXPECT_EQ(find_model_shape("qwen3-32b")->kv_bytes_per_token, 262'144u);
  EXPECT_EQ(known_model_shapes().size(), 3u);
}

TEST(ModelShape, a_name_that_is_neither_known_nor_a_file_is_answered_with_those_known) {
  const auto shape = find_model_shape("/nonexistent.gguf");
  ASSERT_FALSE(shape);
  EXPECT_EQ(shape.error().code, Errc::kNotFound);
  EXPECT_NE(shape.error().message.find("qwen3-14b"), std::string::npos);
}

TEST(ModelShape, a_file_gives_layers_heads_and_width) {
  const auto shape = read(smol().bytes());
  ASSERT_TRUE(shape) << shape.error().message;
  EXPECT_EQ(shape->name, "llama");
  EXPECT_EQ(shape->kv_bytes_per_token, 23'040u);
  EXPECT_FALSE(shape->prefill_rate);
}

TEST(ModelShape, given_row_lengths_win_over_the_width) {
  Gguf gguf;
  gguf.text("general.architecture", "qwen3")
      .number("qwen3.block_count", 40)
      .number("qwen3.embedding_length", 5120)
      .number("qwen3.attention.head_count", 40)
      .number("qwen3.attention.head_count_kv", 8)
      .number("qwen3.attention.key_length", 128)
      .number("qwen3.attention.value_length", 128);
  EXPECT_EQ(read(gguf.bytes())->kv_bytes_per_token, 163'840u);
}

TEST(ModelShape, layers_may_differ_and_every_head_may_have_its_own_kv) {
  Gguf differ;
  differ.text("general.architecture", "x")
      .number("x.block_count", 3)
      .number("x.embedding_length", 64)
      .number("x.attention.head_count", 8)
      .list("x.attention.head_count_kv", {4, 0, 2});
  EXPECT_EQ(read(differ.bytes())->kv_bytes_per_token, 6 * 16 * 2u);
  Gguf own;
  own.text("general.architecture", "x")
      .number("x.block_count", 2)
      .number("x.embedding_length", 64)
      .number("x.attention.head_count", 8);
  EXPECT_EQ(read(own.bytes())->kv_bytes_per_token, 2 * 8 * 16 * 2u);
}

TEST(ModelShape, what_is_missing_or_out_of_range_is_named) {
  const auto refused = [](const std::string& bytes) {
    const auto shape = read(bytes);
    return shape ? std::string("accepted") : shape.error().message;
  };
  EXPECT_NE(refused("").find("GGUF"), std::string::npos);
  EXPECT_NE(refused("GGML").find("GGUF"), std::string::npos);
  EXPECT_NE(refused(Gguf(1).bytes()).find("version"), std::string::npos);
  EXPECT_NE(refused(Gguf().bytes()).find("general.architecture"), std::string::npos);
  Gguf bare;
  bare.text("general.architecture", "x");
  EXPECT_NE(refused(bare.bytes()).find("x.block_count"), std::string::npos);
  bare.number("x.block_count", 0);
  EXPECT_NE(refused(bare.bytes()).find("x.block_count"), std::string::npos);
  Gguf wrong_list;
  wrong_list.text("general.architecture", "x")
      .number("x.block_count", 3)
      .number("x.embedding_length", 64)
      .number("x.attention.head_count", 8)
      .list("x.attention.head_count_kv", {4, 2});
  EXPECT_NE(refused(wrong_list.bytes()).find("head_count_kv"), std::string::npos);
}

TEST(ModelShape, claims_are_not_believed) {
  const std::string huge(8, '\x7f');
  for (const std::uint32_t type : {8u, 9u, 10u, 13u, 255u}) {
    Gguf gguf;
    gguf.text("general.architecture", "x").raw("x.block_count", type, huge);
    EXPECT_FALSE(read(gguf.bytes())) << type;
  }
  Gguf nested;  // a list of lists
  nested.raw("k", 9, std::string("\x09\0\0\0\x01\0\0\0\0\0\0\0", 12));
  EXPECT_FALSE(read(nested.bytes()));
}

TEST(ModelShape, a_file_cut_anywhere_is_refused) {
  const std::string whole = smol().bytes();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(read(whole.substr(0, size))) << size;
  }
}

}  // namespace
}  // namespace pallas::app
