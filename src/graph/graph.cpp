#include "tenon/graph.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/elementwise.h"
#include "graph/encode/graph_key.h"
#include "graph/growth.h"
#include "graph/optimize/region.h"
#include "graph/view.h"
#include "tenon/error.h"

namespace tenon {
namespace {

[[noreturn]] void invalid(const std::string& message, const std::string& hint = {}) {
  throw Error(ErrorCode::invalid_argument, message, hint);
}

// The common dtype of the operands of an elementwise op, before the op's accepted kinds are considered.
DType common_dtype(const Graph& graph, std::span<const NodeId> operands) {
  bool any_strong = false, weak_float = false, weak_integer = false;
  DType common = DType::boolean;
  for (NodeId id : operands) {
    const Node& node = graph[id];
    if (!node.weak) {
      common = any_strong ? promote(common, node.dtype) : node.dtype;
      any_strong = true;
    } else if (is_float(node.dtype)) {
      weak_float = true;
    } else {
      weak_integer = true;
    }
  }
  if (!any_strong) return weak_float ? DType::f64 : DType::i64;
  if (weak_float && !is_float(common)) return DType::f32;
  if (weak_integer && common == DType::boolean) return DType::i64;
  return common;
}

DType body_dtype(ElementwiseOp op, DType common) {
  const ValueKinds kinds = traits(op).kinds;
  if (is_float(common)) {
    if (kinds & kFloats) return common;
    invalid(fmt::format("{} accepts integers, not {}", name(op), name(common)), "cast the inputs, e.g. cast(x, int32)");
  }
  if (common == DType::boolean && (kinds & kBools)) return common;
  if (kinds & kIntegers) return common == DType::boolean ? DType::i32 : common;
  if (kinds & kFloats) return DType::f32;
  invalid(fmt::format("{} accepts bool, not {}", name(op), name(common)), "compare first, e.g. x != 0");
}

// The accumulation dtype of sums and products of |dtype|.
DType accumulation_dtype(DType dtype) {
  if (is_unsigned_integer(dtype)) return DType::u64;
  if (is_signed_integer(dtype) || dtype == DType::boolean) return DType::i64;
  return dtype;
}

std::int64_t window_extent(std::int64_t input, std::int64_t size, std::int64_t stride, std::int64_t dilation, std::int64_t low,
                           std::int64_t high, const char* what) {
  if (size < 1 || stride < 1 || dilation < 1)
    invalid(fmt::format("{}: kernel size, stride and dilation must be at least 1", what));
  if (low < 0 || high < 0) invalid(fmt::format("{}: padding must not be negative", what));
  constexpr std::int64_t kLimit = std::int64_t{1} << 31;
  if (size > kLimit || stride > kLimit || dilation > kLimit || low > kLimit || high > kLimit)
    invalid(fmt::format("{}: kernel size, stride, dilation and padding must stay below 2^31", what));
  const std::int64_t span = (size - 1) * dilation + 1;
  const std::int64_t padded = input + low + high;
  if (padded < span)
    invalid(fmt::format("{}: the window of {} is larger than the input of {} (padding included)", what, span, padded));
  return (padded - span) / stride + 1;
}

}  // namespace

std::string_view name(Prim prim) noexcept {
  constexpr std::string_view names[] = {"input",     "constant", "elementwise", "cast",       "broadcast", "reshape",
                                        "transpose", "slice",    "pad",         "concat",     "take",      "gather",
                                        "scatter",   "iota",     "reduce",      "arg_reduce", "matmul",    "conv",
                                        "window",    "arg_sort", "cumulative",  "random",     "region"};
  return names[static_cast<int>(prim)];
}

std::string_view name(ReduceKind kind) noexcept {
  constexpr std::string_view names[] = {"sum", "prod", "max", "min", "any", "all"};
  return names[static_cast<int>(kind)];
}

NodeId Graph::add(Node node) {
  if (size() >= kMaxNodes)
    throw Error(ErrorCode::resource_exhausted, fmt::format("the program has more than {} nodes", kMaxNodes),
                "split it into several programs");
  if (size() % GraphWatch::kStep == 0 && size() > 0) GraphWatch::grows(size());
  nodes_.push_back(std::move(node));
  SipHash hash(hash_);
  add_node(hash, nodes_.back());
  hash_ = hash.state();
  return size() - 1;
}

void Graph::check(NodeId id) const {
  if (id < 0 || id >= size())
    throw Error(ErrorCode::internal, fmt::format("node {} does not exist; the graph has {} nodes", id, size()));
}

void Graph::set_outputs(std::vector<NodeId> outputs) {
  for (NodeId& id : outputs) {
    check(id);
    id = strong(id);
  }
  outputs_ = std::move(outputs);
}

void Graph::mark(Region region) {
  try {
    check_region(*this, region);
  } catch (const Error& error) {
    throw Error(ErrorCode::internal, error.what());
  }
  regions_.push_back(std::move(region));
}

NodeId Graph::input(std::string name, DType dtype, const Shape& shape) {
  const int index = static_cast<int>(inputs_.size());
  const NodeId id = add({Prim::input, dtype, false, shape, {}, InputAttr{std::move(name), index}});
  inputs_.push_back(id);
  return id;
}

NodeId Graph::constant(HostArray value) {
  const DType dtype = value.dtype();
  const Shape shape = value.shape();
  return add({Prim::constant, dtype, false, shape, {}, ConstantAttr{std::move(value)}});
}

NodeId Graph::scalar(double value, DType dtype) { return constant(HostArray::full(dtype, {}, value)); }

NodeId Graph::literal(double value) {
  return add({Prim::constant, DType::f64, true, {}, {}, ConstantAttr{HostArray::full(DType::f64, {}, value)}});
}

NodeId Graph::literal(std::int64_t value) {
  return add({Prim::constant, DType::i64, true, {}, {}, ConstantAttr{HostArray::from<std::int64_t>({}, {value})}});
}

NodeId Graph::iota(const Shape& shape, int axis) {
  return add({Prim::iota, DType::i64, false, shape, {}, AxisAttr{normalize_axis(axis, shape.rank())}});
}

NodeId Graph::random(const Shape& shape, DType dtype, bool normal, std::uint64_t seed) {
  if (!is_float(dtype)) invalid(fmt::format("random: the dtype must be a float type, not {}", name(dtype)));
  return add({Prim::random, dtype, false, shape, {}, RandomAttr{normal, seed}});
}

NodeId Graph::elementwise(ElementwiseOp op, std::span<const NodeId> operands, std::span<const double> params) {
  const ElementwiseTraits& t = traits(op);
  if (static_cast<int>(operands.size()) != t.inputs || static_cast<int>(params.size()) != t.params)
    throw Error(ErrorCode::internal, fmt::format("{} needs {} inputs and {} parameters, got {} and {}", name(op), t.inputs,
                                                 t.params, operands.size(), params.size()));
  for (NodeId id : operands) check(id);

  const std::span<const NodeId> values = t.condition ? operands.subspan(1) : operands;
  // A condition selects between values but does not make them strong: where(c, 1.0, 0.5) still consists of literals.
  const bool weak = std::all_of(values.begin(), values.end(), [this](NodeId id) { return (*this)[id].weak; });
  DType dtype = body_dtype(op, common_dtype(*this, values));
  // Expressions of numbers only, integers included, are computed in f64: sqrt(2) * x uses the nearest double if x is f64.
  if (weak && dtype == DType::f32) dtype = DType::f64;
  Shape shape = nodes_[static_cast<std::size_t>(operands[0])].shape;
  for (NodeId id : operands) shape = tenon::broadcast(shape, (*this)[id].shape);

  Node node{Prim::elementwise, t.returns_bool ? DType::boolean : dtype, weak && !t.returns_bool, shape, {}, {}};
  for (std::size_t i = 0; i < operands.size(); ++i) {
    NodeId operand = operands[i];
    if (t.condition && i == 0) {
      operand = cast(operand, DType::boolean);
    } else if (const Node& n = (*this)[operand]; n.weak && n.prim == Prim::constant && compute_dtype(dtype) != dtype) {
      // A literal combined with a bf16 tensor keeps f32 precision, like every value computed in f32 until it leaves the graph.
      const HostArray value = n.as<ConstantAttr>().value.cast(compute_dtype(dtype));
      operand = add({Prim::constant, dtype, false, value.shape(), {}, ConstantAttr{value}});
    } else {
      operand = cast(operand, dtype);
    }
    node.inputs.push_back(broadcast(operand, shape));
  }
  ElementwiseAttr attr{op, {}};
  std::copy(params.begin(), params.end(), attr.params.begin());
  node.attr = attr;
  return add(std::move(node));
}

NodeId Graph::cast(NodeId x, DType to) {
  check(x);
  const Node& node = (*this)[x];
  if (node.dtype == to) {
    if (!node.weak) return x;
    if (node.prim != Prim::constant) return add({Prim::cast, to, false, node.shape, {x}, {}});
  }
  // A literal becomes a constant of the requested type: as f64, 0.1 is the nearest double, not a rounded f32.
  if (node.prim == Prim::constant && node.weak) return constant(node.as<ConstantAttr>().value.cast(to));
  return add({Prim::cast, to, false, node.shape, {x}, {}});
}

NodeId Graph::rounded(NodeId x) {
  check(x);
  const DType dtype = (*this)[x].dtype;
  if (compute_dtype(dtype) == dtype) return x;
  NodeId base = x;
  while (is_view((*this)[base].prim) || (*this)[base].prim == Prim::take) base = (*this)[base].inputs[0];
  const Node& source = (*this)[base];
  const bool is_rounded = source.prim == Prim::input || source.prim == Prim::cast ||
                          (source.prim == Prim::constant && source.as<ConstantAttr>().value.dtype() == dtype);
  if (is_rounded) return x;
  const Shape shape = (*this)[x].shape;
  return add({Prim::cast, dtype, false, shape, {x}, {}});
}

NodeId Graph::strong(NodeId x) {
  check(x);
  const Node& node = (*this)[x];
  if (!node.weak) return x;
  return cast(x, node.dtype == DType::f64 ? DType::f32 : node.dtype);
}

NodeId Graph::broadcast(NodeId x, const Shape& to) {
  check(x);
  const Node& node = (*this)[x];
  if (node.shape == to) return x;
  if (!broadcastable(node.shape, to))
    invalid(fmt::format("cannot broadcast shape {} to {}", to_string(node.shape), to_string(to)),
            "extents must be equal or 1, compared from the last axis");
  const bool weak = node.weak;
  const DType dtype = node.dtype;
  return add({Prim::broadcast, dtype, weak, to, {x}, {}});
}

NodeId Graph::reshape(NodeId x, const Shape& to) {
  x = strong(x);
  const Node& node = (*this)[x];
  if (node.shape == to) return x;
  if (node.shape.elements() != to.elements())
    invalid(fmt::format("cannot reshape {} ({} elements) to {} ({} elements)", to_string(node.shape), node.shape.elements(),
                        to_string(to), to.elements()));
  const DType dtype = node.dtype;
  return add({Prim::reshape, dtype, false, to, {x}, {}});
}

NodeId Graph::transpose(NodeId x, std::span<const int> perm) {
  x = strong(x);
  const Node& node = (*this)[x];
  const int rank = node.shape.rank();
  if (static_cast<int>(perm.size()) != rank)
    invalid(fmt::format("a permutation of {} axes does not match shape {}", perm.size(), to_string(node.shape)));
  TransposeAttr attr;
  std::vector<std::int64_t> dims;
  AxisSet seen = 0;
  bool identity = true;
  for (int i = 0; i < rank; ++i) {
    const int axis = normalize_axis(perm[static_cast<std::size_t>(i)], rank);
    if (seen & (1u << axis)) invalid(fmt::format("axis {} appears twice in the permutation", axis));
    seen = static_cast<AxisSet>(seen | (1u << axis));
    attr.perm[static_cast<std::size_t>(i)] = static_cast<std::int8_t>(axis);
    dims.push_back(node.shape[axis]);
    identity = identity && axis == i;
  }
  if (identity) return x;
  const DType dtype = node.dtype;
  return add({Prim::transpose, dtype, false, Shape(dims), {x}, attr});
}

NodeId Graph::slice(NodeId x, std::span<const std::int64_t> start, std::span<const std::int64_t> extent,
                    std::span<const std::int64_t> step) {
  x = strong(x);
  const Node& node = (*this)[x];
  const std::size_t rank = static_cast<std::size_t>(node.shape.rank());
  if (start.size() != rank || extent.size() != rank || step.size() != rank)
    throw Error(ErrorCode::internal,
                fmt::format("slice of a tensor of rank {} needs one start per axis, got {}", rank, start.size()));
  SliceAttr attr;
  bool identity = true;
  for (std::size_t i = 0; i < rank; ++i) {
    const std::int64_t size = node.shape[static_cast<int>(i)];
    if (step[i] == 0) invalid("the step of a slice must not be 0");
    if (extent[i] < 0 || extent[i] > size)
      throw Error(ErrorCode::out_of_range,
                  fmt::format("slice: {} elements on axis {} of {} is not a valid count", extent[i], i, to_string(node.shape)));
    if (extent[i] > 0) {
      const bool fits = start[i] >= 0 && start[i] < size &&
                        (extent[i] == 1 || (step[i] > 0 ? step[i] <= (size - 1 - start[i]) / (extent[i] - 1)
                                                        : -step[i] <= start[i] / (extent[i] - 1)));
      if (!fits)
        throw Error(ErrorCode::out_of_range, fmt::format("slice from {} with step {} and {} elements exceeds axis {} of {}",
                                                         start[i], step[i], extent[i], i, to_string(node.shape)));
    }
    attr.start[i] = extent[i] > 0 ? start[i] : 0;
    attr.step[i] = extent[i] > 1 ? step[i] : 1;
    identity = identity && extent[i] == size && attr.start[i] == 0 && attr.step[i] == 1;
  }
  if (identity) return x;
  const DType dtype = node.dtype;
  return add({Prim::slice, dtype, false, Shape(extent), {x}, attr});
}

NodeId Graph::pad(NodeId x, std::span<const std::int64_t> low, std::span<const std::int64_t> high, double value) {
  x = strong(x);
  const Node& node = (*this)[x];
  const std::size_t rank = static_cast<std::size_t>(node.shape.rank());
  if (low.size() != rank || high.size() != rank)
    invalid(fmt::format("pad of a tensor of shape {} needs {} amounts before and after", to_string(node.shape), rank));
  PadAttr attr;
  attr.value = value;
  std::vector<std::int64_t> dims;
  bool identity = true;
  for (std::size_t i = 0; i < rank; ++i) {
    if (low[i] < 0 || high[i] < 0) invalid("padding must not be negative", "use a slice to remove elements");
    if (low[i] > kMaxElements || high[i] > kMaxElements)
      throw Error(ErrorCode::resource_exhausted, fmt::format("padding of {} + {} elements is too large", low[i], high[i]));
    attr.low[i] = low[i];
    dims.push_back(node.shape[static_cast<int>(i)] + low[i] + high[i]);
    identity = identity && low[i] == 0 && high[i] == 0;
  }
  if (identity) return x;
  const DType dtype = node.dtype;
  return add({Prim::pad, dtype, false, Shape(dims), {x}, attr});
}

NodeId Graph::concat(std::span<const NodeId> parts, int axis) {
  if (parts.empty()) invalid("concat needs at least one tensor");
  const DType dtype = [&] {
    const DType common = common_dtype(*this, parts);
    return std::all_of(parts.begin(), parts.end(), [&](NodeId p) { return (*this)[p].weak; }) && common == DType::f64 ? DType::f32
                                                                                                                      : common;
  }();
  const Shape first = (*this)[parts[0]].shape;
  axis = normalize_axis(axis, first.rank());
  std::int64_t extent = 0;
  Node node{Prim::concat, dtype, false, {}, {}, AxisAttr{axis}};
  for (NodeId part : parts) {
    check(part);
    const Shape shape = (*this)[part].shape;
    if (shape.rank() != first.rank() || !(shape.with(axis, 1) == first.with(axis, 1)))
      invalid(fmt::format("cannot concatenate {} and {} along axis {}", to_string(first), to_string(shape), axis),
              "all other extents must be equal");
    extent += shape[axis];
    node.inputs.push_back(cast(part, dtype));
  }
  if (parts.size() == 1) return node.inputs[0];
  node.shape = first.with(axis, extent);
  return add(std::move(node));
}

NodeId Graph::take(NodeId x, NodeId indices, int axis) {
  x = strong(x);
  indices = strong(indices);
  const Shape shape = (*this)[x].shape;
  if (!is_integer((*this)[indices].dtype))
    invalid(fmt::format("take: indices must be integers, not {}", name((*this)[indices].dtype)));
  axis = normalize_axis(axis, shape.rank());
  if (shape[axis] == 0 && (*this)[indices].shape.elements() > 0) invalid("take: the axis is empty");
  indices = cast(indices, DType::i64);
  std::vector<std::int64_t> dims(shape.begin(), shape.begin() + axis);
  dims.insert(dims.end(), (*this)[indices].shape.begin(), (*this)[indices].shape.end());
  dims.insert(dims.end(), shape.begin() + axis + 1, shape.end());
  return add({Prim::take, (*this)[x].dtype, false, Shape(dims), {x, indices}, AxisAttr{axis}});
}

NodeId Graph::gather(NodeId x, NodeId indices, int axis) {
  x = strong(x);
  indices = strong(indices);
  const Shape shape = (*this)[x].shape, index_shape = (*this)[indices].shape;
  if (!is_integer((*this)[indices].dtype))
    invalid(fmt::format("gather: indices must be integers, not {}", name((*this)[indices].dtype)));
  if (shape.rank() != index_shape.rank())
    invalid(fmt::format("gather: {} and indices {} must have the same rank", to_string(shape), to_string(index_shape)));
  axis = normalize_axis(axis, shape.rank());
  for (int i = 0; i < shape.rank(); ++i)
    if (i != axis && index_shape[i] > shape[i])
      invalid(fmt::format("gather: indices {} exceed {} on axis {}", to_string(index_shape), to_string(shape), i));
  if (shape[axis] == 0 && index_shape.elements() > 0) invalid("gather: the axis is empty");
  indices = cast(indices, DType::i64);
  return add({Prim::gather, (*this)[x].dtype, false, index_shape, {x, indices}, AxisAttr{axis}});
}

NodeId Graph::scatter(NodeId x, NodeId indices, NodeId updates, int axis, bool accumulate) {
  x = strong(x);
  indices = strong(indices);
  const Shape shape = (*this)[x].shape, index_shape = (*this)[indices].shape;
  if (!is_integer((*this)[indices].dtype))
    invalid(fmt::format("scatter: indices must be integers, not {}", name((*this)[indices].dtype)));
  if (shape.rank() != index_shape.rank())
    invalid(fmt::format("scatter: {} and indices {} must have the same rank", to_string(shape), to_string(index_shape)));
  axis = normalize_axis(axis, shape.rank());
  for (int i = 0; i < shape.rank(); ++i)
    if (i != axis && index_shape[i] > shape[i])
      invalid(fmt::format("scatter: indices {} exceed {} on axis {}", to_string(index_shape), to_string(shape), i));
  if (shape[axis] == 0 && index_shape.elements() > 0) invalid("scatter: the axis is empty");
  indices = cast(indices, DType::i64);
  updates = broadcast(cast(updates, (*this)[x].dtype), index_shape);
  return add({Prim::scatter, (*this)[x].dtype, false, shape, {x, indices, updates}, ScatterAttr{axis, accumulate}});
}

NodeId Graph::reduce(ReduceKind kind, NodeId x, AxisSet axes) {
  x = strong(x);
  if (kind == ReduceKind::any || kind == ReduceKind::all) x = cast(x, DType::boolean);
  if (kind == ReduceKind::sum || kind == ReduceKind::prod) x = cast(x, accumulation_dtype((*this)[x].dtype));
  const Node& node = (*this)[x];
  Shape shape = node.shape;
  if (axes >> shape.rank()) throw Error(ErrorCode::internal, "reduction: an axis is out of range");
  std::int64_t reduced = 1;
  for (int i = 0; i < shape.rank(); ++i)
    if (axes & (1u << i)) {
      reduced *= shape[i];
      shape = shape.with(i, 1);
    }
  if (reduced == 0 && shape.elements() > 0 && (kind == ReduceKind::max || kind == ReduceKind::min))
    invalid(fmt::format("{} of no elements: shape {} is empty along the reduced axes", name(kind), to_string(node.shape)));
  if (axes == 0) return x;
  const DType dtype = node.dtype;
  return add({Prim::reduce, dtype, false, shape, {x}, ReduceAttr{kind, axes}});
}

NodeId Graph::arg_reduce(NodeId x, int axis, bool largest) {
  x = strong(x);
  const Shape shape = (*this)[x].shape;
  axis = normalize_axis(axis, shape.rank());
  if (shape[axis] == 0)
    invalid(fmt::format("argmax and argmin need at least one element: shape {} is empty along axis {}", to_string(shape), axis));
  return add({Prim::arg_reduce, DType::i64, false, shape.with(axis, 1), {x}, ArgReduceAttr{axis, largest}});
}

NodeId Graph::matmul(NodeId a, NodeId b, MatMulAttr attr) {
  a = strong(a);
  b = strong(b);
  const Shape sa = (*this)[a].shape, sb = (*this)[b].shape;
  if (sa.rank() < 2 || sb.rank() < 2)
    invalid(fmt::format("matrix product of {} and {}: both inputs need at least two axes", to_string(sa), to_string(sb)));
  DType dtype = promote((*this)[a].dtype, (*this)[b].dtype);
  if (dtype == DType::boolean) dtype = DType::i64;
  const int ra = sa.rank(), rb = sb.rank();
  const std::int64_t m = sa[attr.transpose_a ? ra - 1 : ra - 2], ka = sa[attr.transpose_a ? ra - 2 : ra - 1];
  const std::int64_t kb = sb[attr.transpose_b ? rb - 1 : rb - 2], n = sb[attr.transpose_b ? rb - 2 : rb - 1];
  if (ka != kb)
    invalid(
        fmt::format("matrix product of {} and {}: the inner dimensions {} and {} differ", to_string(sa), to_string(sb), ka, kb));

  const Shape batch = tenon::broadcast(Shape(sa.dims().first(static_cast<std::size_t>(ra - 2))),
                                       Shape(sb.dims().first(static_cast<std::size_t>(rb - 2))));
  const auto full = [&](std::int64_t rows, std::int64_t cols) {
    std::vector<std::int64_t> dims(batch.begin(), batch.end());
    dims.push_back(rows);
    dims.push_back(cols);
    return Shape(dims);
  };
  a = broadcast(rounded(cast(a, dtype)), full(sa[ra - 2], sa[ra - 1]));
  b = broadcast(rounded(cast(b, dtype)), full(sb[rb - 2], sb[rb - 1]));
  return add({Prim::matmul, dtype, false, full(m, n), {a, b}, attr});
}

NodeId Graph::conv(NodeId x, NodeId weight, const ConvAttr& attr) {
  x = strong(x);
  weight = strong(weight);
  const Shape sx = (*this)[x].shape, sw = (*this)[weight].shape;
  const int spatial = sx.rank() - 2;
  if (spatial < 1 || spatial > 3 || sw.rank() != sx.rank())
    invalid(fmt::format("convolution of {} with kernel {}: expected [n, c, spatial...] and [out, c / groups, kernel...]",
                        to_string(sx), to_string(sw)));
  if (attr.groups < 1 || sx[1] % attr.groups != 0 || sw[0] % attr.groups != 0)
    invalid(fmt::format("convolution: {} groups must divide {} input and {} output channels", attr.groups, sx[1], sw[0]));
  if (sx[1] / attr.groups != sw[1])
    invalid(fmt::format("convolution: {} input channels in {} groups need a kernel of {} channels, got {}", sx[1], attr.groups,
                        sx[1] / attr.groups, sw[1]));
  DType dtype = promote((*this)[x].dtype, (*this)[weight].dtype);
  if (!is_float(dtype)) dtype = DType::f32;
  std::vector<std::int64_t> dims{sx[0], sw[0]};
  for (int i = 0; i < spatial; ++i) {
    const std::size_t s = static_cast<std::size_t>(i);
    dims.push_back(
        window_extent(sx[i + 2], sw[i + 2], attr.stride[s], attr.dilation[s], attr.pad_low[s], attr.pad_high[s], "convolution"));
  }
  x = rounded(cast(x, dtype));
  weight = rounded(cast(weight, dtype));
  return add({Prim::conv, dtype, false, Shape(dims), {x, weight}, attr});
}

NodeId Graph::window(NodeId x, const WindowAttr& attr) {
  x = strong(x);
  if (!attr.max) x = cast(x, accumulation_dtype((*this)[x].dtype));
  const Shape shape = (*this)[x].shape;
  const int spatial = shape.rank() - 2;
  if (spatial < 1 || spatial > 3) invalid(fmt::format("pooling of {}: expected [n, c, spatial...]", to_string(shape)));
  std::vector<std::int64_t> dims{shape[0], shape[1]};
  for (int i = 0; i < spatial; ++i) {
    const std::size_t s = static_cast<std::size_t>(i);
    dims.push_back(window_extent(shape[i + 2], attr.size[s], attr.stride[s], attr.dilation[s], attr.pad_low[s], attr.pad_high[s],
                                 "pooling"));
    // Otherwise a window could consist only of padding, where a maximum is undefined.
    if (attr.pad_low[s] >= (attr.size[s] - 1) * attr.dilation[s] + 1 ||
        attr.pad_high[s] >= (attr.size[s] - 1) * attr.dilation[s] + 1)
      invalid(fmt::format("pooling: padding of {} and {} must be smaller than the window of {}", attr.pad_low[s],
                          attr.pad_high[s], attr.size[s]));
  }
  return add({Prim::window, (*this)[x].dtype, false, Shape(dims), {x}, attr});
}

NodeId Graph::arg_sort(NodeId x, int axis, bool descending) {
  x = strong(x);
  const Shape shape = (*this)[x].shape;
  axis = normalize_axis(axis, shape.rank());
  return add({Prim::arg_sort, DType::i64, false, shape, {x}, ArgSortAttr{axis, descending}});
}

NodeId Graph::cumulative(NodeId x, int axis, bool product) {
  x = strong(x);
  x = cast(x, accumulation_dtype((*this)[x].dtype));
  const Shape shape = (*this)[x].shape;
  axis = normalize_axis(axis, shape.rank());
  return add({Prim::cumulative, (*this)[x].dtype, false, shape, {x}, CumulativeAttr{axis, product}});
}

}  // namespace tenon
