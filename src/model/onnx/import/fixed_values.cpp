#include "model/onnx/import/fixed_values.h"

#include <algorithm>

#include "graph/view.h"
#include "model/onnx/import/weights.h"

namespace tenon::onnx {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

class Separator {
 public:
  Separator(const Graph& graph, const std::vector<bool>& is_weight)
      : graph_(graph),
        is_fixed_(at(graph.size()), false),
        has_weight_(at(graph.size()), false),
        place_(at(graph.size()), -1),
        live_(at(graph.size()), false) {
    for (NodeId id = 0; id < graph.size(); ++id) find_fixed(id, is_weight);
    find_frontier();
  }

  std::optional<SeparatedGraph> run() {
    if (frontier_.empty()) return std::nullopt;
    SeparatedGraph out;
    make_fixed(out);
    make_rest(out);
    return out;
  }

 private:
  void find_fixed(NodeId id, const std::vector<bool>& is_weight) {
    const Node& node = graph_[id];
    if (node.prim == Prim::input) {
      if (!is_float(node.dtype) || !is_weight[at(node.as<InputAttr>().index)]) return;
      is_fixed_[at(id)] = has_weight_[at(id)] = true;
      weight_elements_ += node.shape.elements();
    } else if (node.prim == Prim::constant || node.prim == Prim::iota) {
      is_fixed_[at(id)] = true;
    } else if (node.prim != Prim::random && !node.inputs.empty()) {
      const auto fixed = [&](NodeId in) { return is_fixed_[at(in)]; };
      is_fixed_[at(id)] = std::ranges::all_of(node.inputs, fixed);
      has_weight_[at(id)] = std::ranges::any_of(node.inputs, [&](NodeId in) { return has_weight_[at(in)]; });
    }
  }

  // Behind the views of what a node that is not fixed reads.
  void find_frontier() {
    const auto read = [&](NodeId id) {
      while (is_view(graph_[id].prim)) id = graph_[id].inputs[0];
      const Node& node = graph_[id];
      if (!is_fixed_[at(id)] || !has_weight_[at(id)] || node.prim == Prim::input || place_[at(id)] >= 0) return;
      if (node.shape.elements() <= kLargestConstant || node.shape.elements() > weight_elements_) return;
      place_[at(id)] = static_cast<int>(frontier_.size());
      frontier_.push_back(id);
    };
    for (NodeId id = 0; id < graph_.size(); ++id)
      if (!is_fixed_[at(id)])
        for (const NodeId in : graph_[id].inputs) read(in);
    for (const Region& region : graph_.regions())
      if (!is_fixed_[at(region.output)])
        for (const NodeId in : region.inputs) read(in);
    for (const NodeId id : graph_.outputs()) read(id);
  }

  void make_fixed(SeparatedGraph& out) const {
    std::vector<bool> needed(at(graph_.size()), false);
    for (const NodeId id : frontier_) needed[at(id)] = true;
    for (NodeId id = graph_.size() - 1; id >= 0; --id)
      if (needed[at(id)])
        for (const NodeId in : graph_[id].inputs) needed[at(in)] = true;
    std::vector<NodeId> made(at(graph_.size()), -1);
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (!needed[at(id)]) continue;
      if (graph_[id].prim == Prim::input) out.weights.push_back(graph_[id].as<InputAttr>().index);
      made[at(id)] = copy(id, made, out.fixed);
    }
    std::vector<NodeId> outputs;
    for (const NodeId id : frontier_) outputs.push_back(made[at(id)]);
    out.fixed.set_outputs(std::move(outputs));
  }

  void make_rest(SeparatedGraph& out) {
    for (const NodeId id : graph_.outputs()) live_[at(id)] = true;
    // What a region reads is needed where its result is.
    for (NodeId id = graph_.size() - 1; id >= 0; --id) {
      if (!live_[at(id)] || place_[at(id)] >= 0) continue;
      for (const NodeId in : graph_[id].inputs) live_[at(in)] = true;
      for (const Region& region : graph_.regions())
        if (region.output == id)
          for (const NodeId in : region.inputs) live_[at(in)] = true;
    }
    std::vector<NodeId> made(at(graph_.size()), -1);
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_[id];
      if (place_[at(id)] >= 0) {
        made[at(id)] = out.rest.input("fixed" + std::to_string(place_[at(id)]), node.dtype, node.shape);
        out.inputs.push_back(-1 - place_[at(id)]);
      } else if (live_[at(id)]) {
        if (node.prim == Prim::input) out.inputs.push_back(node.as<InputAttr>().index);
        made[at(id)] = copy(id, made, out.rest);
      }
    }
    for (const Region& region : graph_.regions()) {
      const auto is_there = [&](NodeId id) { return made[at(id)] >= 0; };
      if (!live_[at(region.output)] || place_[at(region.output)] >= 0 || !std::ranges::all_of(region.inputs, is_there)) continue;
      Region moved = region;
      for (NodeId& in : moved.inputs) in = made[at(in)];
      moved.output = made[at(region.output)];
      out.rest.mark(std::move(moved));
    }
    std::vector<NodeId> outputs;
    for (const NodeId id : graph_.outputs()) outputs.push_back(made[at(id)]);
    out.rest.set_outputs(std::move(outputs));
  }

  NodeId copy(NodeId id, const std::vector<NodeId>& made, Graph& to) const {
    Node node = graph_[id];
    if (node.prim == Prim::input) return to.input(node.as<InputAttr>().name, node.dtype, node.shape);
    for (NodeId& in : node.inputs) in = made[at(in)];
    return to.append(std::move(node));
  }

  const Graph& graph_;
  std::vector<bool> is_fixed_, has_weight_;
  std::vector<int> place_;  // among the frontier, or -1
  std::vector<bool> live_;
  std::vector<NodeId> frontier_;
  std::int64_t weight_elements_ = 0;
};

}  // namespace

std::optional<SeparatedGraph> separate_fixed(const Graph& graph, const std::vector<bool>& is_weight) {
  return Separator(graph, is_weight).run();
}

}  // namespace tenon::onnx
