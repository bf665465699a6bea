#include "model/decoder/architecture.h"

#include <fmt/format.h>

#include <cmath>

#include "base/text/printable.h"
#include "tenon/error.h"

namespace tenon::decoder {
namespace {

class Numbers {
 public:
  Numbers(const gguf::GgufFile& file, const std::string& name) : file_(file), prefix_(name + ".") {}

  std::int64_t size(std::string_view key) const {
    const std::optional<std::int64_t> value = file_.integer(prefix_ + std::string(key));
    if (!value) throw Error(ErrorCode::invalid_argument, fmt::format("the file does not say '{}{}'", prefix_, key));
    return checked(*value, key);
  }
  std::int64_t size(std::string_view key, std::int64_t fallback) const {
    return checked(file_.integer(prefix_ + std::string(key)).value_or(fallback), key);
  }
  double number(std::string_view key, double fallback) const {
    const double value = file_.number(prefix_ + std::string(key)).value_or(fallback);
    if (!(value > 0) || !std::isfinite(value))
      throw Error(ErrorCode::invalid_argument, fmt::format("'{}{}' is {}", prefix_, key, value));
    return value;
  }
  std::string text(std::string_view key) const { return file_.text(prefix_ + std::string(key)).value_or(""); }

 private:
  std::int64_t checked(std::int64_t value, std::string_view key) const {
    if (value < 0 || value > (std::int64_t{1} << 24))
      throw Error(ErrorCode::invalid_argument, fmt::format("'{}{}' is {}", prefix_, key, value));
    return value;
  }
  const gguf::GgufFile& file_;
  const std::string prefix_;
};

void require(bool condition, const std::string& what) {
  if (!condition) throw Error(ErrorCode::invalid_argument, what);
}

void add_frequencies(const gguf::GgufFile& file, const Numbers& numbers, Architecture& a) {
  const double base = numbers.number("rope.freq_base", 10000);
  const std::string scaling = numbers.text("rope.scaling.type");
  if (scaling != "" && scaling != "none" && scaling != "linear")
    throw Error(ErrorCode::unimplemented, fmt::format("positions scaled by '{}' are not supported", printable(scaling)));
  const double factor = scaling == "linear" ? numbers.number("rope.scaling.factor", 1) : 1;
  std::vector<float> divisors(static_cast<std::size_t>(a.rotated / 2), 1.0f);
  if (const gguf::TensorInfo* tensor = file.find_tensor("rope_freqs.weight")) {
    require(tensor->elements() == a.rotated / 2, "'rope_freqs.weight' does not have one factor per pair");
    divisors = file.floats(*tensor);
  }
  for (std::int64_t i = 0; i < a.rotated / 2; ++i)
    a.frequencies.push_back(std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(a.rotated)) / factor /
                            static_cast<double>(divisors[static_cast<std::size_t>(i)]));
}

}  // namespace

Architecture architecture_of(const gguf::GgufFile& file) {
  Architecture a;
  a.name = file.text("general.architecture").value_or("");
  if (a.name != "llama" && a.name != "qwen2" && a.name != "qwen3")
    throw Error(ErrorCode::unimplemented, fmt::format("the architecture '{}' is not supported", printable(a.name)),
                "supported are: llama (Llama, Mistral, SmolLM), qwen2, qwen3");
  const Numbers numbers(file, a.name);
  if (numbers.size("expert_count", 0) > 0) throw Error(ErrorCode::unimplemented, "mixtures of experts are not supported");
  a.layers = numbers.size("block_count");
  a.width = numbers.size("embedding_length");
  a.feed_forward = numbers.size("feed_forward_length");
  a.heads = numbers.size("attention.head_count");
  a.kv_heads = numbers.size("attention.head_count_kv", a.heads);
  a.context = numbers.size("context_length", 2048);
  // A layer sees at most this many earlier tokens; shorter sequences are not affected.
  if (const std::int64_t window = numbers.size("attention.sliding_window", 0); window > 0)
    a.context = std::min(a.context, window);
  a.norm_eps = numbers.number("attention.layer_norm_rms_epsilon", 1e-5);
  require(a.layers > 0 && a.layers <= 1024 && a.width > 0 && a.feed_forward > 0 && a.heads > 0 && a.context > 0,
          "a size of the model is 0, or it has more than 1024 layers");
  a.head_width = numbers.size("attention.key_length", a.width / a.heads);
  require(a.kv_heads > 0 && a.heads % a.kv_heads == 0, fmt::format("{} heads cannot share {}", a.heads, a.kv_heads));
  require(a.head_width > 0 && numbers.size("attention.value_length", a.head_width) == a.head_width,
          "keys and values differ in width");
  a.rotated = numbers.size("rope.dimension_count", a.head_width);
  require(a.rotated % 2 == 0 && a.rotated <= a.head_width, "'rope.dimension_count' does not fit the heads");
  a.pairs_neighbours = a.name == "llama";
  add_frequencies(file, numbers, a);
  const gguf::TensorInfo& embedding = file.tensor("token_embd.weight");
  require(embedding.shape.size() == 2 && embedding.columns() == a.width, "'token_embd.weight' has the wrong shape");
  a.vocabulary = embedding.rows();
  return a;
}

}  // namespace tenon::decoder
