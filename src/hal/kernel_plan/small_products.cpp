#include "hal/kernel_plan/small_products.h"

#include <array>
#include <vector>

#include "graph/elementwise.h"

namespace tenon {
namespace {

struct Size {
  std::int64_t m, n, k, batches;
};

Size size_of(const Graph& graph, const Node& product) {
  const int rank = product.shape.rank();
  Size size{product.shape[rank - 2], product.shape[rank - 1], 0, 1};
  size.k = graph[product.inputs[0]].shape[product.as<MatMulAttr>().transpose_a ? rank - 2 : rank - 1];
  for (int axis = 0; axis + 2 < rank; ++axis) size.batches *= product.shape[axis];
  return size;
}

bool is_better_as_sum(const Graph& graph, const Node& node) {
  // A product of one row or column with 64 and more results has a kernel of its own (emit_few_rows). Every result reads its row
  // and its column again: from the cache, if there are few of them in all.
  constexpr std::int64_t kFewest = 256, kMostSide = 63, kMostResults = 256, kMostWork = std::int64_t{1} << 22;
  if (node.prim != Prim::matmul || !is_float(node.dtype) || is_block(node.dtype) || node.shape.rank() >= kMaxRank) return false;
  if (!is_float(graph[node.inputs[0]].dtype) || !is_float(graph[node.inputs[1]].dtype)) return false;
  const Size size = size_of(graph, node);
  if (size.k < kFewest || size.batches == 0) return false;
  if (size.m == 1 && size.n == 1) return true;
  return size.m <= kMostSide && size.n <= kMostSide && size.m * size.n <= kMostResults &&
         size.batches * size.m * size.n * size.k <= kMostWork;
}

// An operand as [batches..., rows, columns, terms] of |dtype|, |rows| or |columns| repeated. It is converted last: a conversion
// in front of the views would be a kernel of its own.
NodeId with_terms_last(Graph& graph, NodeId x, bool terms_are_last, bool is_left, const Shape& to, DType dtype) {
  const auto is_narrow = [&](NodeId id) { return graph[id].dtype == DType::f16 || graph[id].dtype == DType::bf16; };
  if (graph[x].prim == Prim::cast && is_narrow(graph[x].inputs[0]) && !is_narrow(x)) x = graph[x].inputs[0];
  if (!terms_are_last) {
    std::vector<int> axes;
    const int rank = graph[x].shape.rank();
    for (int axis = 0; axis < rank; ++axis) axes.push_back(axis);
    std::swap(axes[static_cast<std::size_t>(rank - 1)], axes[static_cast<std::size_t>(rank - 2)]);
    x = graph.transpose(x, axes);
  }
  const Shape lines = graph[x].shape;
  std::vector<std::int64_t> extents(lines.begin(), lines.end());
  extents.insert(extents.end() - (is_left ? 1 : 2), 1);
  x = graph.broadcast(graph.reshape(x, Shape(std::span<const std::int64_t>(extents))), to);
  return graph[x].dtype == dtype ? x : graph.cast(x, dtype);
}

// Groups compute 16-bit floats in f32 and round what they store.
NodeId as_sum(Graph& graph, const Node& product) {
  const MatMulAttr& attr = product.as<MatMulAttr>();
  std::vector<std::int64_t> extents(product.shape.begin(), product.shape.end());
  extents.push_back(size_of(graph, product).k);
  const Shape terms{std::span<const std::int64_t>(extents)};
  const std::array factors{with_terms_last(graph, product.inputs[0], !attr.transpose_a, true, terms, product.dtype),
                           with_terms_last(graph, product.inputs[1], attr.transpose_b, false, terms, product.dtype)};
  const NodeId products = graph.elementwise(ElementwiseOp::Mul, factors);
  const NodeId sum = graph.reduce(ReduceKind::sum, products, static_cast<AxisSet>(1u << (terms.rank() - 1)));
  return graph.reshape(sum, product.shape);
}

}  // namespace

Graph with_small_products_as_sums(const Graph& graph) {
  Graph out;
  std::vector<NodeId> renamed;
  for (NodeId id = 0; id < graph.size(); ++id) {
    Node node = graph[id];
    for (NodeId& in : node.inputs) in = renamed[static_cast<std::size_t>(in)];
    if (node.prim == Prim::input)
      renamed.push_back(out.input(node.as<InputAttr>().name, node.dtype, node.shape));
    else
      renamed.push_back(is_better_as_sum(out, node) ? as_sum(out, node) : out.append(std::move(node)));
  }
  std::vector<NodeId> outputs;
  for (const NodeId id : graph.outputs()) outputs.push_back(renamed[static_cast<std::size_t>(id)]);
  out.set_outputs(std::move(outputs));
  return out;
}

}  // namespace tenon
