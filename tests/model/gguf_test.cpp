#include "model/gguf/gguf_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "model/gguf/gguf_tokenizer.h"
#include "source_folder.h"
#include "tenon/error.h"
#include "tenon/model/tokenizer.h"

namespace tenon::gguf {
namespace {

std::filesystem::path fixture(const char* name) { return source_folder() / "tests/model/gguf" / name; }

std::vector<std::byte> bytes_of(const char* name) {
  const std::unique_ptr<ByteSource> source = open_source(fixture(name));
  std::vector<std::byte> bytes(source->size());
  source->read(0, bytes);
  return bytes;
}

GgufFile parse(const std::vector<std::byte>& bytes) { return GgufFile::read(std::make_shared<MemorySource>(bytes, "gguf data")); }

ErrorCode error_of(const std::vector<std::byte>& bytes) {
  try {
    parse(bytes);
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::ok;
}

TEST(Gguf, ReadsMetadataAndTensors) {
  const GgufFile file = GgufFile::open(fixture("llama_q4_1.gguf"));
  EXPECT_EQ(file.version(), 3);
  EXPECT_EQ(file.text("general.architecture"), "llama");
  EXPECT_EQ(file.integer("llama.block_count"), 2);
  EXPECT_EQ(file.list("tokenizer.ggml.tokens")->size(), 288u);
  const TensorInfo& q = file.tensor("blk.0.attn_k.weight");
  EXPECT_EQ(name(q.type), "Q4_1");
  EXPECT_EQ(q.shape, (std::vector<std::int64_t>{32, 64}));
  EXPECT_EQ(q.bytes, 32u * 2 * 20);
  EXPECT_FALSE(file.integer("no.such.key"));
}

// The expected values are those of the gguf package of ggml's authors.
TEST(Gguf, DequantisesEveryTypeLikeItsAuthors) {
  const GgufFile file = GgufFile::open(fixture("blocks.gguf"));
  int types = 0;
  for (const TensorInfo& tensor : file.tensors()) {
    if (tensor.name.ends_with(".expected")) continue;
    const std::vector<float> expected = file.floats(file.tensor(tensor.name + ".expected")), values = file.floats(tensor);
    ASSERT_EQ(values.size(), expected.size()) << tensor.name;
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_NEAR(values[i], expected[i], 1e-6 * (1 + std::abs(expected[i]))) << tensor.name << " element " << i;
    ++types;
  }
  EXPECT_EQ(types, 15);
}

TEST(Gguf, ReadsSingleRows) {
  const GgufFile file = GgufFile::open(fixture("blocks.gguf"));
  const TensorInfo& tensor = file.tensor("Q6_K");
  const std::vector<float> all = file.floats(tensor), second = file.floats(tensor, 1, 1);
  EXPECT_EQ(std::vector<float>(all.begin() + 512, all.end()), second);
  EXPECT_THROW(file.floats(tensor, 1, 2), Error);
}

TEST(Gguf, RefusesCountsThatTheFileCannotHold) {
  std::vector<std::byte> bytes = bytes_of("llama_q4_1.gguf");
  for (const std::size_t place : {std::size_t{8}, std::size_t{16}, std::size_t{24}}) {
    std::vector<std::byte> huge = bytes;
    const std::uint64_t count = std::uint64_t{1} << 60;
    std::memcpy(huge.data() + place, &count, sizeof count);
    EXPECT_EQ(error_of(huge), ErrorCode::invalid_argument) << place;
  }
}

TEST(Gguf, RefusesOtherVersionsAndOrders) {
  std::vector<std::byte> bytes = bytes_of("llama_q4_1.gguf");
  bytes[4] = std::byte{1};
  EXPECT_EQ(error_of(bytes), ErrorCode::unimplemented);
  bytes[4] = std::byte{0};
  bytes[7] = std::byte{3};
  EXPECT_EQ(error_of(bytes), ErrorCode::unimplemented);
}

TEST(Gguf, RefusesEveryPrefix) {
  const std::vector<std::byte> bytes = bytes_of("llama_q4_1.gguf");
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    std::vector<std::byte> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(random() % (bytes.size() - 1)));
    EXPECT_NE(error_of(cut), ErrorCode::ok) << cut.size();
  }
}

TEST(GgufTokenizer, SplitsDigitsAndJoinsBytes) {
  const Tokenizer tokenizer = Tokenizer::parse(tokenizer_json(GgufFile::open(fixture("llama_q4_1.gguf"))));
  const auto texts = [&](std::string_view text) {
    std::vector<std::string> out;
    for (const std::int32_t id : tokenizer.encode(text).ids) out.push_back(*tokenizer.token_of(id));
    return out;
  };
  EXPECT_EQ(texts("hello world 12"), (std::vector<std::string>{"hello", "Ġworld", "Ġ", "1", "2"}));
  EXPECT_EQ(texts("the<|im_end|>"), (std::vector<std::string>{"the", "<|im_end|>"}));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("hello wörld").ids), "hello wörld");
}

TEST(GgufTokenizer, LeavesControlTokensAloneWhereAsked) {
  const GgufFile file = GgufFile::open(fixture("llama_q4_1.gguf"));
  const std::vector<std::int32_t> ids = Tokenizer::parse(tokenizer_json(file, false)).encode("<|im_end|>").ids;
  EXPECT_GT(ids.size(), 1u);
}

// Ids as llama.cpp gives them for this file.
TEST(GgufTokenizer, JoinsPiecesByTheirScores) {
  const Tokenizer tokenizer = Tokenizer::parse(tokenizer_json(GgufFile::open(fixture("qwen2_f16.gguf"))));
  const auto id = [&](std::string_view token) { return *tokenizer.id_of(token); };
  EXPECT_EQ(tokenizer.encode("hello world").ids, (std::vector<std::int32_t>{1, id("▁hello"), id("▁world")}));
  EXPECT_EQ(tokenizer.encode("the z").ids, (std::vector<std::int32_t>{1, id("▁the"), id("▁"), id("<0x7A>")}));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("hello world").ids), "hello world");
}

}  // namespace
}  // namespace tenon::gguf
