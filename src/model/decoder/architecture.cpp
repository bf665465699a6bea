#include "model/decoder/architecture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text/printable.h"
#include "model/decoder/positions.h"
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
  bool expert_weights_sum_to_one = true;
  bool is_parallel = false, has_position_embedding = false, has_plain_norms = false;
  double slope_bits = 0;  // ALiBi
  std::int64_t first_position = 0;
  std::int64_t unturned_every = 0;  // of this many layers the last one turns nothing
  bool multiplies_logits = false;   // by logit_scale, where others divide
};
constexpr Family kFamilies[] = {
    {.name = "llama", .pairs_neighbours = true},
    {.name = "qwen2"},
    {.name = "qwen3"},
    {.name = "qwen2moe", .expert_weights_sum_to_one = false},
    {.name = "qwen3moe"},
    {.name = "olmoe", .expert_weights_sum_to_one = false},
    {.name = "phi3"},
    {.name = "granite", .pairs_neighbours = true},
    {.name = "granitemoe", .pairs_neighbours = true},
    {.name = "olmo2"},
    {.name = "smollm3", .pairs_neighbours = true, .unturned_every = 4},
    {.name = "internlm2", .pairs_neighbours = true},
    {.name = "chatglm", .pairs_neighbours = true},
    {.name = "glm4", .pairs_neighbours = true},
    {.name = "ernie4_5", .pairs_neighbours = true},
    {.name = "seed_oss"},
    {.name = "exaone"},
    {.name = "exaone4", .full_layer_every = 4},
    {.name = "olmo", .pairs_neighbours = true, .is_centred = true, .has_plain_norms = true},
    {.name = "arcee", .pairs_neighbours = true, .is_gated = false, .activation = Activation::relu_squared},
    {.name = "nemotron", .is_centred = true, .is_gated = false, .activation = Activation::relu_squared},
    {.name = "stablelm", .is_centred = true},
    {.name = "command-r", .pairs_neighbours = true, .is_centred = true, .is_parallel = true, .multiplies_logits = true},
    {.name = "cohere2",
     .pairs_neighbours = true,
     .is_centred = true,
     .full_layer_every = 4,
     .is_parallel = true,
     .unturned_every = 4,
     .multiplies_logits = true},
    {.name = "gemma", .scales_embedding = true, .activation = Activation::gelu_tanh},
    {.name = "gemma2", .scales_embedding = true, .activation = Activation::gelu_tanh, .full_layer_every = 2},
    {.name = "gemma3", .scales_embedding = true, .activation = Activation::gelu_tanh, .full_layer_every = 6},
    {.name = "gpt2", .is_centred = true, .is_gated = false, .activation = Activation::gelu_tanh, .has_position_embedding = true},
    {.name = "starcoder",
     .is_centred = true,
     .is_gated = false,
     .activation = Activation::gelu_tanh,
     .has_position_embedding = true},
    {.name = "gpt_neo",
     .is_centred = true,
     .is_gated = false,
     .activation = Activation::gelu_tanh,
     .has_position_embedding = true},
    {.name = "opt",
     .is_centred = true,
     .is_gated = false,
     .activation = Activation::relu,
     .has_position_embedding = true,
     .first_position = 2},
    {.name = "gptneox", .is_centred = true, .is_gated = false, .activation = Activation::gelu, .is_parallel = true},
    {.name = "gptj",
     .pairs_neighbours = true,
     .is_centred = true,
     .is_gated = false,
     .activation = Activation::gelu_tanh,
     .is_parallel = true},
    {.name = "phi2", .is_centred = true, .is_gated = false, .activation = Activation::gelu_tanh, .is_parallel = true},
    {.name = "falcon", .is_centred = true, .is_gated = false, .activation = Activation::gelu, .is_parallel = true},
    {.name = "bloom", .is_centred = true, .is_gated = false, .activation = Activation::gelu_tanh, .slope_bits = 8},
    {.name = "mpt", .is_centred = true, .is_gated = false, .activation = Activation::gelu, .slope_bits = 8},
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
  if (name == "relu2") return Activation::relu_squared;
  throw Error(ErrorCode::unimplemented, fmt::format("the activation '{}' is not supported", printable(name)));
}

// By how much each frequency is divided: by a tensor or a list. Empty: neither is there.
std::vector<double> divisors_in(const gguf::Source& source, std::initializer_list<std::string_view> tensors, std::string_view key,
                                std::size_t pairs) {
  for (const std::string_view name : tensors)
    if (const gguf::TensorInfo* tensor = source.find_tensor(name)) {
      require(tensor->elements() == static_cast<std::int64_t>(pairs),
              fmt::format("'{}' does not have one factor per pair", printable(tensor->name)));
      const std::vector<float> floats = source.floats(*tensor);
      return {floats.begin(), floats.end()};
    }
  const gguf::List* list = source.list(key);
  if (!list) return {};
  require(!list->is_text && list->size() == pairs, "the factors of rotary positions are not one per pair");
  return list->numbers;
}

std::vector<double> frequencies_of(double base, std::int64_t rotated, double factor, const std::vector<double>& divisors) {
  std::vector<double> out;
  for (std::size_t i = 0; i < static_cast<std::size_t>(rotated / 2); ++i) {
    out.push_back(std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(rotated)) / factor /
                  (divisors.empty() ? 1 : divisors[i]));
    require(std::isfinite(out.back()), "a frequency of rotary positions is not finite");
  }
  return out;
}

void add_frequencies(const gguf::Source& source, const Numbers& numbers, Architecture& a) {
  const auto pairs = static_cast<std::size_t>(a.rotated / 2);
  const std::string scaling = numbers.text("rope.scaling.type");
  const double base = numbers.number("rope.freq_base", a.name == "gemma3" ? 1e6 : 10000);
  const std::int64_t original = numbers.size("rope.scaling.original_context_length", 0);
  std::vector<double> divisors = divisors_in(source, {"rope_freqs.weight", "rope_factors_short.weight"}, kRopeDivisors, pairs);
  const std::vector<double> far = divisors_in(source, {"rope_factors_long.weight"}, kLongDivisors, pairs);
  double factor = 1;
  if (scaling == "linear") {
    factor = numbers.number("rope.scaling.factor", 1);
  } else if (scaling == "yarn") {
    const double longer = numbers.number("rope.scaling.factor", 1);
    const Stretch stretch{base, a.rotated, longer, static_cast<double>(original > 0 ? original : a.context)};
    divisors = yarn_divisors(stretch, numbers.number("rope.scaling.yarn_beta_fast", 32),
                             numbers.number("rope.scaling.yarn_beta_slow", 1), source.boolean(kYarnIsExact).value_or(false));
    a.rotation_scale = numbers.number("rope.scaling.attn_factor", 1) * yarn_scale(longer, 1);
  } else if (scaling != "" && scaling != "none" && scaling != "longrope") {
    throw Error(ErrorCode::unimplemented, fmt::format("positions scaled by '{}' are not supported", printable(scaling)),
                "supported are linear, llama3, yarn and longrope");
  }
  // Files may name this kind only by its factors.
  if (scaling == "longrope" || !far.empty() || source.find_tensor("rope_factors_short.weight")) {
    a.short_context = std::max<std::int64_t>(original > 0 ? original : 4096, 1);
    a.rotation_scale = numbers.number("rope.scaling.attn_factor", 1);
    if (far.empty()) a.context = std::min(a.context, a.short_context);
    if (a.context <= a.short_context)
      a.short_context = 0;
    else
      a.long_frequencies = frequencies_of(base, a.rotated, 1, far);
  }
  a.rotation_scale = source.number(kRotationScale).value_or(a.rotation_scale);
  require(std::isfinite(a.rotation_scale), "the factor of rotations is not finite");
  a.frequencies = frequencies_of(base, a.rotated, factor, divisors);
  a.has_two_sets = a.name == "gemma3" && pairs > 0;
  if (a.has_two_sets) {
    require(a.short_context == 0, "windowed layers with frequencies of their own cannot have those for long texts");
    const std::vector<double> near = frequencies_of(source.number(kWindowedBase).value_or(10000), a.rotated, 1, {});
    a.frequencies.insert(a.frequencies.end(), near.begin(), near.end());
  }
  if (a.frequencies.empty()) a.frequencies = {0};
  if (a.long_frequencies.empty()) a.long_frequencies = {0};
}

void add_experts(const gguf::Source& source, const Numbers& numbers, const Family& family, Architecture& a) {
  Architecture::Experts& e = a.experts;
  e.count = numbers.size("expert_count", 0);
  e.shared_width = numbers.size("expert_shared_feed_forward_length", 0);
  if (e.count == 0) return;
  e.used = numbers.size("expert_used_count");
  e.width = numbers.size("expert_feed_forward_length", a.feed_forward);
  e.sums_to_one = numbers.flag("expert_weights_norm", family.expert_weights_sum_to_one);
  require(e.used > 0 && e.used <= e.count && e.count <= 4096 && e.width > 0,
          fmt::format("a token cannot take {} of {} experts", e.used, e.count));
  if (numbers.size("expert_gating_func", 1) != 1 || source.find_tensor("blk.0.exp_probs_b.bias") || !a.is_gated)
    throw Error(ErrorCode::unimplemented, "experts that are chosen otherwise than by a softmax are not supported");
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
    if (family.unturned_every > 0) turned[i] = (static_cast<std::int64_t>(i) + 1) % family.unturned_every != 0;
    // Where some layers have a window, the others count no positions.
    if (a.name == "exaone4" && a.window > 0) turned[i] = windowed[i];
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
  a.logit_scale = numbers.number("logit_scale", 1);
  if (!family.multiplies_logits) a.logit_scale = 1 / a.logit_scale;
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

std::vector<float> alibi_slopes(std::int64_t heads, double largest_bits) {
  // Heads beyond a power of two take every second slope of the next one.
  std::int64_t whole = 1;
  while (2 * whole <= heads) whole *= 2;
  std::vector<float> out;
  for (std::int64_t i = 1; i <= heads; ++i) {
    const double part = i <= whole ? static_cast<double>(i) : static_cast<double>(i - whole) - 0.5;
    out.push_back(static_cast<float>(std::exp2(-largest_bits * part / static_cast<double>(whole))));
  }
  return out;
}

Architecture architecture_of(const gguf::Source& source) {
  Architecture a;
  a.name = source.text("general.architecture").value_or("");
  const Family& family = family_of(a.name);
  const Numbers numbers(source, a.name);
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
  a.has_position_embedding = family.has_position_embedding;
  a.first_position = family.first_position;
  if (family.slope_bits > 0) a.largest_slope_bits = numbers.number("attention.max_alibi_bias", family.slope_bits);
  if (numbers.has("attention.clamp_kqv")) a.qkv_limit = numbers.number("attention.clamp_kqv", 1);
  const bool turns = !a.has_position_embedding && a.largest_slope_bits == 0;
  a.rotated = turns ? numbers.size("rope.dimension_count", a.head_width) : 0;
  require(a.rotated % 2 == 0 && a.rotated <= a.head_width, "'rope.dimension_count' does not fit the heads");
  a.pairs_neighbours = family.pairs_neighbours && !source.boolean(kPairsHalves).value_or(false);
  a.has_qkv_by_group = source.boolean(kQkvByGroup).value_or(false);
  a.is_centred = family.is_centred;
  a.has_plain_norms = family.has_plain_norms;
  a.norms_add_one = source.boolean(kNormsAddOne).value_or(false);
  a.is_gated = family.is_gated;
  a.is_parallel = numbers.flag("use_parallel_residual", family.is_parallel);
  const std::optional<std::string> activation = source.text(kActivation);
  a.activation = activation ? activation_of(*activation) : family.activation;
  add_experts(source, numbers, family, a);
  add_frequencies(source, numbers, a);
  add_kinds_of_layers(source, numbers, family, a);
  add_scales(numbers, family, a);
  const gguf::TensorInfo& embedding = source.tensor("token_embd.weight");
  require(embedding.shape.size() == 2 && embedding.columns() == a.width, "'token_embd.weight' has the wrong shape");
  a.vocabulary = embedding.rows();
  if (a.has_position_embedding) {
    const gguf::TensorInfo& places = source.tensor("position_embd.weight");
    require(places.shape.size() == 2 && places.columns() == a.width, "'position_embd.weight' has the wrong shape");
    require(places.rows() > a.first_position, "'position_embd.weight' has too few rows");
    a.context = std::min(a.context, places.rows() - a.first_position);
  }
  return a;
}

}  // namespace tenon::decoder
