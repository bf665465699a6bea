#include "tenon/array/shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tenon/error.h"

namespace tenon {
namespace {

std::string list(std::span<const std::int64_t> dims) { return fmt::format("[{}]", fmt::join(dims, ", ")); }

}  // namespace

Shape::Shape(std::span<const std::int64_t> dims) {
  if (dims.size() > static_cast<std::size_t>(kMaxRank))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a shape has at most {} axes, but this one has {}", kMaxRank, dims.size()));
  bool has_zero = false;
  for (std::int64_t extent : dims) {
    if (extent < 0) throw Error(ErrorCode::invalid_argument, fmt::format("shape {} has a negative extent", list(dims)));
    has_zero = has_zero || extent == 0;
  }
  // Even next to a zero the other extents stay bounded, so that partial products (strides, row counts) cannot overflow.
  std::int64_t product = 1;
  for (std::int64_t extent : dims) {
    const std::int64_t factor = std::max<std::int64_t>(extent, 1);
    if (factor > kMaxElements / product)
      throw Error(ErrorCode::resource_exhausted, fmt::format("shape {} has more than 2^40 elements", list(dims)),
                  "use a smaller shape");
    product *= factor;
  }
  elements_ = has_zero ? 0 : product;
  rank_ = static_cast<int>(dims.size());
  std::copy(dims.begin(), dims.end(), dims_.begin());
}

Shape Shape::with(int axis, std::int64_t extent) const {
  std::array<std::int64_t, kMaxRank> dims = dims_;
  dims[static_cast<std::size_t>(axis)] = extent;
  return Shape(std::span<const std::int64_t>(dims.data(), static_cast<std::size_t>(rank_)));
}

std::string to_string(const Shape& shape) { return list(shape.dims()); }

Shape broadcast(const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  std::array<std::int64_t, kMaxRank> dims{};
  for (int i = 1; i <= rank; ++i) {
    const std::int64_t x = i <= a.rank() ? a[a.rank() - i] : 1;
    const std::int64_t y = i <= b.rank() ? b[b.rank() - i] : 1;
    if (x != y && x != 1 && y != 1)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("shapes {} and {} cannot be broadcast together", list(a.dims()), list(b.dims())),
                  "extents must be equal or 1, compared from the last axis");
    dims[static_cast<std::size_t>(rank - i)] = x == 1 ? y : x;
  }
  return Shape(std::span<const std::int64_t>(dims.data(), static_cast<std::size_t>(rank)));
}

bool broadcastable(const Shape& from, const Shape& to) noexcept {
  if (from.rank() > to.rank()) return false;
  for (int i = 1; i <= from.rank(); ++i) {
    const std::int64_t extent = from[from.rank() - i];
    if (extent != 1 && extent != to[to.rank() - i]) return false;
  }
  return true;
}

int normalize_axis(std::int64_t axis, int rank) {
  if (axis < -rank || axis >= rank)
    throw Error(ErrorCode::out_of_range, fmt::format("axis {} is out of range for a tensor of rank {}", axis, rank),
                rank == 0 ? "a scalar has no axes"
                          : fmt::format("valid axes are {} to {}, or {} to -1 counted from the end", 0, rank - 1, -rank));
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

Strides contiguous_strides(const Shape& shape) noexcept {
  Strides strides{};
  std::int64_t step = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    strides[static_cast<std::size_t>(axis)] = step;
    step *= std::max<std::int64_t>(shape[axis], 1);
  }
  return strides;
}

}  // namespace tenon
