#include "mesh/plan/rule.h"

#include <algorithm>

#include "graph/elementwise.h"

namespace tenon::mesh {
namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

// Builds a rule: operands start with all axes whole.
class Builder {
 public:
  Builder(const Graph& graph, const Node& node) : graph_(graph), node_(node) {
    for (const NodeId input : node.inputs) rule_.inputs.emplace_back(index(graph[input].shape.rank()));
    rule_.output.resize(index(node.shape.rank()));
  }
  int loop(std::int64_t extent, std::optional<ReduceKind> reduces = std::nullopt) {
    rule_.loops.push_back({extent, reduces});
    return static_cast<int>(rule_.loops.size()) - 1;
  }
  Builder& input(int operand, int axis, int loop, std::int64_t grain = 1) {
    rule_.inputs[index(operand)][index(axis)] = {loop, grain};
    return *this;
  }
  Builder& output(int axis, int loop, std::int64_t grain = 1) {
    rule_.output[index(axis)] = {loop, grain};
    return *this;
  }
  // Axis |from| of the operand is axis |to| of the result.
  void same(int operand, int from, int to) {
    const int id = loop(node_.shape[to]);
    input(operand, from, id).output(to, id);
  }
  // Axes of operand 0 that have the same number and extent in the result, but |except|.
  void same_axes(int except) {
    for (int axis = 0; axis < node_.shape.rank(); ++axis)
      if (axis != except && shape(0)[axis] == node_.shape[axis]) same(0, axis, axis);
  }
  const Shape& shape(int operand) const { return graph_[node_.inputs[index(operand)]].shape; }
  const Shape& shape() const { return node_.shape; }
  const Node& node() const { return node_; }
  int operands() const { return static_cast<int>(node_.inputs.size()); }
  // Block formats share an exponent along their last axis: their blocks stay together.
  Rule take() {
    keep_blocks(node_.dtype, rule_.output);
    for (int operand = 0; operand < operands(); ++operand)
      keep_blocks(graph_[node_.inputs[index(operand)]].dtype, rule_.inputs[index(operand)]);
    return std::move(rule_);
  }

 private:
  void keep_blocks(DType dtype, const std::vector<LoopAxis>& axes) {
    if (is_block(dtype) && !axes.empty() && axes.back().loop >= 0) rule_.loops[index(axes.back().loop)].is_whole = true;
  }

  const Graph& graph_;
  const Node& node_;
  Rule rule_;
};

// The axes along which all operands have the extent of the result, but |except|.
void add_parallel(Builder& b, int except) {
  for (int axis = 0; axis < b.shape().rank(); ++axis) {
    bool is_common = axis != except;
    for (int operand = 0; operand < b.operands(); ++operand) is_common = is_common && b.shape(operand)[axis] == b.shape()[axis];
    if (!is_common) continue;
    const int loop = b.loop(b.shape()[axis]);
    b.output(axis, loop);
    for (int operand = 0; operand < b.operands(); ++operand) b.input(operand, axis, loop);
  }
}

void add_broadcast(Builder& b) {
  const int added = b.shape().rank() - b.shape(0).rank();
  for (int axis = 0; axis < b.shape(0).rank(); ++axis)
    if (b.shape(0)[axis] == b.shape()[axis + added]) b.same(0, axis, axis + added);
}

void add_transpose(Builder& b) {
  const auto& perm = b.node().as<TransposeAttr>().perm;
  for (int axis = 0; axis < b.shape().rank(); ++axis) b.same(0, perm[index(axis)], axis);
}

// Groups of axes with equal products share a loop between their outermost axes; inner axes stay whole.
void add_reshape(Builder& b) {
  const Shape &from = b.shape(0), &to = b.shape();
  if (from.elements() == 0) return;
  int i = 0, k = 0;
  while (i < from.rank() && k < to.rank()) {
    while (i < from.rank() && from[i] == 1) ++i;
    while (k < to.rank() && to[k] == 1) ++k;
    if (i == from.rank() || k == to.rank()) return;
    const int first_from = i, first_to = k;
    std::int64_t left = from[i++], right = to[k++];
    while (left != right) {
      if (left < right)
        left *= from[i++];
      else
        right *= to[k++];
    }
    const int loop = b.loop(left);
    b.input(0, first_from, loop, left / from[first_from]).output(first_to, loop, left / to[first_to]);
  }
}

void add_slice(Builder& b) {
  const auto& attr = b.node().as<SliceAttr>();
  for (int axis = 0; axis < b.shape().rank(); ++axis)
    if (b.shape(0)[axis] == b.shape()[axis] && attr.start[index(axis)] == 0 && attr.step[index(axis)] == 1) b.same(0, axis, axis);
}

void add_take(Builder& b) {
  const int axis = b.node().as<AxisAttr>().axis, indices = b.shape(1).rank();
  for (int i = 0; i < b.shape(0).rank(); ++i)
    if (i != axis) b.same(0, i, i < axis ? i : i + indices - 1);
  for (int i = 0; i < indices; ++i) b.same(1, i, axis + i);
  // Rows that a device does not have count as zero, and the sum over the devices has them all.
  b.input(0, axis, b.loop(b.shape(0)[axis], b.node().dtype == DType::boolean ? ReduceKind::any : ReduceKind::sum));
}

void add_gather(Builder& b) {
  const int axis = b.node().as<AxisAttr>().axis;
  for (int i = 0; i < b.shape().rank(); ++i) {
    const int loop = b.loop(b.shape()[i]);
    if (i == axis)
      b.input(1, i, loop).output(i, loop);
    else if (b.shape(0)[i] == b.shape()[i])
      b.input(0, i, loop).input(1, i, loop).output(i, loop);
  }
}

void add_reduce(Builder& b) {
  const auto& attr = b.node().as<ReduceAttr>();
  for (int axis = 0; axis < b.shape().rank(); ++axis) {
    if (attr.axes >> axis & 1)
      b.input(0, axis, b.loop(b.shape(0)[axis], attr.kind));
    else
      b.same(0, axis, axis);
  }
}

void add_matmul(Builder& b) {
  const auto& attr = b.node().as<MatMulAttr>();
  const int last = b.shape().rank() - 1;
  for (int axis = 0; axis < last - 1; ++axis) {
    const int batch = b.loop(b.shape()[axis]);
    b.input(0, axis, batch).input(1, axis, batch).output(axis, batch);
  }
  const int m = b.loop(b.shape()[last - 1]), n = b.loop(b.shape()[last]);
  const int inner = attr.transpose_a ? last - 1 : last;
  const int k = b.loop(b.shape(0)[inner], ReduceKind::sum);
  b.input(0, attr.transpose_a ? last : last - 1, m).output(last - 1, m);
  b.input(1, attr.transpose_b ? last - 1 : last, n).output(last, n);
  b.input(0, inner, k).input(1, attr.transpose_b ? last : last - 1, k);
}

void add_conv(Builder& b) {
  b.same(0, 0, 0);
  if (b.node().as<ConvAttr>().groups != 1) return;
  b.same(1, 0, 1);
  const int channels = b.loop(b.shape(0)[1], ReduceKind::sum);
  b.input(0, 1, channels).input(1, 1, channels);
}

bool keeps_sum(const Node& node, std::span<const bool> is_partial) {
  const auto partial_operands = std::count(is_partial.begin(), is_partial.end(), true);
  const bool all = partial_operands == static_cast<std::ptrdiff_t>(is_partial.size());
  switch (node.as<ElementwiseAttr>().op) {
    case ElementwiseOp::Neg:
    case ElementwiseOp::Identity: return true;
    case ElementwiseOp::Add:
    case ElementwiseOp::Sub: return all;
    case ElementwiseOp::Mul: return partial_operands == 1;
    case ElementwiseOp::Div: return partial_operands == 1 && is_partial[0];
    default: return false;
  }
}

}  // namespace

Rule rule_of(const Graph& graph, const Node& node) {
  Builder b(graph, node);
  switch (node.prim) {
    case Prim::input:
    case Prim::constant:
    case Prim::iota:
    case Prim::random: break;
    case Prim::region: break;
    case Prim::elementwise:
    case Prim::cast: add_parallel(b, -1); break;
    case Prim::broadcast: add_broadcast(b); break;
    case Prim::reshape: add_reshape(b); break;
    case Prim::transpose: add_transpose(b); break;
    case Prim::slice: add_slice(b); break;
    case Prim::pad: b.same_axes(-1); break;
    case Prim::concat: add_parallel(b, node.as<AxisAttr>().axis); break;
    case Prim::take: add_take(b); break;
    case Prim::gather: add_gather(b); break;
    case Prim::scatter: add_parallel(b, node.as<ScatterAttr>().axis); break;
    case Prim::reduce: add_reduce(b); break;
    case Prim::arg_reduce: b.same_axes(node.as<ArgReduceAttr>().axis); break;
    case Prim::matmul: add_matmul(b); break;
    case Prim::conv: add_conv(b); break;
    case Prim::window:
      b.same(0, 0, 0);
      b.same(0, 1, 1);
      break;
    case Prim::arg_sort: b.same_axes(node.as<ArgSortAttr>().axis); break;
    case Prim::cumulative: b.same_axes(node.as<CumulativeAttr>().axis); break;
  }
  return b.take();
}

bool keeps_partial(const Graph& graph, const Node& node, std::span<const bool> is_partial, ReduceKind kind) {
  const bool is_sum = kind == ReduceKind::sum;
  switch (node.prim) {
    case Prim::broadcast:
    case Prim::reshape:
    case Prim::transpose:
    case Prim::slice: return true;
    case Prim::take:
    case Prim::gather: return !is_partial[1];
    case Prim::pad: return is_sum && node.as<PadAttr>().value == 0;
    case Prim::concat: return std::count(is_partial.begin(), is_partial.end(), false) == 0;
    case Prim::reduce: return node.as<ReduceAttr>().kind == kind;
    case Prim::cumulative: return is_sum && !node.as<CumulativeAttr>().product;
    case Prim::elementwise: return is_sum && keeps_sum(node, is_partial);
    case Prim::matmul:
    case Prim::conv: return is_sum && is_partial[0] != is_partial[1];
    case Prim::cast: {
      // A wider float holds every term; anything else would round or saturate terms instead of their sum.
      const DType from = graph[node.inputs[0]].dtype;
      return is_sum && is_float(from) && !is_block(from) &&
             (node.dtype == DType::f64 || (node.dtype == DType::f32 && from != DType::f64));
    }
    default: return false;
  }
}

}  // namespace tenon::mesh
