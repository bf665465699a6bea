// x[0, 1:5, ..., None, indices]: views by slice and reshape, tensors of integers by take, masks by the indices of what is true.
#include "tenon/tensor/indexing.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "tenon/error.h"
#include "tenon/tensor/functions.h"
#include "tensor/node.h"

namespace tenon {
namespace {

bool is_mask(const Index& index) {
  const auto* tensor = std::get_if<Tensor>(&index.value());
  return tensor != nullptr && node_of(*tensor)->graph_dtype == DType::boolean;
}

// The axes of x that an index stands for.
int axes_of(const Index& index) {
  if (std::holds_alternative<NewAxis>(index.value()) || std::holds_alternative<Ellipsis>(index.value())) return 0;
  return is_mask(index) ? std::get<Tensor>(index.value()).rank() : 1;
}

// What a list of indices comes to: one slice of every axis, the shape it is seen in, and the tensors that select from it.
class View {
 public:
  View(const Shape& shape, std::span<const Index> indices) : shape_(shape) {
    int named = 0, dots = 0;
    for (const Index& index : indices) {
      dots += std::holds_alternative<Ellipsis>(index.value()) ? 1 : 0;
      named += axes_of(index);
      selects_ = selects_ || std::holds_alternative<Tensor>(index.value());
    }
    if (dots > 1) throw Error(ErrorCode::invalid_argument, "[ ]: ellipsis may appear only once");
    if (named > shape.rank())
      throw Error(ErrorCode::out_of_range,
                  fmt::format("[ ]: {} indices, but a tensor of shape {} has {} axes", named, to_string(shape), shape.rank()));
    missing_ = shape.rank() - named;
    for (const Index& index : indices) std::visit([this](const auto& value) { add(value); }, index.value());
    while (axis() < shape.rank()) keep();
  }

  Tensor of(const Tensor& x) const {
    const auto build = [start = start_, extent = extent_, step = step_, kept = kept_](Graph& graph,
                                                                                      std::span<const NodeId> inputs) {
      return std::vector<NodeId>{graph.reshape(graph.slice(inputs[0], start, extent, step), Shape(kept))};
    };
    const Tensor result = make_results("[ ]", {.inputs = {node_of(x)}, .custom = build})[0];
    if (selectors_.empty()) return result;
    if (selectors_.size() == 1) return with_one(result, selectors_[0]);
    return with_several(result);
  }

 private:
  // A tensor of integers and the axis of the view that it selects from.
  struct Selector {
    Tensor indices;
    std::int64_t axis = 0;
  };

  int axis() const { return static_cast<int>(start_.size()); }
  std::int64_t viewed_axes() const { return static_cast<std::int64_t>(kept_.size()); }

  // Where the axes of the selecting tensors go among the others.
  std::int64_t destination() const { return is_apart_ ? 0 : first_; }

  // Moves |count| axes from |from| to |to|.
  static Tensor moved(const Tensor& x, std::int64_t from, std::int64_t count, std::int64_t to) {
    if (from == to || count == 0) return x;
    std::vector<std::int64_t> block(static_cast<std::size_t>(count)), order;
    std::iota(block.begin(), block.end(), from);
    for (std::int64_t i = 0; i < x.rank(); ++i)
      if (i < from || i >= from + count) order.push_back(i);
    order.insert(order.begin() + to, block.begin(), block.end());
    return permute(x, order);
  }

  Tensor with_one(const Tensor& x, const Selector& selector) const {
    return moved(take(x, selector.indices, selector.axis), selector.axis, selector.indices.rank(), destination());
  }

  // All selected axes become one, and the tensors one tensor of places along it.
  Tensor with_several(const Tensor& x) const {
    std::vector<std::int64_t> order, flat_shape{1};
    std::vector<bool> is_selected(static_cast<std::size_t>(x.rank()));
    Shape shape;
    for (const Selector& selector : selectors_) {
      order.push_back(selector.axis);
      is_selected[static_cast<std::size_t>(selector.axis)] = true;
      flat_shape[0] *= x.shape()[static_cast<int>(selector.axis)];
      shape = broadcast(shape, selector.indices.shape());
    }
    for (int i = 0; i < x.rank(); ++i) {
      if (is_selected[static_cast<std::size_t>(i)]) continue;
      order.push_back(i);
      flat_shape.push_back(x.shape()[i]);
    }
    const Tensor flat = reshape(permute(x, order), flat_shape);
    return moved(take(flat, expand(places(x.shape(), flat_shape[0]), shape), 0), 0, shape.rank(), destination());
  }

  // An index outside its axis gives a place outside the flattened axis, which take() refuses.
  Tensor places(const Shape& shape, std::int64_t all) const {
    Tensor place = std::int64_t{0}, is_outside = false;
    std::int64_t stride = all;
    for (const Selector& selector : selectors_) {
      const std::int64_t size = shape[static_cast<int>(selector.axis)];
      stride = size == 0 ? 0 : stride / size;
      const Tensor given = cast(selector.indices, DType::i64);
      const Tensor counted = where(given < 0, given + size, given);
      is_outside = is_outside | (counted < 0) | (counted >= size);
      place = place + counted * stride;
    }
    return where(is_outside, all, place);
  }

  void take_range(std::int64_t start, std::int64_t extent, std::int64_t step) {
    start_.push_back(start);
    extent_.push_back(extent);
    step_.push_back(step);
  }

  void keep() {
    const std::int64_t size = shape_[axis()];
    take_range(0, size, 1);
    kept_.push_back(size);
  }

  // Numbers count as tensors without axes where there are other tensors.
  void note_selection() {
    if (!selects_) return;
    if (state_ == Order::none) first_ = viewed_axes() - static_cast<std::int64_t>(selectors_.size());
    if (state_ == Order::left) is_apart_ = true;
    state_ = Order::within;
  }
  void note_other() {
    if (state_ == Order::within) state_ = Order::left;
  }

  void add(std::int64_t place) {
    const std::int64_t size = shape_[axis()];
    if (place < -size || place >= size)
      throw Error(ErrorCode::out_of_range,
                  fmt::format("[ ]: index {} is out of range for axis {} of shape {}", place, axis(), to_string(shape_)));
    note_selection();
    take_range(place < 0 ? place + size : place, 1, 1);
  }

  // Python's slice.indices.
  void add(const Slice& slice) {
    note_other();
    if (slice.step == 0) throw Error(ErrorCode::invalid_argument, "[ ]: the step of a Slice must not be 0");
    const std::int64_t size = shape_[axis()];
    const bool back = slice.step < 0;
    const std::int64_t low = back ? -1 : 0, high = back ? size - 1 : size;
    const auto place = [&](std::int64_t at) {
      if (at < 0) at = at < -size ? low : at + size;
      return std::clamp(at, low, high);
    };
    const std::int64_t begin = slice.start ? place(*slice.start) : (back ? high : low);
    const std::int64_t end = slice.stop ? place(*slice.stop) : (back ? low : high);
    const std::int64_t distance = back ? begin - end : end - begin;
    // A step longer than the axis takes one element, whatever it is: bounded, its sign can be changed without overflow.
    const std::int64_t stride = back ? -std::max(slice.step, -(size + 1)) : std::min(slice.step, size + 1);
    if (distance <= 0)
      take_range(0, 0, 1);
    else
      take_range(begin, (distance - 1) / stride + 1, back ? -stride : stride);
    kept_.push_back(extent_.back());
  }

  void add(Ellipsis) {
    note_other();
    for (int i = 0; i < missing_; ++i) keep();
  }

  void add(NewAxis) {
    note_other();
    kept_.push_back(1);
  }

  void add(const Tensor& indices) {
    note_selection();
    if (node_of(indices)->graph_dtype == DType::boolean) return add_mask(indices);
    if (!is_integer(indices.dtype()))
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("[ ]: indices must be integers or bools, not {}", name(indices.dtype())));
    selectors_.push_back({indices, viewed_axes()});
    keep();
  }

  void add_mask(const Tensor& mask) {
    for (int i = 0; i < mask.rank(); ++i)
      if (mask.shape()[i] != shape_[axis() + i])
        throw Error(ErrorCode::out_of_range,
                    fmt::format("[ ]: the mask has shape {}, which does not match the axes from {} of shape {}",
                                to_string(mask.shape()), axis(), to_string(shape_)));
    if (mask.rank() == 0) {  // selects all or nothing, along an axis of its own
      selectors_.push_back({Tensor::from(std::vector<std::int64_t>(mask.item<bool>() ? 1 : 0, 0)), viewed_axes()});
      kept_.push_back(1);
      return;
    }
    for (Tensor& places : nonzero(mask)) {
      selectors_.push_back({std::move(places), viewed_axes()});
      keep();
    }
  }

  enum class Order : std::uint8_t { none, within, left };  // before, among and after the first selecting indices

  const Shape shape_;
  int missing_ = 0;       // axes that an ellipsis stands for
  bool selects_ = false;  // there is a tensor among the indices
  std::vector<std::int64_t> start_, extent_, step_, kept_;
  std::vector<Selector> selectors_;
  Order state_ = Order::none;
  bool is_apart_ = false;   // other indices stand between the selecting ones
  std::int64_t first_ = 0;  // axes of the result before the first selecting index
};

// x[mask] = one value: the same for every element, so that their number does not matter.
bool is_fill(std::span<const Index> indices, const Tensor& value) {
  return indices.size() == 1 && is_mask(indices[0]) && value.elements() == 1;
}

Tensor filled(const Tensor& x, const Tensor& mask, const Tensor& value) {
  std::vector<std::int64_t> extents(mask.shape().begin(), mask.shape().end());
  for (int i = 0; i < mask.rank(); ++i)
    if (i >= x.rank() || extents[static_cast<std::size_t>(i)] != x.shape()[i])
      throw Error(ErrorCode::out_of_range, fmt::format("[ ]: the mask has shape {}, which does not match shape {}",
                                                       to_string(mask.shape()), to_string(x.shape())));
  extents.resize(static_cast<std::size_t>(x.rank()), 1);
  return where(reshape(mask, extents), cast(reshape(value, Shape{}), x.dtype()), x);
}

// NumPy ignores axes of extent 1 in front.
Tensor fitted(const Tensor& value, const Shape& shape) {
  std::span<const std::int64_t> extents = value.shape().dims();
  while (static_cast<int>(extents.size()) > shape.rank() && extents[0] == 1) extents = extents.subspan(1);
  return expand(reshape(value, Shape(extents)), shape);
}

}  // namespace

Tensor Tensor::operator[](const Index& index) const { return tenon::index(*this, std::span(&index, 1)); }
Tensor Tensor::operator[](std::initializer_list<Index> indices) const {
  return tenon::index(*this, std::span(indices.begin(), indices.size()));
}

Tensor index(const Tensor& x, std::span<const Index> indices) { return View(x.shape(), indices).of(x); }

Tensor with_index(const Tensor& x, std::span<const Index> indices, const Tensor& value) {
  if (is_fill(indices, value)) return filled(x, std::get<Tensor>(indices[0].value()), value);
  // Every kind of index is the same for this: the places it selects from 0, 1, 2 ... are those to write to.
  const Tensor places = index(reshape(arange(0, static_cast<double>(x.elements()), 1, DType::i64), x.shape()), indices);
  const Tensor values = fitted(cast(value, x.dtype()), places.shape());
  return reshape(scatter(flatten(x), flatten(places), flatten(values), 0), x.shape());
}

std::vector<Tensor> nonzero(const Tensor& x) {
  if (x.rank() == 0) throw Error(ErrorCode::invalid_argument, "nonzero: a tensor without axes has no indices");
  const HostArray truths = x.to_host().cast(DType::boolean);
  const std::span<const std::uint8_t> values = truths.view<std::uint8_t>();
  const auto count = values.size() - static_cast<std::size_t>(std::count(values.begin(), values.end(), std::uint8_t{0}));
  const Strides strides = contiguous_strides(x.shape());
  std::vector<HostArray> places;
  for (int axis = 0; axis < x.rank(); ++axis)
    places.push_back(HostArray::empty(DType::i64, Shape{static_cast<std::int64_t>(count)}));
  std::vector<std::span<std::int64_t>> out;
  for (HostArray& place : places) out.push_back(place.mutable_view<std::int64_t>());
  std::size_t next = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] == 0) continue;
    for (int axis = 0; axis < x.rank(); ++axis)
      out[static_cast<std::size_t>(axis)][next] =
          static_cast<std::int64_t>(i) / strides[static_cast<std::size_t>(axis)] % x.shape()[axis];
    ++next;
  }
  return {std::make_move_iterator(places.begin()), std::make_move_iterator(places.end())};
}

}  // namespace tenon
