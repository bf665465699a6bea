#include <cstring>
#include <string>
#include <type_traits>

#include "backends/cpu/primitives/axis_lanes.h"
#include "backends/cpu/primitives/clones.h"
#include "backends/cpu/primitives/primitives.h"
#include "backends/cpu/primitives/split.h"
#include "backends/cpu/primitives/typed.h"

namespace tenon::cpu {
namespace {

// The one comparison both i in [-extent, 0) and i in [0, extent) pass.
bool is_inside(std::int64_t index, std::int64_t extent) {
  const std::int64_t resolved = index < 0 ? index + extent : index;
  return static_cast<std::uint64_t>(resolved) < static_cast<std::uint64_t>(extent);
}

// True if one of them is not. Instructions that compare 64 bits are not among those of all CPUs.
TENON_CLONES bool any_outside(const std::int64_t* indices, std::int64_t n, std::int64_t extent) {
  std::uint64_t outside = 0;
  for (std::int64_t i = 0; i < n; ++i) outside |= is_inside(indices[i], extent) ? 0 : 1;
  return outside != 0;
}

std::int64_t resolve(std::int64_t index, std::int64_t extent) { return index < 0 ? index + extent : index; }

[[noreturn]] void refuse(std::int64_t index, std::int64_t extent) {
  throw Error(ErrorCode::out_of_range,
              "index " + std::to_string(index) + " is out of range for an axis of extent " + std::to_string(extent),
              "valid indices are " + std::to_string(-extent) + " to " + std::to_string(extent - 1));
}

bool is_dense(const Shape& shape, const Strides& strides, int from_axis = 0) {
  std::int64_t expected = 1;
  for (int axis = shape.rank() - 1; axis >= from_axis; --axis) {
    if (shape[axis] != 1 && strides[static_cast<std::size_t>(axis)] != expected) return false;
    expected *= shape[axis];
  }
  return true;
}

// All of them, before anything is written.
void check_indices(ThreadPool& pool, View indices, std::int64_t extent) {
  for (int axis = 0; axis < indices.shape.rank(); ++axis)  // repeated ones once
    if (indices.strides[static_cast<std::size_t>(axis)] == 0) indices.shape = indices.shape.with(axis, 1);
  const auto* data = static_cast<const std::int64_t*>(indices.data);
  const bool dense = is_dense(indices.shape, indices.strides);
  for_ranges(pool, indices.shape.elements(), 1, [&](std::int64_t begin, std::int64_t end, int) {
    if (dense && !any_outside(data + begin, end - begin, extent)) return;
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t index = data[dense ? i : offset_of(i, indices.shape, indices.strides)];
      if (!is_inside(index, extent)) refuse(index, extent);
    }
  });
}

Shape tail_of(const Shape& shape, int axis) { return Shape(shape.dims().subspan(static_cast<std::size_t>(axis))); }

Strides tail_of(const Strides& strides, int axis) {
  Strides tail{};
  for (std::size_t i = static_cast<std::size_t>(axis); i < strides.size(); ++i)
    tail[i - static_cast<std::size_t>(axis)] = strides[i];
  return tail;
}

// Rows along the last axis of an index tensor, each with its offsets in the tensors it meets.
class Rows {
 public:
  explicit Rows(const Shape& shape) : shape_(shape), length_(shape.rank() > 0 ? shape[shape.rank() - 1] : 1) {
    if (shape.rank() > 0) shape_ = shape.with(shape.rank() - 1, 1);
  }
  std::int64_t count() const { return shape_.elements(); }
  std::int64_t length() const { return length_; }
  std::int64_t first(std::int64_t row, const Strides& strides) const { return offset_of(row, shape_, strides); }

 private:
  Shape shape_;
  std::int64_t length_;
};

Strides without_axis(Strides strides, int axis) {
  strides[static_cast<std::size_t>(axis)] = 0;
  return strides;
}

// to[j] = from[index[j]]
TENON_CLONES void pick(const std::uint32_t* from, const std::int64_t* index, std::int64_t extent, std::int64_t n,
                       std::uint32_t* __restrict to) {
  for (std::int64_t j = 0; j < n; ++j) to[j] = from[index[j] < 0 ? index[j] + extent : index[j]];
}

void add_row(float* __restrict to, const float* from, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) to[i] += from[i];
}

template <class T>
void add_to(T& place, T update, bool is_bool) {
  if (is_bool) {
    place = static_cast<T>(place != T{} || update != T{});
  } else if constexpr (std::is_integral_v<T>) {
    place = static_cast<T>(static_cast<std::uint64_t>(place) + static_cast<std::uint64_t>(update));
  } else {
    place += update;
  }
}

}  // namespace

void take(ThreadPool& pool, const View& x, const View& indices, int axis, const Target& out) {
  if (out.shape.elements() == 0) return;
  const std::int64_t extent = x.shape[axis], wanted = indices.shape.elements();
  check_indices(pool, indices, extent);
  const AxisSplit split(x.shape, axis);
  const Shape inner_shape = tail_of(x.shape, axis + 1);
  const Strides inner_strides = tail_of(x.strides, axis + 1);
  const bool dense_inner = is_dense(inner_shape, inner_strides);
  const Shape outer_shape(x.shape.dims().first(static_cast<std::size_t>(axis)));
  const std::int64_t step = x.strides[static_cast<std::size_t>(axis)];
  const bool dense_indices = is_dense(indices.shape, indices.strides);
  const auto* index = static_cast<const std::int64_t*>(indices.data);
  with_size(x.dtype, [&]<class T>(T) {
    const T* from = static_cast<const T*>(x.data);
    T* to = static_cast<T*>(out.data);
    if (split.inner == 1 && dense_indices) {
      for_ranges(pool, split.outer, 2 * wanted, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t o = begin; o < end; ++o) {
          const T* const row = from + offset_of(o, outer_shape, x.strides);
          T* const result = to + o * wanted;
          for (std::int64_t w = 0; w < wanted; ++w) result[w] = row[resolve(index[w], extent) * step];
        }
      });
      return;
    }
    for_ranges(pool, split.outer * wanted, split.inner + 4, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t o = i / wanted, w = i % wanted;
        const std::int64_t at = resolve(index[dense_indices ? w : offset_of(w, indices.shape, indices.strides)], extent);
        const T* row = from + offset_of(o, outer_shape, x.strides) + at * step;
        T* result = to + i * split.inner;
        if (split.inner == 1) {
          *result = *row;
        } else if (dense_inner) {
          std::memcpy(result, row, static_cast<std::size_t>(split.inner) * sizeof(T));
        } else {
          for (std::int64_t j = 0; j < split.inner; ++j) result[j] = row[offset_of(j, inner_shape, inner_strides)];
        }
      }
    });
  });
}

void gather(ThreadPool& pool, const View& x, const View& indices, int axis, const Target& out) {
  if (out.shape.elements() == 0) return;
  const std::int64_t extent = x.shape[axis];
  check_indices(pool, indices, extent);
  const Rows rows(indices.shape);
  const auto last = static_cast<std::size_t>(indices.shape.rank() - 1);
  const Strides fixed = without_axis(x.strides, axis);
  const std::int64_t index_step = indices.strides[last], step = x.strides[static_cast<std::size_t>(axis)];
  const std::int64_t along = fixed[last];  // 0 where the axis is the last one: then only the index moves
  with_size(x.dtype, [&]<class T>(T) {
    for_ranges(pool, rows.count(), 2 * rows.length(), [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t r = begin; r < end; ++r) {
        const T* from = static_cast<const T*>(x.data) + rows.first(r, fixed);
        const auto* index = static_cast<const std::int64_t*>(indices.data) + rows.first(r, indices.strides);
        T* to = static_cast<T*>(out.data) + r * rows.length();
        if constexpr (std::is_same_v<T, std::uint32_t>)
          if (along == 0 && step == 1 && index_step == 1) {
            pick(from, index, extent, rows.length(), to);
            continue;
          }
        for (std::int64_t j = 0; j < rows.length(); ++j) to[j] = from[j * along + resolve(index[j * index_step], extent) * step];
      }
    });
  });
}

// Indices along one axis never leave their lane: lanes are independent, and within a lane updates come in index order.
void scatter(ThreadPool& pool, const View& indices, const View& updates, const ScatterAttr& attr, const Target& out) {
  if (indices.shape.elements() == 0) return;
  const auto axis = static_cast<std::size_t>(attr.axis);
  const std::int64_t extent = out.shape[attr.axis];
  check_indices(pool, indices, extent);
  const AxisLanes lanes(indices.shape, attr.axis);
  const std::int64_t index_across = lane_stride(indices.shape, indices.strides);
  const std::int64_t update_across = lane_stride(indices.shape, updates.strides);
  const std::int64_t out_across = lane_stride(out.shape, out.strides);
  const bool is_bool = out.dtype == DType::boolean;
  with_type(out.dtype, [&]<class T>(T) {
    lanes.for_groups(pool, 2, [&](std::int64_t lane, std::int64_t count, int) {
      const auto* index = static_cast<const std::int64_t*>(indices.data) + lanes.first(lane, indices.strides);
      const T* update = static_cast<const T*>(updates.data) + lanes.first(lane, updates.strides);
      T* to = static_cast<T*>(out.data) + lanes.first(lane, out.strides);
      if constexpr (std::is_same_v<T, float>)
        if (attr.add && index_across == 0 && update_across == 1 && out_across == 1) {
          // Whole rows, as of an embedding: one index each.
          for (std::int64_t i = 0; i < lanes.extent(); ++i, update += updates.strides[axis])
            add_row(to + resolve(index[i * indices.strides[axis]], extent) * out.strides[axis], update, count);
          return;
        }
      for (std::int64_t i = 0; i < lanes.extent(); ++i) {
        for (std::int64_t l = 0; l < count; ++l) {
          T& place = to[l * out_across + resolve(index[l * index_across], extent) * out.strides[axis]];
          const T value = update[l * update_across];
          if (attr.add) {
            add_to(place, value, is_bool);
          } else {
            place = value;
          }
        }
        index += indices.strides[axis];
        update += updates.strides[axis];
      }
    });
  });
}

}  // namespace tenon::cpu
