#include "graph/check_node.h"

#include <fmt/format.h>

#include "graph/elementwise.h"
#include "tenon/error.h"

namespace tenon {
namespace {

class Checker {
 public:
  Checker(const Graph& graph, const Node& node) : graph_(graph), node_(node) {}

  void run() const {
    for (const NodeId id : node_.inputs) require(id >= 0 && id < graph_.size(), "an input that does not exist");
    switch (node_.prim) {
      case Prim::input: return leaf();
      case Prim::constant: return constant();
      case Prim::elementwise: return elementwise();
      case Prim::cast: inputs(1); return require(in(0).shape == node_.shape, "a shape that differs from its input's");
      case Prim::broadcast: return broadcast_view();
      case Prim::reshape:
        moves(1);
        return require(in(0).shape.elements() == node_.shape.elements(), "a different number of elements");
      case Prim::transpose: return transpose();
      case Prim::slice: return slice();
      case Prim::pad: return pad();
      case Prim::concat: return concat();
      case Prim::take: return take();
      case Prim::gather: return gather();
      case Prim::scatter: return scatter();
      case Prim::iota:
        leaf();
        require(node_.dtype == DType::i64, "a dtype other than int64");
        return has_axis(node_.shape, node_.as<AxisAttr>().axis);
      case Prim::reduce: return reduce();
      case Prim::arg_reduce: {
        const ArgReduceAttr& attr = node_.as<ArgReduceAttr>();
        index_result(attr.axis);
        require(in(0).shape[attr.axis] > 0, "an empty axis");
        return require(node_.shape == in(0).shape.with(attr.axis, 1), "a shape that does not match its inputs");
      }
      case Prim::arg_sort: {
        index_result(node_.as<ArgSortAttr>().axis);
        return require(node_.shape == in(0).shape, "a shape that differs from its input's");
      }
      case Prim::cumulative:
        moves(1);
        has_axis(in(0).shape, node_.as<CumulativeAttr>().axis);
        return require(node_.shape == in(0).shape && accumulates(), "a type that does not match its input");
      case Prim::matmul: return matmul();
      case Prim::conv: return conv();
      case Prim::window: return window();
      case Prim::random: leaf(); return require(is_float(node_.dtype), "a dtype that is not a float type");
      case Prim::region: break;
    }
    require(false, "a primitive that does not exist");
  }

 private:
  const Node& in(std::size_t i) const { return graph_[node_.inputs[i]]; }
  void require(bool condition, const char* what) const {
    if (!condition) throw Error(ErrorCode::invalid_argument, fmt::format("{} with {}", name(node_.prim), what));
  }
  void inputs(std::size_t count) const { require(node_.inputs.size() == count, "the wrong number of inputs"); }
  void leaf() const { inputs(0); }
  // The inputs must have the node's dtype.
  void moves(std::size_t count) const {
    inputs(count);
    for (std::size_t i = 0; i < count; ++i) require(in(i).dtype == node_.dtype, "inputs of the wrong dtype");
  }
  void has_axis(const Shape& shape, int axis) const { require(axis >= 0 && axis < shape.rank(), "an axis that does not exist"); }
  void index_result(int axis) const {
    inputs(1);
    require(node_.dtype == DType::i64, "a dtype other than int64");
    has_axis(in(0).shape, axis);
  }
  bool accumulates() const { return is_float(node_.dtype) || node_.dtype == DType::i64 || node_.dtype == DType::u64; }

  void constant() const {
    leaf();
    const HostArray& value = node_.as<ConstantAttr>().value;
    require(value.shape() == node_.shape, "a value of the wrong shape");
    require(value.dtype() == node_.dtype || value.dtype() == compute_dtype(node_.dtype), "a value of the wrong dtype");
  }

  void elementwise() const {
    const ElementwiseAttr& attr = node_.as<ElementwiseAttr>();
    require(static_cast<int>(attr.op) < kElementwiseCount, "an op that does not exist");
    const ElementwiseTraits& about = traits(attr.op);
    inputs(static_cast<std::size_t>(about.inputs));
    const std::size_t first = about.condition ? 1 : 0;
    const DType dtype = in(first).dtype;
    if (about.condition) require(in(0).dtype == DType::boolean, "a condition that is not bool");
    for (std::size_t i = 0; i < node_.inputs.size(); ++i) {
      require(in(i).shape == node_.shape, "an input of the wrong shape");
      require(i < first || in(i).dtype == dtype, "inputs of different dtypes");
    }
    const ValueKinds kind = is_float(dtype) ? kFloats : dtype == DType::boolean ? kBools : kIntegers;
    require((about.kinds & kind) != 0, "a dtype that the op does not accept");
    require(node_.dtype == (about.returns_bool ? DType::boolean : dtype), "a dtype that does not match its inputs");
  }

  void broadcast_view() const {
    moves(1);
    require(broadcastable(in(0).shape, node_.shape), "a shape that its input does not broadcast to");
  }

  void transpose() const {
    moves(1);
    const TransposeAttr& attr = node_.as<TransposeAttr>();
    require(in(0).shape.rank() == node_.shape.rank(), "the wrong rank");
    unsigned seen = 0;
    for (int i = 0; i < node_.shape.rank(); ++i) {
      const int axis = attr.perm[static_cast<std::size_t>(i)];
      has_axis(node_.shape, axis);
      seen |= 1u << axis;
      require(node_.shape[i] == in(0).shape[axis], "a shape that does not match its inputs");
    }
    require(seen == (1u << node_.shape.rank()) - 1, "an axis twice");
  }

  void slice() const {
    moves(1);
    const SliceAttr& attr = node_.as<SliceAttr>();
    require(in(0).shape.rank() == node_.shape.rank(), "the wrong rank");
    for (int i = 0; i < node_.shape.rank(); ++i) {
      const std::int64_t start = attr.start[static_cast<std::size_t>(i)], step = attr.step[static_cast<std::size_t>(i)];
      const std::int64_t extent = node_.shape[i], size = in(0).shape[i];
      require(step != 0 && step >= -kMaxElements && step <= kMaxElements, "an invalid step");
      require(extent <= size, "more elements than its input has");
      if (extent == 0) {
        require(start == 0, "a nonzero start for an empty slice");
        continue;
      }
      require(start >= 0 && start < size, "a start that is out of range");
      const std::int64_t room = step > 0 ? (size - 1 - start) / step : start / -step;
      require(extent - 1 <= room, "an end that is out of range");
    }
  }

  void pad() const {
    moves(1);
    const PadAttr& attr = node_.as<PadAttr>();
    require(in(0).shape.rank() == node_.shape.rank(), "the wrong rank");
    for (int i = 0; i < node_.shape.rank(); ++i) {
      const std::int64_t low = attr.low[static_cast<std::size_t>(i)];
      require(low >= 0 && low <= kMaxElements && low + in(0).shape[i] <= node_.shape[i], "an invalid border");
    }
  }

  void concat() const {
    require(!node_.inputs.empty(), "no inputs");
    moves(node_.inputs.size());
    const int axis = node_.as<AxisAttr>().axis;
    has_axis(node_.shape, axis);
    std::int64_t extent = 0;
    for (std::size_t i = 0; i < node_.inputs.size(); ++i) {
      require(in(i).shape.rank() == node_.shape.rank() && in(i).shape.with(axis, 1) == node_.shape.with(axis, 1),
              "an input of the wrong shape");
      extent += in(i).shape[axis];
      require(extent <= node_.shape[axis], "a shape that does not match its inputs");
    }
    require(extent == node_.shape[axis], "a shape that does not match its inputs");
  }

  void take() const {
    inputs(2);
    const int axis = node_.as<AxisAttr>().axis;
    const Shape &x = in(0).shape, &indices = in(1).shape;
    require(in(0).dtype == node_.dtype && in(1).dtype == DType::i64, "inputs of the wrong dtype");
    has_axis(x, axis);
    require(x.rank() - 1 + indices.rank() == node_.shape.rank(), "the wrong rank");
    for (int i = 0; i < node_.shape.rank(); ++i) {
      const std::int64_t wanted = i < axis ? x[i] : i < axis + indices.rank() ? indices[i - axis] : x[i - indices.rank() + 1];
      require(node_.shape[i] == wanted, "a shape that does not match its inputs");
    }
    require(x[axis] > 0 || indices.elements() == 0, "an empty axis");
  }

  void indexed(int axis) const {
    const Shape &x = in(0).shape, &indices = in(1).shape;
    require(in(0).dtype == node_.dtype && in(1).dtype == DType::i64, "inputs of the wrong dtype");
    require(x.rank() == indices.rank(), "indices of the wrong rank");
    has_axis(x, axis);
    for (int i = 0; i < x.rank(); ++i) require(i == axis || indices[i] <= x[i], "indices that are too large");
    require(x[axis] > 0 || indices.elements() == 0, "an empty axis");
  }
  void gather() const {
    inputs(2);
    indexed(node_.as<AxisAttr>().axis);
    require(node_.shape == in(1).shape, "a shape that does not match its inputs");
  }
  void scatter() const {
    inputs(3);
    indexed(node_.as<ScatterAttr>().axis);
    require(in(2).dtype == node_.dtype && in(2).shape == in(1).shape, "updates of the wrong type");
    require(node_.shape == in(0).shape, "a shape that does not match its inputs");
  }

  void reduce() const {
    moves(1);
    const ReduceAttr& attr = node_.as<ReduceAttr>();
    require(attr.kind <= ReduceKind::all, "a kind that does not exist");
    require((attr.axes >> in(0).shape.rank()) == 0, "an axis that does not exist");
    Shape shape = in(0).shape;
    for (int i = 0; i < in(0).shape.rank(); ++i)
      if (attr.axes & (1u << i)) shape = shape.with(i, 1);
    require(shape == node_.shape, "a shape that does not match its inputs");
    if (attr.kind == ReduceKind::sum || attr.kind == ReduceKind::prod) require(accumulates(), "a dtype that it does not produce");
    if (attr.kind == ReduceKind::any || attr.kind == ReduceKind::all)
      require(node_.dtype == DType::boolean, "a dtype other than bool");
    if (attr.kind == ReduceKind::max || attr.kind == ReduceKind::min)
      require(in(0).shape.elements() > 0 || shape.elements() == 0, "no elements to reduce");
  }

  void matmul() const {
    moves(2);
    require(node_.dtype != DType::boolean, "a dtype that it does not produce");
    const MatMulAttr& attr = node_.as<MatMulAttr>();
    const Shape &a = in(0).shape, &b = in(1).shape;
    const int rank = node_.shape.rank();
    require(rank >= 2 && a.rank() == rank && b.rank() == rank, "the wrong rank");
    for (int i = 0; i < rank - 2; ++i) require(a[i] == node_.shape[i] && b[i] == node_.shape[i], "batches that do not match");
    const auto rows = [rank](const Shape& s, bool transposed) { return s[transposed ? rank - 1 : rank - 2]; };
    const auto cols = [rank](const Shape& s, bool transposed) { return s[transposed ? rank - 2 : rank - 1]; };
    require(rows(a, attr.transpose_a) == node_.shape[rank - 2] && cols(b, attr.transpose_b) == node_.shape[rank - 1] &&
                cols(a, attr.transpose_a) == rows(b, attr.transpose_b),
            "extents that do not match");
  }

  // The number of window positions along one axis.
  void places(std::int64_t input, std::int64_t size, std::int64_t stride, std::int64_t dilation, std::int64_t low,
              std::int64_t high, std::int64_t wanted) const {
    constexpr std::int64_t kLimit = std::int64_t{1} << 31;
    require(size >= 1 && stride >= 1 && dilation >= 1 && low >= 0 && high >= 0 && size <= kLimit && stride <= kLimit &&
                dilation <= kLimit && low <= kLimit && high <= kLimit,
            "an invalid window");
    const std::int64_t span = (size - 1) * dilation + 1, padded = input + low + high;
    require(padded >= span && (padded - span) / stride + 1 == wanted, "a window that does not fit");
  }

  void conv() const {
    moves(2);
    const ConvAttr& attr = node_.as<ConvAttr>();
    const Shape &x = in(0).shape, &w = in(1).shape;
    const int rank = node_.shape.rank();
    require(is_float(node_.dtype), "a dtype that is not a float type");
    require(rank >= 3 && rank <= 5 && x.rank() == rank && w.rank() == rank, "the wrong rank");
    require(attr.groups >= 1 && x[1] % attr.groups == 0 && w[0] % attr.groups == 0 && x[1] / attr.groups == w[1],
            "groups that do not match");
    require(node_.shape[0] == x[0] && node_.shape[1] == w[0], "a shape that does not match its inputs");
    for (int i = 2; i < rank; ++i) {
      const std::size_t s = static_cast<std::size_t>(i - 2);
      places(x[i], w[i], attr.stride[s], attr.dilation[s], attr.pad_low[s], attr.pad_high[s], node_.shape[i]);
    }
  }

  void window() const {
    moves(1);
    const WindowAttr& attr = node_.as<WindowAttr>();
    const Shape& x = in(0).shape;
    const int rank = node_.shape.rank();
    require(rank >= 3 && rank <= 5 && x.rank() == rank, "the wrong rank");
    require(attr.max || accumulates(), "a dtype that it does not produce");
    require(node_.shape[0] == x[0] && node_.shape[1] == x[1], "a shape that does not match its inputs");
    for (int i = 2; i < rank; ++i) {
      const std::size_t s = static_cast<std::size_t>(i - 2);
      places(x[i], attr.size[s], attr.stride[s], attr.dilation[s], attr.pad_low[s], attr.pad_high[s], node_.shape[i]);
      const std::int64_t span = (attr.size[s] - 1) * attr.dilation[s] + 1;
      require(attr.pad_low[s] < span && attr.pad_high[s] < span, "a window outside its input");
    }
  }

  const Graph& graph_;
  const Node& node_;
};

}  // namespace

void check_node(const Graph& graph, const Node& node) { Checker(graph, node).run(); }

}  // namespace tenon
