#include "model/checkpoint/decoder_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <charconv>
#include <cmath>
#include <numbers>

#include "base/text/printable.h"
#include "model/decoder/architecture.h"
#include "tenon/error.h"

namespace tenon::checkpoint {
namespace {

namespace json = boost::json;

// A type of config.json: its architecture in GGUF, and what the type's defaults are where a file may leave them out.
struct Type {
  std::string_view name, architecture;
  std::int64_t head_width = 0;  // 0: width / heads
  double rope_base = 10000, rotated_part = 1;
  bool norms_add_one = false;   // scales are stored minus one
  bool norms_results = false;   // post_attention_layernorm normalises the result of the attention
  bool always_windows = false;  // sliding_window needs no further switch
};
constexpr Type kTypes[] = {
    {.name = "llama", .architecture = "llama"},
    {.name = "mistral", .architecture = "llama", .always_windows = true},
    {.name = "qwen2", .architecture = "qwen2"},
    {.name = "qwen3", .architecture = "qwen3", .head_width = 128},
    {.name = "phi3", .architecture = "phi3", .always_windows = true},
    {.name = "granite", .architecture = "granite"},
    {.name = "olmo2", .architecture = "olmo2", .norms_results = true},
    {.name = "smollm3", .architecture = "smollm3", .rope_base = 2e6},
    {.name = "gemma", .architecture = "gemma", .head_width = 256, .norms_add_one = true},
    {.name = "gemma2",
     .architecture = "gemma2",
     .head_width = 256,
     .norms_add_one = true,
     .norms_results = true,
     .always_windows = true},
    {.name = "gemma3_text",
     .architecture = "gemma3",
     .head_width = 256,
     .rope_base = 1e6,
     .norms_add_one = true,
     .norms_results = true,
     .always_windows = true},
    {.name = "gpt2", .architecture = "gpt2"},
    {.name = "gpt_neox", .architecture = "gptneox", .rotated_part = 0.25},
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

class Reader {
 public:
  Reader(const Type& type, const json::object& object) : type_(type), object_(object) {}

  DecoderConfig run() {
    refuse_what_is_not_there();
    out_.type = type_.name;
    out_.settings.emplace("general.architecture", std::string(type_.architecture));
    sizes();
    positions();
    layers();
    scales();
    set(std::string(decoder::kPairsHalves), true);
    if (type_.norms_add_one) set(std::string(decoder::kNormsAddOne), true);
    if (type_.name == "gpt_neox") set(std::string(decoder::kQkvByHead), true);
    for (const char* name : {"hidden_activation", "hidden_act", "activation_function"})
      if (const std::string act = text_in(object_, name); !act.empty()) {
        set(std::string(decoder::kActivation), act);
        break;
      }
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
  bool flag(std::string_view name) const {
    const json::value* value = find(name);
    return value && value->is_bool() && value->get_bool();
  }
  void set(std::string key, gguf::Value value) { out_.settings.insert_or_assign(std::move(key), std::move(value)); }
  void put(std::string_view key, gguf::Value value) { set(fmt::format("{}.{}", type_.architecture, key), std::move(value)); }

  void refuse_what_is_not_there() const {
    if (const json::value* quantized = find("quantization_config"); quantized && quantized->is_object())
      throw Error(
          ErrorCode::unimplemented,
          fmt::format("weights quantised by '{}' are not supported", printable(text_in(quantized->get_object(), "quant_method"))),
          "use the model in 16-bit floats, or a GGUF file");
    for (const char* name : {"add_cross_attention", "use_bidirectional_attention", "scale_attn_by_inverse_layer_idx"})
      if (flag(name)) throw Error(ErrorCode::unimplemented, fmt::format("config.json: '{}' is not supported", name));
    if (const json::value* scaled = find("scale_attn_weights"); scaled && scaled->is_bool() && !scaled->get_bool())
      throw Error(ErrorCode::unimplemented, "config.json: attention without 'scale_attn_weights' is not supported");
  }

  void sizes() {
    const std::int64_t width = needed({"hidden_size", "n_embd"}), heads = needed({"num_attention_heads", "n_head"});
    layers_ = needed({"num_hidden_layers", "n_layer"});
    context_ = integer({"max_position_embeddings", "n_positions"}).value_or(2048);
    if (layers_ < 1 || layers_ > 1024 || width < 1 || heads < 1 || context_ < 1)
      throw Error(ErrorCode::invalid_argument, "config.json: a size of the model is 0, or it has more than 1024 layers");
    head_width_ = integer({"head_dim"}).value_or(type_.head_width > 0 ? type_.head_width : width / heads);
    put("block_count", layers_);
    put("embedding_length", width);
    put("attention.head_count", heads);
    put("attention.head_count_kv", integer({"num_key_value_heads"}).value_or(heads));
    put("attention.key_length", head_width_);
    put("context_length", context_);
    const std::optional<std::int64_t> inner = integer({"intermediate_size", "n_inner"});
    put("feed_forward_length", inner || type_.name != "gpt2" ? inner.value_or(0) : 4 * width);
    const double eps = number({"rms_norm_eps", "layer_norm_epsilon", "layer_norm_eps", "norm_epsilon"}).value_or(1e-6);
    put("attention.layer_norm_rms_epsilon", eps);
    put("attention.layer_norm_epsilon", eps);
    if (const json::value* parallel = find("use_parallel_residual"); parallel && parallel->is_bool())
      put("use_parallel_residual", parallel->get_bool());
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
    rotated_ = static_cast<std::int64_t>(static_cast<double>(head_width_) * part);
    put("rope.freq_base", base_);
    put("rope.dimension_count", rotated_);
    std::string kind = text_in(rope, "rope_type");
    if (kind.empty()) kind = text_in(rope, "type");
    if (kind == "su") kind = "longrope";
    if (kind.empty() || kind == "default") return;
    if (kind == "llama3") return scale_as_llama3(rope);
    if (kind == "longrope") scale_by_length(rope);
    if (kind == "linear") put("rope.scaling.factor", number_in(rope, {"factor"}).value_or(1));
    put("rope.scaling.type", kind);
  }

  // Slow frequencies are divided, fast ones are kept, and between them there is a ramp.
  void scale_as_llama3(const json::object& rope) {
    const double factor = number_in(rope, {"factor"}).value_or(8), low = number_in(rope, {"low_freq_factor"}).value_or(1),
                 high = number_in(rope, {"high_freq_factor"}).value_or(4),
                 before = number_in(rope, {"original_max_position_embeddings"}).value_or(8192);
    if (!(factor > 0 && high > low && before > 0))
      throw Error(ErrorCode::invalid_argument, "config.json: the factors of rotary positions do not fit");
    gguf::List divisors;
    for (std::int64_t i = 0; i < std::min<std::int64_t>(rotated_ / 2, 1 << 20); ++i) {
      const double frequency = std::pow(base_, -2.0 * static_cast<double>(i) / static_cast<double>(rotated_));
      const double turns = before * frequency / (2 * std::numbers::pi);  // within the original context
      const double kept = std::clamp((turns - low) / (high - low), 0.0, 1.0);
      divisors.numbers.push_back(1 / ((1 - kept) / factor + kept));
    }
    set(std::string(decoder::kRopeDivisors), std::move(divisors));
  }

  // Factors for sequences up to the original context; those beyond have others.
  void scale_by_length(const json::object& rope) {
    const double before = number_in(rope, {"original_max_position_embeddings"})
                              .value_or(number({"original_max_position_embeddings"}).value_or(4096));
    if (!(before > 1 && before < 1e9))
      throw Error(ErrorCode::invalid_argument, "config.json: 'original_max_position_embeddings' does not fit");
    const double factor = number_in(rope, {"factor"}).value_or(static_cast<double>(context_) / before);
    const double otherwise = factor <= 1 ? 1 : std::sqrt(1 + std::log(factor) / std::log(before));
    put("rope.scaling.attn_factor", number_in(rope, {"attention_factor"}).value_or(otherwise));
    put("rope.scaling.original_context_length", static_cast<std::int64_t>(before));
    const json::value* near = rope.if_contains("short_factor");
    if (!near || !near->is_array()) throw Error(ErrorCode::invalid_argument, "config.json: 'short_factor' is missing");
    gguf::List divisors;
    for (const json::value& each : near->get_array()) divisors.numbers.push_back(each.is_number() ? each.to_number<double>() : 0);
    set(std::string(decoder::kRopeDivisors), std::move(divisors));
  }

  // Which layers have a window, and which turn their heads.
  void layers() {
    const std::int64_t window = integer({"sliding_window"}).value_or(0);
    const bool is_used = window > 0 && (type_.always_windows || flag("use_sliding_window"));
    if (is_used) put("attention.sliding_window", window);
    const json::value* types = find("layer_types");
    gguf::List windowed;
    if (types && types->is_array()) {
      for (const json::value& each : types->get_array()) {
        const std::string kind = each.is_string() ? std::string(each.get_string()) : "";
        if (kind != "full_attention" && kind != "sliding_attention")
          throw Error(ErrorCode::unimplemented, fmt::format("layers of type '{}' are not supported", printable(kind)));
        windowed.numbers.push_back(is_used && kind == "sliding_attention" ? 1 : 0);
      }
    } else if (is_used && !type_.always_windows) {
      const std::int64_t first = integer({"max_window_layers"}).value_or(0);
      for (std::int64_t i = 0; i < layers_; ++i) windowed.numbers.push_back(i >= first ? 1 : 0);
    } else if (const std::int64_t every = integer({"sliding_window_pattern"}).value_or(0); is_used && every > 0) {
      for (std::int64_t i = 0; i < layers_; ++i) windowed.numbers.push_back((i + 1) % every != 0 ? 1 : 0);
    }
    if (!windowed.numbers.empty()) set(std::string(decoder::kWindowedLayers), std::move(windowed));
    if (const json::value* turned = find("no_rope_layers"); turned && turned->is_array() && !turned->get_array().empty()) {
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
    if (type_.name == "granite") {
      copy("attention_multiplier", "attention.scale");
      copy("embedding_multiplier", "embedding_scale");
      copy("residual_multiplier", "residual_scale");
      copy("logits_scaling", "logit_scale");
    }
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
  double base_ = 10000;
};

struct Name {
  std::string_view checkpoint, gguf;
};
constexpr Name kTopNames[] = {
    {"embed_tokens", "token_embd"}, {"wte", "token_embd"},   {"embed_in", "token_embd"},          {"wpe", "position_embd"},
    {"norm", "output_norm"},        {"ln_f", "output_norm"}, {"final_layer_norm", "output_norm"}, {"lm_head", "output"},
    {"embed_out", "output"},
};
constexpr Name kLayerNames[] = {
    {"input_layernorm", "attn_norm"},
    {"ln_1", "attn_norm"},
    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},
    {"self_attn.qkv_proj", "attn_qkv"},
    {"attn.c_attn", "attn_qkv"},
    {"attention.query_key_value", "attn_qkv"},
    {"self_attn.q_norm", "attn_q_norm"},
    {"self_attn.k_norm", "attn_k_norm"},
    {"self_attn.o_proj", "attn_output"},
    {"attn.c_proj", "attn_output"},
    {"attention.dense", "attn_output"},
    {"post_attention_layernorm", "ffn_norm"},
    {"pre_feedforward_layernorm", "ffn_norm"},
    {"ln_2", "ffn_norm"},
    {"mlp.gate_proj", "ffn_gate"},
    {"mlp.up_proj", "ffn_up"},
    {"mlp.gate_up_proj", "ffn_up"},
    {"mlp.c_fc", "ffn_up"},
    {"mlp.dense_h_to_4h", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
    {"mlp.c_proj", "ffn_down"},
    {"mlp.dense_4h_to_h", "ffn_down"},
    {"post_feedforward_layernorm", "post_ffw_norm"},
};
// Tables that the model computes by itself.
constexpr std::string_view kTables[] = {
    "self_attn.rotary_emb.inv_freq", "attention.rotary_emb.inv_freq", "attn.bias", "attn.masked_bias", "attention.bias",
    "attention.masked_bias"};

bool remove_prefix(std::string_view& text, std::initializer_list<std::string_view> prefixes) {
  for (const std::string_view prefix : prefixes)
    if (text.starts_with(prefix)) {
      text.remove_prefix(prefix.size());
      return true;
    }
  return false;
}

std::string_view found_in(std::span<const Name> names, std::string_view name) {
  for (const Name& each : names)
    if (each.checkpoint == name) return each.gguf;
  return {};
}

}  // namespace

bool is_decoder_config(std::string_view config_json) {
  try {
    return find_type(text_in(parsed(config_json), "model_type")) != nullptr;
  } catch (const Error&) {
    return false;
  }
}

DecoderConfig decoder_config(std::string_view config_json) {
  const json::object object = parsed(config_json);
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

std::string gguf_name(std::string_view type, std::string_view name) {
  std::string_view rest = name;
  remove_prefix(rest, {"model.", "transformer.", "gpt_neox."});
  const std::size_t dot = rest.rfind('.');
  const std::string_view kind = dot == std::string_view::npos ? "" : rest.substr(dot);  // ".weight"
  if (remove_prefix(rest, {"layers.", "h."})) {
    std::int64_t layer = -1;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), layer);
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    if (error == std::errc{} && layer >= 0 && remove_prefix(rest, {"."})) {
      if (std::find(std::begin(kTables), std::end(kTables), rest) != std::end(kTables)) return {};
      if (rest.size() > kind.size()) rest.remove_suffix(kind.size());
      const Type* known = find_type(type);
      std::string_view found = found_in(kLayerNames, rest);
      if (known && known->norms_results && rest == "post_attention_layernorm") found = "post_attention_norm";
      if (!found.empty() && (kind == ".weight" || kind == ".bias")) return fmt::format("blk.{}.{}{}", layer, found, kind);
    }
  } else if (rest.size() > kind.size() && (kind == ".weight" || kind == ".bias")) {
    rest.remove_suffix(kind.size());
    if (const std::string_view found = found_in(kTopNames, rest); !found.empty()) return fmt::format("{}{}", found, kind);
  }
  if (name.ends_with("rotary_emb.inv_freq")) return {};
  throw Error(ErrorCode::unimplemented,
              fmt::format("the tensor '{}' is not known in models of type '{}'", printable(name), type));
}

bool is_stored_transposed(std::string_view type, std::string_view gguf_name) {
  return type == "gpt2" && gguf_name.starts_with("blk.") && gguf_name.ends_with(".weight") &&
         gguf_name.find("norm") == std::string_view::npos;
}

}  // namespace tenon::checkpoint
