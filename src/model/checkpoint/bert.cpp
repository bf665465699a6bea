#include "model/checkpoint/bert.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <cstring>

#include "base/printable.h"
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

class Bert {
 public:
  Bert(const Config& config, const ArrayFile& weights)
      : weights_(weights),
        width_(config.size("hidden_size")),
        layers_(config.size("num_hidden_layers")),
        heads_(config.size("num_attention_heads")),
        inner_(config.size("intermediate_size")),
        positions_(config.size("max_position_embeddings")),
        eps_(config.number("layer_norm_eps", 1e-12)) {
    if (width_ % heads_ != 0 || layers_ > 1024)
      throw Error(ErrorCode::invalid_argument, "config.json: the sizes of the model do not fit each other");
    for (const std::string_view prefix : {"", "bert.", "model."})
      if (weights.arrays.contains(std::string(prefix) + "embeddings.word_embeddings.weight")) prefix_ = prefix;
  }

  std::vector<std::byte> write() {
    for (const char* name : {"input_ids", "attention_mask", "token_type_ids"})
      onnx_.input(name, Element::i64, {"batch", "sequence"});
    onnx_.output("last_hidden_state", Element::f32, {"batch", "sequence", "width"});
    std::string x = embeddings();
    constant("axes", {1, 2});
    onnx_.node("Cast", {"attention_mask"}, "mask", {{"to", std::int64_t{9}}});
    onnx_.node("Unsqueeze", {"mask", "axes"}, "mask4");
    for (std::int64_t i = 0; i < layers_; ++i) x = layer(fmt::format("encoder.layer.{}.", i), x);
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
  void constant(std::string_view name, std::vector<std::int64_t> values, bool is_scalar = false) {
    const Shape shape = is_scalar ? Shape{} : Shape{static_cast<std::int64_t>(values.size())};
    onnx_.weight(name, HostArray::from<std::int64_t>(shape, std::span<const std::int64_t>(values)));
  }

  std::string embeddings() {
    const auto words = weights_.arrays.find(prefix_ + "embeddings.word_embeddings.weight");
    const auto kinds = weights_.arrays.find(prefix_ + "embeddings.token_type_embeddings.weight");
    if (words == weights_.arrays.end() || kinds == weights_.arrays.end() || words->second.shape().rank() != 2 ||
        kinds->second.shape().rank() != 2)
      throw Error(ErrorCode::invalid_argument, "the checkpoint has no embeddings of words and token types");
    constant("zero", {0}, true);
    constant("one", {1}, true);
    onnx_.node("Shape", {"input_ids"}, "shape");
    onnx_.node("Gather", {"shape", "one"}, "length");
    onnx_.node("Range", {"zero", "length", "one"}, "places");
    onnx_.node("Gather", {weight("embeddings.position_embeddings.weight", {positions_, width_}), "places"}, "by_place");
    onnx_.node("Gather", {weight("embeddings.word_embeddings.weight", {words->second.shape()[0], width_}), "input_ids"},
               "by_word");
    onnx_.node("Gather",
               {weight("embeddings.token_type_embeddings.weight", {kinds->second.shape()[0], width_}), "token_type_ids"},
               "by_type");
    onnx_.node("Add", {"by_word", "by_type"}, "words_and_types");
    onnx_.node("Add", {"words_and_types", "by_place"}, "embedded");
    return norm("embeddings.LayerNorm", "embedded");
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
    const std::string q = linear(p + "attention.self.query", x, width_, width_),
                      k = linear(p + "attention.self.key", x, width_, width_),
                      v = linear(p + "attention.self.value", x, width_, width_);
    const std::string attended =
        onnx_.node("Attention", {q, k, v, "mask4"}, p + "attention", {{"q_num_heads", heads_}, {"kv_num_heads", heads_}});
    const std::string mixed = linear(p + "attention.output.dense", attended, width_, width_);
    const std::string y = norm(p + "attention.output.LayerNorm", onnx_.node("Add", {mixed, x}, p + "first"));
    const std::string inner = onnx_.node("Gelu", {linear(p + "intermediate.dense", y, width_, inner_)}, p + "gelu");
    const std::string outer = linear(p + "output.dense", inner, inner_, width_);
    return norm(p + "output.LayerNorm", onnx_.node("Add", {outer, y}, p + "second"));
  }

  const ArrayFile& weights_;
  const std::int64_t width_, layers_, heads_, inner_, positions_;
  const double eps_;
  std::string prefix_;
  OnnxWriter onnx_{23};
};

}  // namespace

std::vector<std::byte> bert_as_onnx(std::string_view config_json, const ArrayFile& weights) {
  const Config config(config_json);
  const std::string type = config.text("model_type", "");
  if (type != "bert")
    throw Error(ErrorCode::unimplemented, fmt::format("checkpoints of type '{}' are not supported", printable(type)),
                "supported is: bert; export other models as ONNX");
  if (const std::string act = config.text("hidden_act", "gelu"); act != "gelu")
    throw Error(ErrorCode::unimplemented, fmt::format("the activation '{}' is not supported", printable(act)));
  if (const std::string kind = config.text("position_embedding_type", "absolute"); kind != "absolute")
    throw Error(ErrorCode::unimplemented, fmt::format("positions of type '{}' are not supported", printable(kind)));
  return Bert(config, weights).write();
}

}  // namespace tenon::checkpoint
