#include <fmt/format.h>

#include "model/onnx/converters/families.h"

namespace tenon::onnx {
namespace {

using namespace build;

// Optimizers: a rate, a step count, then groups of tensors; |groups| of them per updated tensor.
struct Tensors {
  const NodeContext& node;
  std::size_t count;
  Tensors(const NodeContext& context, std::size_t groups) : node(context), count((context.inputs() - 2) / groups) {
    if (context.inputs() < 2 + groups || (context.inputs() - 2) % groups != 0) context.fail("the inputs do not come in groups");
  }
  Expr at(std::size_t group, std::size_t i) const { return node.in(2 + group * count + i); }
};

Results collected(const std::vector<std::vector<Expr>>& groups) {
  Results results;
  for (const std::vector<Expr>& group : groups)
    for (const Expr& each : group) results.emplace_back(each);
  return results;
}

Results adagrad(const NodeContext& node) {
  const Tensors t(node, 3);
  std::vector<std::vector<Expr>> out(2);
  const Expr rate = node.in(0) / (cast(node.in(1), node.dtype(0)) * node.number("decay_factor", 0) + 1.0);
  for (std::size_t i = 0; i < t.count; ++i) {
    const Expr x = t.at(0, i), g = x * node.number("norm_coefficient", 0) + t.at(1, i), h = t.at(2, i) + square(g);
    out[0].push_back(x - rate * g / (sqrt(h) + node.number("epsilon", 1e-6)));
    out[1].push_back(h);
  }
  return collected(out);
}

Results adam(const NodeContext& node) {
  const Tensors t(node, 4);
  const double alpha = node.number("alpha", 0.9), beta = node.number("beta", 0.999);
  std::vector<std::vector<Expr>> out(3);
  const Expr step = cast(node.in(1), DType::f64), rate = cast(node.in(0), DType::f64);
  const auto power = [&](double base) { return build::pow(node.constant(HostArray::full(DType::f64, {}, base)), step); };
  const Expr adjusted = where(step <= 0.0, rate, rate * sqrt(1.0 - power(beta)) / (1.0 - power(alpha)));
  for (std::size_t i = 0; i < t.count; ++i) {
    const Expr x = t.at(0, i), g = x * node.number("norm_coefficient", 0) + t.at(1, i);
    const Expr v = t.at(2, i) * alpha + g * (1 - alpha), h = t.at(3, i) * beta + square(g) * (1 - beta);
    const Expr next = x - cast(adjusted, x.dtype()) * v / (sqrt(h) + node.number("epsilon", 0));
    out[0].push_back(next * (1 - node.number("norm_coefficient_post", 0)));
    out[1].push_back(v);
    out[2].push_back(h);
  }
  return collected(out);
}

Results momentum(const NodeContext& node) {
  const Tensors t(node, 3);
  const double alpha = node.number("alpha", 0.9), beta = node.number("beta", 0.999);
  const bool nesterov = node.text("mode", "standard") == "nesterov";
  std::vector<std::vector<Expr>> out(2);
  const Expr rate = node.in(0), step = cast(node.in(1), node.dtype(0));
  const Expr weight = where(step <= 0.0, 1.0, step * 0.0 + beta);
  for (std::size_t i = 0; i < t.count; ++i) {
    const Expr x = t.at(0, i), g = x * node.number("norm_coefficient", 0) + t.at(1, i);
    const Expr v = t.at(2, i) * alpha + weight * g;
    out[0].push_back(x - rate * (nesterov ? g + v * alpha : v));
    out[1].push_back(v);
  }
  return collected(out);
}

}  // namespace

void add_training(ConverterTable& table) {
  table.add("ai.onnx.preview.training.Adagrad", adagrad);
  table.add("ai.onnx.preview.training.Adam", adam);
  table.add("ai.onnx.preview.training.Momentum", momentum);
}

}  // namespace tenon::onnx
