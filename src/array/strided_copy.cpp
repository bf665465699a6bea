#include "array/strided_copy.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace tenon {
namespace {

template <class T>
void copy_line(const std::byte* in, std::int64_t stride, std::int64_t n, std::byte* out) noexcept {
  // memcpy, because a foreign array may be unaligned.
  for (std::int64_t i = 0; i < n; ++i) std::memcpy(out + i * static_cast<std::int64_t>(sizeof(T)), in + i * stride, sizeof(T));
}

// Copies two axes in squares: if the last axis has a large stride (a transposed matrix), the cache lines of a square are
// read once rather than once per element.
template <class T>
void copy_plane(const std::byte* in, const std::int64_t (&extents)[2], const std::int64_t (&strides)[2],
                std::byte* out) noexcept {
  constexpr std::int64_t kSquare = 32;
  constexpr auto kSize = static_cast<std::int64_t>(sizeof(T));
  for (std::int64_t i = 0; i < extents[0]; i += kSquare)
    for (std::int64_t j = 0; j < extents[1]; j += kSquare) {
      const std::int64_t columns = std::min(kSquare, extents[1] - j);
      for (std::int64_t row = i; row < std::min(i + kSquare, extents[0]); ++row)
        copy_line<T>(in + row * strides[0] + j * strides[1], strides[1], columns, out + (row * extents[1] + j) * kSize);
    }
}

template <class T>
void copy_typed(const std::byte* in, const Shape& shape, std::span<const std::int64_t> strides, std::byte* out) {
  const int rank = shape.rank();
  // In a transposed array any axis may have stride one; the plane of that axis and the last one thrashes the cache. Planes
  // of the last two axes cover matrices, the case in which arrays are large.
  std::int64_t extents[2] = {1, 1}, plane[2] = {0, 0};
  for (int i = 0; i < std::min(rank, 2); ++i) {
    extents[1 - i] = shape[rank - 1 - i];
    plane[1 - i] = strides[static_cast<std::size_t>(rank - 1 - i)];
  }
  std::array<std::int64_t, kMaxRank> index{};
  const std::int64_t plane_bytes = extents[0] * extents[1] * static_cast<std::int64_t>(sizeof(T));
  for (;;) {
    copy_plane<T>(in, extents, plane, out);
    out += plane_bytes;
    int axis = rank - 3;
    for (; axis >= 0; --axis) {
      const auto a = static_cast<std::size_t>(axis);
      in += strides[a];
      if (++index[a] < shape[axis]) break;
      in -= strides[a] * shape[axis];
      index[a] = 0;
    }
    if (axis < 0) return;
  }
}

}  // namespace

void copy_strided(const std::byte* in, const Shape& shape, std::span<const std::int64_t> byte_strides, std::size_t element_size,
                  std::byte* out) {
  if (shape.elements() == 0) return;
  switch (element_size) {
    case 1: return copy_typed<std::uint8_t>(in, shape, byte_strides, out);
    case 2: return copy_typed<std::uint16_t>(in, shape, byte_strides, out);
    case 4: return copy_typed<std::uint32_t>(in, shape, byte_strides, out);
    default: return copy_typed<std::uint64_t>(in, shape, byte_strides, out);
  }
}

}  // namespace tenon
