#include "backends/cpu/products/absorb_epilogues.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <variant>

#include "graph/view.h"

namespace tenon::cpu {
namespace {

constexpr int kLongestChain = 12;

std::size_t at(NodeId id) { return static_cast<std::size_t>(id); }

std::optional<ElementwiseOp> elementwise_op(const Node& node) {
  if (node.prim != Prim::elementwise) return std::nullopt;
  return node.as<ElementwiseAttr>().op;
}

bool is_op(const Graph& graph, NodeId id, ElementwiseOp op) { return elementwise_op(graph[id]) == op; }

// The number that every element of |id| is, if it is a literal.
std::optional<double> number(const Graph& graph, NodeId id) {
  while (graph[id].prim == Prim::broadcast || graph[id].prim == Prim::reshape) id = graph[id].inputs[0];
  if (graph[id].prim != Prim::constant || graph[id].shape.elements() != 1) return std::nullopt;
  return graph[id].as<ConstantAttr>().value.to_doubles()[0];
}

bool is_near(std::optional<double> value, double wanted) { return value && std::abs(*value - wanted) <= 1e-6 * std::abs(wanted); }

std::vector<int> count_readers(const Graph& graph) {
  std::vector<int> readers(at(graph.size()), 0);
  std::vector<bool> live(at(graph.size()), false);
  for (NodeId id : graph.outputs()) {
    live[at(id)] = true;
    ++readers[at(id)];
  }
  for (NodeId id = graph.size() - 1; id >= 0; --id) {
    if (!live[at(id)]) continue;
    for (NodeId in : graph[id].inputs) {
      live[at(in)] = true;
      ++readers[at(in)];
    }
  }
  return readers;
}

// --- Ops that exporters wrote out ---

class Recogniser {
 public:
  explicit Recogniser(const Graph& graph) : graph_(graph) {}

  // The node that computes |id| in one op of |x|, if there is one.
  struct Found {
    ElementwiseOp op;
    NodeId x;
  };
  std::optional<Found> find(NodeId id) const {
    const Node& node = graph_[id];
    const std::optional<ElementwiseOp> op = elementwise_op(node);
    if (!op || !is_float(node.dtype)) return std::nullopt;
    if (*op == ElementwiseOp::Pow && number(graph_, node.inputs[1]) == 2.0) return Found{ElementwiseOp::Square, node.inputs[0]};
    if (*op != ElementwiseOp::Mul) return std::nullopt;
    for (int side = 0; side < 2; ++side) {
      const NodeId x = node.inputs[at(side)], other = node.inputs[at(1 - side)];
      if (is_op(graph_, other, ElementwiseOp::Sigmoid) && graph_[other].inputs[0] == x) return Found{ElementwiseOp::Silu, x};
    }
    return find_gelu(id);
  }

 private:
  // The factors of nested products.
  void factors(NodeId id, int depth, std::vector<NodeId>& out) const {
    if (depth > 0 && is_op(graph_, id, ElementwiseOp::Mul)) {
      for (NodeId in : graph_[id].inputs) factors(in, depth - 1, out);
    } else {
      out.push_back(id);
    }
  }

  // x * 0.5 * (1 + erf(x / sqrt(2))), in any order.
  std::optional<Found> find_gelu(NodeId id) const {
    std::vector<NodeId> parts;
    factors(id, 2, parts);
    if (parts.size() != 3) return std::nullopt;
    NodeId x = -1, erf = -1;
    bool has_half = false;
    for (NodeId part : parts) {
      if (is_near(number(graph_, part), 0.5)) {
        has_half = true;
      } else if (const NodeId inner = erf_plus_one(part); inner >= 0) {
        erf = inner;
      } else {
        x = part;
      }
    }
    if (!has_half || erf < 0 || x < 0 || !is_over_root_two(graph_[erf].inputs[0], x)) return std::nullopt;
    return Found{ElementwiseOp::Gelu, x};
  }

  NodeId erf_plus_one(NodeId id) const {
    if (!is_op(graph_, id, ElementwiseOp::Add)) return -1;
    for (int side = 0; side < 2; ++side)
      if (is_op(graph_, graph_[id].inputs[at(side)], ElementwiseOp::Erf) &&
          is_near(number(graph_, graph_[id].inputs[at(1 - side)]), 1))
        return graph_[id].inputs[at(side)];
    return -1;
  }

  bool is_over_root_two(NodeId id, NodeId x) const {
    const Node& node = graph_[id];
    if (is_op(graph_, id, ElementwiseOp::Div))
      return node.inputs[0] == x && is_near(number(graph_, node.inputs[1]), std::sqrt(2.0));
    if (!is_op(graph_, id, ElementwiseOp::Mul)) return false;
    for (int side = 0; side < 2; ++side)
      if (node.inputs[at(side)] == x && is_near(number(graph_, node.inputs[at(1 - side)]), std::sqrt(0.5))) return true;
    return false;
  }

  const Graph& graph_;
};

// --- Epilogues ---

struct Chain {
  std::vector<NodeId> nodes;  // after the product
  Epilogue epilogue;
  std::vector<NodeId> operands;  // tensors
};

class ChainFinder {
 public:
  explicit ChainFinder(const Graph& graph) : graph_(graph), readers_(count_readers(graph)), reader_of_(at(graph.size()), -1) {
    for (NodeId id = 0; id < graph.size(); ++id)
      if (readers_[at(id)] > 0)
        for (NodeId in : graph[id].inputs) reader_of_[at(in)] = id;
    for (NodeId id : graph.outputs()) reader_of_[at(id)] = -1;
  }

  bool is_live(NodeId id) const { return readers_[at(id)] > 0 || graph_[id].prim == Prim::input; }

  bool starts(NodeId id) const {
    const Node& node = graph_[id];
    if (node.dtype != DType::f32 || node.shape.elements() == 0 || node.inputs.size() != 2) return false;
    if (!is_conv(node) && node.prim != Prim::matmul) return false;
    // An epilogue makes a call for each row: narrower products are faster with a pass of its own.
    constexpr std::int64_t kNarrow = 16;
    if (node.prim == Prim::matmul && node.shape[node.shape.rank() - 1] < kNarrow) return false;
    return input_behind(graph_, node.inputs[1]) >= 0;
  }

  Chain find(NodeId product, const std::vector<bool>& taken) const {
    Chain chain;
    NodeId last = product;
    while (static_cast<int>(chain.nodes.size()) < kLongestChain && readers_[at(last)] == 1) {
      const NodeId next = reader_of_[at(last)];
      if (next < 0 || taken[at(next)] || !add(product, last, next, chain)) break;
      chain.nodes.push_back(next);
      last = next;
    }
    return chain;
  }

 private:
  bool add(NodeId product, NodeId last, NodeId next, Chain& chain) const {
    const Node& node = graph_[next];
    const std::optional<ElementwiseOp> op = elementwise_op(node);
    if (!op || node.dtype != DType::f32 || node.shape != graph_[product].shape) return false;
    if (!kernels().elementwise[static_cast<std::size_t>(*op)][static_cast<int>(DType::f32)]) return false;
    if (traits(*op).condition || traits(*op).returns_bool) return false;
    EpilogueStep step;
    step.op = *op;
    step.params = node.as<ElementwiseAttr>().params;
    if (node.inputs.size() == 1) {
      chain.epilogue.steps.push_back(step);
      return true;
    }
    if (node.inputs.size() != 2 || node.inputs[0] == node.inputs[1]) return false;
    step.operand_is_first = node.inputs[1] == last;
    const NodeId other = step.operand_is_first ? node.inputs[0] : node.inputs[1];
    if (graph_[other].dtype != DType::f32) return false;
    if (const std::optional<double> value = number(graph_, other)) {
      step.operand = EpilogueStep::Operand::scalar;
      step.value = static_cast<float>(*value);
      chain.epilogue.steps.push_back(step);
      return true;
    }
    const NodeId operand = classify(product, other, step);
    if (operand < 0) return false;
    step.index = static_cast<int>(chain.operands.size());
    chain.operands.push_back(operand);
    chain.epilogue.steps.push_back(step);
    return true;
  }

  // Sets how |other| is read; returns the value to read, or -1.
  NodeId classify(NodeId product, NodeId other, EpilogueStep& step) const {
    const Shape& shape = graph_[product].shape;
    if (graph_[other].prim != Prim::broadcast) {
      step.operand = EpilogueStep::Operand::full;
      return other;
    }
    const NodeId source = graph_[other].inputs[0];
    const Shape& small = graph_[source].shape;
    const int lead = shape.rank() - small.rank();
    int stretched_along = -1;
    for (int axis = 0; axis < small.rank(); ++axis) {
      if (small[axis] == 1) continue;
      if (stretched_along >= 0 || small[axis] != shape[axis + lead]) return -1;
      stretched_along = axis + lead;
    }
    const bool by_channel = is_conv(graph_[product]);
    if (stretched_along == (by_channel ? 1 : shape.rank() - 1)) {
      step.operand = by_channel ? EpilogueStep::Operand::per_channel : EpilogueStep::Operand::per_col;
      return source;
    }
    return -1;
  }

  const Graph& graph_;
  std::vector<int> readers_;
  std::vector<NodeId> reader_of_;  // the last one
};

}  // namespace

bool is_conv(const Node& node) {
  return node.prim == Prim::conv ||
         (node.prim == Prim::region && std::holds_alternative<ConvTransposeAttr>(node.as<RegionAttr>()));
}

NodeId input_behind(const Graph& graph, NodeId id) {
  while (is_view(graph[id].prim)) id = graph[id].inputs[0];
  return graph[id].prim == Prim::input ? id : -1;
}

Graph recognise_ops(const Graph& graph) {
  const Recogniser recogniser(graph);
  Graph out;
  for (NodeId id = 0; id < graph.size(); ++id) {
    Node node = graph[id];
    if (node.prim == Prim::input) {
      out.input(node.as<InputAttr>().name, node.dtype, node.shape);
      continue;
    }
    if (const auto found = recogniser.find(id)) {
      node.inputs = {found->x};
      node.attr = ElementwiseAttr{found->op, {}};
    }
    out.append(std::move(node));
  }
  out.set_outputs({graph.outputs().begin(), graph.outputs().end()});
  return out;
}

FusedGraph absorb_epilogues(const Graph& graph, const std::map<NodeId, IntegerProduct>& integer_products) {
  const ChainFinder finder(graph);
  std::vector<bool> taken(at(graph.size()), false);
  std::map<NodeId, std::pair<NodeId, Chain>> chains;  // by the last node: the product, what follows it
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (!finder.is_live(id) || !finder.starts(id)) continue;
    Chain chain = finder.find(id, taken);
    if (chain.nodes.empty()) continue;
    const NodeId last = chain.nodes.back();
    taken[at(id)] = true;
    for (NodeId node : chain.nodes) taken[at(node)] = true;
    chains.emplace(last, std::pair(id, std::move(chain)));
  }
  FusedGraph out;
  std::vector<NodeId> renamed(at(graph.size()), -1);
  for (NodeId id = 0; id < graph.size(); ++id) {
    Node node = graph[id];
    if (node.prim == Prim::input) {
      renamed[at(id)] = out.graph.input(node.as<InputAttr>().name, node.dtype, node.shape);
      continue;
    }
    const auto chain = chains.find(id);
    if (!finder.is_live(id) || (taken[at(id)] && chain == chains.end())) continue;
    if (chain != chains.end()) {
      node = graph[chain->second.first];
      node.inputs.insert(node.inputs.end(), chain->second.second.operands.begin(), chain->second.second.operands.end());
    }
    for (NodeId& in : node.inputs) in = renamed[at(in)];
    renamed[at(id)] = out.graph.append(std::move(node));
    if (chain != chains.end()) out.epilogues[renamed[at(id)]] = std::move(chain->second.second.epilogue);
  }
  for (const auto& [id, product] : integer_products)
    if (renamed[at(id)] >= 0) out.integer_products[renamed[at(id)]] = product;
  std::vector<NodeId> outputs;
  for (NodeId id : graph.outputs()) outputs.push_back(renamed[at(id)]);
  out.graph.set_outputs(std::move(outputs));
  return out;
}

}  // namespace tenon::cpu
