#include "model/decoder/architecture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text/printable.h"
#include "tenon/error.h"

namespace tenon::decoder {
namespace {

class Numbers {
 public:
  Numbers(const gguf::Source& source, const std::string& name) : source_(source), prefix_(name + ".") {}

  std::int64_t size(std::string_view key) const {
    const std::optional<std::int64_t> value = source_.integer(prefix_ + std::string(key));
    if (!value) throw Error(ErrorCode::invalid_argument, fmt::format("the model does not say '{}{}'", prefix_, key));
    return checked(*value, key);
  }
  std::int64_t size(std::string_view key, std::int64_t fallback) const {
    return checked(source_.integer(prefix_ + std::string(key)).value_or(fallback), key);
  }
  double number(std::string_view key, double fallback) const {
    const double value = source_.number(prefix_ + std::string(key)).value_or(fallback);
    if (!(value > 0) || !std::isfinite(value))
      throw Error(ErrorCode::invalid_argument, fmt::format("'{}{}' is {}", prefix_, key, value));
    return value;
  }
  bool has(std::string_view key) const { return source_.metadata().contains(prefix_ + std::string(key)); }
  std::string text(std::string_view key) const { return source_.text(prefix_ + std::string(key)).value_or(""); }
  bool flag(std::string_view key, bool fallback) const { return source_.boolean(prefix_ + std::string(key)).value_or(fallback); }

 private:
  std::int64_t checked(std::int64_t value, std::string_view key) const {
    if (value < 0 || value > (std::int64_t{1} << 24))
      throw Error(ErrorCode::invalid_argument, fmt::format("'{}{}' is {}", prefix_, key, value));
    return value;
  }
  const gguf::Source& source_;
  const std::string prefix_;
};

void require(bool condition, const std::string& what) {
  if (!condition) throw Error(ErrorCode::invalid_argument, what);
}

// How a family differs from Llama, as far as its name alone says it.
struct Family {
  std::string_view name;
  bool pairs_neighbours = false, is_centred = false, is_gated = true, scales_embedding = false;
  Activation activation = Activation::silu;
  std::int64_t full_layer_every = 1;  // of this many layers the last one is not windowed
};
constexpr Family kFamilies[] = {
    {.name = "llama", .pairs_neighbours = true},
    {.name = "qwen2"},
    {.name = "qwen3"},
    {.name = "phi3"},
    {.name = "granite", .pairs_neighbours = true},
    {.name = "olmo2"},
    {.name = "smollm3", .pairs_neighbours = true},
    {.name = "gemma", .scales_embedding = true, .activation = Activation::gelu_tanh},
    {.name = "gemma2", .scales_embedding = true, .activation = Activation::gelu_tanh, .full_layer_every = 2},
    {.name = "gemma3", .scales_embedding = true, .activation = Activation::gelu_tanh, .full_layer_every = 6},
    {.name = "gpt2", .is_centred = true, .is_gated = false, .activation = Activation::gelu_tanh},
    {.name = "gptneox", .is_centred = true, .is_gated = false, .activation = Activation::gelu},
    {.name = "starcoder2", .is_centred = true, .is_gated = false, .activation = Activation::gelu_tanh},
};

const Family& family_of(const std::string& name) {
  for (const Family& family : kFamilies)
    if (family.name == name) return family;
  std::string known;
  for (const Family& family : kFamilies) known += fmt::format("{}{}", known.empty() ? "" : ", ", family.name);
  throw Error(ErrorCode::unimplemented, fmt::format("the architecture '{}' is not supported", printable(name)),
              fmt::format("supported are: {}", known));
}

Activation activation_of(const std::string& name) {
  if (name == "silu" || name == "swish") return Activation::silu;
  if (name == "gelu") return Activation::gelu;
  if (name == "gelu_new" || name == "gelu_fast" || name == "gelu_pytorch_tanh") return Activation::gelu_tanh;
  if (name == "relu") return Activation::relu;
  throw Error(ErrorCode::unimplemented, fmt::format("the activation '{}' is not supported", printable(name)));
}

void add_frequencies(const gguf::Source& source, const Numbers& numbers, Architecture& a) {
  const auto pairs = static_cast<std::size_t>(a.rotated / 2);
  const std::string scaling = numbers.text("rope.scaling.type");
  if (scaling != "" && scaling != "none" && scaling != "linear" && scaling != "longrope")
    throw Error(ErrorCode::unimplemented, fmt::format("positions scaled by '{}' are not supported", printable(scaling)));
  const double factor = scaling == "linear" ? numbers.number("rope.scaling.factor", 1) : 1;
  std::vector<double> divisors(pairs, 1.0);
  const gguf::TensorInfo *shared = source.find_tensor("rope_freqs.weight"),
                         *near = source.find_tensor("rope_factors_short.weight");
  if (const gguf::TensorInfo* tensor = shared ? shared : near) {
    require(tensor->elements() == a.rotated / 2, fmt::format("'{}' does not have one factor per pair", printable(tensor->name)));
    const std::vector<float> floats = source.floats(*tensor);
    divisors.assign(floats.begin(), floats.end());
  } else if (const gguf::List* list = source.list(kRopeDivisors)) {
    require(!list->is_text && list->size() == pairs, "the factors of rotary positions are not one per pair");
    divisors = list->numbers;
  }
  // Models of this kind have factors for long sequences too, which change the keys of tokens that were already computed.
  if (scaling == "longrope" || near) {
    a.context = std::min(a.context, std::max<std::int64_t>(numbers.size("rope.scaling.original_context_length", 4096), 1));
    a.rotation_scale = numbers.number("rope.scaling.attn_factor", 1);
  }
  const auto add = [&](double base, double by, bool is_divided) {
    for (std::size_t i = 0; i < pairs; ++i)
      a.frequencies.push_back(std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(a.rotated)) / by /
                              (is_divided ? divisors[i] : 1));
  };
  add(numbers.number("rope.freq_base", a.name == "gemma3" ? 1e6 : 10000), factor, true);
  a.has_two_sets = a.name == "gemma3" && pairs > 0;
  if (a.has_two_sets) add(source.number(kWindowedBase).value_or(10000), 1, false);
  for (const double each : a.frequencies) require(std::isfinite(each), "a frequency of rotary positions is not finite");
  if (a.frequencies.empty()) a.frequencies = {0};
}

// One truth value per layer, from a list of 0 and 1.
std::vector<bool> by_layer(const gguf::Source& source, std::string_view key, std::vector<bool> otherwise) {
  const gguf::List* list = source.list(key);
  if (!list) return otherwise;
  require(!list->is_text && list->size() >= otherwise.size(), "the model does not say the kind of each layer");
  for (std::size_t i = 0; i < otherwise.size(); ++i) otherwise[i] = list->numbers[i] != 0;
  return otherwise;
}

void add_kinds_of_layers(const gguf::Source& source, const Numbers& numbers, const Family& family, Architecture& a) {
  a.window = numbers.size("attention.sliding_window", 0);
  const auto layers = static_cast<std::size_t>(a.layers);
  std::vector<bool> windowed(layers, false), turned(layers, a.rotated > 0);
  for (std::size_t i = 0; i < layers; ++i) {
    windowed[i] =
        a.window > 0 && (family.full_layer_every == 1 || (static_cast<std::int64_t>(i) + 1) % family.full_layer_every != 0);
    if (a.name == "smollm3") turned[i] = (i + 1) % 4 != 0;
  }
  a.windowed = by_layer(source, kWindowedLayers, std::move(windowed));
  a.turned = by_layer(source, kTurnedLayers, std::move(turned));
  const bool is_windowed = std::find(a.windowed.begin(), a.windowed.end(), true) != a.windowed.end();
  require(!is_windowed || a.window > 0, "a layer has a window, but the model does not say how large it is");
  if (!is_windowed || a.window >= a.context) a.window = 0;  // hides nothing
}

// The factors of embeddings, residuals, scores and logits.
void add_scales(const Numbers& numbers, const Family& family, Architecture& a) {
  const double width = static_cast<double>(a.width), heads = static_cast<double>(a.heads);
  a.embedding_scale =
      numbers.number("embedding_scale", family.scales_embedding ? static_cast<double>(std::sqrt(static_cast<float>(width))) : 1);
  a.residual_scale = numbers.number("residual_scale", 1);
  a.logit_scale = 1 / numbers.number("logit_scale", 1);
  // The largest Gemmas scale by the width of a head that the others have.
  const bool is_largest = (a.name == "gemma2" && a.layers == 46) || (a.name == "gemma3" && a.layers == 62);
  const double scored = is_largest ? width / heads : static_cast<double>(a.head_width);
  a.attention_scale = numbers.number("attention.scale", 1 / std::sqrt(scored));
  if (a.name == "gemma2") {
    a.attention_cap = numbers.has("attn_logit_softcapping") ? numbers.number("attn_logit_softcapping", 1) : 0;
    a.logit_cap = numbers.has("final_logit_softcapping") ? numbers.number("final_logit_softcapping", 1) : 0;
  }
}

}  // namespace

Architecture architecture_of(const gguf::Source& source) {
  Architecture a;
  a.name = source.text("general.architecture").value_or("");
  const Family& family = family_of(a.name);
  const Numbers numbers(source, a.name);
  if (numbers.size("expert_count", 0) > 0) throw Error(ErrorCode::unimplemented, "mixtures of experts are not supported");
  a.layers = numbers.size("block_count");
  a.width = numbers.size("embedding_length");
  a.feed_forward = numbers.size("feed_forward_length");
  a.heads = numbers.size("attention.head_count");
  a.kv_heads = numbers.size("attention.head_count_kv", a.heads);
  a.context = numbers.size("context_length", 2048);
  a.norm_eps = numbers.number(family.is_centred ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon", 1e-5);
  require(a.layers > 0 && a.layers <= 1024 && a.width > 0 && a.feed_forward > 0 && a.heads > 0 && a.context > 0,
          "a size of the model is 0, or it has more than 1024 layers");
  a.head_width = numbers.size("attention.key_length", a.width / a.heads);
  require(a.kv_heads > 0 && a.heads % a.kv_heads == 0, fmt::format("{} heads cannot share {}", a.heads, a.kv_heads));
  require(a.head_width > 0 && numbers.size("attention.value_length", a.head_width) == a.head_width,
          "keys and values differ in width");
  a.has_position_embedding = a.name == "gpt2";
  a.rotated = a.has_position_embedding ? 0 : numbers.size("rope.dimension_count", a.head_width);
  require(a.rotated % 2 == 0 && a.rotated <= a.head_width, "'rope.dimension_count' does not fit the heads");
  a.pairs_neighbours = family.pairs_neighbours && !source.boolean(kPairsHalves).value_or(false);
  a.has_qkv_by_head = source.boolean(kQkvByHead).value_or(false);
  require(!a.has_qkv_by_head || a.kv_heads == a.heads, "a matrix by heads cannot have heads that share keys");
  a.is_centred = family.is_centred;
  a.norms_add_one = source.boolean(kNormsAddOne).value_or(false);
  a.is_gated = family.is_gated;
  a.is_parallel = a.name == "gptneox" && numbers.flag("use_parallel_residual", true);
  const std::optional<std::string> activation = source.text(kActivation);
  a.activation = activation ? activation_of(*activation) : family.activation;
  add_frequencies(source, numbers, a);
  add_kinds_of_layers(source, numbers, family, a);
  add_scales(numbers, family, a);
  const gguf::TensorInfo& embedding = source.tensor("token_embd.weight");
  require(embedding.shape.size() == 2 && embedding.columns() == a.width, "'token_embd.weight' has the wrong shape");
  a.vocabulary = embedding.rows();
  if (a.has_position_embedding) {
    const gguf::TensorInfo& places = source.tensor("position_embd.weight");
    require(places.shape.size() == 2 && places.columns() == a.width, "'position_embd.weight' has the wrong shape");
    a.context = std::min(a.context, places.rows());
  }
  return a;
}

}  // namespace tenon::decoder
