// Splits the work of a primitive over the threads of a pool.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/threads/stop_scope.h"
#include "base/threads/thread_pool.h"
#include "tenon/array/shape.h"

namespace tenon::cpu {

// Below this many elements moved or this many simple operations, a second thread costs more than it gains.
inline constexpr std::int64_t kGrain = 16 * 1024;

struct Range {
  std::int64_t begin = 0, end = 0;
};

// Part |part| of |parts| nearly equal ones of [0, n), cut at multiples of |unit|.
inline Range part_of(std::int64_t n, std::int64_t parts, std::int64_t part, std::int64_t unit = 1) {
  if (parts == 1) return {0, n};
  const std::int64_t units = (n + unit - 1) / unit;
  const auto cut = [&](std::int64_t p) { return std::min(n, (units / parts * p + std::min(p, units % parts)) * unit); };
  return {cut(part), cut(part + 1)};
}

// Work between two looks at the thread's StopScope, in elements: about a millisecond.
inline constexpr std::int64_t kUnchecked = std::int64_t{1} << 21;

// Calls body(begin, end, worker) for ranges that cover [0, items). |cost| is that of one item, in elements.
template <class Body>
void for_ranges(ThreadPool& pool, std::int64_t items, std::int64_t cost, Body&& body) {
  if (items <= 0) return;
  const std::int64_t per_chunk = std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, cost));
  // A few chunks per thread balance the load; more would only cost claims.
  const std::int64_t chunks = std::min((items + per_chunk - 1) / per_chunk, std::int64_t{8} * pool.threads());
  const std::int64_t unchecked = std::max<std::int64_t>(1, kUnchecked / std::max<std::int64_t>(1, cost));
  pool.for_each(chunks, [&](std::int64_t chunk, int worker) {
    Range range = part_of(items, chunks, chunk);
    for (; range.end - range.begin > unchecked; range.begin += unchecked) {
      body(range.begin, range.begin + unchecked, worker);
      check_stop();
    }
    body(range.begin, range.end, worker);
  });
}

// A dense tensor seen along one axis: [outer, extent, inner].
struct AxisSplit {
  std::int64_t outer = 1, extent = 1, inner = 1;
  AxisSplit(const Shape& shape, int axis) : extent(shape[axis]) {
    for (int i = 0; i < axis; ++i) outer *= shape[i];
    for (int i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
  }
};

// Offset of the element with row-major number |index| in a tensor of |shape| with |strides|.
inline std::int64_t offset_of(std::int64_t index, const Shape& shape, const Strides& strides) {
  std::int64_t offset = 0;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    offset += index % shape[axis] * strides[static_cast<std::size_t>(axis)];
    index /= shape[axis];
  }
  return offset;
}

}  // namespace tenon::cpu
