// ValueView: how a value is read out of another one's memory without copying.
//
// Broadcast, transpose, slice and most reshapes only change how an existing dense value is addressed. view_through() says
// how; where a reshape cannot be addressed (of a transposed value, say) the value must be copied first.
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

ValueView whole_view(NodeId node, const Shape& shape);
bool is_dense(const ValueView& view);  // the whole of a row-major block, from some offset on

// The view that |node| (is_view) is, given how its input is read; nothing if only a copy can express it.
std::optional<ValueView> view_through(const Node& node, const ValueView& input);

}  // namespace tenon
