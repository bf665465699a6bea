#include <bit>
#include <cstring>
#include <string>
#include <type_traits>

#include "backends/cpu/kernels/kernels.h"
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

// The |n| indices that are used next, which stay in the cache until then.
void check_run(const std::int64_t* index, std::int64_t step, std::int64_t n, std::int64_t extent) {
  if (step == 1 && !any_outside(index, n, extent)) return;
  for (std::int64_t i = 0; i < (step == 0 ? 1 : n); ++i)
    if (!is_inside(index[i * step], extent)) refuse(index[i * step], extent);
}

Shape tail_of(const Shape& shape, int axis) { return Shape(shape.dims().subspan(static_cast<std::size_t>(axis))); }

Strides tail_of(const Strides& strides, int axis) {
  Strides tail{};
  for (std::size_t i = static_cast<std::size_t>(axis); i < strides.size(); ++i)
    tail[i - static_cast<std::size_t>(axis)] = strides[i];
  return tail;
}

Strides without_axis(Strides strides, int axis) {
  strides[static_cast<std::size_t>(axis)] = 0;
  return strides;
}

// to[j] = from[index[j]]
template <class T>
void pick(const T* from, const std::int64_t* index, std::int64_t extent, std::int64_t n, T* __restrict to) {
  for (std::int64_t j = 0; j < n; ++j) to[j] = from[resolve(index[j], extent)];
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
      for_ranges(pool, split.outer * wanted, 4, [&](std::int64_t begin, std::int64_t end, int) {
        constexpr std::int64_t kChecked = 1024;
        while (begin < end) {
          const std::int64_t o = begin / wanted, first = begin % wanted, n = std::min({kChecked, wanted - first, end - begin});
          const T* const row = from + offset_of(o, outer_shape, x.strides);
          check_run(index + first, 1, n, extent);
          if (step == 1)
            pick(row, index + first, extent, n, to + begin);
          else
            TENON_ROLLED for (std::int64_t w = 0; w < n; ++w) to[begin + w] = row[resolve(index[first + w], extent) * step];
          begin += n;
        }
      });
      return;
    }
    check_indices(pool, indices, extent);
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
          TENON_ROLLED for (std::int64_t j = 0; j < split.inner; ++j) result[j] = row[offset_of(j, inner_shape, inner_strides)];
        }
      }
    });
  });
}

void gather(ThreadPool& pool, const View& x, const View& indices, int axis, const Target& out) {
  if (out.shape.elements() == 0) return;
  const std::int64_t extent = x.shape[axis];
  int last_axis = indices.shape.rank() - 1;  // the last one along which there are several
  while (last_axis > 0 && indices.shape[last_axis] == 1) --last_axis;
  const auto last = static_cast<std::size_t>(last_axis);
  const Strides fixed = without_axis(x.strides, axis), dense = contiguous_strides(indices.shape);
  const std::int64_t index_step = indices.strides[last], step = x.strides[static_cast<std::size_t>(axis)];
  const std::int64_t along = fixed[last];  // 0 where the axis is the last one: then only the index moves
  const std::int64_t length = indices.shape[last_axis], rows = indices.shape.elements() / length;
  // Along another axis: so many columns at a time that what the indices can reach stays in the L2 cache.
  constexpr std::int64_t kCacheBytes = 512 * 1024;
  const auto bytes = static_cast<std::int64_t>(element_bytes(x.dtype)), line = 64 / bytes;
  const std::int64_t fitting = kCacheBytes / (std::max<std::int64_t>(extent, 1) * bytes) / line * line;
  const std::int64_t width = along == 0 ? length : std::min(length, std::max(2 * line, fitting));
  const std::int64_t blocks = (length + width - 1) / width;
  with_size(x.dtype, [&]<class T>(T) {
    for_ranges(pool, blocks * rows, 2 * width, [&](std::int64_t begin, std::int64_t end, int) {
      while (begin < end) {
        const std::int64_t first = begin / rows * width, row = begin % rows, n = std::min(width, length - first);
        const std::int64_t count = std::min(end - begin, rows - row);
        LaneOffsets sources(indices.shape, last_axis, fixed, row), places(indices.shape, last_axis, indices.strides, row),
            targets(indices.shape, last_axis, dense, row);
        for (std::int64_t r = 0; r < count; ++r) {
          const T* from = static_cast<const T*>(x.data) + sources.next() + first * along;
          const auto* index = static_cast<const std::int64_t*>(indices.data) + places.next() + first * index_step;
          T* to = static_cast<T*>(out.data) + targets.next() + first;
          check_run(index, index_step, n, extent);
          if (along == 0 && step == 1 && index_step == 1) {
            pick(from, index, extent, n, to);
          } else {
            TENON_ROLLED for (std::int64_t j = 0; j < n; ++j) to[j] =
                from[j * along + resolve(index[j * index_step], extent) * step];
          }
        }
        begin += count;
      }
    });
  });
}

// Indices along one axis never leave their lane: lanes are independent, and within a lane updates come in index order.
void scatter(ThreadPool& pool, const View& x, const View& indices, const View& updates, const ScatterAttr& attr,
             const Target& out) {
  const auto axis = static_cast<std::size_t>(attr.axis);
  const std::int64_t extent = out.shape[attr.axis];
  const AxisLanes lanes(indices.shape, attr.axis);
  // If every lane has updates, it is copied just before they come, and is still in the cache then.
  const bool copies_lanes = lanes.count() >= 4 * pool.threads() && lanes.extent() > 0 &&
                            indices.shape.with(attr.axis, 1) == out.shape.with(attr.axis, 1);
  if (!copies_lanes) copy(pool, x, out);
  if (indices.shape.elements() == 0 || out.shape.elements() == 0) return;
  const std::int64_t cost = 2 + (copies_lanes ? extent / lanes.extent() : 0);
  const std::int64_t index_across = lane_stride(indices.shape, indices.strides);
  const std::int64_t update_across = lane_stride(indices.shape, updates.strides);
  const std::int64_t out_across = lane_stride(out.shape, out.strides), x_across = lane_stride(x.shape, x.strides);
  const bool is_bool = out.dtype == DType::boolean;
  const auto run = [&]<class T, bool add>() {
    lanes.for_groups(pool, cost, [&](std::int64_t lane, std::int64_t count, int) {
      const auto* index = static_cast<const std::int64_t*>(indices.data) + lanes.first(lane, indices.strides);
      const T* update = static_cast<const T*>(updates.data) + lanes.first(lane, updates.strides);
      T* to = static_cast<T*>(out.data) + lanes.first(lane, out.strides);
      const std::int64_t index_step = indices.strides[axis], update_step = updates.strides[axis], step = out.strides[axis];
      if (copies_lanes) {
        const T* from = static_cast<const T*>(x.data) + lanes.first(lane, x.strides);
        const std::int64_t from_step = x.strides[axis];
        const StridedKernel strided = kernels().strided[static_cast<std::size_t>(std::bit_width(sizeof(T))) - 1];
        if (count == 1 && step == 1)
          strided(from, from_step, 0, to, 0, 1, extent);
        else
          strided(from, x_across, from_step, to, step, extent, count);
      }
      const auto move = [&](T& place, T value) {
        if constexpr (add)
          add_to(place, value, is_bool);
        else
          place = value;
      };
      if (count == 1) {
        check_run(index, index_step, lanes.extent(), extent);
        if (index_step == 1 && update_step == 1 && step == 1) {
          for (std::int64_t i = 0; i < lanes.extent(); ++i) move(to[resolve(index[i], extent)], update[i]);
        } else {
          TENON_ROLLED for (std::int64_t i = 0; i < lanes.extent(); ++i)
              move(to[resolve(index[i * index_step], extent) * step], update[i * update_step]);
        }
        return;
      }
      for (std::int64_t i = 0; i < lanes.extent(); ++i, index += index_step, update += update_step) {
        check_run(index, index_across, count, extent);
        if constexpr (add && std::is_same_v<T, float>)
          if (index_across == 0 && update_across == 1 && out_across == 1) {
            add_row(to + resolve(*index, extent) * step, update, count);  // whole rows, as of an embedding: one index each
            continue;
          }
        TENON_ROLLED for (std::int64_t l = 0; l < count; ++l)
            move(to[l * out_across + resolve(index[l * index_across], extent) * step], update[l * update_across]);
      }
    });
  };
  // Sums of integers wrap, whatever their sign.
  if (attr.add && out.dtype == DType::f32)
    run.template operator()<float, true>();
  else if (attr.add && out.dtype == DType::f64)
    run.template operator()<double, true>();
  else if (attr.add)
    with_size(out.dtype, [&]<class T>(T) { run.template operator()<T, true>(); });
  else
    with_size(out.dtype, [&]<class T>(T) { run.template operator()<T, false>(); });
}

std::size_t scatter_add16_scratch_bytes(const ThreadPool& pool, const Shape& out, int axis) {
  const std::int64_t across = axis == out.rank() - 1 ? 1 : std::min(kLaneGroup, out[out.rank() - 1]);
  return static_cast<std::size_t>(pool.threads() * (out[axis] + 1) * across) * sizeof(float);
}

bool has_scatter_add16(const ThreadPool& pool, DType dtype, const Shape& indices, const Shape& out, int axis) {
  constexpr std::size_t kMostBytes = std::size_t{8} << 20;  // of a thread
  if ((dtype != DType::f16 && dtype != DType::bf16) || !(indices.with(axis, 1) == out.with(axis, 1))) return false;
  if (indices.elements() == 0 || out.elements() == 0) return false;
  const bool fills_threads = AxisLanes(indices, axis).count() >= 4 * pool.threads() || indices.elements() <= kGrain;
  return fills_threads && scatter_add16_scratch_bytes(pool, out, axis) / static_cast<std::size_t>(pool.threads()) <= kMostBytes;
}

void scatter_add16(ThreadPool& pool, const View& x, const View& indices, const View& updates, int axis_number, const Target& out,
                   std::span<std::byte> scratch) {
  const auto axis = static_cast<std::size_t>(axis_number);
  const std::int64_t extent = out.shape[axis_number];
  const AxisLanes lanes(indices.shape, axis_number);
  const std::int64_t index_across = lane_stride(indices.shape, indices.strides), index_step = indices.strides[axis];
  const int narrow = static_cast<int>(out.dtype), wide = static_cast<int>(DType::f32);
  const ConvertKernel widen = kernels().convert[narrow][wide], round = kernels().convert[wide][narrow];
  const std::size_t of_thread = scratch.size() / static_cast<std::size_t>(pool.threads());
  lanes.for_groups(pool, 2 + extent / lanes.extent(), [&](std::int64_t lane, std::int64_t count, int worker) {
    auto* const sums = reinterpret_cast<float*>(scratch.data() + of_thread * static_cast<std::size_t>(worker));
    float* const update = sums + extent * count;
    const auto* index = static_cast<const std::int64_t*>(indices.data) + lanes.first(lane, indices.strides);
    const auto* from = static_cast<const std::uint16_t*>(x.data) + lanes.first(lane, x.strides);
    const auto* more = static_cast<const std::uint16_t*>(updates.data) + lanes.first(lane, updates.strides);
    auto* const to = static_cast<std::uint16_t*>(out.data) + lanes.first(lane, out.strides);
    const std::int64_t step = out.strides[axis], more_step = updates.strides[axis];
    const bool is_run = step == count;  // the lanes of the group are a run
    for (std::int64_t i = 0; i < (is_run ? 1 : extent); ++i)
      widen(from + i * step, sums + i * count, is_run ? extent * count : count);
    if (count == 1 && more_step == 1 && index_step == 1) {
      check_run(index, 1, lanes.extent(), extent);
      constexpr std::int64_t kTogether = 256;
      float some[kTogether];
      for (std::int64_t i = 0; i < lanes.extent(); i += kTogether) {
        const std::int64_t n = std::min(kTogether, lanes.extent() - i);
        widen(more + i, some, n);
        for (std::int64_t k = 0; k < n; ++k) sums[resolve(index[i + k], extent)] += some[k];
      }
    } else {
      for (std::int64_t i = 0; i < lanes.extent(); ++i, index += index_step, more += more_step) {
        check_run(index, index_across, count, extent);
        widen(more, update, count);
        if (index_across == 0)
          add_row(sums + resolve(*index, extent) * count, update, count);
        else
          for (std::int64_t l = 0; l < count; ++l) sums[resolve(index[l * index_across], extent) * count + l] += update[l];
      }
    }
    for (std::int64_t i = 0; i < (is_run ? 1 : extent); ++i)
      round(sums + i * count, to + i * step, is_run ? extent * count : count);
  });
}

}  // namespace tenon::cpu
