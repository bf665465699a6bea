#include "model/checkpoint/bert.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/text/printable.h"
#include "model/checkpoint/onnx_writer.h"
#include "tenon/error.h"

namespace tenon::checkpoint {
namespace {

using Element = OnnxWriter::Element;

class Config {
 public:
  explicit Config(std::string_view text) {
    boost::system::error_code error;
    boost::json::parse_options options;
    options.max_depth = 16;
    const boost::json::value value = boost::json::parse(text, error, {}, options);
    if (error || !value.is_object()) throw Error(ErrorCode::invalid_argument, "config.json is not a JSON object");
    object_ = value.get_object();
  }
  std::int64_t size(std::string_view name) const {
    const boost::json::value* value = object_.if_contains(name);
    if (!value || !value->is_int64() || value->get_int64() < 1 || value->get_int64() > (1 << 24))
      throw Error(ErrorCode::invalid_argument, fmt::format("config.json: '{}' is not a size", name));
    return value->get_int64();
  }
  double number(std::string_view name, double fallback) const {
    const boost::json::value* value = object_.if_contains(name);
    return value && value->is_number() ? value->to_number<double>() : fallback;
  }
  std::string text(std::string_view name, std::string_view fallback) const {
    const boost::json::value* value = object_.if_contains(name);
    return value && value->is_string() ? std::string(value->get_string()) : std::string(fallback);
  }

 private:
  boost::json::object object_;
};

// The transposed matrix: checkpoints have [out, in], products of rows take [in, out].
HostArray transposed(const HostArray& array) {
  const std::int64_t rows = array.shape()[0], columns = array.shape()[1];
  HostArray out = HostArray::empty(array.dtype(), Shape{columns, rows});
  const std::size_t bytes = element_bytes(array.dtype());
  std::byte* const to = out.mutable_data();
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j)
      std::memcpy(to + static_cast<std::size_t>(j * rows + i) * bytes,
                  array.data() + static_cast<std::size_t>(i * columns + j) * bytes, bytes);
  return out;
}

// Where the relatives of BERT differ: the names of their numbers and tensors, and how a token's position counts.
struct Family {
  std::string_view type, prefix;                      // model_type; what the names of tensors may begin with
  std::string_view width, layers, heads, inner, act;  // in config.json
  std::string_view layer;                             // of the encoder, with its number
  std::string_view query, key, value, mixed, first_norm, inner_dense, outer_dense, second_norm;
  // Positions begin after that of padding, which has none of its own (RoBERTa).
  bool has_padding_positions = false;
  bool has_types = false;          // token_type_ids are an input
  bool has_relative_bias = false;  // scores depend on the distance of two tokens (MPNet)
};

constexpr Family bert_like(std::string_view type, std::string_view prefix, bool has_padding_positions, bool has_types) {
  return {type,
          prefix,
          "hidden_size",
          "num_hidden_layers",
          "num_attention_heads",
          "intermediate_size",
          "hidden_act",
          "encoder.layer.{}.",
          "attention.self.query",
          "attention.self.key",
          "attention.self.value",
          "attention.output.dense",
          "attention.output.LayerNorm",
          "intermediate.dense",
          "output.dense",
          "output.LayerNorm",
          has_padding_positions,
          has_types};
}

constexpr std::array kFamilies{
    bert_like("bert", "bert.", false, true),
    bert_like("roberta", "roberta.", true, false),
    bert_like("xlm-roberta", "roberta.", true, false),
    bert_like("camembert", "roberta.", true, false),
    Family{"distilbert", "distilbert.", "dim", "n_layers", "n_heads", "hidden_dim", "activation", "transformer.layer.{}.",
           "attention.q_lin", "attention.k_lin", "attention.v_lin", "attention.out_lin", "sa_layer_norm", "ffn.lin1", "ffn.lin2",
           "output_layer_norm"},
    Family{"mpnet", "mpnet.", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "hidden_act",
           "encoder.layer.{}.", "attention.attn.q", "attention.attn.k", "attention.attn.v", "attention.attn.o",
           "attention.LayerNorm", "intermediate.dense", "output.dense", "output.LayerNorm", true, false, true},
};

// The row of MPNet's table of biases for the distance from a query to a key: exact for near ones, then by its logarithm.
std::int64_t bias_bucket(std::int64_t distance, std::int64_t buckets) {
  constexpr double kFarthest = 128;
  const std::int64_t half = buckets / 2, exact = half / 2, size = std::abs(distance), first = distance > 0 ? half : 0;
  if (size < exact) return first + size;
  // As the model was trained: in float.
  const float ratio = std::log(static_cast<float>(size) / static_cast<float>(exact)) /
                      static_cast<float>(std::log(kFarthest / static_cast<double>(exact)));
  return first + std::min(half - 1, exact + static_cast<std::int64_t>(ratio * static_cast<float>(half - exact)));
}

class Bert {
 public:
  Bert(const Family& family, const Config& config, const ArrayFile& weights)
      : family_(family),
        weights_(weights),
        width_(config.size(family.width)),
        layers_(config.size(family.layers)),
        heads_(config.size(family.heads)),
        inner_(config.size(family.inner)),
        positions_(config.size("max_position_embeddings")),
        padding_(static_cast<std::int64_t>(config.number("pad_token_id", 1))),
        eps_(config.number("layer_norm_eps", 1e-12)) {
    if (width_ % heads_ != 0 || layers_ > 1024 || padding_ < 0 || padding_ >= positions_)
      throw Error(ErrorCode::invalid_argument, "config.json: the sizes of the model do not fit each other");
    for (const std::string_view prefix : {std::string_view(), family.prefix, std::string_view("model.")})
      if (weights.arrays.contains(std::string(prefix) + "embeddings.word_embeddings.weight")) prefix_ = prefix;
  }

  std::vector<std::byte> write() {
    for (const char* name : {"input_ids", "attention_mask"}) onnx_.input(name, Element::i64, {"batch", "sequence"});
    if (family_.has_types) onnx_.input("token_type_ids", Element::i64, {"batch", "sequence"});
    onnx_.output("last_hidden_state", Element::f32, {"batch", "sequence", "width"});
    std::string x = embeddings();
    constant("axes", {1, 2});
    onnx_.node("Cast", {"attention_mask"}, "mask", {{"to", std::int64_t{9}}});
    onnx_.node("Unsqueeze", {"mask", "axes"}, "mask4");
    if (family_.has_relative_bias) add_relative_bias();
    for (std::int64_t i = 0; i < layers_; ++i) x = layer(fmt::format(fmt::runtime(family_.layer), i), x);
    onnx_.node("Identity", {x}, "last_hidden_state");
    return onnx_.finish();
  }

 private:
  const HostArray& find(const std::string& name, const Shape& shape) {
    const auto found = weights_.arrays.find(prefix_ + name);
    if (found == weights_.arrays.end())
      throw Error(ErrorCode::invalid_argument, fmt::format("the tensor '{}{}' is missing", prefix_, name));
    if (found->second.shape() != shape)
      throw Error(ErrorCode::invalid_argument, fmt::format("the tensor '{}' is {}, the model needs {}", found->first,
                                                           to_string(found->second.shape()), to_string(shape)));
    return found->second;
  }
  std::string weight(const std::string& name, const Shape& shape) {
    onnx_.weight(name, find(name, shape).cast(DType::f32));
    return name;
  }
  // A matrix of |columns| columns and as many rows as the checkpoint has.
  std::string table(const std::string& name, std::int64_t columns) {
    const auto found = weights_.arrays.find(prefix_ + name);
    const bool is_matrix = found != weights_.arrays.end() && found->second.shape().rank() == 2;
    return weight(name, {is_matrix ? found->second.shape()[0] : 1, columns});
  }
  void constant(std::string_view name, std::vector<std::int64_t> values, bool is_scalar = false) {
    const Shape shape = is_scalar ? Shape{} : Shape{static_cast<std::int64_t>(values.size())};
    onnx_.weight(name, HostArray::from<std::int64_t>(shape, std::span<const std::int64_t>(values)));
  }

  // The numbers 0, 1, ... up to the length: "places".
  void add_places() {
    constant("zero", {0}, true);
    constant("one", {1}, true);
    onnx_.node("Shape", {"input_ids"}, "shape");
    onnx_.node("Gather", {"shape", "one"}, "length");
    onnx_.node("Range", {"zero", "length", "one"}, "places");
  }
  // Tokens count from the position after that of padding; padding itself stays there.
  std::string padded_places() {
    constant("padding", {padding_}, true);
    onnx_.node("Equal", {"input_ids", "padding"}, "is_padding");
    onnx_.node("Not", {"is_padding"}, "is_token");
    onnx_.node("Cast", {"is_token"}, "tokens", {{"to", std::int64_t{7}}});
    onnx_.node("CumSum", {"tokens", "one"}, "count");
    onnx_.node("Mul", {"count", "tokens"}, "counted");
    return onnx_.node("Add", {"counted", "padding"}, "padded_places");
  }

  std::string embeddings() {
    add_places();
    const std::string places = family_.has_padding_positions ? padded_places() : "places";
    onnx_.node("Gather", {weight("embeddings.position_embeddings.weight", {positions_, width_}), places}, "by_place");
    std::string sum = onnx_.node("Gather", {table("embeddings.word_embeddings.weight", width_), "input_ids"}, "by_word");
    if (const std::string types = "embeddings.token_type_embeddings.weight";
        family_.has_types || weights_.arrays.contains(prefix_ + types)) {
      onnx_.node("Gather", {table(types, width_), family_.has_types ? "token_type_ids" : "zero"}, "by_type");
      sum = onnx_.node("Add", {sum, "by_type"}, "words_and_types");
    }
    onnx_.node("Add", {sum, "by_place"}, "embedded");
    return norm("embeddings.LayerNorm", "embedded");
  }

  // "bias": [batch, heads, queries, keys], minus infinity for keys that the mask leaves out.
  void add_relative_bias() {
    const auto biases = weights_.arrays.find(prefix_ + "encoder.relative_attention_bias.weight");
    const std::int64_t buckets =
        biases != weights_.arrays.end() && biases->second.shape().rank() == 2 ? biases->second.shape()[0] : 32;
    if (buckets < 4 || buckets % 4 != 0)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} biases for the distances of tokens; a multiple of 4 is needed", buckets));
    std::vector<std::int64_t> rows;
    for (std::int64_t distance = 1 - positions_; distance < positions_; ++distance)
      rows.push_back(bias_bucket(distance, buckets));
    constant("bias_rows", std::move(rows));
    constant("first_distance", {positions_ - 1}, true);
    constant("first_axis", {0});
    constant("last_axis", {1});
    onnx_.node("Unsqueeze", {"places", "first_axis"}, "keys");
    onnx_.node("Unsqueeze", {"places", "last_axis"}, "queries");
    onnx_.node("Sub", {"keys", "queries"}, "distances");
    onnx_.node("Add", {"distances", "first_distance"}, "shifted_distances");
    onnx_.node("Gather", {"bias_rows", "shifted_distances"}, "buckets");
    // [queries, keys, heads], as columns of the table's transpose: [heads, queries, keys].
    onnx_.weight("biases", transposed(find("encoder.relative_attention_bias.weight", {buckets, heads_})).cast(DType::f32));
    onnx_.node("Gather", {"biases", "buckets"}, "distance_bias", {{"axis", std::int64_t{1}}});
    onnx_.node("Unsqueeze", {"distance_bias", "first_axis"}, "distance_bias4");
    onnx_.weight("left_out", HostArray::full(DType::f32, {}, -std::numeric_limits<double>::infinity()));
    onnx_.node("Where", {"mask4", "distance_bias4", "left_out"}, "bias");
  }

  std::string norm(const std::string& name, std::string_view x) {
    return onnx_.node("LayerNormalization", {x, weight(name + ".weight", {width_}), weight(name + ".bias", {width_})}, name,
                      {{"axis", std::int64_t{-1}}, {"epsilon", eps_}});
  }
  std::string linear(const std::string& name, std::string_view x, std::int64_t in, std::int64_t out) {
    onnx_.weight(name + ".weight", transposed(find(name + ".weight", {out, in})).cast(DType::f32));
    const std::string product = onnx_.node("MatMul", {x, name + ".weight"}, name + ".product");
    return onnx_.node("Add", {product, weight(name + ".bias", {out})}, name);
  }

  std::string layer(const std::string& p, const std::string& x) {
    const auto named = [&](std::string_view name) { return p + std::string(name); };
    const std::string q = linear(named(family_.query), x, width_, width_), k = linear(named(family_.key), x, width_, width_),
                      v = linear(named(family_.value), x, width_, width_);
    const std::string attended = onnx_.node("Attention", {q, k, v, family_.has_relative_bias ? "bias" : "mask4"}, p + "attended",
                                            {{"q_num_heads", heads_}, {"kv_num_heads", heads_}});
    const std::string mixed = linear(named(family_.mixed), attended, width_, width_);
    const std::string y = norm(named(family_.first_norm), onnx_.node("Add", {mixed, x}, p + "first"));
    const std::string inner = onnx_.node("Gelu", {linear(named(family_.inner_dense), y, width_, inner_)}, p + "gelu");
    const std::string outer = linear(named(family_.outer_dense), inner, inner_, width_);
    return norm(named(family_.second_norm), onnx_.node("Add", {outer, y}, p + "second"));
  }

  const Family& family_;
  const ArrayFile& weights_;
  const std::int64_t width_, layers_, heads_, inner_, positions_, padding_;
  const double eps_;
  std::string prefix_;
  OnnxWriter onnx_{23};
};

}  // namespace

std::vector<std::byte> bert_as_onnx(std::string_view config_json, const ArrayFile& weights) {
  const Config config(config_json);
  const std::string type = config.text("model_type", "");
  const auto family = std::find_if(kFamilies.begin(), kFamilies.end(), [&](const Family& each) { return each.type == type; });
  if (family == kFamilies.end()) {
    std::string known;
    for (const Family& each : kFamilies) known += fmt::format("{}{}", known.empty() ? "" : ", ", each.type);
    throw Error(ErrorCode::unimplemented, fmt::format("checkpoints of type '{}' are not supported", printable(type)),
                fmt::format("supported are: {}; export other models as ONNX", known));
  }
  if (const std::string act = config.text(family->act, "gelu"); act != "gelu")
    throw Error(ErrorCode::unimplemented, fmt::format("the activation '{}' is not supported", printable(act)));
  if (const std::string kind = config.text("position_embedding_type", "absolute"); kind != "absolute")
    throw Error(ErrorCode::unimplemented, fmt::format("positions of type '{}' are not supported", printable(kind)));
  return Bert(*family, config, weights).write();
}

}  // namespace tenon::checkpoint
