#include "model/checkpoint/decoder_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <cmath>

#include "base/text/printable.h"
#include "model/decoder/architecture.h"
#include "model/decoder/positions.h"
#include "tenon/error.h"

namespace tenon::checkpoint {
namespace {

namespace json = boost::json;

// A type of config.json: its architecture in GGUF, and what the type's defaults are where a file may leave them out.
struct Type {
  std::string_view name, architecture;
  std::int64_t head_width = 0;  // 0: width / heads
  double rope_base = 10000, rotated_part = 1;
  bool norms_add_one = false;        // scales are stored minus one
  bool always_windows = false;       // sliding_window needs no further switch
  bool weighs_all_experts = false;   // their weights sum to 1 before some are chosen, unless norm_topk_prob says otherwise
  bool turns_neighbours = false;     // pairs of rotary positions are neighbours, not halves
  bool has_qkv_by_group = false;     // a fused matrix has what belongs to one key after the other
  std::int64_t inner_per_width = 0;  // how much wider the feed-forward is, where the file does not say
  std::int64_t heads = 0, kv_heads = 0, context = 2048;
  std::string_view activation = {};
};
constexpr Type kTypes[] = {
    {.name = "llama", .architecture = "llama"},
    {.name = "mistral", .architecture = "llama", .always_windows = true},
    {.name = "qwen2", .architecture = "qwen2"},
    {.name = "qwen3", .architecture = "qwen3", .head_width = 128},
    {.name = "mixtral", .architecture = "llama", .rope_base = 1e6, .always_windows = true},
    {.name = "qwen2_moe", .architecture = "qwen2moe", .weighs_all_experts = true},
    {.name = "qwen3_moe", .architecture = "qwen3moe", .weighs_all_experts = true},
    {.name = "olmoe", .architecture = "olmoe", .weighs_all_experts = true},
    {.name = "granitemoe", .architecture = "granitemoe"},
    {.name = "granitemoeshared", .architecture = "granitemoe"},
    {.name = "phi3", .architecture = "phi3", .always_windows = true},
    {.name = "granite", .architecture = "granite"},
    {.name = "olmo2", .architecture = "olmo2"},
    {.name = "smollm3", .architecture = "smollm3", .rope_base = 2e6},
    {.name = "granitemoehybrid", .architecture = "granitemoe"},
    {.name = "internlm2", .architecture = "internlm2", .has_qkv_by_group = true},
    {.name = "glm", .architecture = "chatglm", .rotated_part = 0.5, .turns_neighbours = true},
    {.name = "glm4", .architecture = "glm4", .rotated_part = 0.5, .turns_neighbours = true},
    {.name = "ernie4_5", .architecture = "ernie4_5", .rope_base = 5e5, .turns_neighbours = true},
    {.name = "seed_oss", .architecture = "seed_oss"},
    {.name = "exaone", .architecture = "exaone"},
    {.name = "exaone4", .architecture = "exaone4", .always_windows = true},
    {.name = "olmo", .architecture = "olmo"},
    {.name = "arcee", .architecture = "arcee"},
    {.name = "nemotron", .architecture = "nemotron", .rotated_part = 0.5, .norms_add_one = true},
    {.name = "stablelm", .architecture = "stablelm", .rotated_part = 0.25},
    {.name = "cohere", .architecture = "command-r", .turns_neighbours = true},
    {.name = "cohere2", .architecture = "cohere2", .always_windows = true, .turns_neighbours = true},
    {.name = "gpt_bigcode", .architecture = "starcoder", .inner_per_width = 4},
    {.name = "gpt_neo", .architecture = "gpt_neo", .inner_per_width = 4},
    {.name = "gptj", .architecture = "gptj", .turns_neighbours = true, .inner_per_width = 4},
    {.name = "opt", .architecture = "opt"},
    {.name = "phi", .architecture = "phi2", .rotated_part = 0.5},
    {.name = "falcon", .architecture = "falcon", .inner_per_width = 4},
    {.name = "bloom", .architecture = "bloom", .has_qkv_by_group = true, .inner_per_width = 4, .activation = "gelu_new"},
    {.name = "mpt", .architecture = "mpt", .inner_per_width = 4, .activation = "gelu"},
    {.name = "gemma", .architecture = "gemma", .head_width = 256, .norms_add_one = true},
    {.name = "gemma2", .architecture = "gemma2", .head_width = 256, .norms_add_one = true, .always_windows = true},
    {.name = "gemma3_text",
     .architecture = "gemma3",
     .head_width = 256,
     .rope_base = 1e6,
     .norms_add_one = true,
     .always_windows = true,
     .heads = 8,
     .kv_heads = 4,
     .context = 131072},
    {.name = "gpt2", .architecture = "gpt2", .inner_per_width = 4},
    {.name = "gpt_neox", .architecture = "gptneox", .rotated_part = 0.25, .has_qkv_by_group = true},
    {.name = "starcoder2", .architecture = "starcoder2", .always_windows = true},
};

const Type* find_type(std::string_view name) {
  const auto* found = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const Type& each) { return each.name == name; });
  return found == std::end(kTypes) ? nullptr : found;
}

json::object parsed(std::string_view text) {
  boost::system::error_code error;
  json::parse_options options;
  options.max_depth = 16;
  const json::value value = json::parse(text, error, {}, options);
  if (error || !value.is_object()) throw Error(ErrorCode::invalid_argument, "config.json is not a JSON object");
  return value.get_object();
}

std::string text_in(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value && value->is_string() ? std::string(value->get_string()) : "";
}

// Models that also see images have the settings of their language model in an object of its own.
json::object of_language(json::object whole) {
  const json::value* inner = whole.if_contains("text_config");
  if (!inner || !inner->is_object() || find_type(text_in(whole, "model_type"))) return whole;
  json::object out = inner->get_object();
  for (const char* name : {"tie_word_embeddings", "quantization_config"})
    if (const json::value* outer = whole.if_contains(name)) out.emplace(name, *outer);
  return out;
}

class Reader {
 public:
  Reader(const Type& type, const json::object& object) : type_(type), object_(object) {}

  DecoderConfig run() {
    read_packing();
    refuse_what_is_not_there();
    out_.type = type_.name;
    out_.settings.emplace("general.architecture", std::string(type_.architecture));
    sizes();
    positions();
    layers();
    scales();
    if (!type_.turns_neighbours) set(std::string(decoder::kPairsHalves), true);
    if (type_.norms_add_one) set(std::string(decoder::kNormsAddOne), true);
    if (type_.has_qkv_by_group || has_groups_) set(std::string(decoder::kQkvByGroup), true);
    std::string act(type_.activation);
    for (const char* name : {"hidden_activation", "hidden_act", "activation_function", "activation"})
      if (act.empty()) act = text_in(object_, name);
    if (!act.empty()) set(std::string(decoder::kActivation), act);
    if (const json::value* tied = find("tie_word_embeddings"); tied && tied->is_bool()) out_.ties_embedding = tied->get_bool();
    return std::move(out_);
  }

 private:
  const json::value* find(std::string_view name) const {
    const json::value* value = object_.if_contains(name);
    return value && !value->is_null() ? value : nullptr;
  }
  std::optional<double> number(std::initializer_list<std::string_view> names) const { return number_in(object_, names); }
  static std::optional<double> number_in(const json::object& object, std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names) {
      const json::value* value = object.if_contains(name);
      if (!value || value->is_null()) continue;
      if (!value->is_number()) throw Error(ErrorCode::invalid_argument, fmt::format("config.json: '{}' is not a number", name));
      return value->to_number<double>();
    }
    return std::nullopt;
  }
  std::optional<std::int64_t> integer(std::initializer_list<std::string_view> names) const {
    const std::optional<double> value = number(names);
    if (!value) return std::nullopt;
    if (!(std::abs(*value) <= 1e15) || *value != std::floor(*value))
      throw Error(ErrorCode::invalid_argument, fmt::format("config.json: '{}' is {}", *names.begin(), *value));
    return static_cast<std::int64_t>(*value);
  }
  std::int64_t needed(std::initializer_list<std::string_view> names) const {
    const std::optional<std::int64_t> value = integer(names);
    if (!value) throw Error(ErrorCode::invalid_argument, fmt::format("config.json does not say '{}'", *names.begin()));
    return *value;
  }
  bool flag(std::string_view name, bool otherwise = false) const {
    const json::value* value = find(name);
    return value && value->is_bool() ? value->get_bool() : otherwise;
  }
  void set(std::string key, gguf::Value value) { out_.settings.insert_or_assign(std::move(key), std::move(value)); }
  void put(std::string_view key, gguf::Value value) { set(fmt::format("{}.{}", type_.architecture, key), std::move(value)); }

  void read_packing() {
    const json::value* quantized = find("quantization_config");
    if (!quantized || !quantized->is_object()) return;
    const json::object& q = quantized->get_object();
    const std::string method = text_in(q, "quant_method"), version = text_in(q, "version"),
                      format = text_in(q, "checkpoint_format");
    const double bits = number_in(q, {"bits", "w_bit"}).value_or(4);
    const bool is_awq = method == "awq", is_gptq = method == "gptq";
    const bool is_known =
        is_awq ? bits == 4 && (version.empty() || version == "gemm")
               : is_gptq && (bits == 4 || bits == 8) && (format.empty() || format == "gptq" || format == "gptq_v2");
    if (!is_known)
      throw Error(
          ErrorCode::unimplemented,
          fmt::format("weights quantised by '{}'{} are not supported", printable(method),
                      is_awq || is_gptq ? fmt::format(" with {} bits, {}{}", bits, printable(version), printable(format)) : ""),
          "AWQ (4 bits, gemm) and GPTQ (4 or 8 bits) are; or use the model in 16-bit floats, or a GGUF file");
    out_.packing = Packing{is_awq, static_cast<int>(bits), format != "gptq_v2"};
  }

  void refuse_what_is_not_there() const {
    for (const char* name : {"add_cross_attention", "use_bidirectional_attention", "scale_attn_by_inverse_layer_idx",
                             "use_qk_norm", "apply_residual_connection_post_layernorm", "alibi", "_remove_final_layer_norm"})
      if (flag(name)) throw Error(ErrorCode::unimplemented, fmt::format("config.json: '{}' is not supported", name));
    for (const char* name : {"scale_attn_weights", "do_layer_norm_before"})
      if (!flag(name, true))
        throw Error(ErrorCode::unimplemented, fmt::format("config.json: models without '{}' are not supported", name));
    if (const json::value* attention = find("attn_config"); attention && attention->is_object())
      for (const auto& [name, usual] : {std::pair<const char*, json::value>("alibi", true),
                                        {"alibi_bias_max", 8},
                                        {"qk_ln", false},
                                        {"clip_qkv", nullptr},
                                        {"prefix_lm", false},
                                        {"softmax_scale", nullptr},
                                        {"kv_n_heads", nullptr}})
        if (const json::value* value = attention->get_object().if_contains(name); value && *value != usual)
          throw Error(ErrorCode::unimplemented, fmt::format("config.json: this value of '{}' is not supported", name));
  }

  void sizes() {
    const std::int64_t width = needed({"hidden_size", "n_embd", "n_embed", "d_model"});
    const std::initializer_list<std::string_view> head_names{"num_attention_heads", "n_head", "n_heads", "num_heads"};
    const std::int64_t heads = type_.heads > 0 ? integer(head_names).value_or(type_.heads) : needed(head_names);
    layers_ = needed({"num_hidden_layers", "n_layer", "n_layers", "num_layers"});
    context_ = integer({"max_position_embeddings", "n_positions", "max_seq_len", "seq_length"}).value_or(type_.context);
    if (layers_ < 1 || layers_ > 1024 || width < 1 || heads < 1 || context_ < 1)
      throw Error(ErrorCode::invalid_argument, "config.json: a size of the model is 0, or it has more than 1024 layers");
    head_width_ = integer({"head_dim"}).value_or(type_.head_width > 0 ? type_.head_width : width / heads);
    put("block_count", layers_);
    put("embedding_length", width);
    put("attention.head_count", heads);
    put("attention.head_count_kv", kv_heads(heads));
    put("attention.key_length", head_width_);
    put("context_length", context_);
    const std::optional<std::int64_t> inner = integer({"intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size"});
    put("feed_forward_length", inner.value_or(type_.inner_per_width * width));
    const double eps = number({"rms_norm_eps", "layer_norm_epsilon", "layer_norm_eps", "norm_epsilon", "norm_eps"})
                           .value_or(type_.name == "opt" || type_.name == "olmo" || type_.name == "mpt" ? 1e-5 : 1e-6);
    put("attention.layer_norm_rms_epsilon", eps);
    put("attention.layer_norm_epsilon", eps);
    experts();
    for (const char* name : {"use_parallel_residual", "parallel_attn"})
      if (const json::value* parallel = find(name); parallel && parallel->is_bool())
        put("use_parallel_residual", parallel->get_bool() || flag("new_decoder_architecture"));
  }

  std::int64_t kv_heads(std::int64_t heads) {
    if (type_.name == "falcon") {
      // Either all heads share one key, or groups of them.
      has_groups_ = flag("new_decoder_architecture") || !flag("multi_query", true);
      if (!flag("new_decoder_architecture")) return has_groups_ ? heads : 1;
      return integer({"num_kv_heads"}).value_or(heads);
    }
    if (type_.name == "gpt_bigcode" && flag("multi_query", true)) return 1;
    has_groups_ = type_.name == "gpt_bigcode";
    return integer({"num_key_value_heads"}).value_or(type_.kv_heads > 0 ? type_.kv_heads : heads);
  }

  void experts() {
    if (const auto shared = integer({"shared_expert_intermediate_size", "shared_intermediate_size"}))
      put("expert_shared_feed_forward_length", *shared);
    const std::int64_t count = integer({"num_local_experts", "num_experts"}).value_or(0);
    if (count == 0) return;
    put("expert_count", count);
    put("expert_used_count", needed({"num_experts_per_tok"}));
    if (const auto inner = integer({"moe_intermediate_size"})) put("expert_feed_forward_length", *inner);
    put("expert_weights_norm", !type_.weighs_all_experts || flag("norm_topk_prob"));
  }

  // Numbers of rotary positions lie beside the others or, in newer files, in an object of their own; that may have one object
  // for each kind of layer.
  void positions() {
    json::object rope;
    for (const char* name : {"rope_scaling", "rope_parameters"})
      if (const json::value* given = find(name); given && given->is_object()) rope = given->get_object();
    if (const json::value* near = rope.if_contains("sliding_attention"); near && near->is_object())
      set(std::string(decoder::kWindowedBase), number_in(near->get_object(), {"rope_theta"}).value_or(10000));
    else if (const std::optional<double> base = number({"rope_local_base_freq"}))
      set(std::string(decoder::kWindowedBase), *base);
    if (const json::value* full = rope.if_contains("full_attention"); full && full->is_object()) {
      const json::object inner = full->get_object();
      rope = inner;
    }
    base_ = number_in(rope, {"rope_theta"}).value_or(number({"rope_theta", "rotary_emb_base"}).value_or(type_.rope_base));
    const double part = number_in(rope, {"partial_rotary_factor"})
                            .value_or(number({"partial_rotary_factor", "rotary_pct"}).value_or(type_.rotated_part));
    if (!(part > 0 && part <= 1)) throw Error(ErrorCode::invalid_argument, fmt::format("config.json: {} of a head turns", part));
    rotated_ = integer({"rotary_dim"}).value_or(static_cast<std::int64_t>(static_cast<double>(head_width_) * part));
    put("rope.freq_base", base_);
    put("rope.dimension_count", rotated_);
    std::string kind = text_in(rope, "rope_type");
    if (kind.empty()) kind = text_in(rope, "type");
    if (kind == "su") kind = "longrope";
    // Beyond the context the base of 'dynamic' grows with every token, so that keys of earlier ones would change.
    if (kind.empty() || kind == "default" || kind == "dynamic") return;
    if (kind == "llama3") return scale_as_llama3(rope);
    if (kind == "longrope") scale_by_length(rope);
    if (kind == "yarn") scale_as_yarn(rope);
    if (kind == "linear") put("rope.scaling.factor", number_in(rope, {"factor"}).value_or(1));
    put("rope.scaling.type", kind);
  }

  void scale_as_llama3(const json::object& rope) {
    const decoder::Stretch stretch{base_, rotated_, number_in(rope, {"factor"}).value_or(8),
                                   number_in(rope, {"original_max_position_embeddings"}).value_or(8192)};
    gguf::List divisors;
    divisors.numbers = decoder::llama3_divisors(stretch, number_in(rope, {"low_freq_factor"}).value_or(1),
                                                number_in(rope, {"high_freq_factor"}).value_or(4));
    set(std::string(decoder::kRopeDivisors), std::move(divisors));
  }

  // The tokens of texts before positions were scaled.
  double original_context(const json::object& rope) const {
    const double before =
        number({"original_max_position_embeddings"})
            .value_or(number_in(rope, {"original_max_position_embeddings"}).value_or(static_cast<double>(context_)));
    if (!(before > 1 && before < (1 << 24)))
      throw Error(ErrorCode::invalid_argument, "config.json: 'original_max_position_embeddings' does not fit");
    return before;
  }

  void scale_as_yarn(const json::object& rope) {
    const double before = original_context(rope),
                 factor = number_in(rope, {"factor"}).value_or(static_cast<double>(context_) / before);
    put("rope.scaling.factor", factor);
    put("rope.scaling.original_context_length", static_cast<std::int64_t>(before));
    for (const auto& [name, key] :
         {std::pair("beta_fast", "rope.scaling.yarn_beta_fast"), {"beta_slow", "rope.scaling.yarn_beta_slow"}})
      if (const double value = number_in(rope, {name}).value_or(0); value != 0) put(key, value);
    if (const json::value* rounds = rope.if_contains("truncate"); rounds && rounds->is_bool())
      set(std::string(decoder::kYarnIsExact), !rounds->get_bool());
    const double scale = number_in(rope, {"mscale"}).value_or(0), all = number_in(rope, {"mscale_all_dim"}).value_or(0);
    const double usual = scale != 0 && all != 0 ? decoder::yarn_scale(factor, scale) / decoder::yarn_scale(factor, all)
                                                : decoder::yarn_scale(factor, 1);
    set(std::string(decoder::kRotationScale), number_in(rope, {"attention_factor"}).value_or(usual));
    // Files of models that were stretched by their users still have the length from before.
    if (const double longer = before * factor; longer > static_cast<double>(context_) && longer <= (1 << 24))
      put("context_length", static_cast<std::int64_t>(longer));
  }

  // Factors for sequences up to the original context, and for longer ones.
  void scale_by_length(const json::object& rope) {
    const double before = original_context(rope),
                 factor = number_in(rope, {"factor"}).value_or(static_cast<double>(context_) / before);
    const double otherwise = factor <= 1 ? 1 : std::sqrt(1 + std::log(factor) / std::log(before));
    put("rope.scaling.attn_factor", number_in(rope, {"attention_factor"}).value_or(otherwise));
    put("rope.scaling.original_context_length", static_cast<std::int64_t>(before));
    for (const auto& [name, key] : {std::pair("short_factor", decoder::kRopeDivisors), {"long_factor", decoder::kLongDivisors}}) {
      const json::value* factors = rope.if_contains(name);
      if (!factors || !factors->is_array())
        throw Error(ErrorCode::invalid_argument, fmt::format("config.json: '{}' is missing", name));
      gguf::List divisors;
      for (const json::value& each : factors->get_array())
        divisors.numbers.push_back(each.is_number() ? each.to_number<double>() : 0);
      set(std::string(key), std::move(divisors));
    }
  }

  // Which layers have a window, and which turn their heads.
  void layers() {
    const std::int64_t window = integer({"sliding_window", "window_size"}).value_or(0);
    const bool is_used = window > 0 && (type_.always_windows || type_.name == "gpt_neo" || flag("use_sliding_window"));
    if (is_used) put("attention.sliding_window", window);
    const json::value* types = find(type_.name == "gpt_neo" ? "attention_layers" : "layer_types");
    gguf::List windowed;
    if (types && types->is_array()) {
      for (const json::value& each : types->get_array()) {
        const std::string kind = each.is_string() ? std::string(each.get_string()) : "";
        const bool is_near = kind == "sliding_attention" || kind == "local";
        if (!is_near && kind != "full_attention" && kind != "global" && kind != "attention")
          throw Error(ErrorCode::unimplemented, fmt::format("layers of type '{}' are not supported", printable(kind)));
        windowed.numbers.push_back(is_used && is_near ? 1 : 0);
      }
    } else if (is_used && !type_.always_windows) {
      const std::int64_t first = integer({"max_window_layers"}).value_or(0);
      for (std::int64_t i = 0; i < layers_; ++i) windowed.numbers.push_back(i >= first ? 1 : 0);
    } else if (const std::int64_t every = integer({"sliding_window_pattern"}).value_or(0); is_used && every > 0) {
      for (std::int64_t i = 0; i < layers_; ++i) windowed.numbers.push_back((i + 1) % every != 0 ? 1 : 0);
    }
    if (!windowed.numbers.empty() && (type_.name == "cohere2" || (type_.name == "exaone4" && is_used)))
      set(std::string(decoder::kTurnedLayers), windowed);
    if (!windowed.numbers.empty()) set(std::string(decoder::kWindowedLayers), std::move(windowed));
    if (type_.name == "granitemoehybrid" && text_in(object_, "position_embedding_type") != "rope") {
      gguf::List none;
      none.numbers.assign(static_cast<std::size_t>(layers_), 0);
      set(std::string(decoder::kTurnedLayers), std::move(none));
    } else if (const json::value* turned = find("no_rope_layers"); turned && turned->is_array() && !turned->get_array().empty()) {
      gguf::List list;
      for (const json::value& each : turned->get_array())
        list.numbers.push_back(each.is_int64() && each.get_int64() == 0 ? 0 : 1);
      set(std::string(decoder::kTurnedLayers), std::move(list));
    }
  }

  void scales() {
    const auto copy = [&](std::string_view name, std::string_view key) {
      if (const std::optional<double> value = number({name})) put(key, *value);
    };
    if (type_.architecture.starts_with("granite")) {
      copy("attention_multiplier", "attention.scale");
      copy("embedding_multiplier", "embedding_scale");
      copy("residual_multiplier", "residual_scale");
      copy("logits_scaling", "logit_scale");
    }
    if (type_.name == "gpt_neo") put("attention.scale", 1.0);
    if (type_.architecture == "command-r" || type_.architecture == "cohere2") copy("logit_scale", "logit_scale");
    copy("clip_qkv", "attention.clamp_kqv");
    if (type_.name == "gemma2" || type_.name == "gemma3_text") {
      put("attention.scale", 1 / std::sqrt(number({"query_pre_attn_scalar"}).value_or(256)));
      copy("attn_logit_softcapping", "attn_logit_softcapping");
      copy("final_logit_softcapping", "final_logit_softcapping");
    }
  }

  const Type& type_;
  const json::object& object_;
  DecoderConfig out_;
  std::int64_t layers_ = 0, context_ = 0, head_width_ = 0, rotated_ = 0;
  bool has_groups_ = false;
  double base_ = 10000;
};

}  // namespace

bool is_decoder_config(std::string_view config_json) {
  try {
    return find_type(text_in(of_language(parsed(config_json)), "model_type")) != nullptr;
  } catch (const Error&) {
    return false;
  }
}

DecoderConfig decoder_config(std::string_view config_json) {
  const json::object object = of_language(parsed(config_json));
  const std::string name = text_in(object, "model_type");
  const Type* type = find_type(name);
  if (!type) {
    std::string known;
    for (const Type& each : kTypes) known += fmt::format("{}{}", known.empty() ? "" : ", ", each.name);
    throw Error(ErrorCode::unimplemented, fmt::format("language models of type '{}' are not supported", printable(name)),
                fmt::format("supported are: {}", known));
  }
  return Reader(*type, object).run();
}

}  // namespace tenon::checkpoint
