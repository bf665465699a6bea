#include "model/checkpoint/encoder_writer.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "base/text/printable.h"
#include "tenon/error.h"

namespace tenon::checkpoint {
namespace {

namespace json = boost::json;

// The transposed part of a matrix: checkpoints have [out, in], products of rows take [in, out].
HostArray transposed(const HostArray& array, std::int64_t first, std::int64_t rows) {
  const std::int64_t columns = array.shape()[1];
  HostArray out = HostArray::empty(array.dtype(), Shape{columns, rows});
  const std::size_t bytes = element_bytes(array.dtype());
  std::byte* const to = out.mutable_data();
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j)
      std::memcpy(to + static_cast<std::size_t>(j * rows + i) * bytes,
                  array.data() + static_cast<std::size_t>((first + i) * columns + j) * bytes, bytes);
  return out;
}

}  // namespace

EncoderConfig::EncoderConfig(std::string_view text) {
  boost::system::error_code error;
  json::parse_options options;
  options.max_depth = 16;
  const json::value value = json::parse(text, error, {}, options);
  if (error || !value.is_object()) throw Error(ErrorCode::invalid_argument, "config.json is not a JSON object");
  object_ = value.get_object();
}
const json::value* EncoderConfig::find(std::string_view name) const {
  const json::value* value = object_.if_contains(name);
  return value && !value->is_null() ? value : nullptr;
}
std::int64_t EncoderConfig::size(std::initializer_list<std::string_view> names) const {
  for (const std::string_view name : names)
    if (const json::value* value = find(name)) {
      if (value->is_int64() && value->get_int64() >= 1 && value->get_int64() <= (1 << 24)) return value->get_int64();
      break;
    }
  throw Error(ErrorCode::invalid_argument, fmt::format("config.json: '{}' is not a size", *names.begin()));
}
std::int64_t EncoderConfig::size(std::initializer_list<std::string_view> names, std::int64_t fallback) const {
  for (const std::string_view name : names)
    if (find(name)) return size({name});
  return fallback;
}
double EncoderConfig::number(std::initializer_list<std::string_view> names, double fallback) const {
  for (const std::string_view name : names)
    if (const json::value* value = find(name); value && value->is_number()) return value->to_number<double>();
  return fallback;
}
std::string EncoderConfig::text(std::string_view name, std::string_view fallback) const {
  const json::value* value = find(name);
  return value && value->is_string() ? std::string(value->get_string()) : std::string(fallback);
}
bool EncoderConfig::flag(std::string_view name, bool fallback) const {
  const json::value* value = find(name);
  return value && value->is_bool() ? value->get_bool() : fallback;
}
bool EncoderConfig::is_classifier() const {
  const json::value* all = find("architectures");
  if (!all || !all->is_array() || all->get_array().empty() || !all->get_array()[0].is_string()) return false;
  return std::string_view(all->get_array()[0].get_string()).ends_with("ForSequenceClassification");
}

std::int64_t bias_bucket(std::int64_t distance, std::int64_t buckets, std::int64_t farthest) {
  const std::int64_t half = buckets / 2, exact = half / 2, size = std::abs(distance), first = distance > 0 ? half : 0;
  if (size < exact) return first + size;
  // As the models were trained: in float.
  const float ratio = std::log(static_cast<float>(size) / static_cast<float>(exact)) /
                      static_cast<float>(std::log(static_cast<double>(farthest) / static_cast<double>(exact)));
  return first + std::min(half - 1, exact + static_cast<std::int64_t>(ratio * static_cast<float>(half - exact)));
}

EncoderWriter::EncoderWriter(const EncoderConfig& config, const ArrayFile& weights,
                             std::initializer_list<std::string_view> prefixes, std::string_view known, bool has_types)
    : weights_(weights) {
  if (const json::value* quantized = config.find("quantization_config"); quantized && quantized->is_object())
    throw Error(ErrorCode::unimplemented, "quantised weights of encoders are not supported", "use the model in floats");
  for (const std::string_view prefix : prefixes)
    if (weights.arrays.contains(std::string(prefix) + std::string(known))) prefix_ = prefix;
  for (const char* name : {"input_ids", "attention_mask"}) onnx_.input(name, OnnxWriter::Element::i64, {"batch", "sequence"});
  if (has_types) onnx_.input("token_type_ids", OnnxWriter::Element::i64, {"batch", "sequence"});
}

// Heads of classifiers have no prefix.
const HostArray* EncoderWriter::find(const std::string& name) const {
  for (const std::string& each : {prefix_ + name, name})
    if (const auto found = weights_.arrays.find(each); found != weights_.arrays.end()) return &found->second;
  return nullptr;
}
const HostArray& EncoderWriter::tensor(const std::string& name, const Shape& shape) const {
  const HostArray* found = find(name);
  if (!found) throw Error(ErrorCode::invalid_argument, fmt::format("the tensor '{}{}' is missing", prefix_, name));
  if (found->shape() != shape)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the tensor '{}' is {}, the model needs {}", name, to_string(found->shape()), to_string(shape)));
  return *found;
}
std::int64_t EncoderWriter::rows(const std::string& name) const {
  const HostArray* found = find(name);
  return found && found->shape().rank() == 2 ? found->shape()[0] : 1;
}

std::string EncoderWriter::weight(const std::string& name, const Shape& shape) {
  const HostArray& array = tensor(name, shape);
  if (written_.insert(name).second) onnx_.weight(name, array.cast(DType::f32));
  return name;
}
std::string EncoderWriter::value(const HostArray& array) {
  std::string name = fmt::format("c{}", values_++);
  onnx_.weight(name, array);
  return name;
}
std::string EncoderWriter::integers(const std::vector<std::int64_t>& values) {
  return value(HostArray::from<std::int64_t>(Shape{static_cast<std::int64_t>(values.size())}, values));
}
std::string EncoderWriter::integer(std::int64_t number) {
  return value(HostArray::from<std::int64_t>(Shape{}, std::span<const std::int64_t>(&number, 1)));
}
std::string EncoderWriter::node(std::string_view op, std::initializer_list<std::string_view> inputs,
                                std::initializer_list<OnnxWriter::Attribute> attributes) {
  return onnx_.node(op, inputs, fmt::format("v{}", values_++), attributes);
}

std::string EncoderWriter::embedded(const std::string& table, std::int64_t width, std::string_view ids) {
  return node("Gather", {weight(table, {rows(table), width}), ids});
}
std::string EncoderWriter::matrix(const std::string& name, std::int64_t in, std::int64_t out, std::int64_t first) {
  std::string part = first < 0 ? name : fmt::format("{}@{}", name, first);
  const std::int64_t all = first < 0 ? out : rows(name);
  if (first + out > all) throw Error(ErrorCode::invalid_argument, fmt::format("the tensor '{}' has {} rows", name, all));
  const HostArray& array = tensor(name, {all, in});
  if (written_.insert(part).second) onnx_.weight(part, transposed(array, std::max<std::int64_t>(first, 0), out).cast(DType::f32));
  return part;
}
std::string EncoderWriter::linear(const std::string& name, std::string_view x, std::int64_t in, std::int64_t out,
                                  std::int64_t first) {
  const std::string product = node("MatMul", {x, matrix(name + ".weight", in, out, first)});
  const std::string bias = name + ".bias";
  if (!requires_biases_ && !has(bias)) return product;
  if (first < 0) return sum(product, weight(bias, {out}));
  const HostArray all = tensor(bias, {rows(name + ".weight")}).cast(DType::f32);
  return sum(product, value(HostArray::from<float>(Shape{out}, all.view<float>().subspan(static_cast<std::size_t>(first),
                                                                                         static_cast<std::size_t>(out)))));
}
std::string EncoderWriter::layer_norm(const std::string& name, std::string_view x, std::int64_t width, double eps) {
  const std::string scale = weight(name + ".weight", {width});
  const std::string bias =
      requires_biases_ || has(name + ".bias") ? weight(name + ".bias", {width}) : value(HostArray::zeros(DType::f32, {width}));
  return node("LayerNormalization", {x, scale, bias}, {{"axis", std::int64_t{-1}}, {"epsilon", eps}});
}
std::string EncoderWriter::rms_norm(const std::string& name, std::string_view x, std::int64_t width, double eps) {
  return node("RMSNormalization", {x, weight(name + ".weight", {width})}, {{"axis", std::int64_t{-1}}, {"epsilon", eps}});
}
std::string EncoderWriter::activated(std::string_view function, std::string_view x) {
  if (function == "gelu") return node("Gelu", {x});
  if (function == "gelu_new" || function == "gelu_pytorch_tanh" || function == "gelu_fast")
    return node("Gelu", {x}, {{"approximate", std::string_view("tanh")}});
  if (function == "relu") return node("Relu", {x});
  if (function == "tanh") return node("Tanh", {x});
  if (function == "silu" || function == "swish" || function == "swiglu") return node("Mul", {x, node("Sigmoid", {x})});
  throw Error(ErrorCode::unimplemented, fmt::format("the activation '{}' is not supported", printable(std::string(function))));
}
std::string EncoderWriter::attention(std::string_view q, std::string_view k, std::string_view v, std::string_view mask,
                                     std::int64_t heads, double scale) {
  if (scale == 0) return node("Attention", {q, k, v, mask}, {{"q_num_heads", heads}, {"kv_num_heads", heads}});
  return node("Attention", {q, k, v, mask}, {{"q_num_heads", heads}, {"kv_num_heads", heads}, {"scale", scale}});
}
std::string EncoderWriter::first_token(std::string_view x) {
  return node("Gather", {x, integer(0)}, {{"axis", std::int64_t{1}}});
}

const std::string& EncoderWriter::places() {
  if (places_.empty()) {
    const std::string zero = integer(0), one = integer(1);
    places_ = node("Range", {zero, node("Gather", {node("Shape", {"input_ids"}), one}), one});
  }
  return places_;
}
const std::string& EncoderWriter::distances() {
  if (distances_.empty())
    distances_ = node("Sub", {node("Unsqueeze", {places(), integers({0})}), node("Unsqueeze", {places(), integers({1})})});
  return distances_;
}
const std::string& EncoderWriter::mask() {
  constexpr std::int64_t kBoolean = 9;
  if (mask_.empty()) mask_ = node("Unsqueeze", {node("Cast", {"attention_mask"}, {{"to", kBoolean}}), integers({1, 2})});
  return mask_;
}

std::string EncoderWriter::distance_bias(const std::string& table, std::int64_t heads, std::int64_t most,
                                         const std::vector<std::int64_t>& rows) {
  const std::string which = node("Gather", {integers(rows), node("Add", {distances(), integer(most)})});
  // [queries, keys, heads], as columns of the table's transpose: [heads, queries, keys].
  const std::string bias = node("Gather", {matrix(table, heads, this->rows(table), -1), which}, {{"axis", std::int64_t{1}}});
  const std::string hidden = value(HostArray::full(DType::f32, {}, -std::numeric_limits<double>::infinity()));
  return node("Where", {mask(), node("Unsqueeze", {bias, integers({0})}), hidden});
}

std::vector<std::byte> EncoderWriter::finish(std::string_view output, std::string_view x) {
  if (output == "logits")
    onnx_.output(output, OnnxWriter::Element::f32, {"batch", "labels"});
  else
    onnx_.output(output, OnnxWriter::Element::f32, {"batch", "sequence", "width"});
  onnx_.node("Identity", {x}, std::string(output));
  return onnx_.finish();
}

}  // namespace tenon::checkpoint
