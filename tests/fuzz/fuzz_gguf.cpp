#include <cstring>

#include "fuzz/fuzzer.h"
#include "model/gguf/gguf_file.h"
#include "model/gguf/gguf_tokenizer.h"

namespace tenon {
namespace {

template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}
void put_text(std::string& out, std::string_view text) {
  put(out, static_cast<std::uint64_t>(text.size()));
  out += text;
}
void put_texts(std::string& out, std::string_view key, std::initializer_list<std::string_view> values) {
  put_text(out, key);
  put<std::uint32_t>(out, 9);
  put<std::uint32_t>(out, 8);
  put<std::uint64_t>(out, values.size());
  for (const std::string_view value : values) put_text(out, value);
}

// A tokenizer and two tensors: 32 floats, and a row of two Q4_0 blocks.
std::string small_file(std::uint32_t version) {
  std::string out = "GGUF";
  put(out, version);
  put<std::uint64_t>(out, 2);
  put<std::uint64_t>(out, 5);
  put_text(out, "general.alignment");
  put<std::uint32_t>(out, 4);
  put<std::uint32_t>(out, 32);
  put_text(out, "tokenizer.ggml.model");
  put<std::uint32_t>(out, 8);
  put_text(out, "gpt2");
  put_texts(out, "tokenizer.ggml.tokens", {"a", "b", "ab"});
  put_texts(out, "tokenizer.ggml.merges", {"a b"});
  put_text(out, "tokenizer.ggml.scores");
  put<std::uint32_t>(out, 9);
  put<std::uint32_t>(out, 6);
  put<std::uint64_t>(out, 3);
  for (const float score : {0.0f, -1.0f, -2.0f}) put(out, score);
  put_text(out, "norm");
  put<std::uint32_t>(out, 1);
  put<std::uint64_t>(out, 32);
  put<std::uint32_t>(out, 0);
  put<std::uint64_t>(out, 0);
  put_text(out, "weight");
  put<std::uint32_t>(out, 2);
  put<std::uint64_t>(out, 64);
  put<std::uint64_t>(out, 1);
  put<std::uint32_t>(out, 2);
  put<std::uint64_t>(out, 128);
  out.resize((out.size() + 31) / 32 * 32);
  out.resize(out.size() + 128 + 36, '\x11');
  return out;
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
