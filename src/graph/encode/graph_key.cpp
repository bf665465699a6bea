#include "graph/encode/graph_key.h"

#include <algorithm>
#include <array>
#include <bit>

#include "graph/elementwise.h"
#include "graph/optimize/region.h"

namespace tenon {
namespace {

// In the place of a node's first word, where no primitive has these numbers.
constexpr std::uint64_t kEnd = 0xff, kRegion = 0xfe;

struct AttributeHash {
  SipHash& hash;
  const Node& node;

  void word(std::int64_t value) const { hash.add(static_cast<std::uint64_t>(value)); }
  void real(double value) const { hash.add(std::bit_cast<std::uint64_t>(value)); }
  // One entry for each axis of the node; later ones have no meaning.
  template <class List>
  void per_axis(const List& list) const {
    for (std::size_t i = 0; i < static_cast<std::size_t>(node.shape.rank()); ++i) word(list[i]);
  }
  void spatial(const Spatial& list) const {
    for (const std::int64_t value : list) word(value);
  }
  void axis(int axis, bool flag) const { word(axis * 2 + (flag ? 1 : 0)); }

  void operator()(std::monostate) const {}
  void operator()(const InputAttr& a) const { word(a.index); }
  void operator()(const ConstantAttr& a) const {
    word(static_cast<std::int64_t>(a.value.dtype()));
    hash.add(a.value.bytes());
    hash.add(std::span(a.value.data(), a.value.bytes()));
  }
  void operator()(const ElementwiseAttr& a) const {
    word(static_cast<std::int64_t>(a.op));
    for (int i = 0; i < traits(a.op).params; ++i) real(a.params[static_cast<std::size_t>(i)]);
  }
  void operator()(const TransposeAttr& a) const { per_axis(a.perm); }
  void operator()(const SliceAttr& a) const {
    per_axis(a.start);
    per_axis(a.step);
  }
  void operator()(const PadAttr& a) const {
    per_axis(a.low);
    real(a.value);
  }
  void operator()(const AxisAttr& a) const { word(a.axis); }
  void operator()(const ScatterAttr& a) const { axis(a.axis, a.add); }
  void operator()(const ReduceAttr& a) const { word(static_cast<int>(a.kind) * 65536 + a.axes); }
  void operator()(const ArgReduceAttr& a) const { axis(a.axis, a.largest); }
  void operator()(const MatMulAttr& a) const { word((a.transpose_a ? 2 : 0) + (a.transpose_b ? 1 : 0)); }
  void operator()(const ConvAttr& a) const {
    for (const Spatial* list : {&a.stride, &a.dilation, &a.pad_low, &a.pad_high}) spatial(*list);
    word(a.groups);
  }
  void operator()(const WindowAttr& a) const {
    word(a.max ? 1 : 0);
    for (const Spatial* list : {&a.size, &a.stride, &a.dilation, &a.pad_low, &a.pad_high}) spatial(*list);
  }
  void operator()(const ArgSortAttr& a) const { axis(a.axis, a.descending); }
  void operator()(const CumulativeAttr& a) const { axis(a.axis, a.product); }
  void operator()(const RandomAttr& a) const {
    word(a.normal ? 1 : 0);
    hash.add(a.seed);
  }
  void operator()(const RegionAttr& a) const { add_region(hash, a); }
};

void add_region_of_nodes(SipHash& hash, const Region& region) {
  hash.add(kRegion | region.inputs.size() << 8);
  for (const NodeId id : region.inputs) hash.add(static_cast<std::uint64_t>(id));
  hash.add(static_cast<std::uint64_t>(region.output));
  add_region(hash, region.attr);
}

GraphKey key_of(SipHash hash, std::span<const Region> regions, std::size_t nodes, std::span<const NodeId> outputs) {
  for (const Region& region : regions) add_region_of_nodes(hash, region);
  hash.add(kEnd | nodes << 8);
  hash.add(outputs.size());
  for (const NodeId id : outputs) hash.add(static_cast<std::uint64_t>(id));
  const SipHash::Digest digest = hash.digest();
  return {digest.low, digest.high};
}

// A build that numbers primitives and ops in another way must not recognise the graphs of this one.
const SipHash::Key& key_of_this_vocabulary() {
  static const SipHash::Key key = [] {
    std::string names;
    for (int i = 0; i <= static_cast<int>(Prim::region); ++i) names += std::string(name(static_cast<Prim>(i))) + ' ';
    for (int i = 0; i < kElementwiseCount; ++i) names += std::string(name(static_cast<ElementwiseOp>(i))) + ' ';
    const SipHash::Digest digest = SipHash::of({}, names);
    return SipHash::Key{digest.low, digest.high};
  }();
  return key;
}

}  // namespace

void add_node(SipHash& hash, const Node& node) {
  static_assert(std::variant_size_v<Attributes> < 128 && kMaxRank < 256 &&
                static_cast<int>(Prim::region) < static_cast<int>(kRegion));
  hash.add(static_cast<std::uint64_t>(node.prim) | static_cast<std::uint64_t>(node.dtype) << 8 |
           static_cast<std::uint64_t>(node.weak) << 16 | static_cast<std::uint64_t>(node.attr.index()) << 17 |
           static_cast<std::uint64_t>(node.shape.rank()) << 24 | static_cast<std::uint64_t>(node.inputs.size()) << 32);
  for (const std::int64_t extent : node.shape) hash.add(static_cast<std::uint64_t>(extent));
  for (const NodeId id : node.inputs) hash.add(static_cast<std::uint64_t>(id));
  std::visit(AttributeHash{hash, node}, node.attr);
}

GraphKey node_key(const Node& node) {
  SipHash hash(SipHash::process_key());
  add_node(hash, node);
  return key_of(hash, {}, 1, {});
}

Graph::Graph() : hash_(SipHash(SipHash::process_key()).state()) {}

GraphKey Graph::key() const {
  // A small program is run many times in a row, and finishing the hash is a good part of a run. The key is a function of what is
  // compared here.
  struct Last {
    SipHash::State hash{};
    std::size_t nodes = 0, outputs = 0;
    std::array<NodeId, 4> ids{};
    GraphKey key;
  };
  constinit thread_local Last last;
  if (!regions_.empty() || nodes_.empty() || outputs_.size() > last.ids.size())
    return key_of(SipHash(hash_), regions_, nodes_.size(), outputs_);
  if (last.nodes == nodes_.size() && last.hash == hash_ && last.outputs == outputs_.size() &&
      std::equal(outputs_.begin(), outputs_.end(), last.ids.begin()))
    return last.key;
  last.hash = hash_;
  last.nodes = nodes_.size();
  last.outputs = outputs_.size();
  std::copy(outputs_.begin(), outputs_.end(), last.ids.begin());
  return last.key = key_of(SipHash(hash_), regions_, nodes_.size(), outputs_);
}

GraphKey Graph::fingerprint() const {
  SipHash hash(key_of_this_vocabulary());
  for (const Node& node : nodes_) add_node(hash, node);
  return key_of(hash, regions_, nodes_.size(), outputs_);
}

}  // namespace tenon
