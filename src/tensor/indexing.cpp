// x[0, 1:5, ..., None, indices]: views by slice and reshape, a tensor of integers by take.
#include <fmt/format.h>

#include <algorithm>

#include "tenon/error.h"
#include "tensor/node.h"

namespace tenon {
namespace {

// What a list of indices comes to: one slice of every axis, the shape it is seen in, and at most one tensor to take along.
class View {
 public:
  View(const Shape& shape, std::span<const Index> indices) : shape_(shape) {
    int named = 0, dots = 0;
    for (const Index& index : indices) {
      const bool is_dots = std::holds_alternative<Ellipsis>(index.value());
      dots += is_dots ? 1 : 0;
      named += is_dots || std::holds_alternative<NewAxis>(index.value()) ? 0 : 1;
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
    const Tensor result = make_results("[ ]", {build, {node_of(x)}})[0];
    return indices_.is_none() ? result : apply_one("take", {&result, &indices_}, {{"axis", std::int64_t{index_axis_}}});
  }

 private:
  int axis() const { return static_cast<int>(start_.size()); }

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

  void add(std::int64_t place) {
    const std::int64_t size = shape_[axis()];
    if (place < -size || place >= size)
      throw Error(ErrorCode::out_of_range,
                  fmt::format("[ ]: index {} is out of range for axis {} of shape {}", place, axis(), to_string(shape_)));
    take_range(place < 0 ? place + size : place, 1, 1);
  }

  // Python's slice.indices.
  void add(const Slice& slice) {
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
    for (int i = 0; i < missing_; ++i) keep();
  }

  void add(NewAxis) { kept_.push_back(1); }

  void add(const Tensor& indices) {
    if (!indices_.is_none())
      throw Error(ErrorCode::invalid_argument, "[ ]: only one index may be a tensor", "index twice: x[i][{Slice(), j}]");
    if (node_of(indices)->graph_dtype == DType::boolean)
      throw Error(ErrorCode::invalid_argument, "[ ]: a mask would select an unknown number of elements", "use where(mask, x, 0)");
    if (!is_integer(indices.dtype()))
      throw Error(ErrorCode::invalid_argument, fmt::format("[ ]: indices must be integers, not {}", name(indices.dtype())));
    indices_ = indices;
    index_axis_ = static_cast<std::int64_t>(kept_.size());
    keep();
  }

  const Shape shape_;
  int missing_ = 0;  // axes that an ellipsis stands for
  std::vector<std::int64_t> start_, extent_, step_, kept_;
  Tensor indices_;
  std::int64_t index_axis_ = 0;
};

}  // namespace

Tensor Tensor::operator[](const Index& index) const { return View(shape(), std::span(&index, 1)).of(*this); }
Tensor Tensor::operator[](std::initializer_list<Index> indices) const {
  return View(shape(), std::span(indices.begin(), indices.size())).of(*this);
}

}  // namespace tenon
