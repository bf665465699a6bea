// DeBERTa 2 and 3: scores also depend on the distance of two tokens, by products of each token with a table of distances.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text/printable.h"
#include "model/checkpoint/encoder_families.h"
#include "tenon/error.h"

namespace tenon::checkpoint {
namespace {

// Near distances have a row each, far ones share rows by their logarithm.
std::int64_t bucket_of(std::int64_t distance, std::int64_t buckets, std::int64_t farthest) {
  const std::int64_t middle = buckets / 2, size = std::abs(distance);
  if (buckets <= 0 || size <= middle) return distance;
  // As the model was trained: in float.
  const float all = std::log(static_cast<float>(static_cast<double>(farthest - 1) / static_cast<double>(middle)));
  const float part = std::log(static_cast<float>(size) / static_cast<float>(middle)) / all;
  const auto row = static_cast<std::int64_t>(std::ceil(part * static_cast<float>(middle - 1))) + middle;
  return distance > 0 ? row : -row;
}

class Deberta {
 public:
  Deberta(const EncoderConfig& config, const ArrayFile& weights)
      : config_(config),
        w_(config, weights, {"", "deberta."}, "embeddings.word_embeddings.weight", config.number({"type_vocab_size"}, 0) > 0),
        width_(config.size({"hidden_size"})),
        layers_(config.size({"num_hidden_layers"})),
        heads_(config.size({"num_attention_heads"})),
        inner_(config.size({"intermediate_size"})),
        positions_(config.size({"max_position_embeddings"})),
        eps_(config.number({"layer_norm_eps"}, 1e-7)),
        act_(config.text("hidden_act", "gelu")) {
    farthest_ = static_cast<std::int64_t>(config.number({"max_relative_positions"}, -1));
    if (farthest_ < 1) farthest_ = positions_;
    const auto buckets = static_cast<std::int64_t>(config.number({"position_buckets"}, -1));
    span_ = buckets > 0 ? buckets : farthest_;
    if (width_ % heads_ != 0 || layers_ > 1024 || span_ > (1 << 20) || farthest_ > (1 << 20) ||
        (buckets > 0 && farthest_ <= buckets / 2 + 1))
      throw Error(ErrorCode::invalid_argument, "config.json: the sizes of the model do not fit each other");
    for (std::int64_t distance = 1 - positions_; distance < positions_; ++distance)
      rows_.push_back(std::clamp<std::int64_t>(bucket_of(-distance, buckets, farthest_) + span_, 0, 2 * span_ - 1));
    has_content_to_place_ = has_kind("c2p");
    has_place_to_content_ = has_kind("p2c");
    if (!config.flag("relative_attention", false) || config.number({"conv_kernel_size"}, 0) > 0 ||
        config.size({"attention_head_size"}, width_ / heads_) != width_ / heads_)
      throw Error(ErrorCode::unimplemented, "DeBERTa without relative positions, or with a convolution, is not supported",
                  "export the model as ONNX");
  }

  std::vector<std::byte> write() {
    std::string x = embeddings();
    table_ = w_.weight("encoder.rel_embeddings.weight", {2 * span_, width_});
    if (config_.text("norm_rel_ebd", "none").find("layer_norm") != std::string::npos)
      table_ = w_.layer_norm("encoder.LayerNorm", table_, width_, eps_);
    // [queries, keys]: the row of the table for each pair of tokens.
    which_ = w_.node("Gather", {w_.integers(rows_), w_.node("Add", {w_.distances(), w_.integer(positions_ - 1)})});
    for (std::int64_t i = 0; i < layers_; ++i) x = layer(fmt::format("encoder.layer.{}.", i), x);
    if (!config_.is_classifier()) return w_.finish("last_hidden_state", x);
    const std::string pooled =
        w_.activated(config_.text("pooler_hidden_act", "gelu"), w_.linear("pooler.dense", w_.first_token(x), width_, width_));
    return w_.finish("logits", w_.linear("classifier", pooled, width_, w_.rows("classifier.weight")));
  }

 private:
  // The kinds are a list, or a text such as "p2c|c2p".
  bool has_kind(std::string_view kind) const {
    const auto* value = config_.find("pos_att_type");
    if (value && value->is_array())
      return std::ranges::any_of(value->get_array(),
                                 [&](const auto& each) { return each.is_string() && each.get_string() == kind; });
    return config_.text("pos_att_type", "").find(kind) != std::string::npos;
  }

  std::string embeddings() {
    const std::int64_t width = config_.size({"embedding_size"}, width_);
    std::string x = w_.embedded("embeddings.word_embeddings.weight", width, "input_ids");
    if (config_.flag("position_biased_input", true))
      x = w_.sum(x, w_.node("Gather", {w_.weight("embeddings.position_embeddings.weight", {positions_, width}), w_.places()}));
    if (config_.number({"type_vocab_size"}, 0) > 0)
      x = w_.sum(x, w_.embedded("embeddings.token_type_embeddings.weight", width, "token_type_ids"));
    if (w_.has("embeddings.embed_proj.weight")) x = w_.linear("embeddings.embed_proj", x, width, width_);
    w_.require_biases();  // all but that of the line before
    return w_.layer_norm("embeddings.LayerNorm", x, width_, eps_);
  }

  // [..., tokens, width] by heads: [..., heads, tokens, width of a head].
  std::string by_head(const std::string& x, bool is_table) {
    const std::vector<std::int64_t> shape{1, 2 * span_, heads_, width_ / heads_}, of_batch{0, 0, heads_, width_ / heads_};
    return w_.node("Transpose", {w_.node("Reshape", {x, w_.integers(is_table ? shape : of_batch)})},
                   {{"perm", std::vector<std::int64_t>{0, 2, 1, 3}}});
  }
  // x [batch, heads, tokens, width of a head] times the table, and of that what |which| chooses.
  std::string by_distance(const std::string& x, const std::string& projection, const std::string& which,
                          const std::string& shape) {
    const std::string table = by_head(w_.linear(projection, table_, width_, width_), true);
    const std::string products =
        w_.node("MatMul", {x, w_.node("Transpose", {table}, {{"perm", std::vector<std::int64_t>{0, 1, 3, 2}}})});
    return w_.node("GatherElements", {products, w_.node("Expand", {which, shape})}, {{"axis", std::int64_t{-1}}});
  }

  std::string layer(const std::string& p, const std::string& x) {
    const std::string self = p + "attention.self.";
    const auto projected = [&](const char* name) { return w_.linear(self + name, x, width_, width_); };
    const std::string q = projected("query_proj"), k = projected("key_proj"), v = projected("value_proj");
    const bool is_shared = config_.flag("share_att_key", false);
    const std::string query = by_head(q, false), key = by_head(k, false);
    const std::vector<std::int64_t> swapped{0, 1, 3, 2}, transposed{1, 0};
    // [batch, heads, tokens, tokens].
    const std::string shape = w_.node("Shape", {w_.node("MatMul", {query, w_.node("Transpose", {key}, {{"perm", swapped}})})});
    std::string bias;
    if (has_content_to_place_) bias = by_distance(query, self + (is_shared ? "key_proj" : "pos_key_proj"), which_, shape);
    if (has_place_to_content_) {
      const std::string which = w_.node("Transpose", {which_}, {{"perm", transposed}});
      const std::string more =
          w_.node("Transpose", {by_distance(key, self + (is_shared ? "query_proj" : "pos_query_proj"), which, shape)},
                  {{"perm", swapped}});
      bias = bias.empty() ? more : w_.sum(bias, more);
    }
    const double parts = 1.0 + (has_content_to_place_ ? 1 : 0) + (has_place_to_content_ ? 1 : 0);
    const double scale = 1 / std::sqrt(static_cast<double>(width_ / heads_) * parts);
    std::string mask = w_.mask();
    if (!bias.empty())
      mask = w_.node("Where", {mask, w_.node("Mul", {bias, w_.value(HostArray::full(DType::f32, {}, scale))}),
                               w_.value(HostArray::full(DType::f32, {}, -std::numeric_limits<double>::infinity()))});
    const std::string mixed = w_.linear(p + "attention.output.dense", w_.attention(q, k, v, mask, heads_, scale), width_, width_);
    const std::string y = w_.layer_norm(p + "attention.output.LayerNorm", w_.sum(mixed, x), width_, eps_);
    const std::string inner = w_.activated(act_, w_.linear(p + "intermediate.dense", y, width_, inner_));
    return w_.layer_norm(p + "output.LayerNorm", w_.sum(w_.linear(p + "output.dense", inner, inner_, width_), y), width_, eps_);
  }

  const EncoderConfig& config_;
  EncoderWriter w_;
  const std::int64_t width_, layers_, heads_, inner_, positions_;
  const double eps_;
  const std::string act_;
  std::int64_t farthest_ = 0, span_ = 0;
  std::vector<std::int64_t> rows_;
  bool has_content_to_place_ = false, has_place_to_content_ = false;
  std::string table_, which_;
};

}  // namespace

std::vector<std::byte> write_deberta(const EncoderConfig& config, const ArrayFile& weights, const std::string& /*type*/) {
  return Deberta(config, weights).write();
}

}  // namespace tenon::checkpoint
