// BERT and its relatives: RoBERTa, XLM-RoBERTa, CamemBERT, ELECTRA, ALBERT, DistilBERT and MPNet.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/checkpoint/encoder_families.h"
#include "tenon/error.h"

namespace tenon::checkpoint {
namespace {

// Where they differ: the names of their numbers and tensors, and how a token's position counts.
struct Family {
  std::string_view type, prefix;                      // model_type; what the names of tensors may begin with
  std::string_view width, layers, heads, inner, act;  // in config.json
  std::string_view layer;                             // of the encoder, with its number
  std::string_view query, key, value, mixed, first_norm, inner_dense, outer_dense, second_norm;
  std::string_view head_dense, head_out, head_act;  // of a classifier
  // Positions begin after that of padding, which has none of its own (RoBERTa).
  bool has_padding_positions = false;
  bool has_types = false;            // token_type_ids are an input
  bool has_relative_bias = false;    // scores depend on the distance of two tokens (MPNet)
  std::string_view projection = {};  // from embeddings of another width
};

constexpr Family bert_like(std::string_view type, std::string_view prefix, bool has_padding_positions, bool has_types) {
  return {.type = type,
          .prefix = prefix,
          .width = "hidden_size",
          .layers = "num_hidden_layers",
          .heads = "num_attention_heads",
          .inner = "intermediate_size",
          .act = "hidden_act",
          .layer = "encoder.layer.{}.",
          .query = "attention.self.query",
          .key = "attention.self.key",
          .value = "attention.self.value",
          .mixed = "attention.output.dense",
          .first_norm = "attention.output.LayerNorm",
          .inner_dense = "intermediate.dense",
          .outer_dense = "output.dense",
          .second_norm = "output.LayerNorm",
          .head_dense = has_types ? "pooler.dense" : "classifier.dense",
          .head_out = has_types ? "classifier" : "classifier.out_proj",
          .head_act = "tanh",
          .has_padding_positions = has_padding_positions,
          .has_types = has_types};
}
constexpr Family electra() {
  Family out = bert_like("electra", "electra.", false, true);
  out.projection = "embeddings_project";
  out.head_dense = "classifier.dense";
  out.head_out = "classifier.out_proj";
  out.head_act = "gelu";
  return out;
}
constexpr Family albert() {
  Family out = bert_like("albert", "albert.", false, true);
  out.projection = "encoder.embedding_hidden_mapping_in";
  out.layer = "encoder.albert_layer_groups.0.albert_layers.0.";  // the same for all
  out.query = "attention.query";
  out.key = "attention.key";
  out.value = "attention.value";
  out.mixed = "attention.dense";
  out.first_norm = "attention.LayerNorm";
  out.inner_dense = "ffn";
  out.outer_dense = "ffn_output";
  out.second_norm = "full_layer_layer_norm";
  out.head_dense = "pooler";
  return out;
}
constexpr Family distilbert() {
  Family out = bert_like("distilbert", "distilbert.", false, false);
  out.width = "dim";
  out.layers = "n_layers";
  out.heads = "n_heads";
  out.inner = "hidden_dim";
  out.act = "activation";
  out.layer = "transformer.layer.{}.";
  out.query = "attention.q_lin";
  out.key = "attention.k_lin";
  out.value = "attention.v_lin";
  out.mixed = "attention.out_lin";
  out.first_norm = "sa_layer_norm";
  out.inner_dense = "ffn.lin1";
  out.outer_dense = "ffn.lin2";
  out.second_norm = "output_layer_norm";
  out.head_dense = "pre_classifier";
  out.head_out = "classifier";
  out.head_act = "relu";
  return out;
}
constexpr Family mpnet() {
  Family out = bert_like("mpnet", "mpnet.", true, false);
  out.query = "attention.attn.q";
  out.key = "attention.attn.k";
  out.value = "attention.attn.v";
  out.mixed = "attention.attn.o";
  out.first_norm = "attention.LayerNorm";
  out.has_relative_bias = true;
  return out;
}

constexpr std::array kFamilies{
    bert_like("bert", "bert.", false, true),
    bert_like("roberta", "roberta.", true, false),
    bert_like("xlm-roberta", "roberta.", true, false),
    bert_like("camembert", "roberta.", true, false),
    electra(),
    albert(),
    distilbert(),
    mpnet(),
};

class Bert {
 public:
  Bert(const Family& family, const EncoderConfig& config, const ArrayFile& weights)
      : family_(family),
        config_(config),
        w_(config, weights, {"", family.prefix, "model."}, "embeddings.word_embeddings.weight", family.has_types),
        width_(config.size({family.width})),
        layers_(config.size({family.layers})),
        heads_(config.size({family.heads})),
        inner_(config.size({family.inner})),
        positions_(config.size({"max_position_embeddings"})),
        padding_(static_cast<std::int64_t>(config.number({"pad_token_id"}, 1))),
        eps_(config.number({"layer_norm_eps"}, 1e-12)),
        act_(config.text(family.act, "gelu")) {
    if (width_ % heads_ != 0 || layers_ > 1024 || padding_ < 0 || padding_ >= positions_)
      throw Error(ErrorCode::invalid_argument, "config.json: the sizes of the model do not fit each other");
    if (config.size({"num_hidden_groups"}, 1) != 1 || config.size({"inner_group_num"}, 1) != 1)
      throw Error(ErrorCode::unimplemented, "layers that are shared in several groups are not supported");
  }

  std::vector<std::byte> write() {
    w_.require_biases();
    std::string x = embeddings();
    if (family_.has_relative_bias) {
      const std::string table = "encoder.relative_attention_bias.weight";
      const std::int64_t buckets = w_.rows(table);
      if (buckets < 4 || buckets % 4 != 0)
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("{} biases for the distances of tokens; a multiple of 4 is needed", buckets));
      bias_ = w_.distance_bias(table, heads_, positions_ - 1,
                               [&](std::int64_t distance) { return bias_bucket(distance, buckets, 128); });
    }
    for (std::int64_t i = 0; i < layers_; ++i) x = layer(fmt::format(fmt::runtime(family_.layer), i), x);
    return config_.is_classifier() ? w_.finish("logits", classified(x)) : w_.finish("last_hidden_state", x);
  }

 private:
  // Tokens count from the position after that of padding; padding itself stays there.
  std::string padded_places() {
    constexpr std::int64_t kInteger = 7;
    const std::string padding = w_.integer(padding_);
    const std::string tokens = w_.node("Cast", {w_.node("Not", {w_.node("Equal", {"input_ids", padding})})}, {{"to", kInteger}});
    return w_.sum(w_.node("Mul", {w_.node("CumSum", {tokens, w_.integer(1)}), tokens}), padding);
  }

  std::string embeddings() {
    const std::int64_t width = config_.size({"embedding_size"}, width_);
    const std::string places = family_.has_padding_positions ? padded_places() : w_.places();
    const std::string by_place =
        w_.node("Gather", {w_.weight("embeddings.position_embeddings.weight", {positions_, width}), places});
    std::string x = w_.embedded("embeddings.word_embeddings.weight", width, "input_ids");
    if (const std::string types = "embeddings.token_type_embeddings.weight"; family_.has_types || w_.has(types))
      x = w_.sum(x, w_.embedded(types, width, family_.has_types ? "token_type_ids" : w_.integer(0)));
    x = w_.layer_norm("embeddings.LayerNorm", w_.sum(x, by_place), width, eps_);
    const std::string projection(family_.projection);
    return !projection.empty() && w_.has(projection + ".weight") ? w_.linear(projection, x, width, width_) : x;
  }

  std::string layer(const std::string& p, const std::string& x) {
    const auto named = [&](std::string_view name) { return p + std::string(name); };
    const auto squared = [&](std::string_view name, const std::string& of) { return w_.linear(named(name), of, width_, width_); };
    const std::string q = squared(family_.query, x), k = squared(family_.key, x), v = squared(family_.value, x);
    const std::string attended = w_.attention(q, k, v, family_.has_relative_bias ? bias_ : w_.mask(), heads_);
    const std::string y = w_.layer_norm(named(family_.first_norm), w_.sum(squared(family_.mixed, attended), x), width_, eps_);
    const std::string inner = w_.activated(act_, w_.linear(named(family_.inner_dense), y, width_, inner_));
    const std::string outer = w_.linear(named(family_.outer_dense), inner, inner_, width_);
    return w_.layer_norm(named(family_.second_norm), w_.sum(outer, y), width_, eps_);
  }

  std::string classified(const std::string& x) {
    const std::string out(family_.head_out);
    const std::string dense = w_.linear(std::string(family_.head_dense), w_.first_token(x), width_, width_);
    return w_.linear(out, w_.activated(family_.head_act, dense), width_, w_.rows(out + ".weight"));
  }

  const Family& family_;
  const EncoderConfig& config_;
  EncoderWriter w_;
  const std::int64_t width_, layers_, heads_, inner_, positions_, padding_;
  const double eps_;
  const std::string act_;
  std::string bias_;
};

}  // namespace

std::vector<std::byte> write_bert(const EncoderConfig& config, const ArrayFile& weights, const std::string& type) {
  return Bert(*std::ranges::find(kFamilies, type, &Family::type), config, weights).write();
}

}  // namespace tenon::checkpoint
