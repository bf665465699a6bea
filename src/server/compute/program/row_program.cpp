#include "server/compute/program/row_program.h"

#include <algorithm>
#include <vector>

#include "graph/encode/graph_key.h"
#include "graph/optimize/region.h"

namespace tenon::server {
namespace {

// What is known of a node: axis 0 are the rows, or its value is the same for all rows and has no axis of them.
enum class Kind : std::uint8_t { rows, free, mixed };

class Rows {
 public:
  explicit Rows(const Graph& graph) : graph_(graph), kinds_(static_cast<std::size_t>(graph.size()), Kind::mixed) {
    if (graph.inputs().empty()) return;
    const Shape& first = graph[graph.inputs()[0]].shape;
    if (first.rank() == 0 || first[0] == 0) return;
    rows_ = first[0];
    for (NodeId id = 0; id < graph.size(); ++id) kinds_[static_cast<std::size_t>(id)] = kind_of(graph[id]);
  }

  std::int64_t count() const noexcept { return rows_; }
  Kind operator[](NodeId id) const { return kinds_[static_cast<std::size_t>(id)]; }
  bool are_kept_apart() const {
    const auto is_rows = [&](NodeId id) { return (*this)[id] == Kind::rows; };
    const auto outputs = graph_.outputs(), inputs = graph_.inputs();
    return rows_ > 0 && std::all_of(inputs.begin(), inputs.end(), is_rows) &&
           std::all_of(outputs.begin(), outputs.end(), is_rows);
  }

 private:
  bool has_rows(const Shape& shape) const { return shape.rank() > 0 && shape[0] == rows_; }
  Kind rows_if(bool is_so) const { return is_so ? Kind::rows : Kind::mixed; }

  Kind kind_of(const Node& node) const {
    // Blocks of several elements share an exponent, also where they are of different rows.
    if (is_block(node.dtype)) return Kind::mixed;
    if (node.prim == Prim::input) return rows_if(has_rows(node.shape));
    if (node.prim == Prim::iota && node.as<AxisAttr>().axis != 0 && has_rows(node.shape)) return Kind::rows;
    bool any_rows = false, all_rows = true;
    for (const NodeId input : node.inputs) {
      if ((*this)[input] == Kind::mixed) return Kind::mixed;
      any_rows |= (*this)[input] == Kind::rows;
      all_rows &= (*this)[input] == Kind::rows;
    }
    if (!any_rows) return kind_without_rows(node);
    return rows_if(has_rows(node.shape) && keeps_rows(node, all_rows));
  }

  Kind kind_without_rows(const Node& node) const {
    if (node.prim == Prim::random) return Kind::mixed;  // element i depends on i
    if (node.prim != Prim::broadcast || !has_rows(node.shape)) return Kind::free;
    const Shape& from = graph_[node.inputs[0]].shape;
    return from.rank() < node.shape.rank() || from[0] == 1 ? Kind::rows : Kind::free;
  }

  bool keeps_rows(const Node& node, bool all_rows) const {
    switch (node.prim) {
      case Prim::elementwise:
      case Prim::cast: return all_rows;
      case Prim::reshape: return true;
      case Prim::window: return node.shape.rank() > 2;
      case Prim::broadcast: return graph_[node.inputs[0]].shape.rank() == node.shape.rank();
      case Prim::transpose: return node.as<TransposeAttr>().perm[0] == 0;
      case Prim::slice: return node.as<SliceAttr>().start[0] == 0 && node.as<SliceAttr>().step[0] == 1;
      case Prim::pad: return node.as<PadAttr>().low[0] == 0;
      case Prim::concat:
      case Prim::gather: return all_rows && node.as<AxisAttr>().axis != 0;
      case Prim::reduce: return (node.as<ReduceAttr>().axes & 1) == 0;
      case Prim::arg_reduce: return node.as<ArgReduceAttr>().axis != 0;
      case Prim::arg_sort: return node.as<ArgSortAttr>().axis != 0;
      case Prim::cumulative: return node.as<CumulativeAttr>().axis != 0;
      default: return false;
    }
  }

  const Graph& graph_;
  std::int64_t rows_ = 0;
  std::vector<Kind> kinds_;
};

// With a single row, so that nodes for different numbers of rows can be compared.
GraphKey key_of_one_row(const Node& node, Kind kind) {
  if (kind != Kind::rows) return node_key(node);
  Node one = node;
  std::vector<std::int64_t> extents(node.shape.begin(), node.shape.end());
  extents[0] = 1;
  one.shape = Shape(extents);
  return node_key(one);
}

bool have_equal_regions(const Graph& a, const Graph& b) {
  const auto digest = [](const RegionAttr& attr) {
    SipHash hash(SipHash::process_key());
    add_region(hash, attr);
    return hash.digest();
  };
  return std::equal(a.regions().begin(), a.regions().end(), b.regions().begin(), b.regions().end(),
                    [&](const Region& x, const Region& y) {
                      return x.inputs == y.inputs && x.output == y.output && digest(x.attr) == digest(y.attr);
                    });
}

}  // namespace

std::optional<std::int64_t> rows_of(const Graph& graph) {
  const Rows rows(graph);
  return rows.are_kept_apart() ? std::optional(rows.count()) : std::nullopt;
}

bool is_same_for_more_rows(const Graph& graph, const Graph& larger) {
  const Rows few(graph), many(larger);
  if (!few.are_kept_apart() || !many.are_kept_apart() || graph.size() != larger.size()) return false;
  for (NodeId id = 0; id < graph.size(); ++id)
    if (few[id] != many[id] || key_of_one_row(graph[id], few[id]) != key_of_one_row(larger[id], many[id])) return false;
  return std::equal(graph.outputs().begin(), graph.outputs().end(), larger.outputs().begin(), larger.outputs().end()) &&
         have_equal_regions(graph, larger);
}

}  // namespace tenon::server
