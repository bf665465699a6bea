#include "backends/cpu/products/convolution/block_channels.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <variant>
#include <vector>

namespace tenon::cpu {
namespace {

constexpr std::int64_t kBlock = kChannelBlock;

std::size_t at(NodeId id) { return static_cast<std::size_t>(id); }

// With fewer channels most lanes of a block would be empty.
constexpr std::int64_t kLeastChannels = 8;

bool is_image(const Node& node) { return node.shape.rank() == 4 && node.shape.elements() > 0 && node.shape[1] >= kLeastChannels; }

Shape blocked_shape(const Shape& shape) { return {shape[0], channel_blocks(shape[1]), shape[2], shape[3], kBlock}; }

bool has_whole_blocks(const Node& node) { return node.shape[1] % kBlock == 0; }

// Whole blocks of the input, or whole blocks to its end.
bool cuts_blocks(const Shape& from, const Shape& to, const SliceAttr& attr) {
  return attr.start[1] % kBlock == 0 && attr.step[1] == 1 && (to[1] % kBlock == 0 || attr.start[1] + to[1] == from[1]);
}

// Ops that compute the same in blocks.
bool passes_blocks(const Graph& graph, const Node& node) {
  if (!is_image(node)) return false;
  const auto is_image_too = [&](NodeId in) { return is_image(graph[in]); };
  switch (node.prim) {
    case Prim::elementwise:
    case Prim::cast: return true;
    case Prim::window: return is_image_too(node.inputs[0]);
    case Prim::concat:
      return node.as<AxisAttr>().axis == 1 && std::ranges::all_of(node.inputs, is_image_too) &&
             std::all_of(node.inputs.begin(), node.inputs.end() - 1, [&](NodeId in) { return has_whole_blocks(graph[in]); });
    case Prim::slice:
      return is_image_too(node.inputs[0]) && cuts_blocks(graph[node.inputs[0]].shape, node.shape, node.as<SliceAttr>());
    case Prim::pad: return is_image_too(node.inputs[0]) && graph[node.inputs[0]].shape[1] == node.shape[1];
    case Prim::take:
      return node.as<AxisAttr>().axis >= 2 && is_image_too(node.inputs[0]) && graph[node.inputs[1]].shape.rank() == 1;
    default: return false;
  }
}

// Operands that are read in blocks; the others of a node that passes blocks are not images.
std::size_t image_operands(const Node& node) { return node.prim == Prim::take ? 1 : node.inputs.size(); }

constexpr AxisSet kPlaces = 0b1100;

class Chooser {
 public:
  explicit Chooser(const FusedGraph& fused) : fused_(fused), graph_(fused.graph), owner_(at(graph_.size())) {
    std::iota(owner_.begin(), owner_.end(), 0);
    std::vector<int> convs(at(graph_.size()), 0);
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_[id];
      if (is_candidate(id)) {
        if (!conv_of(node).is_plain) join(id, node.inputs[0]);
        for (std::size_t i = 2; i < node.inputs.size(); ++i)
          if (graph_[node.inputs[i]].shape == node.shape) join(id, node.inputs[i]);
      } else if (passes_blocks(graph_, node)) {
        for (std::size_t i = 0; i < image_operands(node); ++i)
          if (graph_[node.inputs[i]].prim != Prim::broadcast) join(id, node.inputs[i]);
      }
    }
    for (NodeId id = 0; id < graph_.size(); ++id)
      if (is_candidate(id)) ++convs[at(find(id))];
    chosen_.resize(at(graph_.size()));
    for (NodeId id = 0; id < graph_.size(); ++id) chosen_[at(id)] = is_candidate(id) && convs[at(find(id))] > 1;
  }

  bool is_chosen(NodeId id) const { return chosen_[at(id)]; }

  BlockedConv conv_of(const Node& node) const {
    const Shape& weight = graph_[node.inputs[1]].shape;
    if (node.prim == Prim::region) {
      const ConvTransposeAttr& attr = std::get<ConvTransposeAttr>(node.as<RegionAttr>());
      return {{attr.stride, attr.dilation, attr.pad_low, attr.pad_high, attr.groups}, weight, false, true};
    }
    // The first convolution of a net: few channels that need not be in blocks.
    const ConvAttr& attr = node.as<ConvAttr>();
    return {attr, weight, attr.groups == 1 && weight[1] < kBlock && !is_image(graph_[node.inputs[0]]), false};
  }

 private:
  bool is_candidate(NodeId id) const {
    const Node& node = graph_[id];
    const bool is_transposed = node.prim == Prim::region && std::holds_alternative<ConvTransposeAttr>(node.as<RegionAttr>());
    if ((node.prim != Prim::conv && !is_transposed) || node.dtype != DType::f32 || !is_image(node)) return false;
    if (!is_weight(node.inputs[1]) || graph_[node.inputs[0]].dtype != DType::f32) return false;
    const BlockedConv conv = conv_of(node);
    if (!can_block(conv) || !(conv.is_plain || is_image(graph_[node.inputs[0]]))) return false;
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
    const BlockedConv conv = chooser_.conv_of(node);
    node.inputs[0] = conv.is_plain ? plain(node.inputs[0]) : blocked(node.inputs[0]);
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
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      node.inputs[i] = i < image_operands(node) ? blocked(node.inputs[i]) : plain(node.inputs[i]);
    node.shape = blocked_shape(node.shape);
    if (node.prim == Prim::window) {
      WindowAttr attr = node.as<WindowAttr>();  // the third axis is that of the channels
      attr.size[2] = attr.stride[2] = attr.dilation[2] = 1;
      attr.pad_low[2] = attr.pad_high[2] = 0;
      node.attr = attr;
    } else if (node.prim == Prim::slice) {
      SliceAttr attr = node.as<SliceAttr>();
      attr.start[1] /= kBlock;
      attr.start[4] = 0;
      attr.step[4] = 1;
      node.attr = attr;
    }
    blocked_[at(id)] = target().append(std::move(node));
  }

  // Over all places: the result is an image with one place.
  void add_sum_of_places(NodeId id) {
    Node node = graph_[id];
    node.inputs[0] = blocked(node.inputs[0]);
    node.shape = blocked_shape(node.shape);
    blocked_[at(id)] = target().append(std::move(node));
  }

  // Of more than one place: others are not moved.
  static bool has_places(const Shape& shape) { return shape[2] * shape[3] > 1; }

  NodeId plain(NodeId id) {
    if (plain_[at(id)] >= 0) return plain_[at(id)];
    const Shape& shape = graph_[id].shape;
    NodeId value = blocked_[at(id)];
    const int perm[] = {0, 1, 4, 2, 3};
    if (has_places(shape)) value = target().transpose(value, perm);
    value = target().reshape(value, shape.with(1, channel_blocks(shape[1]) * kBlock));
    if (shape[1] % kBlock != 0) {
      const std::int64_t start[] = {0, 0, 0, 0}, step[] = {1, 1, 1, 1};
      value = target().slice(value, start, shape.dims(), step);
    }
    return plain_[at(id)] = value;
  }

  // |value| with as many channels as its blocks have lanes.
  NodeId padded(NodeId value) {
    const Shape& shape = target()[value].shape;
    if (shape[1] % kBlock == 0) return value;
    const std::int64_t low[] = {0, 0, 0, 0}, high[] = {0, channel_blocks(shape[1]) * kBlock - shape[1], 0, 0};
    return target().pad(value, low, high, 0);
  }

  NodeId blocked(NodeId id) {
    if (blocked_[at(id)] >= 0) return blocked_[at(id)];
    const Node& node = graph_[id];
    const Shape shape = blocked_shape(node.shape);
    if (node.prim == Prim::broadcast) {
      const NodeId source = node.inputs[0];
      const Shape& from = graph_[source].shape;
      if (from.elements() == 1) return blocked_[at(id)] = target().broadcast(target().reshape(plain(source), {}), shape);
      const Shape aligned = aligned_to_image(from);
      if (aligned[1] == node.shape[1] && !has_places(aligned)) {
        const Shape small{aligned[0], shape[1], 1, 1, kBlock};
        const NodeId value = blocked_[at(source)] >= 0 && from.rank() == 4
                                 ? blocked_[at(source)]
                                 : target().reshape(padded(target().reshape(plain(source), aligned)), small);
        return blocked_[at(id)] = target().broadcast(value, shape);
      }
      if (aligned[1] == 1) {
        const Shape small{aligned[0], 1, aligned[2], aligned[3], 1};
        return blocked_[at(id)] = target().broadcast(target().reshape(plain(source), small), shape);
      }
    }
    const int perm[] = {0, 1, 3, 4, 2};
    const Shape split{shape[0], shape[1], kBlock, shape[2], shape[3]};
    const NodeId value = padded(plain(id));
    if (!has_places(node.shape)) return blocked_[at(id)] = target().reshape(value, shape);
    return blocked_[at(id)] = target().transpose(target().reshape(value, split), perm);
  }

  // With four axes, as it is broadcast.
  static Shape aligned_to_image(const Shape& from) {
    Shape aligned{1, 1, 1, 1};
    for (int i = 0; i < from.rank(); ++i) aligned = aligned.with(4 - from.rank() + i, from[i]);
    return aligned;
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
