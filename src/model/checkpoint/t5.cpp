// The encoder of T5 (sentence-t5, GTR).
#include <fmt/format.h>

#include "base/text/printable.h"
#include "model/checkpoint/encoder_families.h"
#include "tenon/error.h"

namespace tenon::checkpoint {

std::vector<std::byte> write_t5(const EncoderConfig& config, const ArrayFile& weights, const std::string& /*type*/) {
  constexpr std::int64_t kLongest = 4096;  // the model has no longest text of its own
  const std::string known = "encoder.final_layer_norm.weight";
  EncoderWriter w(config, weights, {"", "transformer."}, known, false);
  const std::int64_t width = config.size({"d_model"}), layers = config.size({"num_layers"}), heads = config.size({"num_heads"}),
                     inner = config.size({"d_ff"}), all_heads = heads * config.size({"d_kv"});
  const double eps = config.number({"layer_norm_epsilon"}, 1e-6);
  std::string act = config.text("feed_forward_proj", "relu");
  const bool is_gated = act.starts_with("gated-");
  if (is_gated) act = act == "gated-gelu" ? "gelu_new" : act.substr(6);
  const std::string table = "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight";
  const std::int64_t buckets = w.rows(table), farthest = config.size({"relative_attention_max_distance"}, 128);
  if (layers > 1024 || all_heads > (1 << 20) || buckets < 4 || buckets % 4 != 0 || farthest <= buckets / 4)
    throw Error(ErrorCode::invalid_argument, "config.json: the sizes of the model do not fit each other");
  const std::string bias = w.distance_bias(table, heads, kLongest - 1,
                                           [&](std::int64_t distance) { return bias_bucket(distance, buckets, farthest); });
  std::string x = w.embedded(w.has("shared.weight") ? "shared.weight" : "encoder.embed_tokens.weight", width, "input_ids");
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string p = fmt::format("encoder.block.{}.layer.", i), own = p + "0.SelfAttention.",
                      dense = p + "1.DenseReluDense.";
    const std::string h = w.rms_norm(p + "0.layer_norm", x, width, eps);
    const auto part = [&](const char* name) { return w.linear(own + name, h, width, all_heads); };
    const std::string q = part("q"), k = part("k"), v = part("v");
    // Scores are not scaled: the model was trained so.
    x = w.sum(x, w.linear(own + "o", w.attention(q, k, v, bias, heads, 1), all_heads, width));
    const std::string g = w.rms_norm(p + "1.layer_norm", x, width, eps);
    std::string y = w.activated(act, w.linear(dense + (is_gated ? "wi_0" : "wi"), g, width, inner));
    if (is_gated) y = w.node("Mul", {y, w.linear(dense + "wi_1", g, width, inner)});
    x = w.sum(x, w.linear(dense + "wo", y, inner, width));
  }
  if (config.is_classifier()) throw Error(ErrorCode::unimplemented, "classifiers of this type are not supported");
  return w.finish("last_hidden_state", w.rms_norm("encoder.final_layer_norm", x, width, eps));
}

}  // namespace tenon::checkpoint
