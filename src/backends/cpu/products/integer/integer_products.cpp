#include "backends/cpu/products/integer/integer_products.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "graph/elementwise.h"

namespace tenon::cpu {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

bool is_op(const Node& node, ElementwiseOp op) { return node.prim == Prim::elementwise && node.as<ElementwiseAttr>().op == op; }

// cast(x) - zero point, or cast(x).
struct Centred {
  NodeId x = -1, zero = -1;
  friend bool operator==(const Centred&, const Centred&) = default;
};

// A part of a product: an operand cut along its inner axis.
struct Part {
  Centred operand;
  std::int64_t start = 0, count = 0;
};

class Finder {
 public:
  explicit Finder(const Graph& graph) : graph_(graph) {}

  struct Found {
    Centred a, b;
    MatMulAttr attr;
  };

  std::optional<Found> find(NodeId id) const {
    if (graph_[id].dtype != DType::i32) return std::nullopt;
    std::vector<NodeId> matmuls;
    if (!collect(id, matmuls)) return std::nullopt;
    std::optional<Found> found;
    std::vector<std::pair<std::int64_t, std::int64_t>> parts;
    std::int64_t depth = 0;
    for (NodeId matmul : matmuls) {
      const Node& node = graph_[matmul];
      const MatMulAttr attr = node.as<MatMulAttr>();
      const int rank = node.shape.rank();
      const auto a = part_of(node.inputs[0], attr.transpose_a ? 2 : 1, depth);
      if (!a) return std::nullopt;
      const auto b = part_of(node.inputs[1], attr.transpose_b ? 1 : 2, depth);
      if (!b || a->start != b->start || a->count != b->count || attr.transpose_a) return std::nullopt;
      const Found here{a->operand, b->operand, attr};
      if (found && !(found->a == here.a && found->b == here.b && found->attr.transpose_b == attr.transpose_b))
        return std::nullopt;
      found = here;
      parts.emplace_back(a->start, a->count);
      if (graph_[a->operand.x].shape.rank() != rank) return std::nullopt;
    }
    if (!found) return std::nullopt;
    std::sort(parts.begin(), parts.end());
    std::int64_t next = 0;
    for (const auto& [start, count] : parts) {
      if (start != next) return std::nullopt;
      next += count;
    }
    if (next != depth || !fits(*found, graph_[id].shape)) return std::nullopt;
    return found;
  }

 private:
  // The products of a sum of i32 casts.
  bool collect(NodeId id, std::vector<NodeId>& out) const {
    const Node& node = graph_[id];
    if (is_op(node, ElementwiseOp::Add) && node.dtype == DType::i32)
      return collect(node.inputs[0], out) && collect(node.inputs[1], out);
    if (node.prim != Prim::cast || node.dtype != DType::i32) return false;
    const Node& product = graph_[node.inputs[0]];
    if (product.prim != Prim::matmul || product.dtype != DType::f32 || product.inputs.size() != 2 || out.size() > 64)
      return false;
    out.push_back(node.inputs[0]);
    return true;
  }

  // |from_end|: the place of the inner axis, counted from the end. Sets |depth|
  // to the extent of the whole operand.
  std::optional<Part> part_of(NodeId id, int from_end, std::int64_t& depth) const {
    if (graph_[id].prim == Prim::broadcast) {
      // Only further batches.
      const Node& inner = graph_[graph_[id].inputs[0]];
      if (inner.shape.rank() < 2) return std::nullopt;
      for (int i = 1; i <= 2; ++i)
        if (inner.shape[inner.shape.rank() - i] != graph_[id].shape[graph_[id].shape.rank() - i]) return std::nullopt;
      id = graph_[id].inputs[0];
    }
    Part part{.count = graph_[id].shape[graph_[id].shape.rank() - from_end]};
    if (graph_[id].prim == Prim::slice) {
      const Node& node = graph_[id];
      const Shape& whole = graph_[node.inputs[0]].shape;
      const int axis = whole.rank() - from_end;
      for (int i = 0; i < whole.rank(); ++i) {
        if (node.as<SliceAttr>().step[at(i)] != 1) return std::nullopt;
        if (i != axis && whole[i] != node.shape[i]) return std::nullopt;
      }
      part.start = node.as<SliceAttr>().start[at(axis)];
      id = node.inputs[0];
    }
    const std::int64_t extent = graph_[id].shape[graph_[id].shape.rank() - from_end];
    if (depth != 0 && depth != extent) return std::nullopt;
    depth = extent;
    NodeId value = id;
    if (is_op(graph_[id], ElementwiseOp::Sub)) {
      value = graph_[id].inputs[0];
      part.operand.zero = graph_[id].inputs[1];
      while (graph_[part.operand.zero].prim == Prim::broadcast) part.operand.zero = graph_[part.operand.zero].inputs[0];
    }
    if (graph_[value].prim != Prim::cast || graph_[value].dtype != DType::f32) return std::nullopt;
    part.operand.x = graph_[value].inputs[0];
    const DType dtype = graph_[part.operand.x].dtype;
    if (dtype != DType::u8 && dtype != DType::i8) return std::nullopt;
    return part;
  }

  // One zero point, or one per row of a and column of b.
  bool fits(const Found& found, const Shape& out) const {
    const int rank = out.rank();
    const auto is_along = [&](NodeId zero, int from_end, std::int64_t extent) {
      if (zero < 0) return true;
      const Node& node = graph_[zero];
      if (node.dtype != DType::f32) return false;
      if (node.shape.elements() == 1) return true;
      return node.shape.elements() == extent && node.shape.rank() >= from_end &&
             node.shape[node.shape.rank() - from_end] == extent;
    };
    return is_along(found.a.zero, 2, out[rank - 2]) && is_along(found.b.zero, 1, out[rank - 1]) && !found.attr.transpose_b;
  }

  const Graph& graph_;
};

}  // namespace

IntegerGraph recognise_integer_products(const Graph& graph) {
  const Finder finder(graph);
  IntegerGraph out;
  for (NodeId id = 0; id < graph.size(); ++id) {
    Node node = graph[id];
    if (node.prim == Prim::input) {
      out.graph.input(node.as<InputAttr>().name, node.dtype, node.shape);
      continue;
    }
    if (const auto found = finder.find(id)) {
      IntegerProduct product{.attr = found->attr};
      node = {Prim::matmul, DType::i32, false, node.shape, {found->a.x, found->b.x}, found->attr};
      if (found->a.zero >= 0) {
        product.a_zero = static_cast<int>(node.inputs.size());
        node.inputs.push_back(found->a.zero);
      }
      if (found->b.zero >= 0) {
        product.b_zero = static_cast<int>(node.inputs.size());
        node.inputs.push_back(found->b.zero);
      }
      out.products[id] = product;
    }
    out.graph.append(std::move(node));
  }
  out.graph.set_outputs({graph.outputs().begin(), graph.outputs().end()});
  return out;
}

}  // namespace tenon::cpu
