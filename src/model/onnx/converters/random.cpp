#include <bit>

#include "model/onnx/converters/families.h"

namespace tenon::onnx {
namespace {

using namespace build;

// A model without a seed gets the same numbers at every run: answers do not depend on when they are asked for.
std::uint64_t seed_of(const NodeContext& node) {
  return node.given("seed") ? std::bit_cast<std::uint32_t>(static_cast<float>(node.number("seed", 0))) : 0x7e4f0a3dULL;
}

ElementType type_of(const NodeContext& node, ElementType fallback) {
  const std::int64_t given = node.integer("dtype", static_cast<std::int64_t>(fallback));
  if (given <= 0 || given >= kElementTypes) node.fail("unknown element type");
  return static_cast<ElementType>(given);
}

Expr numbers(const NodeContext& node, const Shape& shape, DType dtype, bool normal) {
  const DType wide = dtype == DType::f64 ? DType::f64 : DType::f32;
  return {node.graph(), node.graph().random(shape, wide, normal, seed_of(node))};
}

Results random(const NodeContext& node) {
  const bool like = node.op().ends_with("Like"), normal = node.op().starts_with("RandomNormal");
  const Shape shape = like ? node.shape(0) : Shape(node.integers("shape"));
  const ElementType type = type_of(node, like ? node.type(0) : ElementType::f32);
  const DType dtype = held_as(type);
  const Expr x = numbers(node, shape, dtype, normal);
  if (normal) return {cast(x * node.number("scale", 1) + node.number("mean", 0), dtype)};
  const double low = node.number("low", 0), high = node.number("high", 1);
  return {cast(x * (high - low) + low, dtype)};
}

Results bernoulli(const NodeContext& node) {
  const Expr p = node.in(0);
  const DType dtype = held_as(type_of(node, node.type(0)));
  return {cast(numbers(node, p.shape(), DType::f64, false) < cast(p, DType::f64), dtype)};
}

// A class for each sample: how many of the running sums of probabilities lie below a random number.
Results multinomial(const NodeContext& node) {
  const Expr logits = node.in(0);
  const std::int64_t samples = node.integer("sample_size", 1), classes = logits.extent(1);
  const Expr p = node.apply("softmax", {cast(logits, DType::f64)});
  const Expr sums(node.graph(), node.graph().cumulative(p.id(), 1, false));
  const Expr u = numbers(node, Shape{logits.extent(0), samples, 1}, DType::f64, false);
  const Expr below = cast(unsqueeze(narrow(sums, 1, 0, classes - 1), 1) <= u, DType::i64);
  return {cast(squeeze(sum_keep(below, one_axis(2)), one_axis(2)), held_as(type_of(node, ElementType::i32)))};
}

}  // namespace

void add_random(ConverterTable& table) {
  table.add({"RandomUniform", "RandomUniformLike", "RandomNormal", "RandomNormalLike"}, random);
  table.add("Bernoulli", bernoulli);
  table.add("Multinomial", multinomial);
}

}  // namespace tenon::onnx
