#include "graph/encode/serialize.h"

#include <algorithm>
#include <array>

#include "graph/check_node.h"
#include "graph/elementwise.h"
#include "graph/optimize/region.h"

namespace tenon {
namespace {

constexpr std::uint64_t kMagic = 0x544e47;  // "TNG"
constexpr std::uint64_t kVersion = 2;
constexpr std::uint64_t kMaxName = 4096;

template <class Array>
void write_list(ByteWriter& out, const Array& values, int count) {
  for (int i = 0; i < count; ++i) out.integer(values[static_cast<std::size_t>(i)]);
}
template <class Array>
void read_list(ByteReader& in, Array& values, int count) {
  for (int i = 0; i < count; ++i) values[static_cast<std::size_t>(i)] = in.integer();
}

// Which attributes a primitive has follows from the primitive alone.
struct AttributeWriter {
  ByteWriter& out;
  const Node& node;

  void operator()(std::monostate) const {}
  void operator()(const InputAttr& a) const { out.text(a.name); }
  void operator()(const ConstantAttr& a) const {
    out.byte(static_cast<std::uint8_t>(a.value.dtype()));
    out.raw({a.value.data(), a.value.bytes()});
  }
  void operator()(const ElementwiseAttr& a) const {
    out.number(static_cast<std::uint64_t>(a.op));
    for (int i = 0; i < traits(a.op).params; ++i) out.real(a.params[static_cast<std::size_t>(i)]);
  }
  void operator()(const TransposeAttr& a) const { write_list(out, a.perm, node.shape.rank()); }
  void operator()(const SliceAttr& a) const {
    write_list(out, a.start, node.shape.rank());
    write_list(out, a.step, node.shape.rank());
  }
  void operator()(const PadAttr& a) const {
    write_list(out, a.low, node.shape.rank());
    out.real(a.value);
  }
  void operator()(const AxisAttr& a) const { out.integer(a.axis); }
  void operator()(const ScatterAttr& a) const {
    out.integer(a.axis);
    out.flag(a.add);
  }
  void operator()(const ReduceAttr& a) const {
    out.byte(static_cast<std::uint8_t>(a.kind));
    out.number(a.axes);
  }
  void operator()(const ArgReduceAttr& a) const {
    out.integer(a.axis);
    out.flag(a.largest);
  }
  void operator()(const MatMulAttr& a) const {
    out.flag(a.transpose_a);
    out.flag(a.transpose_b);
  }
  void operator()(const ConvAttr& a) const {
    for (const Spatial* list : {&a.stride, &a.dilation, &a.pad_low, &a.pad_high}) write_list(out, *list, 3);
    out.integer(a.groups);
  }
  void operator()(const WindowAttr& a) const {
    out.flag(a.max);
    for (const Spatial* list : {&a.size, &a.stride, &a.dilation, &a.pad_low, &a.pad_high}) write_list(out, *list, 3);
  }
  void operator()(const ArgSortAttr& a) const {
    out.integer(a.axis);
    out.flag(a.descending);
  }
  void operator()(const CumulativeAttr& a) const {
    out.integer(a.axis);
    out.flag(a.product);
  }
  void operator()(const RandomAttr& a) const {
    out.flag(a.normal);
    out.number(a.seed);
  }
  void operator()(const RegionAttr& a) const { write_region(out, a); }
};

int read_axis(ByteReader& in) {
  const std::int64_t axis = in.integer();
  if (axis < 0 || axis >= kMaxRank) ByteReader::fail("an axis that does not exist");
  return static_cast<int>(axis);
}

Attributes read_attributes(ByteReader& in, const Node& node, int input_index) {
  const int rank = node.shape.rank();
  switch (node.prim) {
    case Prim::input: {
      std::string name = in.text();
      if (name.size() > kMaxName) ByteReader::fail("a name that is too long");
      return InputAttr{std::move(name), input_index};
    }
    case Prim::constant: {
      const DType dtype = read_dtype(in);
      const std::span<const std::byte> bytes = in.raw(storage_bytes(dtype, node.shape));
      if (dtype == DType::boolean && std::ranges::any_of(bytes, [](std::byte b) { return b > std::byte{1}; }))
        ByteReader::fail("a truth value is neither 0 nor 1");
      return ConstantAttr{HostArray::from_bytes(dtype, node.shape, bytes)};
    }
    case Prim::elementwise: {
      ElementwiseAttr a{static_cast<ElementwiseOp>(in.below(kElementwiseCount, "an op that does not exist")), {}};
      for (int i = 0; i < traits(a.op).params; ++i) a.params[static_cast<std::size_t>(i)] = in.real();
      return a;
    }
    case Prim::transpose: {
      TransposeAttr a;
      for (int i = 0; i < rank; ++i) a.perm[static_cast<std::size_t>(i)] = static_cast<std::int8_t>(read_axis(in));
      return a;
    }
    case Prim::slice: {
      SliceAttr a;
      read_list(in, a.start, rank);
      read_list(in, a.step, rank);
      return a;
    }
    case Prim::pad: {
      PadAttr a;
      read_list(in, a.low, rank);
      a.value = in.real();
      return a;
    }
    case Prim::concat:
    case Prim::take:
    case Prim::gather:
    case Prim::iota: return AxisAttr{read_axis(in)};
    case Prim::scatter: {
      const int axis = read_axis(in);
      return ScatterAttr{axis, in.flag()};
    }
    case Prim::reduce: {
      const auto kind = static_cast<ReduceKind>(in.byte());
      return ReduceAttr{kind, static_cast<AxisSet>(in.below(1u << kMaxRank, "an axis that does not exist"))};
    }
    case Prim::arg_reduce: {
      const int axis = read_axis(in);
      return ArgReduceAttr{axis, in.flag()};
    }
    case Prim::matmul: {
      const bool a = in.flag();
      return MatMulAttr{a, in.flag()};
    }
    case Prim::conv: {
      ConvAttr a;
      for (Spatial* list : {&a.stride, &a.dilation, &a.pad_low, &a.pad_high}) read_list(in, *list, 3);
      a.groups = in.integer();
      return a;
    }
    case Prim::window: {
      WindowAttr a;
      a.max = in.flag();
      for (Spatial* list : {&a.size, &a.stride, &a.dilation, &a.pad_low, &a.pad_high}) read_list(in, *list, 3);
      return a;
    }
    case Prim::arg_sort: {
      const int axis = read_axis(in);
      return ArgSortAttr{axis, in.flag()};
    }
    case Prim::cumulative: {
      const int axis = read_axis(in);
      return CumulativeAttr{axis, in.flag()};
    }
    case Prim::random: {
      const bool normal = in.flag();
      return RandomAttr{normal, in.number()};
    }
    case Prim::cast:
    case Prim::broadcast:
    case Prim::reshape: return std::monostate{};
    case Prim::region: break;
  }
  ByteReader::fail("a primitive that does not exist");
}

void write_node(ByteWriter& out, const Node& node, NodeId id) {
  out.byte(static_cast<std::uint8_t>(node.prim));
  out.byte(static_cast<std::uint8_t>(node.dtype));
  out.flag(node.weak);
  write_shape(out, node.shape);
  out.number(node.inputs.size());
  for (const NodeId input : node.inputs) out.number(static_cast<std::uint64_t>(id - input - 1));
  std::visit(AttributeWriter{out, node}, node.attr);
}

Node read_node(ByteReader& in, const Graph& graph) {
  Node node;
  const std::uint8_t prim = in.byte();
  if (prim > static_cast<std::uint8_t>(Prim::random)) ByteReader::fail("a primitive that does not exist");
  node.prim = static_cast<Prim>(prim);
  node.dtype = read_dtype(in);
  node.weak = in.flag();
  node.shape = read_shape(in);
  const std::uint64_t count = in.below(in.left() + 1, "more inputs than bytes");
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t back = in.below(static_cast<std::uint64_t>(graph.size()), "an input that does not exist");
    node.inputs.push_back(graph.size() - 1 - static_cast<NodeId>(back));
  }
  node.attr = read_attributes(in, node, static_cast<int>(graph.inputs().size()));
  return node;
}

}  // namespace

void write_shape(ByteWriter& out, const Shape& shape) {
  out.number(static_cast<std::uint64_t>(shape.rank()));
  for (const std::int64_t extent : shape) out.number(static_cast<std::uint64_t>(extent));
}

Shape read_shape(ByteReader& in) {
  const std::uint64_t rank = in.below(kMaxRank + 1, "a shape with too many axes");
  std::array<std::int64_t, kMaxRank> dims{};
  for (std::size_t i = 0; i < rank; ++i)
    dims[i] = static_cast<std::int64_t>(in.below(std::uint64_t{1} << 62, "an extent that is too large"));
  return Shape(std::span<const std::int64_t>(dims.data(), static_cast<std::size_t>(rank)));
}

DType read_dtype(ByteReader& in) {
  const std::uint8_t value = in.byte();
  if (value >= kDTypeCount) ByteReader::fail("a dtype that does not exist");
  return static_cast<DType>(value);
}

std::vector<std::byte> serialize(const Graph& graph) {
  ByteWriter out;
  out.number(kMagic);
  out.number(kVersion);
  out.number(static_cast<std::uint64_t>(graph.size()));
  for (NodeId id = 0; id < graph.size(); ++id) write_node(out, graph[id], id);
  out.number(graph.outputs().size());
  for (const NodeId id : graph.outputs()) out.number(static_cast<std::uint64_t>(id));
  out.number(graph.regions().size());
  for (const Region& region : graph.regions()) {
    out.number(region.inputs.size());
    for (const NodeId id : region.inputs) out.number(static_cast<std::uint64_t>(id));
    out.number(static_cast<std::uint64_t>(region.output));
    write_region(out, region.attr);
  }
  return out.take();
}

Graph deserialize(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  if (in.number() != kMagic) ByteReader::fail("not a graph");
  if (in.number() != kVersion) ByteReader::fail("the graph was written by another version of Tenon");
  const std::uint64_t count = in.below(Graph::kMaxNodes + 1, "more nodes than a program may have");
  Graph graph;
  for (std::uint64_t i = 0; i < count; ++i) {
    Node node = read_node(in, graph);
    check_node(graph, node);
    if (node.prim == Prim::input && !node.weak)
      graph.input(node.as<InputAttr>().name, node.dtype, node.shape);
    else if (node.prim == Prim::input)
      ByteReader::fail("an input that is a literal");
    else
      graph.append(std::move(node));
  }
  std::vector<NodeId> outputs;
  const std::uint64_t output_count = in.below(in.left() + 1, "more outputs than bytes");
  for (std::uint64_t i = 0; i < output_count; ++i) {
    outputs.push_back(static_cast<NodeId>(in.below(count, "an output that does not exist")));
    if (graph[outputs.back()].weak) ByteReader::fail("an output that is a literal");
  }
  graph.set_outputs(std::move(outputs));
  const std::uint64_t region_count = in.below(in.left() + 1, "more regions than bytes");
  for (std::uint64_t i = 0; i < region_count; ++i) {
    Region region;
    const std::uint64_t input_count = in.below(in.left() + 1, "more inputs than bytes");
    for (std::uint64_t k = 0; k < input_count; ++k)
      region.inputs.push_back(static_cast<NodeId>(in.below(count, "an input that does not exist")));
    region.output = static_cast<NodeId>(in.below(count, "an output that does not exist"));
    region.attr = read_region(in);
    check_region(graph, region);
    graph.mark(std::move(region));
  }
  in.finish();
  return graph;
}

}  // namespace tenon
