#include "graph/optimize/attention.h"

#include <algorithm>
#include <unordered_map>

#include "graph/elementwise.h"
#include "graph/view.h"

namespace tenon {
namespace {

struct Found {
  NodeId q = -1, k = -1, v = -1, mask = -1;
  bool k_is_transposed = false, v_is_transposed = false;  // [n, g, e, s] and [n, g, d, s]
  double scale = 1;
};

class Finder {
 public:
  explicit Finder(const Graph& graph) : graph_(graph) {
    for (const Region& region : graph.regions()) {
      const auto* softmax = std::get_if<SoftmaxAttr>(&region.attr);
      if (softmax && !softmax->log && softmax->axis == graph[region.output].shape.rank() - 1)
        softmaxes_[region.output] = region.inputs[0];
      if (std::holds_alternative<AttentionAttr>(region.attr)) known_[region.output] = true;
    }
  }

  bool is_pointless() const { return softmaxes_.empty(); }

  // The attention whose result is |id|.
  std::optional<Found> at(NodeId id) const {
    const Node& y = graph_[id];
    if (!is_product(y) || known_.contains(id) || y.shape.elements() == 0) return std::nullopt;
    const auto softmax = softmaxes_.find(weights_of(y.inputs[0]));
    if (softmax == softmaxes_.end()) return std::nullopt;
    Found found{.v = y.inputs[1], .v_is_transposed = y.as<MatMulAttr>().transpose_b};
    NodeId scores = source_of(softmax->second);
    const Shape& shape = graph_[y.inputs[0]].shape;
    if (!find_products(scores, found)) {
      if (!is(scores, ElementwiseOp::Add) || graph_[scores].shape != shape) return std::nullopt;
      const NodeId first = graph_[scores].inputs[0], second = graph_[scores].inputs[1];
      if (find_products(source_of(first), found))
        found.mask = second;
      else if (find_products(source_of(second), found))
        found.mask = first;
      else
        return std::nullopt;
    }
    const Shape &q = graph_[found.q].shape, &k = graph_[found.k].shape;
    const bool fits = q[0] == shape[0] && q[1] == shape[1] && q[2] == shape[2] && k[found.k_is_transposed ? 3 : 2] == shape[3];
    const bool is_one_dtype = std::ranges::all_of(std::array{found.q, found.k, found.v},
                                                  [&](NodeId x) { return graph_[x].dtype == y.dtype && is_float(y.dtype); });
    if (!fits || !is_one_dtype) return std::nullopt;
    found.q = without_factor(found.q, found.scale);
    found.k = without_factor(found.k, found.scale);
    take_transposed_rows(found);
    return found;
  }

 private:
  static bool is_product(const Node& node) {
    return node.prim == Prim::matmul && node.shape.rank() == 4 && !node.as<MatMulAttr>().transpose_a;
  }
  bool is(NodeId id, ElementwiseOp op) const {
    const Node& node = graph_[id];
    return node.prim == Prim::elementwise && node.as<ElementwiseAttr>().op == op;
  }
  // Behind casts between floats, and reshapes that keep the rows.
  NodeId source_of(NodeId id) const {
    for (;;) {
      const Node& node = graph_[id];
      if (node.inputs.size() != 1) return id;
      const Node& from = graph_[node.inputs[0]];
      const bool is_cast = node.prim == Prim::cast && is_float(node.dtype) && is_float(from.dtype);
      const bool keeps_rows = node.prim == Prim::reshape && node.shape.rank() > 0 && from.shape.rank() > 0 &&
                              node.shape[node.shape.rank() - 1] == from.shape[from.shape.rank() - 1];
      if (!is_cast && !keeps_rows) return id;
      id = node.inputs[0];
    }
  }
  // The softmax behind |id|, also behind where(isnan(p), 0, p).
  NodeId weights_of(NodeId id) const {
    id = source_of(id);
    if (!is(id, ElementwiseOp::Where)) return id;
    const NodeId condition = graph_[id].inputs[0], weights = source_of(graph_[id].inputs[2]);
    const bool is_zero_for_nan = is(condition, ElementwiseOp::IsNan) && source_of(graph_[condition].inputs[0]) == weights &&
                                 number_of(graph_, graph_[id].inputs[1]) == 0.0;
    return is_zero_for_nan ? weights : id;
  }
  // What is multiplied by a number, which goes into |scale|; |id| itself if none is. What enters a product in 16 bits is rounded
  // before the multiplication then, which is as exact.
  NodeId without_factor(NodeId id, double& scale) const {
    NodeId from = id;
    if (graph_[from].prim == Prim::cast) from = graph_[from].inputs[0];
    if (!is(from, ElementwiseOp::Mul)) return id;
    for (const int side : {0, 1})
      if (const auto factor = number_of(graph_, graph_[from].inputs[side])) {
        const NodeId rest = graph_[from].inputs[1 - side];
        if (graph_[rest].shape != graph_[id].shape || !is_float(graph_[rest].dtype)) return id;
        scale *= *factor;
        return rest;
      }
    return id;
  }
  // Keys [n, g, s, e] that are transposed as [n * g, s, e], between two reshapes: the reshapes would have to copy them.
  void take_transposed_rows(Found& found) const {
    if (!found.k_is_transposed || graph_[found.k].prim != Prim::reshape) return;
    const Node& turned = graph_[graph_[found.k].inputs[0]];
    if (turned.prim != Prim::transpose || turned.shape.rank() != 3) return;
    const auto& perm = turned.as<TransposeAttr>().perm;
    const Node& flat = graph_[turned.inputs[0]];
    if (perm[0] != 0 || perm[1] != 2 || flat.prim != Prim::reshape) return;
    const Shape &rows = graph_[flat.inputs[0]].shape, &keys = graph_[found.k].shape;
    if (rows != Shape{keys[0], keys[1], keys[3], keys[2]} || flat.shape != Shape{keys[0] * keys[1], keys[3], keys[2]}) return;
    found.k = flat.inputs[0];
    found.k_is_transposed = false;
  }
  // q k^T, or that times a number, behind |scores|.
  bool find_products(NodeId scores, Found& found) const {
    double scale = 1;
    while (is(scores, ElementwiseOp::Mul) || is(scores, ElementwiseOp::Div)) {
      const bool divides = is(scores, ElementwiseOp::Div);
      const NodeId first = graph_[scores].inputs[0], second = graph_[scores].inputs[1];
      if (const auto by = number_of(graph_, second))
        scale = divides ? scale / *by : scale * *by, scores = source_of(first);
      else if (const auto factor = number_of(graph_, first); factor && !divides)
        scale *= *factor, scores = source_of(second);
      else
        return false;
    }
    const Node& product = graph_[scores];
    if (!is_product(product)) return false;
    found.q = product.inputs[0];
    found.k = product.inputs[1];
    found.k_is_transposed = !product.as<MatMulAttr>().transpose_b;
    found.scale = scale;
    return true;
  }

  const Graph& graph_;
  std::unordered_map<NodeId, NodeId> softmaxes_;  // output -> input
  std::unordered_map<NodeId, bool> known_;        // results of attention that is marked already
};

}  // namespace

std::optional<Graph> with_attention(const Graph& graph) {
  const Finder finder(graph);
  if (finder.is_pointless()) return std::nullopt;
  std::unordered_map<NodeId, Found> all;
  for (NodeId id = 0; id < graph.size(); ++id)
    if (const auto found = finder.at(id)) all.emplace(id, *found);
  if (all.empty()) return std::nullopt;

  Graph result;
  std::vector<NodeId> renamed;
  const auto now = [&](NodeId id) { return renamed[static_cast<std::size_t>(id)]; };
  std::vector<Region> regions;
  for (NodeId id = 0; id < graph.size(); ++id) {
    Node node = graph[id];
    for (NodeId& in : node.inputs) in = now(in);
    if (node.prim == Prim::input) {
      renamed.push_back(result.input(node.as<InputAttr>().name, node.dtype, node.shape));
      continue;
    }
    const auto found = all.find(id);
    if (found != all.end()) {
      const Found& a = found->second;
      const auto rows = [&](NodeId x, bool is_transposed) {
        const NodeId here = result.cast(now(x), node.dtype);
        return is_transposed ? result.transpose(here, std::array{0, 1, 3, 2}) : here;
      };
      Region region{
          {rows(a.q, false), rows(a.k, a.k_is_transposed), rows(a.v, a.v_is_transposed)}, -1, AttentionAttr{a.scale, false}};
      if (a.mask >= 0) {
        // In the region's dtype, and small where it is small.
        const NodeId whole = now(a.mask);
        const bool is_spread = result[whole].prim == Prim::broadcast;
        const NodeId mask = result.cast(is_spread ? result[whole].inputs[0] : whole, node.dtype);
        region.inputs.push_back(result.broadcast(mask, Shape(result[whole].shape)));
      }
      regions.push_back(std::move(region));
    }
    renamed.push_back(result.append(std::move(node)));
    if (found != all.end()) regions.back().output = renamed.back();
  }
  for (Region region : graph.regions()) {
    for (NodeId& in : region.inputs) in = now(in);
    region.output = now(region.output);
    regions.push_back(std::move(region));
  }
  for (Region& region : regions) result.mark(std::move(region));
  std::vector<NodeId> outputs;
  for (const NodeId id : graph.outputs()) outputs.push_back(now(id));
  result.set_outputs(std::move(outputs));
  return result;
}

}  // namespace tenon
