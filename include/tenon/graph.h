// Graph: a tensor program of primitive nodes, independent of any device.
//
// A node is one primitive: an elementwise op of the catalogue, a view (broadcast, reshape, transpose, slice), a reduction, a
// matmul ... Its dtype and shape are inferred and checked when it is added, so every Graph is well-formed and backends can rely
// on it. The inputs of a node have smaller ids than the node, so id order is a topological order.
//
// Lifetime: a value; copying copies the nodes (constants share their bytes).
// Thread safety: as for a standard container.
//
//   Graph g;
//   NodeId a = g.input("a", DType::f32, {32, 32});
//   NodeId y = apply(g, "gelu", {a})[0];          // ops.h: any op of the catalogue
//   g.set_outputs({y});
//
// Dtypes inside a program: a node of dtype bf16, f16 or a block format is *computed* in f32 and not rounded. Rounding happens
// where the value leaves the graph as an output, where it enters a product (matmul, conv), and at explicit casts. A product's
// rounding is a cast node from a dtype to itself, which matmul() and conv() add, so backends and the reference need no rule.
//
// Regions: a composed op such as attention may record which nodes it is made of. A backend with an implementation of the whole
// op uses it in their place; all others see only the nodes, which remain the meaning.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tenon/array.h"

namespace tenon {

using NodeId = std::int32_t;

// An index into the list of elementwise ops (src/ops/elementwise/elementwise.h).
enum class ElementwiseOp : std::uint16_t;

enum class Prim : std::uint8_t {
  input,        // an argument of the program, ordered by InputAttr::index
  constant,     // a literal
  elementwise,  // all inputs have the node's shape and one dtype (for where, the first is a bool condition)
  cast,         // to the node's dtype, with the rules of HostArray::cast
  broadcast,    // as in NumPy: leading axes are added, extents of 1 are stretched
  reshape,      // same elements, row-major
  transpose,    // out axis i is input axis perm[i]
  slice,        // out[i] = in[start + i * step] per axis; step may be negative
  pad,          // constant border; negative amounts are not allowed
  concat,       // along one axis
  take,         // x, indices: x.shape[:axis] + indices.shape + x.shape[axis+1:]; negative indices count from the end
  gather,       // x, indices (same rank): out[..i..] = x[..indices[..i..]..] along one axis
  scatter,      // x, indices, updates (shapes of indices): copy of x with updates written (or added) along one axis
  iota,         // i64: the index along one axis
  reduce,       // over a set of axes, each kept with extent 1
  arg_reduce,   // i64 index of the first largest / smallest along one axis, kept with extent 1; NaN counts as the extreme
  matmul,       // [..., m, k] x [..., k, n]; equal batch axes
  conv,         // x [n, c, spatial...], w [o, c / groups, kernel...]
  window,       // max or sum over sliding windows of the trailing spatial axes of [n, c, spatial...]
  arg_sort,     // i64, stable, along one axis; NaN last
  cumulative,   // running sum or product along one axis
  random,       // counter-based: element i depends only on (seed, i); f32 / f64
  region,  // a whole op, in graphs that a backend has simplified for itself (graph/optimize/simplify.h); never in other graphs
};
std::string_view name(Prim prim) noexcept;

enum class ReduceKind : std::uint8_t { sum, prod, max, min, any, all };  // max and min propagate NaN
std::string_view name(ReduceKind kind) noexcept;

using AxisSet = std::uint16_t;  // bit i: axis i
static_assert(kMaxRank <= 16);

struct InputAttr {
  std::string name;
  int index = 0;
};
// The value has the node's dtype, or its compute dtype if a literal must not be rounded.
struct ConstantAttr {
  HostArray value;  // a literal combined with a bf16 tensor stays f32, for example
};
struct ElementwiseAttr {
  ElementwiseOp op{};
  std::array<double, 4> params{};
};
struct TransposeAttr {
  std::array<std::int8_t, kMaxRank> perm{};
};
struct SliceAttr {
  std::array<std::int64_t, kMaxRank> start{}, step{};
};
struct PadAttr {
  std::array<std::int64_t, kMaxRank> low{};
  double value = 0;
};
struct AxisAttr {
  int axis = 0;
};  // concat, take, gather, iota
struct ScatterAttr {
  int axis = 0;
  bool add = false;
};  // add: duplicates accumulate in index order
struct ReduceAttr {
  ReduceKind kind{};
  AxisSet axes = 0;
};
struct ArgReduceAttr {
  int axis = 0;
  bool largest = true;
};
struct MatMulAttr {
  bool transpose_a = false, transpose_b = false;
};  // of the last two axes
using Spatial = std::array<std::int64_t, 3>;  // one entry per spatial axis (1 to 3); the rest keep their defaults
struct ConvAttr {
  Spatial stride{1, 1, 1}, dilation{1, 1, 1}, pad_low{}, pad_high{};
  std::int64_t groups = 1;
};
struct WindowAttr {
  bool max = true;
  Spatial size{1, 1, 1}, stride{1, 1, 1}, dilation{1, 1, 1}, pad_low{}, pad_high{};
};
struct ArgSortAttr {
  int axis = 0;
  bool descending = false;
};
struct CumulativeAttr {
  int axis = 0;
  bool product = false;
};
struct RandomAttr {
  bool normal = false;
  std::uint64_t seed = 0;
};  // uniform in [0, 1) otherwise

// --- Regions: the attributes of an op that a backend may implement as a whole ---
// q [n, h, l, e], k [n, g, s, e], v [n, g, s, d] and, if there is one, mask [n, h, l, s] (bool, or q's dtype); h is a multiple of
// g, and head i of q uses head i / (h / g) of k and v. Result [n, h, l, d] in the dtype of q, k and v, which are rounded to it.
// softmax(q k^T scale + mask) v; a bool mask is true where a key counts; rows without a key are zeros if there is a mask.
// Probabilities are rounded to the dtype before the second product, before or after they are normalised.
struct AttentionAttr {
  double scale = 1;
  bool causal = false;  // row i uses keys 0 to i
};
struct SoftmaxAttr {  // of x, over one axis
  int axis = 0;
  bool log = false;
};
// x [, weight [, bias]], which broadcast to x: (x - mean) / sqrt(variance + eps) over |axes|, or x / sqrt(mean(x^2) + eps).
struct NormAttr {
  AxisSet axes = 0;
  double eps = 0;
  bool subtract_mean = true;
};
// The i64 indices of elements |first| to |first| + |count| of x in sorted order along |axis|; stable, NaN last.
struct TopKAttr {
  int axis = 0;
  std::int64_t first = 0, count = 0;
  bool descending = true;
};
// a [..., n, d], b [..., m, d]: the norms of order p of the differences of all rows, [..., n, m].
struct DistanceAttr {
  double p = 2;
};
// x [n, c, spatial...], weight [c, outs / groups, kernel...]. |pad_low| and |pad_high| are cut off the full result; a negative
// one of them adds zeros.
struct ConvTransposeAttr {
  Spatial stride{1, 1, 1}, dilation{1, 1, 1}, pad_low{}, pad_high{};
  std::int64_t groups = 1;
};
// x [m, k] times the transposed matrix [n, k] of small integers, f32 [m, n]. The matrix is codes (u8), scales (f16 or f32) and,
// if there is a fourth input, minima like the scales: element = scale * (code - zero) + minimum. Sixteen rows are stored
// together: scales are [n / 16, k / group, 16], one for |group| columns of a row; codes of 8 bits are [n / 16, k / group, group /
// 4, 16, 4], with four columns of each row in the last axis; codes of 4 bits are [n / 16, k / group, group / 8, 16, 4], the low
// halves of the bytes for the first half of the group's columns and the high halves for the second. x is rounded to multiples of
// a 127th of the largest of 32 columns, and that step to f16, so that the products are of integers.
struct QuantizedMatMulAttr {
  int bits = 8;
  std::int64_t group = 32;  // 16 or 32
  std::int64_t zero = 0;
};
// x [n, c, spatial...] to the spatial extents of the result: the maxima or means of windows, of which number i of |out| over an
// axis of |in| elements goes from floor(i in / out) up to ceil((i + 1) in / out).
struct AdaptivePoolAttr {
  bool max = true;
};
// Decision trees: x [m, features] f32, nodes [n, 4] i32, roots [trees] i64 and weights: f32 [m, targets], the sums over all trees
// of the weights of the leaves that the rows of x lead to. A node is its first child, its feature, 1 if NaN goes to the first
// child, and the bits of the f32 that the feature is compared with; if the comparison holds, the first child follows, else the
// node after it. A leaf is its own child. Weights are [n, targets] f32 or, if a tree has one target, the targets [trees] i64;
// then the last bits of a leaf are its weight. No way to a leaf is longer than |depth|. A place or feature that does not exist
// stands for the nearest one.
struct ForestAttr {
  enum class Test : std::uint8_t { leq, lt, gte, gt };
  Test test = Test::leq;
  std::int64_t depth = 0;
  bool one_target_per_tree = false;
};
using RegionAttr = std::variant<AttentionAttr, SoftmaxAttr, NormAttr, TopKAttr, DistanceAttr, ConvTransposeAttr,
                                QuantizedMatMulAttr, AdaptivePoolAttr, ForestAttr>;

// Says that |output| is the result of an op on |inputs|.
struct Region {
  std::vector<NodeId> inputs;
  NodeId output = -1;
  RegionAttr attr;
};

using Attributes = std::variant<std::monostate, InputAttr, ConstantAttr, ElementwiseAttr, TransposeAttr, SliceAttr, PadAttr,
                                AxisAttr, ScatterAttr, ReduceAttr, ArgReduceAttr, MatMulAttr, ConvAttr, WindowAttr, ArgSortAttr,
                                CumulativeAttr, RandomAttr, RegionAttr>;

struct Node {
  Prim prim{};
  DType dtype = DType::f32;
  // A literal number, or computed only from literals: takes the type of the other operand (2 * x has x's type). Weak numbers are
  // i64 or f64; if no other operand decides, a weak f64 becomes f32.
  bool weak = false;
  Shape shape;
  std::vector<NodeId> inputs;
  Attributes attr;

  template <class T>
  const T& as() const {
    return std::get<T>(attr);
  }
};

// The node on one line, for people, its inputs as %id.
std::string node_text(const Node& node);

// Identifies a program: a 128-bit hash of everything that determines its meaning.
struct GraphKey {
  std::uint64_t low = 0, high = 0;
  friend auto operator<=>(const GraphKey&, const GraphKey&) = default;
};

class Graph {
 public:
  // The limit of one program; adding more nodes throws resource_exhausted.
  static constexpr int kMaxNodes = 100'000;

  Graph();
  const Node& operator[](NodeId id) const { return nodes_[static_cast<std::size_t>(id)]; }
  NodeId size() const noexcept { return static_cast<NodeId>(nodes_.size()); }
  std::span<const NodeId> inputs() const noexcept { return inputs_; }
  std::span<const NodeId> outputs() const noexcept { return outputs_; }
  void set_outputs(std::vector<NodeId> outputs);

  // Adds a node unchecked, for passes that rewrite a graph; the caller is responsible for its dtype and shape.
  NodeId append(Node node) { return add(std::move(node)); }

  // --- Leaves ---
  NodeId input(std::string name, DType dtype, const Shape& shape);
  NodeId constant(HostArray value);
  NodeId scalar(double value, DType dtype);  // strong: keeps its dtype
  NodeId literal(double value);              // weak f64
  NodeId literal(std::int64_t value);        // weak i64
  NodeId iota(const Shape& shape, int axis);
  NodeId random(const Shape& shape, DType dtype, bool normal, std::uint64_t seed);

  // --- Elementwise: operands are broadcast and promoted by inserting nodes ---
  NodeId elementwise(ElementwiseOp op, std::span<const NodeId> operands, std::span<const double> params = {});
  NodeId cast(NodeId x, DType to);  // returns x if it already has that dtype and is not weak

  // |x| as it enters a product: rounded to its dtype by a cast, unless it is known to be (an input, a cast, a view of one).
  NodeId rounded(NodeId x);

  // |x| if it is strong; otherwise |x| with the default dtype of a literal (i64, f32).
  NodeId strong(NodeId x);

  // --- Views. Each returns x itself if there is nothing to do ---
  NodeId broadcast(NodeId x, const Shape& to);
  NodeId reshape(NodeId x, const Shape& to);
  NodeId transpose(NodeId x, std::span<const int> perm);
  NodeId slice(NodeId x, std::span<const std::int64_t> start, std::span<const std::int64_t> extent,
               std::span<const std::int64_t> step);

  // --- Structure ---
  NodeId pad(NodeId x, std::span<const std::int64_t> low, std::span<const std::int64_t> high, double value);
  NodeId concat(std::span<const NodeId> parts, int axis);
  NodeId take(NodeId x, NodeId indices, int axis);
  NodeId gather(NodeId x, NodeId indices, int axis);
  NodeId scatter(NodeId x, NodeId indices, NodeId updates, int axis, bool add);
  NodeId reduce(ReduceKind kind, NodeId x, AxisSet axes);  // sum and prod of bool and small integers are i64 (u64)
  NodeId arg_reduce(NodeId x, int axis, bool largest);
  NodeId matmul(NodeId a, NodeId b, MatMulAttr attr = {});  // both of rank >= 2; batch axes are broadcast, dtypes promoted
  NodeId conv(NodeId x, NodeId weight, const ConvAttr& attr);
  NodeId window(NodeId x, const WindowAttr& attr);
  NodeId arg_sort(NodeId x, int axis, bool descending);
  NodeId cumulative(NodeId x, int axis, bool product);

  // --- Regions ---
  // Records a region. It becomes part of the key, because a backend that takes it may round elsewhere. Throws internal unless
  // the inputs exist before the output and their shapes and dtypes fit the attribute.
  void mark(Region region);
  std::span<const Region> regions() const noexcept { return regions_; }

  // Equal for graphs with the same nodes in the same order and the same outputs, different for all others; it ignores names of
  // inputs and covers every byte of a constant. It is updated as nodes are added, so reading it costs nothing. It is keyed with a
  // random number per process, so that nobody can construct a graph with the key of another; it has no meaning elsewhere.
  GraphKey key() const;
  // The same in every process with the same ops, and therefore not protected against constructed collisions; for data in the
  // user's own files. Reads the whole graph, constants included.
  GraphKey fingerprint() const;
  // Readable text, one line per node: shapes, dtypes, attributes, constants (large ones as a hash of their bytes).
  std::string text() const;

 private:
  NodeId add(Node node);
  void check(NodeId id) const;

  std::vector<Node> nodes_;
  std::vector<NodeId> inputs_;
  std::vector<NodeId> outputs_;
  std::vector<Region> regions_;
  std::array<std::uint64_t, 5> hash_;  // of the nodes and regions so far
};

}  // namespace tenon

template <>
struct std::hash<tenon::GraphKey> {
  std::size_t operator()(const tenon::GraphKey& key) const noexcept { return key.low; }
};
