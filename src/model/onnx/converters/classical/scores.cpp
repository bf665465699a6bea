#include "model/onnx/converters/classical/scores.h"

#include <fmt/format.h>

#include <cmath>

#include "model/onnx/tensor_data.h"

namespace tenon::onnx {

using namespace build;

Expr features(const NodeContext& node) {
  Expr x = node.in(0);
  if (x.dtype() != DType::f64) x = cast(x, DType::f32);
  if (x.rank() == 1) x = unsqueeze(x, 0);
  if (x.rank() != 2) node.fail("expected [rows, features]");
  return x;
}

std::string transform_of(const NodeContext& node) {
  // A number since version 5 of TreeEnsemble.
  static constexpr std::string_view names[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
  const std::string name = node.text("post_transform", "NONE");
  if (!name.empty()) return name;
  const std::int64_t number = node.integer("post_transform", 0);
  if (number < 0 || number > 4) node.fail("post_transform is out of range");
  return std::string(names[number]);
}

Expr transformed(const NodeContext& node, Expr scores) {
  const std::string name = transform_of(node);
  if (name == "NONE") return scores;
  if (name == "LOGISTIC") return sigmoid(scores);
  if (name == "SOFTMAX") return node.apply("softmax", {scores});
  if (name == "PROBIT") return node.apply("erfinv", {scores * 2.0 - 1.0}) * std::sqrt(2.0);
  if (name != "SOFTMAX_ZERO") node.refuse("post_transform " + name);
  // A score of 0 stays 0 and has no part in the sum.
  const AxisSet last = one_axis(scores.rank() - 1);
  const Expr e = where(abs(scores) <= 1e-7, 0.0, exp(scores - max_keep(scores, last))), sum = sum_keep(e, last);
  return e / where(sum == 0.0, 1.0, sum);
}

std::vector<double> doubles(const NodeContext& node, std::string_view name) {
  if (const AttributeProto* tensor = node.find(std::string(name) + "_as_tensor"); tensor && tensor->tensor)
    return array_of(*tensor->tensor, {}).to_doubles();
  const std::vector<float> values = node.numbers(name);
  return {values.begin(), values.end()};
}

Labels::Labels(const NodeContext& node, std::string_view integers)
    : node_(node),
      integers_(node.integers(integers)),
      strings_(node.texts("classlabels_strings")) {
  if (!integers_.empty() && !strings_.empty() && integers_.size() != strings_.size())
    node.fail(fmt::format("{} labels as integers and {} as strings", integers_.size(), strings_.size()));
}

std::int64_t Labels::count() const noexcept { return static_cast<std::int64_t>(std::max(integers_.size(), strings_.size())); }

Result Labels::at(Expr places) const {
  if (strings_.empty()) return {take(node_.constant(integers_), places, 0)};
  const HostArray known = node_.host(computed(places));
  std::vector<std::string> out;
  for (const std::int64_t place : known.view<std::int64_t>()) {
    if (place < 0 || place >= count()) node_.fail(fmt::format("label {} of {}", place, count()));
    out.push_back(strings_[static_cast<std::size_t>(place)]);
  }
  return {text(known.shape(), std::move(out))};
}

Result Labels::best(Expr scores) const {
  return at(reshape({scores.graph(), scores.graph().arg_reduce(scores.id(), 1, true)}, Shape{scores.extent(0)}));
}

}  // namespace tenon::onnx
