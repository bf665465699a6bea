#include "ops/constant_value.h"

#include <array>

#include "ops/elementwise/reference.h"

namespace tenon {
namespace {

// Shared subterms are visited once per use, so a chain of t = t + t doubles each time; a limit replaces memoization.
constexpr int kMaxVisits = 64;

std::optional<double> fold(const Graph& graph, NodeId id, int& visits) {
  if (++visits > kMaxVisits) return std::nullopt;
  const Node& node = graph[id];
  if (node.shape.elements() != 1) return std::nullopt;
  switch (node.prim) {
    case Prim::constant: return node.as<ConstantAttr>().value.value(0);
    case Prim::broadcast:
    case Prim::reshape: return fold(graph, node.inputs[0], visits);
    case Prim::cast: {
      const std::optional<double> x = fold(graph, node.inputs[0], visits);
      if (!x) return std::nullopt;
      return HostArray::full(DType::f64, {}, *x).cast(node.dtype).value(0);
    }
    case Prim::elementwise: {
      const auto& attr = node.as<ElementwiseAttr>();
      std::array<double, 3> in{};
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        const std::optional<double> x = fold(graph, node.inputs[i], visits);
        if (!x) return std::nullopt;
        in[i] = *x;
      }
      return evaluate(attr.op, in.data(), attr.params.data());
    }
    default: return std::nullopt;
  }
}

}  // namespace

std::optional<ParameterValue> constant_value(const Graph& graph, NodeId id) {
  const Node& node = graph[id];
  if (node.prim == Prim::constant && node.shape.rank() == 1 && is_integer(node.dtype)) {
    std::vector<std::int64_t> list;
    const HostArray& value = node.as<ConstantAttr>().value;
    for (std::int64_t i = 0; i < value.elements(); ++i) list.push_back(static_cast<std::int64_t>(value.value(i)));
    return list;
  }
  if (node.shape.rank() != 0) return std::nullopt;
  int visits = 0;
  const std::optional<double> x = fold(graph, id, visits);
  if (!x) return std::nullopt;
  if (node.dtype == DType::boolean) return *x != 0;
  if (is_integer(node.dtype)) return value::Scalar<std::int64_t>(*x).v;
  return *x;
}

}  // namespace tenon
