#include "fuzz/fuzzer.h"
#include "fuzz/model/gguf_bytes.h"
#include "model/gguf/gguf_file.h"
#include "model/gguf/gguf_tokenizer.h"

namespace tenon {
namespace {

// A tokenizer and two tensors: 32 floats, and a row of two Q4_0 blocks.
std::string small_file(std::uint32_t version) {
  fuzz::GgufBytes out;
  out.integer("general.alignment", 32).text("tokenizer.ggml.model", "gpt2").texts("tokenizer.ggml.tokens", {"a", "b", "ab"});
  out.texts("tokenizer.ggml.merges", {"a b"}).reals("tokenizer.ggml.scores", {0.0f, -1.0f, -2.0f});
  return out.tensor("norm", {32}, 0, 128).tensor("weight", {64, 1}, 2, 36).file(version);
}

fuzz::Target make_target() {
  fuzz::Target target{.name = "gguf"};
  target.seeds = {small_file(3), small_file(2)};
  target.words = {
      "GGUF",  std::string("\x09\0\0\0", 4), std::string("\x08\0\0\0", 4), std::string(8, '\xff'), std::string(8, '\0'),
      "llama", "tokenizer.ggml.token_type"};
  target.parse = [](fuzz::Bytes bytes) {
    const gguf::GgufFile file = gguf::GgufFile::read(std::make_shared<MemorySource>(bytes, "gguf data"));
    for (const gguf::TensorInfo& tensor : file.tensors()) {
      fuzz::require(tensor.offset + tensor.bytes <= bytes.size(), "a tensor beyond the file");
      (void)file.floats(tensor, tensor.rows() - 1, 1);
    }
    (void)gguf::tokenizer_json(file);
  };
  target.bound = [](std::size_t bytes) { return 256 * bytes + (4 << 20); };
  return target;
}

}  // namespace

const fuzz::Target& fuzz::target() {
  static const Target target = make_target();
  return target;
}

}  // namespace tenon
