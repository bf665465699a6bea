#include <algorithm>

#include "backends/cpu/primitives/primitives.h"
#include "backends/cpu/primitives/split.h"
#include "backends/cpu/primitives/typed.h"

namespace tenon::cpu {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// Parts that are one cache line or less in every row of the result would each pass over all of its lines. Joined band by band of
// rows they find them in the L1 cache.
constexpr std::int64_t kNarrowBytes = 64, kBandBytes = 16 * 1024;

// The elements of a part in one row of the result: |count| of them, |stride| apart.
struct Narrow {
  const void* data = nullptr;
  std::int64_t count = 1, stride = 0;
};

// If axes from |axis| on are addressed by one stride.
bool narrow_of(const View& part, int axis, Narrow& narrow) {
  narrow = {part.data, 1, 1};
  for (int i = part.shape.rank() - 1; i >= axis; --i) {
    if (part.shape[i] == 1) continue;
    if (narrow.count > 1 && part.strides[at(i)] != narrow.stride * narrow.count) return false;
    if (narrow.count == 1) narrow.stride = part.strides[at(i)];
    narrow.count *= part.shape[i];
  }
  return true;
}

template <class T, int count>
void copy_rows_of(const T* in, std::int64_t in_step, std::int64_t stride, T* out, std::int64_t out_step, std::int64_t rows) {
  for (std::int64_t r = 0; r < rows; ++r, in += in_step, out += out_step)
    for (std::int64_t j = 0; j < count; ++j) out[j] = in[j * stride];
}
template <class T>
void copy_rows(const T* in, std::int64_t in_step, const Narrow& part, T* out, std::int64_t out_step, std::int64_t rows) {
  if (part.count == 1) return copy_rows_of<T, 1>(in, in_step, part.stride, out, out_step, rows);
  if (part.count == 2) return copy_rows_of<T, 2>(in, in_step, part.stride, out, out_step, rows);
  if (part.count == 3) return copy_rows_of<T, 3>(in, in_step, part.stride, out, out_step, rows);
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t j = 0; j < part.count; ++j) out[r * out_step + j] = in[r * in_step + j * part.stride];
}

// The rows that follow each other by one step in every part: those of axis |last| and as many before it as there are, from
// |first| on.
struct Rows {
  int first = 0, last = 0;
  std::int64_t count = 1;
};
Rows rows_before(std::span<const View> parts, int axis, const Shape& shape) {
  Rows rows{axis - 1, axis - 1, shape[axis - 1]};
  while (rows.last > 0 && shape[rows.last] == 1) rows = {rows.last - 1, rows.last - 1, shape[rows.last - 1]};
  const auto follows = [&](const View& part) {
    return part.strides[at(rows.first - 1)] == part.strides[at(rows.last)] * rows.count;
  };
  while (rows.first > 0 && (shape[rows.first - 1] == 1 || std::ranges::all_of(parts, follows))) rows.count *= shape[--rows.first];
  return rows;
}

template <class T>
void concat_narrow(ThreadPool& pool, std::span<const View> parts, int axis, const Target& target) {
  const Rows rows = rows_before(parts, axis, target.shape);
  const std::int64_t row = AxisSplit(target.shape, rows.last).inner;
  const std::int64_t band = std::clamp<std::int64_t>(kBandBytes / (row * static_cast<std::int64_t>(sizeof(T))), 1, rows.count);
  const std::int64_t bands = (rows.count + band - 1) / band;
  Shape before = target.shape;
  for (int i = rows.first; i < before.rank(); ++i) before = before.with(i, 1);
  for_ranges(pool, before.elements() * bands, band * row, [&](std::int64_t first, std::int64_t last, int) {
    for (std::int64_t i = first; i < last; ++i) {
      const std::int64_t begin = i % bands * band, count = std::min(band, rows.count - begin);
      T* out = static_cast<T*>(target.data) + (i / bands * rows.count + begin) * row;
      for (const View& part : parts) {
        Narrow narrow;
        narrow_of(part, axis, narrow);
        const std::int64_t step = part.strides[at(rows.last)];
        copy_rows(static_cast<const T*>(part.data) + offset_of(i / bands, before, part.strides) + begin * step, step, narrow, out,
                  row, count);
        out += narrow.count;
      }
    }
  });
}

bool is_narrow(std::span<const View> parts, int axis, const Target& target) {
  const auto bytes = static_cast<std::int64_t>(element_bytes(target.dtype));
  const Strides strides = contiguous_strides(target.shape);
  if (axis == 0 || parts.size() < 2 || target.shape.elements() == 0 || target.strides != strides) return false;
  const std::int64_t inner = AxisSplit(target.shape, axis).inner;
  return std::ranges::all_of(parts, [&](const View& part) {
    Narrow narrow;
    return part.shape[axis] * inner * bytes < kNarrowBytes && narrow_of(part, axis, narrow);
  });
}

}  // namespace

void concat(ThreadPool& pool, std::span<const View> parts, int axis, const Target& target) {
  if (is_narrow(parts, axis, target))
    return with_size(target.dtype, [&]<class T>(T) { concat_narrow<T>(pool, parts, axis, target); });
  const Strides strides = contiguous_strides(target.shape);
  std::int64_t position = 0;
  for (const View& part : parts) {
    const std::int64_t offset = position * strides[at(axis)];
    copy(pool, part,
         {static_cast<std::byte*>(target.data) + at(offset) * element_bytes(target.dtype), target.dtype, part.shape, strides});
    position += part.shape[axis];
  }
}

}  // namespace tenon::cpu
