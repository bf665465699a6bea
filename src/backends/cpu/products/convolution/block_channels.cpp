#include "backends/cpu/products/convolution/block_channels.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace tenon::cpu {
namespace {

constexpr std::int64_t kBlock = kChannelBlock;

std::size_t at(NodeId id) { return static_cast<std::size_t>(id); }

bool is_image(const Node& node) { return node.shape.rank() == 4 && node.shape.elements() > 0 && node.shape[1] % kBlock == 0; }

Shape blocked_shape(const Shape& shape) { return {shape[0], shape[1] / kBlock, shape[2], shape[3], kBlock}; }

// Ops that compute the same in blocks.
bool passes_blocks(const Graph& graph, const Node& node) {
  if (!is_image(node)) return false;
  const auto is_image_too = [&](NodeId in) { return is_image(graph[in]); };
  switch (node.prim) {
    case Prim::elementwise: return true;
    case Prim::window: return is_image_too(node.inputs[0]);
    case Prim::concat: return node.as<AxisAttr>().axis == 1 && std::ranges::all_of(node.inputs, is_image_too);
    default: return false;
  }
}

constexpr AxisSet kPlaces = 0b1100;

class Chooser {
 public:
  explicit Chooser(const FusedGraph& fused) : fused_(fused), graph_(fused.graph), owner_(at(graph_.size())) {
    std::iota(owner_.begin(), owner_.end(), 0);
    std::vector<int> convs(at(graph_.size()), 0);
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_[id];
      if (is_candidate(id)) {
        if (!is_plain(node)) join(id, node.inputs[0]);
        for (std::size_t i = 2; i < node.inputs.size(); ++i)
          if (graph_[node.inputs[i]].shape == node.shape) join(id, node.inputs[i]);
      } else if (passes_blocks(graph_, node)) {
        for (NodeId in : node.inputs)
          if (graph_[in].prim != Prim::broadcast) join(id, in);
      }
    }
    for (NodeId id = 0; id < graph_.size(); ++id)
      if (is_candidate(id)) ++convs[at(find(id))];
    chosen_.resize(at(graph_.size()));
    for (NodeId id = 0; id < graph_.size(); ++id) chosen_[at(id)] = is_candidate(id) && convs[at(find(id))] > 1;
  }

  bool is_chosen(NodeId id) const { return chosen_[at(id)]; }

  // The first convolution of a net: few channels that need not be in blocks.
  bool is_plain(const Node& node) const {
    return graph_[node.inputs[1]].shape[1] % kBlock != 0 && node.as<ConvAttr>().groups == 1;
  }

 private:
  bool is_candidate(NodeId id) const {
    const Node& node = graph_[id];
    if (node.prim != Prim::conv || node.dtype != DType::f32 || !is_image(node)) return false;
    if (!is_weight(node.inputs[1]) || graph_[node.inputs[0]].dtype != DType::f32) return false;
    const bool plain = is_plain(node);
    if (plain && graph_[node.inputs[1]].shape[1] >= kBlock) return false;
    if (!can_block(graph_[node.inputs[1]].shape, node.as<ConvAttr>(), plain)) return false;
    const auto epilogue = fused_.epilogues.find(id);
    return epilogue == fused_.epilogues.end() || can_block(epilogue->second);
  }

  // An input of the program, as it is in memory: it is packed once.
  bool is_weight(NodeId id) const {
    while (graph_[id].prim == Prim::reshape) id = graph_[id].inputs[0];
    return graph_[id].prim == Prim::input && graph_[id].dtype == DType::f32;
  }

  NodeId find(NodeId id) const {
    while (owner_[at(id)] != id) id = owner_[at(id)];
    return id;
  }
  void join(NodeId a, NodeId b) {
    a = find(a);
    b = find(b);
    owner_[at(std::max(a, b))] = std::min(a, b);
  }

  const FusedGraph& fused_;
  const Graph& graph_;
  std::vector<NodeId> owner_;
  std::vector<bool> chosen_;
};

class Blocker {
 public:
  explicit Blocker(const FusedGraph& fused)
      : fused_(fused),
        graph_(fused.graph),
        chooser_(fused),
        plain_(at(graph_.size()), -1),
        blocked_(at(graph_.size()), -1) {}

  BlockedGraph run() {
    for (NodeId id = 0; id < graph_.size(); ++id) add(id);
    std::vector<NodeId> outputs;
    for (NodeId id : graph_.outputs()) outputs.push_back(plain(id));
    out_.fused.graph.set_outputs(std::move(outputs));
    return std::move(out_);
  }

 private:
  Graph& target() { return out_.fused.graph; }

  void add(NodeId id) {
    const Node& node = graph_[id];
    if (node.prim == Prim::input) {
      plain_[at(id)] = target().input(node.as<InputAttr>().name, node.dtype, node.shape);
    } else if (chooser_.is_chosen(id)) {
      add_conv(id);
    } else if (passes_blocks(graph_, node) && std::ranges::any_of(node.inputs, [&](NodeId in) { return is_blocked_only(in); })) {
      add_blocked(id);
    } else if (node.prim == Prim::reduce && node.as<ReduceAttr>().axes == kPlaces && is_blocked_only(node.inputs[0])) {
      add_sum_of_places(id);
    } else {
      add_plain(id);
    }
  }

  bool is_blocked_only(NodeId id) const { return blocked_[at(id)] >= 0 && plain_[at(id)] < 0; }

  void add_plain(NodeId id) {
    Node node = graph_[id];
    for (NodeId& in : node.inputs) in = plain(in);
    plain_[at(id)] = target().append(std::move(node));
    if (const auto epilogue = fused_.epilogues.find(id); epilogue != fused_.epilogues.end())
      out_.fused.epilogues[plain_[at(id)]] = epilogue->second;
    if (const auto product = fused_.integer_products.find(id); product != fused_.integer_products.end())
      out_.fused.integer_products[plain_[at(id)]] = product->second;
  }

  void add_conv(NodeId id) {
    Node node = graph_[id];
    const bool is_plain = chooser_.is_plain(node);
    const BlockedConv conv{node.as<ConvAttr>(), graph_[node.inputs[1]].shape, is_plain};
    node.inputs[0] = is_plain ? plain(node.inputs[0]) : blocked(node.inputs[0]);
    node.inputs[1] = plain(node.inputs[1]);
    for (std::size_t i = 2; i < node.inputs.size(); ++i)
      node.inputs[i] = graph_[node.inputs[i]].shape == node.shape ? blocked(node.inputs[i]) : plain(node.inputs[i]);
    node.shape = blocked_shape(node.shape);
    const NodeId added = blocked_[at(id)] = target().append(std::move(node));
    out_.convs[added] = conv;
    if (const auto epilogue = fused_.epilogues.find(id); epilogue != fused_.epilogues.end())
      out_.fused.epilogues[added] = epilogue->second;
  }

  void add_blocked(NodeId id) {
    Node node = graph_[id];
    for (NodeId& in : node.inputs) in = blocked(in);
    node.shape = blocked_shape(node.shape);
    if (node.prim == Prim::window) {
      WindowAttr attr = node.as<WindowAttr>();  // the third axis is that of the channels
      attr.size[2] = attr.stride[2] = attr.dilation[2] = 1;
      attr.pad_low[2] = attr.pad_high[2] = 0;
      node.attr = attr;
    }
    blocked_[at(id)] = target().append(std::move(node));
  }

  // Over all places: one element per channel is the same in both forms.
  void add_sum_of_places(NodeId id) {
    Node node = graph_[id];
    const Shape shape = node.shape;
    node.inputs[0] = blocked(node.inputs[0]);
    node.shape = blocked_shape(shape);
    plain_[at(id)] = target().reshape(target().append(std::move(node)), shape);
  }

  NodeId plain(NodeId id) {
    if (plain_[at(id)] >= 0) return plain_[at(id)];
    const int perm[] = {0, 1, 4, 2, 3};
    return plain_[at(id)] = target().reshape(target().transpose(blocked_[at(id)], perm), graph_[id].shape);
  }

  NodeId blocked(NodeId id) {
    if (blocked_[at(id)] >= 0) return blocked_[at(id)];
    const Node& node = graph_[id];
    const Shape shape = blocked_shape(node.shape);
    if (node.prim == Prim::broadcast) {
      const NodeId source = node.inputs[0];
      const Shape& from = graph_[source].shape;
      if (from.elements() == 1) return blocked_[at(id)] = target().broadcast(target().reshape(plain(source), {}), shape);
      const bool per_channel = from.rank() == 4 && from[1] == node.shape[1] && from[2] == 1 && from[3] == 1;
      const bool is_column = from.rank() == 3 && from[0] == node.shape[1] && from[1] == 1 && from[2] == 1;
      if (per_channel || is_column) {
        const Shape small{per_channel ? from[0] : 1, shape[1], 1, 1, kBlock};
        return blocked_[at(id)] = target().broadcast(target().reshape(plain(source), small), shape);
      }
    }
    const int perm[] = {0, 1, 3, 4, 2};
    const Shape split{shape[0], shape[1], kBlock, shape[2], shape[3]};
    return blocked_[at(id)] = target().transpose(target().reshape(plain(id), split), perm);
  }

  const FusedGraph& fused_;
  const Graph& graph_;
  const Chooser chooser_;
  std::vector<NodeId> plain_, blocked_;  // by node of |graph_|: the new node of each form, or -1
  BlockedGraph out_;
};

}  // namespace

BlockedGraph block_channels(FusedGraph fused) {
  if (!has_blocked_conv()) return {std::move(fused), {}};
  return Blocker(fused).run();
}

}  // namespace tenon::cpu
