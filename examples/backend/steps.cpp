#include "steps.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "tenon/error.h"
#include "tenon/ops.h"

using namespace tenon;

namespace {

using Values = std::span<const std::span<const float>>;
using Function = float (*)(float a, float b);

// A backend finds an elementwise op by its place in the catalogue; OpInfo::elementwise has it for each name.
const std::map<ElementwiseOp, Function>& functions() {
  static const std::map<ElementwiseOp, Function> table = [] {
    const std::pair<const char*, Function> named[] = {
        {"add", [](float a, float b) { return a + b; }},
        {"subtract", [](float a, float b) { return a - b; }},
        {"multiply", [](float a, float b) { return a * b; }},
        {"divide", [](float a, float b) { return a / b; }},
        {"negative", [](float a, float) { return -a; }},
        {"exp", [](float a, float) { return std::exp(a); }},
        {"log", [](float a, float) { return std::log(a); }},
        {"sqrt", [](float a, float) { return std::sqrt(a); }},
        {"tanh", [](float a, float) { return std::tanh(a); }},
        // NaN stays NaN, as the catalogue's formula says; std::max(0, a) would drop it.
        {"relu", [](float a, float) { return a < 0 ? 0 : a; }},
    };
    std::map<ElementwiseOp, Function> found;
    for (const auto& [op, function] : named) found[find_op(op).elementwise.value()] = function;
    return found;
  }();
  return table;
}

using Coordinates = std::array<std::int64_t, kMaxRank>;

// For each element of |shape|, row by row: the place in |of| of the element at |where(coordinates)|.
template <class Where>
std::vector<std::size_t> places(const Shape& shape, const Shape& of, Where where) {
  std::vector<std::size_t> result;
  Coordinates at{};
  for (std::int64_t i = 0; i < shape.elements(); ++i) {
    std::int64_t rest = i, place = 0;
    for (int axis = shape.rank() - 1; axis >= 0; rest /= shape[axis--]) at[static_cast<std::size_t>(axis)] = rest % shape[axis];
    const Coordinates there = where(at);
    for (int axis = 0; axis < of.rank(); ++axis) place = place * of[axis] + there[static_cast<std::size_t>(axis)];
    result.push_back(static_cast<std::size_t>(place));
  }
  return result;
}

// Where broadcasting takes each element of |large| from. A reduction keeps its axes with extent 1, so the same table says into
// which result each element goes.
std::vector<std::size_t> broadcast_places(const Shape& large, const Shape& small) {
  const int more = large.rank() - small.rank();
  return places(large, small, [&](const Coordinates& at) {
    Coordinates there{};
    for (int axis = 0; axis < small.rank(); ++axis)
      there[static_cast<std::size_t>(axis)] = small[axis] == 1 ? 0 : at[static_cast<std::size_t>(axis + more)];
    return there;
  });
}

std::vector<std::size_t> transpose_places(const Node& node, const Shape& of) {
  return places(node.shape, of, [&](const Coordinates& at) {
    Coordinates there{};
    for (std::size_t axis = 0; axis < static_cast<std::size_t>(of.rank()); ++axis)
      there[static_cast<std::size_t>(node.as<TransposeAttr>().perm[axis])] = at[axis];
    return there;
  });
}

std::vector<std::size_t> slice_places(const Node& node, const Shape& of) {
  const SliceAttr& slice = node.as<SliceAttr>();
  return places(node.shape, of, [&](const Coordinates& at) {
    Coordinates there{};
    for (std::size_t axis = 0; axis < static_cast<std::size_t>(of.rank()); ++axis)
      there[axis] = slice.start[axis] + at[axis] * slice.step[axis];
    return there;
  });
}

Step view(std::vector<std::size_t> from) {
  return [from = std::move(from)](Values in, std::span<float> out) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = in[0][from[i]];
  };
}

Step elementwise(const Node& node) {
  return [function = functions().at(node.as<ElementwiseAttr>().op)](Values in, std::span<float> out) {
    const std::span<const float> a = in[0], b = in.size() > 1 ? in[1] : in[0];
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = function(a[i], b[i]);
  };
}

Step sum(const Graph& graph, const Node& node) {
  return [to = broadcast_places(graph[node.inputs[0]].shape, node.shape)](Values in, std::span<float> out) {
    std::vector<double> sums(out.size());  // a long sum of floats in float would lose its small terms
    for (std::size_t i = 0; i < to.size(); ++i) sums[to[i]] += static_cast<double>(in[0][i]);
    std::ranges::transform(sums, out.begin(), [](double value) { return static_cast<float>(value); });
  };
}

Step maximum(const Graph& graph, const Node& node) {
  return [to = broadcast_places(graph[node.inputs[0]].shape, node.shape)](Values in, std::span<float> out) {
    std::ranges::fill(out, -std::numeric_limits<float>::infinity());
    for (std::size_t i = 0; i < to.size(); ++i) {
      float& largest = out[to[i]];
      if (in[0][i] > largest || std::isnan(in[0][i])) largest = in[0][i];  // nothing is larger than NaN: it stays
    }
  };
}

Step matrix_product(const Graph& graph, const Node& node) {
  const auto [transpose_a, transpose_b] = node.as<MatMulAttr>();
  const int rank = node.shape.rank();  // the axes before the last two are equal for both: as many products
  const auto rows = static_cast<std::size_t>(node.shape[rank - 2]), cols = static_cast<std::size_t>(node.shape[rank - 1]);
  const auto inner = static_cast<std::size_t>(graph[node.inputs[0]].shape[transpose_a ? rank - 2 : rank - 1]);
  return [=](Values in, std::span<float> out) {
    for (std::size_t place = 0; place < out.size(); ++place) {
      const std::size_t batch = place / (rows * cols), i = place / cols % rows, j = place % cols;
      const float* const a = in[0].data() + batch * rows * inner;
      const float* const b = in[1].data() + batch * inner * cols;
      double total = 0;
      for (std::size_t k = 0; k < inner; ++k)
        total += static_cast<double>(a[transpose_a ? k * rows + i : i * inner + k]) *
                 static_cast<double>(b[transpose_b ? j * inner + k : k * cols + j]);
      out[place] = static_cast<float>(total);
    }
  };
}

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorCode::unimplemented, "walk does not compute " + what, "use another device, e.g. --device cpu");
}

}  // namespace

void check_node(const Node& node) {
  if (node.dtype != DType::f32) refuse(std::string(name(node.dtype)) + " (" + node_text(node) + ")");
  switch (node.prim) {
    case Prim::input:
    case Prim::constant:
    case Prim::reshape:
    case Prim::broadcast:
    case Prim::transpose:
    case Prim::slice:
    case Prim::matmul: return;
    case Prim::elementwise:
      if (functions().contains(node.as<ElementwiseAttr>().op)) return;
      break;
    case Prim::reduce: {
      const ReduceKind kind = node.as<ReduceAttr>().kind;
      if (kind == ReduceKind::sum || kind == ReduceKind::max) return;
      break;
    }
    default: break;
  }
  refuse(node_text(node));
}

Step make_step(const Graph& graph, const Node& node) {
  switch (node.prim) {
    case Prim::elementwise: return elementwise(node);
    case Prim::broadcast: return view(broadcast_places(node.shape, graph[node.inputs[0]].shape));
    case Prim::transpose: return view(transpose_places(node, graph[node.inputs[0]].shape));
    case Prim::slice: return view(slice_places(node, graph[node.inputs[0]].shape));
    case Prim::reduce: return node.as<ReduceAttr>().kind == ReduceKind::sum ? sum(graph, node) : maximum(graph, node);
    case Prim::matmul: return matrix_product(graph, node);
    // The elements stay in their order.
    default: return [](Values in, std::span<float> out) { std::ranges::copy(in[0], out.begin()); };
  }
}
