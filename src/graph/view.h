// ValueView: how a value is read from the memory of another value without copying.
//
// Broadcast, transpose, slice and most reshapes only change how an existing dense value is addressed. view_through()
// computes the addressing; if a reshape cannot be expressed (for example of a transposed value), the value must be copied first.
#pragma once

#include <optional>

#include "tenon/graph.h"

namespace tenon {

struct ValueView {
  NodeId base = -1;         // the node whose dense, row-major memory is read
  std::int64_t offset = 0;  // of the first element, in elements
  Shape shape;
  Strides strides{};  // in elements; 0 where broadcast
};

constexpr bool is_view(Prim prim) {
  return prim == Prim::broadcast || prim == Prim::reshape || prim == Prim::transpose || prim == Prim::slice;
}

// A cast of a 16-bit float or block format to itself: the rounding of a product's operand.
inline bool is_rounding(const Graph& graph, const Node& node) {
  return node.prim == Prim::cast && compute_dtype(node.dtype) != node.dtype && graph[node.inputs[0]].dtype == node.dtype;
}

ValueView whole_view(NodeId node, const Shape& shape);
bool is_dense(const ValueView& view);  // a contiguous row-major block at some offset

// The view of |node| (is_view), given how its input is read; nullopt if a copy is needed.
std::optional<ValueView> view_through(const Node& node, const ValueView& input);

// The number that all elements of |id| are, if it is a constant of one element or a view of one.
std::optional<double> number_of(const Graph& graph, NodeId id);

}  // namespace tenon
