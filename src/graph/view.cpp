#include "graph/view.h"

namespace tenon {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

ValueView broadcast_view(const ValueView& in, const Shape& to) {
  ValueView out{in.base, in.offset, to, {}};
  const int lead = to.rank() - in.shape.rank();
  for (int i = 0; i < in.shape.rank(); ++i)
    out.strides[at(lead + i)] = in.shape[i] == 1 && to[lead + i] != 1 ? 0 : in.strides[at(i)];
  return out;
}

// Matches runs of old axes with runs of new axes of the same number of elements; within a run the old axes must be
// addressable as one (outer stride = inner stride * inner extent).
std::optional<ValueView> reshape_view(const ValueView& in, const Shape& to) {
  ValueView out{in.base, in.offset, to, {}};
  if (to.elements() <= 1) return out;

  std::vector<std::int64_t> extents, strides;
  for (int i = 0; i < in.shape.rank(); ++i)
    if (in.shape[i] != 1) {
      extents.push_back(in.shape[i]);
      strides.push_back(in.strides[at(i)]);
    }
  std::size_t old_axis = 0;
  int new_axis = 0;
  while (old_axis < extents.size()) {
    std::int64_t old_count = extents[old_axis], new_count = 1;
    ++old_axis;
    const int new_first = new_axis;
    while (new_axis < to.rank() && new_count < old_count) new_count *= to[new_axis++];
    while (new_count != old_count) {
      if (old_count < new_count) {
        if (strides[old_axis - 1] != strides[old_axis] * extents[old_axis]) return std::nullopt;
        old_count *= extents[old_axis++];
      } else {
        new_count *= to[new_axis++];
      }
    }
    std::int64_t stride = strides[old_axis - 1];
    for (int i = new_axis - 1; i >= new_first; --i) {
      out.strides[at(i)] = stride;
      stride *= to[i];
    }
  }
  return out;
}

}  // namespace

ValueView whole_view(NodeId node, const Shape& shape) { return {node, 0, shape, contiguous_strides(shape)}; }

bool is_dense(const ValueView& view) {
  std::int64_t expected = 1;
  for (int i = view.shape.rank() - 1; i >= 0; --i) {
    if (view.shape[i] != 1 && view.strides[at(i)] != expected) return false;
    expected *= view.shape[i];
  }
  return true;
}

std::optional<ValueView> view_through(const Node& node, const ValueView& input) {
  switch (node.prim) {
    case Prim::broadcast: return broadcast_view(input, node.shape);
    case Prim::reshape: return reshape_view(input, node.shape);
    case Prim::transpose: {
      ValueView out{input.base, input.offset, node.shape, {}};
      for (int i = 0; i < node.shape.rank(); ++i) out.strides[at(i)] = input.strides[at(node.as<TransposeAttr>().perm[at(i)])];
      return out;
    }
    case Prim::slice: {
      ValueView out{input.base, input.offset, node.shape, {}};
      const SliceAttr& attr = node.as<SliceAttr>();
      for (int i = 0; i < node.shape.rank(); ++i) {
        out.offset += attr.start[at(i)] * input.strides[at(i)];
        out.strides[at(i)] = attr.step[at(i)] * input.strides[at(i)];
      }
      return out;
    }
    default: return std::nullopt;
  }
}

std::optional<double> number_of(const Graph& graph, NodeId id) {
  while (is_view(graph[id].prim)) id = graph[id].inputs[0];
  if (graph[id].prim != Prim::constant || graph[id].shape.elements() != 1) return std::nullopt;
  return graph[id].as<ConstantAttr>().value.cast(DType::f64).view<double>()[0];
}

}  // namespace tenon
