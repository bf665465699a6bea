#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "model/onnx/converters/families.h"
#include "model/onnx/tensor_data.h"

namespace tenon::onnx {
namespace {

using namespace build;

// The keys or values of a map: strings, or numbers of the type that its attribute has.
struct List {
  std::optional<HostArray> numbers;
  std::vector<std::string> strings;
  bool is_given = false;
  std::int64_t count() const { return numbers ? numbers->elements() : static_cast<std::int64_t>(strings.size()); }
};

List list_of(const NodeContext& node, const std::string& name) {
  List out;
  const auto vector = [&](auto values) {
    using T = typename decltype(values)::value_type;
    out.numbers = HostArray::from<T>(Shape{static_cast<std::int64_t>(values.size())}, std::span<const T>(values));
  };
  if (const AttributeProto* tensor = node.find(name + "_tensor"); tensor && tensor->tensor) {
    out.is_given = true;
    if (tensor->tensor->type == ElementType::string)
      out.strings.assign(tensor->tensor->strings.begin(), tensor->tensor->strings.end());
    else
      out.numbers = array_of(*tensor->tensor, {}).reshape(Shape{shape_of(*tensor->tensor).elements()});
  }
  if (node.given(name + "_strings")) out = {.strings = node.texts(name + "_strings"), .is_given = true};
  if (node.given(name + "_int64s")) vector(node.integers(name + "_int64s"));
  if (node.given(name + "_floats")) vector(node.numbers(name + "_floats"));
  // Places among the strings would not be places among the numbers.
  if (out.numbers && !out.strings.empty()) node.fail(fmt::format("'{}' are given as strings and as numbers", name));
  out.is_given = out.is_given || out.numbers;
  return out;
}

// [..., keys]: whether each element is each of the keys. NaN is a key like others.
Expr matches(const NodeContext& node, Expr x, const HostArray& keys) {
  const Expr wide = unsqueeze(x, x.rank()), key = node.constant(keys.cast(x.dtype())), equal = wide == key;
  return is_float(x.dtype()) ? where(is_nan(wide), is_nan(key), equal) : equal;
}

// The value that stands for whatever is not a key.
HostArray default_number(const NodeContext& node, DType dtype) {
  if (const AttributeProto* tensor = node.find("default_tensor"); tensor && tensor->tensor)
    return array_of(*tensor->tensor, {}).reshape({});
  if (is_float(dtype)) return HostArray::full(dtype, {}, node.number("default_float", -0.0));
  return HostArray::from<std::int64_t>({}, {node.integer("default_int64", -1)}).cast(dtype);
}

std::string default_string(const NodeContext& node) {
  if (const AttributeProto* tensor = node.find("default_tensor"); tensor && tensor->tensor && !tensor->tensor->strings.empty())
    return std::string(tensor->tensor->strings[0]);
  return node.text("default_string", "_Unused");
}

// The place of each element of input 0 among |keys|, -1 for what is none of them, worked out on the host.
std::vector<std::int64_t> places_on_host(const NodeContext& node, const List& keys) {
  std::vector<std::int64_t> out;
  if (const Value& x = *node.value(0); x.is_string()) {
    std::map<std::string_view, std::int64_t> places;
    for (std::size_t i = 0; i < keys.strings.size(); ++i) places.emplace(keys.strings[i], static_cast<std::int64_t>(i));
    for (const std::string& each : *x.strings) {
      const auto found = places.find(each);
      out.push_back(found == places.end() ? -1 : found->second);
    }
    return out;
  }
  const std::vector<double> x = node.host_numbers(0), numbers = keys.numbers ? keys.numbers->to_doubles() : std::vector<double>();
  std::map<double, std::int64_t> places;
  std::int64_t nan = -1;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (std::isnan(numbers[i]))
      nan = static_cast<std::int64_t>(i);
    else
      places.emplace(numbers[i], static_cast<std::int64_t>(i));
  }
  for (const double each : x) {
    const auto found = std::isnan(each) ? places.end() : places.find(each);
    out.push_back(std::isnan(each) ? nan : found == places.end() ? -1 : found->second);
  }
  return out;
}

Results label_encoder(const NodeContext& node) {
  const List keys = list_of(node, "keys"), values = list_of(node, "values");
  if (!keys.is_given || !values.is_given || keys.count() != values.count())
    node.fail(fmt::format("{} keys for {} values", keys.count(), values.count()));
  const Shape shape = node.shape(0);
  if (!values.numbers) {
    std::vector<std::string> out;
    for (const std::int64_t place : places_on_host(node, keys))
      out.push_back(place < 0 ? default_string(node) : values.strings[static_cast<std::size_t>(place)]);
    return {text(shape, std::move(out))};
  }
  const HostArray fallback = default_number(node, values.numbers->dtype());
  if (keys.count() == 0) return {expand_to(node.constant(fallback), shape)};
  if (node.value(0)->is_string()) {
    const HostArray others = fallback.cast(values.numbers->dtype());
    HostArray out = HostArray::zeros(values.numbers->dtype(), shape);
    const std::size_t size = element_bytes(out.dtype());
    std::byte* to = out.mutable_data();
    for (const std::int64_t place : places_on_host(node, keys)) {
      std::copy_n(place < 0 ? others.data() : values.numbers->data() + static_cast<std::size_t>(place) * size, size, to);
      to += size;
    }
    return {out};
  }
  if (!keys.numbers) node.fail("keys that are strings for numbers");
  const Expr equal = matches(node, node.in(0), *keys.numbers);
  const int last = equal.rank() - 1;
  const Expr place = squeeze({node.graph(), node.graph().arg_reduce(cast(equal, DType::i32).id(), last, true)}, one_axis(last));
  const Expr found = squeeze(any_keep(equal, one_axis(last)), one_axis(last));
  return {where(found, take(node.constant(*values.numbers), place, 0), node.constant(fallback.cast(values.numbers->dtype())))};
}

Results one_hot_encoder(const NodeContext& node) {
  List keys{.strings = node.texts("cats_strings")};
  const std::vector<std::int64_t> numbers = node.integers("cats_int64s");
  if (keys.strings.empty())
    keys.numbers = HostArray::from<std::int64_t>(Shape{static_cast<std::int64_t>(numbers.size())}, numbers);
  if (!node.value(0)->is_string()) {
    if (!keys.numbers) node.fail("categories that are strings for numbers");
    return {cast(matches(node, cast(node.in(0), DType::i64), *keys.numbers), DType::f32)};
  }
  Dims shape = dims(node.shape(0));
  shape.push_back(keys.count());
  const std::vector<std::int64_t> places = places_on_host(node, keys);
  HostArray out = HostArray::zeros(DType::f32, Shape(shape));
  const std::span<float> ones = out.mutable_view<float>();
  for (std::size_t i = 0; i < places.size(); ++i)
    if (places[i] >= 0) ones[i * static_cast<std::size_t>(keys.count()) + static_cast<std::size_t>(places[i])] = 1;
  return {out};
}

// Elements of the last axis.
Results array_feature_extractor(const NodeContext& node) {
  const Value& x = *node.value(0);
  const std::int64_t count = node.shape(1).elements();
  Shape shape = x.shape;
  if (shape.rank() == 0) node.fail("expected at least one axis");
  const std::int64_t extent = shape[shape.rank() - 1];
  shape = shape.rank() == 1 ? Shape{1, count} : shape.with(shape.rank() - 1, count);
  if (!x.is_string()) {
    const Expr places = reshape(wrapped_indices(node.in(1), extent), Shape{count});
    return {reshape(take(node.in(0), places, x.shape.rank() - 1), shape)};
  }
  std::vector<std::int64_t> places = node.host_integers(1);
  for (std::int64_t& place : places) {
    if (place < -extent || place >= extent) node.fail(fmt::format("element {} of a row of {}", place, extent));
    if (place < 0) place += extent;
  }
  std::vector<std::string> out;
  for (std::size_t row = 0; row < x.strings->size(); row += static_cast<std::size_t>(std::max<std::int64_t>(extent, 1)))
    for (const std::int64_t place : places) out.push_back(x.strings->at(row + static_cast<std::size_t>(place)));
  return {text(shape, std::move(out))};
}

// A map of labels to scores for each row; here it stays the tensor of scores, a column per label.
Results zip_map(const NodeContext& node) { return {node.value(0)}; }

}  // namespace

void add_tables(ConverterTable& table) {
  table.add("ai.onnx.ml.LabelEncoder", label_encoder);
  table.add("ai.onnx.ml.OneHotEncoder", one_hot_encoder);
  table.add("ai.onnx.ml.ArrayFeatureExtractor", array_feature_extractor);
  table.add("ai.onnx.ml.ZipMap", zip_map);
}

}  // namespace tenon::onnx
