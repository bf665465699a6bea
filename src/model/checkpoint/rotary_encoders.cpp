// Encoders with rotary positions: ModernBERT, Nomic BERT, and GTE (whose own code calls its type "new").
#include <fmt/format.h>

#include <cmath>

#include "base/text/printable.h"
#include "model/checkpoint/encoder_families.h"
#include "tenon/error.h"

namespace tenon::checkpoint {
namespace {

class RotaryEncoder {
 public:
  RotaryEncoder(const EncoderConfig& config, const ArrayFile& weights, const std::string& type)
      : is_modern_(type == "modernbert"),
        is_nomic_(type == "nomic_bert"),
        config_(config),
        w_(config, weights, {"", "model.", "new.", "bert."},
           is_modern_ ? "embeddings.tok_embeddings.weight" : "embeddings.word_embeddings.weight",
           !is_modern_ && config.number({"type_vocab_size"}, 0) > 1),
        has_types_(!is_modern_ && config.number({"type_vocab_size"}, 0) > 1),
        width_(config.size({"hidden_size", "n_embd"})),
        layers_(config.size({"num_hidden_layers", "n_layer"})),
        heads_(config.size({"num_attention_heads", "n_head"})),
        inner_(config.size({"intermediate_size", "n_inner"})),
        positions_(config.size({"max_position_embeddings", "n_positions"})),
        eps_(config.number({"norm_eps", "layer_norm_eps", "layer_norm_epsilon"}, is_modern_ ? 1e-5 : 1e-12)) {
    if (width_ % heads_ != 0 || width_ / heads_ % 2 != 0 || layers_ > 1024)
      throw Error(ErrorCode::invalid_argument, "config.json: the sizes of the model do not fit each other");
    if (config.flag("prenorm", false) || config.flag("use_rms_norm", false) || config.flag("logn_attention_scale", false) ||
        config.number({"rotary_emb_fraction"}, 1) != 1 || config.number({"rotary_emb_scale_base"}, 0) != 0 ||
        config.size({"num_experts"}, 1) > 1 || config.text("layer_norm_type", "layer_norm") != "layer_norm")
      throw Error(ErrorCode::unimplemented, "this form of the model is not supported",
                  "normalised results and whole rotary heads are; for others export the model as ONNX");
    act_ = config.text("hidden_activation",
                       config.text("hidden_act", config.text("activation_function", is_nomic_ ? "silu" : "gelu")));
  }

  std::vector<std::byte> write() {
    std::string x =
        w_.embedded(is_modern_ ? "embeddings.tok_embeddings.weight" : "embeddings.word_embeddings.weight", width_, "input_ids");
    if (const std::string types = "embeddings.token_type_embeddings.weight"; !is_modern_ && w_.has(types))
      x = w_.sum(x, w_.embedded(types, width_, has_types_ ? "token_type_ids" : w_.integer(0)));
    x = norm(is_modern_ ? "embeddings.norm" : w_.has("emb_ln.weight") ? "emb_ln" : "embeddings.LayerNorm", x);
    add_positions();
    for (std::int64_t i = 0; i < layers_; ++i) x = is_modern_ ? modern_layer(i, x) : layer(i, x);
    if (is_modern_) x = norm("final_norm", x);
    return config_.is_classifier() ? w_.finish("logits", classified(x)) : w_.finish("last_hidden_state", x);
  }

 private:
  struct Turns {
    std::string cos, sin, mask;
  };

  std::string norm(const std::string& name, const std::string& x) { return w_.layer_norm(name, x, width_, eps_); }

  Turns turns(double base, double divisor, const std::string& mask) {
    if (!(base > 1) || !(divisor > 0))
      throw Error(ErrorCode::invalid_argument, "config.json: the base of rotary positions does not fit");
    const std::int64_t width = width_ / heads_, half = width / 2;
    if (positions_ > (std::int64_t{1} << 26) / half)
      throw Error(ErrorCode::resource_exhausted, "config.json: too many positions");
    HostArray cos = HostArray::empty(DType::f32, {positions_, half}), sin = HostArray::empty(DType::f32, {positions_, half});
    const std::span<float> c = cos.mutable_view<float>(), s = sin.mutable_view<float>();
    for (std::int64_t i = 0; i < positions_; ++i)
      for (std::int64_t j = 0; j < half; ++j) {
        const double angle =
            static_cast<double>(i) * std::pow(base, -2.0 * static_cast<double>(j) / static_cast<double>(width)) / divisor;
        c[static_cast<std::size_t>(i * half + j)] = static_cast<float>(std::cos(angle));
        s[static_cast<std::size_t>(i * half + j)] = static_cast<float>(std::sin(angle));
      }
    return {w_.value(cos), w_.value(sin), mask};
  }

  void add_positions() {
    rows_ = w_.node("Unsqueeze", {w_.places(), w_.integers({0})});
    if (!is_modern_) {
      double base = config_.number({"rope_theta", "rotary_emb_base"}, is_nomic_ ? 1000 : 10000), divisor = 1;
      const auto* scaling = config_.find("rope_parameters") ? config_.find("rope_parameters") : config_.find("rope_scaling");
      if (scaling && scaling->is_object()) {
        const auto& rope = scaling->get_object();
        const auto* kind = rope.if_contains("rope_type") ? rope.if_contains("rope_type") : rope.if_contains("type");
        const auto number = [&](const char* name, double otherwise) {
          const auto* value = rope.if_contains(name);
          return value && value->is_number() ? value->to_number<double>() : otherwise;
        };
        base = number("rope_theta", base);
        if (kind && kind->is_string() && kind->get_string() == "ntk" && !rope.contains("mixed_b")) {
          // Su, https://kexue.fm/archives/9706: a larger base, and the same division for all.
          const double factor = number("factor", 1);
          base *= factor;
          divisor = std::pow(factor, 2.0 / static_cast<double>(width_ / heads_));
        } else if (kind && (!kind->is_string() || kind->get_string() != "default")) {
          throw Error(ErrorCode::unimplemented, "scaled positions of this encoder are not supported");
        }
      }
      full_ = turns(base, divisor, w_.mask());
      return;
    }
    const auto base = [&](const char* kind, const char* name, double otherwise) {
      const auto* all = config_.find("rope_parameters");
      const auto* own = all && all->is_object() ? all->get_object().if_contains(kind) : nullptr;
      const auto* theta = own && own->is_object() ? own->get_object().if_contains("rope_theta") : nullptr;
      return theta && theta->is_number() ? theta->to_number<double>() : config_.number({name}, otherwise);
    };
    full_ = turns(base("full_attention", "global_rope_theta", 160000), 1, w_.mask());
    const std::string reach = w_.integer(config_.size({"local_attention"}, 128) / 2);
    const std::string is_near = w_.node("LessOrEqual", {w_.node("Abs", {w_.distances()}), reach});
    near_ = turns(base("sliding_attention", "local_rope_theta", 10000), 1, w_.node("And", {w_.mask(), is_near}));
  }

  bool is_full(std::int64_t layer) const {
    if (const auto* types = config_.find("layer_types"); types && types->is_array()) {
      const auto& list = types->get_array();
      const auto place = static_cast<std::size_t>(layer);
      return place < list.size() && list[place].is_string() && list[place].get_string() == "full_attention";
    }
    return layer % config_.size({"global_attn_every_n_layers"}, 3) == 0;
  }

  std::string attended(const std::string& qkv, const std::string& x, const Turns& turns) {
    const auto turned = [&](const std::string& y) {
      return w_.node("RotaryEmbedding", {y, turns.cos, turns.sin, rows_}, {{"num_heads", heads_}});
    };
    const std::string q = turned(w_.linear(qkv, x, width_, width_, 0)), k = turned(w_.linear(qkv, x, width_, width_, width_));
    return w_.attention(q, k, w_.linear(qkv, x, width_, width_, 2 * width_), turns.mask, heads_);
  }

  std::string modern_layer(std::int64_t i, const std::string& x) {
    const std::string p = fmt::format("layers.{}.", i), first = p + "attn_norm";
    const std::string h = w_.has(first + ".weight") ? norm(first, x) : x;
    const std::string mixed = w_.linear(p + "attn.Wo", attended(p + "attn.Wqkv", h, is_full(i) ? full_ : near_), width_, width_);
    const std::string y = w_.sum(x, mixed), g = norm(p + "mlp_norm", y);
    const std::string gate = w_.activated(act_, w_.linear(p + "mlp.Wi", g, width_, inner_, 0));
    const std::string inner = w_.node("Mul", {gate, w_.linear(p + "mlp.Wi", g, width_, inner_, inner_)});
    return w_.sum(y, w_.linear(p + "mlp.Wo", inner, inner_, width_));
  }

  std::string layer(std::int64_t i, const std::string& x) {
    const std::string p = is_nomic_ ? fmt::format("encoder.layers.{}.", i) : fmt::format("encoder.layer.{}.", i);
    const std::string qkv = p + (is_nomic_ ? "attn.Wqkv" : "attention.qkv_proj"),
                      out = p + (is_nomic_ ? "attn.out_proj" : "attention.o_proj");
    const std::string y =
        norm(p + (is_nomic_ ? "norm1" : "attn_ln"), w_.sum(x, w_.linear(out, attended(qkv, x, full_), width_, width_)));
    const std::string both = p + "mlp.up_gate_proj";
    const std::string up = is_nomic_ ? w_.linear(p + "mlp.fc11", y, width_, inner_) : w_.linear(both, y, width_, inner_, 0);
    const std::string gate =
        is_nomic_ ? w_.linear(p + "mlp.fc12", y, width_, inner_) : w_.linear(both, y, width_, inner_, inner_);
    const std::string inner = w_.node("Mul", {up, w_.activated(act_, gate)});
    const std::string down = w_.linear(p + (is_nomic_ ? "mlp.fc2" : "mlp.down_proj"), inner, inner_, width_);
    return norm(p + (is_nomic_ ? "norm2" : "mlp_ln"), w_.sum(y, down));
  }

  std::string classified(const std::string& x) {
    const std::int64_t labels = w_.rows("classifier.weight");
    if (!is_modern_)
      return w_.linear("classifier", w_.activated("tanh", w_.linear("pooler.dense", w_.first_token(x), width_, width_)), width_,
                       labels);
    if (const std::string pooling = config_.text("classifier_pooling", "cls"); pooling != "cls")
      throw Error(ErrorCode::unimplemented,
                  fmt::format("classifiers of the '{}' of tokens are not supported", printable(pooling)));
    const std::string dense = w_.linear("head.dense", w_.first_token(x), width_, width_);
    const std::string h = norm("head.norm", w_.activated(config_.text("classifier_activation", "gelu"), dense));
    return w_.linear("classifier", h, width_, labels);
  }

  const bool is_modern_, is_nomic_;
  const EncoderConfig& config_;
  EncoderWriter w_;
  const bool has_types_;
  const std::int64_t width_, layers_, heads_, inner_, positions_;
  const double eps_;
  std::string act_, rows_;
  Turns full_, near_;
};

}  // namespace

std::vector<std::byte> write_rotary(const EncoderConfig& config, const ArrayFile& weights, const std::string& type) {
  return RotaryEncoder(config, weights, type).write();
}

}  // namespace tenon::checkpoint
