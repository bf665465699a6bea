#include <fmt/format.h>

#include "model/onnx/converters/classical/scores.h"

namespace tenon::onnx {
namespace {

using namespace build;

HostArray floats(const Shape& shape, const std::vector<double>& values, DType dtype) {
  return HostArray::from<double>(shape, values).cast(dtype);
}

// x * coefficients^T + intercepts, [rows, |outputs|].
Expr linear(const NodeContext& node, std::int64_t outputs) {
  const Expr x = features(node);
  const std::vector<float> coefficients = node.numbers("coefficients"), intercepts = node.numbers("intercepts");
  if (outputs < 1 || static_cast<std::int64_t>(coefficients.size()) != outputs * x.extent(1))
    node.fail(fmt::format("{} coefficients for {} features and {} outputs", coefficients.size(), x.extent(1), outputs));
  const Expr weights = cast(node.constant(HostArray::from<float>(Shape{outputs, x.extent(1)}, coefficients)), x.dtype());
  Expr y = matmul(x, weights, {.transpose_b = true});
  if (!intercepts.empty())
    y = y + node.constant(HostArray::from<float>(Shape{static_cast<std::int64_t>(intercepts.size())}, intercepts));
  return cast(y, DType::f32);
}

Results linear_regressor(const NodeContext& node) { return {transformed(node, linear(node, node.integer("targets", 1)))}; }

Results linear_classifier(const NodeContext& node) {
  const Labels labels(node, "classlabels_ints");
  const std::vector<float> coefficients = node.numbers("coefficients");
  const std::int64_t width = features(node).extent(1),
                     outputs = width > 0 ? static_cast<std::int64_t>(coefficients.size()) / width : 0;
  const Expr scores = linear(node, outputs);
  if (outputs > 1) {
    if (labels.count() != outputs) node.fail(fmt::format("{} labels for {} classes", labels.count(), outputs));
    return {labels.best(scores), transformed(node, scores)};
  }
  // One score decides between two classes.
  if (labels.count() != 2) node.refuse(fmt::format("one score for {} classes", labels.count()));
  const Expr yes = transformed(node, scores);
  const Expr pair[] = {1.0 - yes, yes};
  return {labels.at(reshape(cast(scores > same(scores, 0), DType::i64), Shape{scores.extent(0)})), concat(pair, 1)};
}

Results scaler(const NodeContext& node) {
  const auto vector = [&](std::string_view name) {
    const std::vector<float> values = node.numbers(name);
    const auto count = static_cast<std::int64_t>(values.size());
    return node.constant(HostArray::from<float>(count == 1 ? Shape{} : Shape{count}, values));
  };
  Expr x = cast(node.in(0), DType::f32);
  if (node.given("offset")) x = x - vector("offset");
  if (node.given("scale")) x = x * vector("scale");
  return {x};
}

Results normalizer(const NodeContext& node) {
  const Expr x = cast(node.in(0), DType::f32);
  if (x.rank() == 0) node.fail("expected at least one axis");
  const AxisSet last = one_axis(x.rank() - 1);
  const std::string norm = node.text("norm", "MAX");
  if (norm != "MAX" && norm != "L1" && norm != "L2") node.refuse("the norm " + norm);
  const Expr size = norm == "MAX" ? max_keep(x, last) : norm_keep(x, last, norm == "L1" ? 1 : 2);
  return {x / where(size == 0.0, 1.0, size)};
}

Results imputer(const NodeContext& node) {
  const Expr x = node.in(0);
  const bool is_integer_input = is_integer(x.dtype());
  std::vector<double> values;
  if (is_integer_input)
    for (const std::int64_t each : node.integers("imputed_value_int64s")) values.push_back(static_cast<double>(each));
  else
    for (const float each : node.numbers("imputed_value_floats")) values.push_back(each);
  if (values.empty()) node.fail("there is nothing to put in place of missing values");
  const auto count = static_cast<std::int64_t>(values.size());
  const Expr put = node.constant(floats(count == 1 ? Shape{} : Shape{count}, values, x.dtype()));
  const double missing =
      is_integer_input ? static_cast<double>(node.integer("replaced_value_int64", 0)) : node.number("replaced_value_float", 0);
  const Expr is_missing = missing != missing ? is_nan(x) : x == same(x, missing);
  return {where(is_missing, put, x)};
}

Results binarizer(const NodeContext& node) {
  const Expr x = node.in(0);
  return {cast(x > same(x, node.number("threshold", 0)), x.dtype())};
}

Results feature_vectorizer(const NodeContext& node) {
  std::vector<Expr> parts;
  for (std::size_t i = 0; i < node.inputs(); ++i) {
    const Expr x = cast(node.in(i), DType::f32);
    parts.push_back(x.rank() == 1 ? unsqueeze(x, 1) : x);
    if (parts.back().rank() != 2) node.fail("expected [rows, features]");
  }
  if (parts.empty()) node.fail("nothing to join");
  return {concat(parts, 1)};
}

}  // namespace

void add_linear_models(ConverterTable& table) {
  const auto add = [&](std::string_view op, Converter converter) { table.add("ai.onnx.ml." + std::string(op), converter); };
  add("LinearRegressor", linear_regressor);
  add("LinearClassifier", linear_classifier);
  add("Scaler", scaler);
  add("Normalizer", normalizer);
  add("Imputer", imputer);
  add("Binarizer", binarizer);
  add("FeatureVectorizer", feature_vectorizer);
}

}  // namespace tenon::onnx
