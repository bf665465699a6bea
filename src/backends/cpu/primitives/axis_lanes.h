// Tensors as lanes along one axis, for scans, sorts, arg-reductions and scatters.
//
// Lanes are numbered row-major over the other axes. They are distributed in groups of adjacent lanes along the last axis, so that
// code that walks the lanes of a group in parallel reads whole cache lines. If the axis is the last one, a group is a single
// lane.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/cpu/primitives/split.h"
#include "tenon/array/shape.h"

namespace tenon::cpu {

inline constexpr std::int64_t kLaneGroup = 64;

class AxisLanes {
 public:
  AxisLanes(const Shape& shape, int axis) : extent_(shape[axis]), others_(shape.with(axis, 1)) {
    lanes_ = others_.elements();
    row_ = shape.rank() > 0 ? others_[shape.rank() - 1] : 1;
  }

  std::int64_t extent() const { return extent_; }
  std::int64_t count() const { return lanes_; }
  // Offset of a lane's first element in a tensor with these strides.
  std::int64_t first(std::int64_t lane, const Strides& strides) const { return offset_of(lane, others_, strides); }

  // Calls body(first lane, number of lanes, worker) for every group; |cost| is that of one element.
  template <class Body>
  void for_groups(ThreadPool& pool, std::int64_t cost, Body&& body) const {
    if (lanes_ == 0) return;
    const std::int64_t per_row = (row_ + kLaneGroup - 1) / kLaneGroup;
    const std::int64_t groups = lanes_ / row_ * per_row;
    for_ranges(pool, groups, cost * extent_ * std::min(row_, kLaneGroup), [&](std::int64_t begin, std::int64_t end, int worker) {
      for (std::int64_t g = begin; g < end; ++g) {
        const std::int64_t at = g % per_row * kLaneGroup;
        body(g / per_row * row_ + at, std::min(kLaneGroup, row_ - at), worker);
      }
    });
  }

 private:
  std::int64_t extent_ = 1, lanes_ = 1, row_ = 1;
  Shape others_;
};

// The offsets of lanes one after the other, without a division for each.
class LaneOffsets {
 public:
  LaneOffsets(const Shape& shape, int axis, const Strides& strides, std::int64_t lane)
      : others_(shape.with(axis, 1)),
        strides_(strides),
        offset_(offset_of(lane, others_, strides)) {
    for (int i = others_.rank() - 1; i >= 0; --i) {
      place_[static_cast<std::size_t>(i)] = lane % others_[i];
      lane /= others_[i];
    }
  }
  std::int64_t next() {
    const std::int64_t offset = offset_;
    for (int i = others_.rank() - 1; i >= 0; --i) {
      const auto axis = static_cast<std::size_t>(i);
      offset_ += strides_[axis];
      if (++place_[axis] < others_[i]) break;
      offset_ -= strides_[axis] * others_[i];
      place_[axis] = 0;
    }
    return offset;
  }

 private:
  Shape others_;
  Strides strides_;
  Strides place_{};
  std::int64_t offset_;
};

// The stride between adjacent lanes of a group.
inline std::int64_t lane_stride(const Shape& shape, const Strides& strides) {
  return shape.rank() > 0 ? strides[static_cast<std::size_t>(shape.rank() - 1)] : 0;
}

}  // namespace tenon::cpu
