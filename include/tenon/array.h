// HostArray: a dense, row-major tensor in host memory: dtype, shape and bytes.
//
// Lifetime: copies share the bytes, so copying is cheap; the bytes live until the last copy is destroyed. Writing goes through
// mutable_data(), which first copies the bytes if they are shared (copy on write).
// Thread safety: as for a standard container. Const calls may run concurrently; a write needs exclusive access.
//
//   HostArray a = HostArray::from<float>({2, 3}, {1, 2, 3, 4, 5, 6});
//   HostArray b = a.cast(DType::bf16);
//   std::span<const float> values = a.view<float>();
//
// Memory comes from a process-wide pool of reused blocks (2 MiB and more on huge pages), so a result of the size of an
// earlier one causes no page faults.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "tenon/array/dtype.h"
#include "tenon/array/shape.h"

namespace tenon {

// The size in bytes of a tensor of this dtype and shape. Block formats are stored as 32x32 tiles over the last two axes (a
// vector is one row), padded with zeros: 1088 bytes per tile for bfloat8_b, 576 for bfloat4_b.
std::size_t storage_bytes(DType dtype, const Shape& shape);

class HostArray {
 public:
  HostArray() = default;  // an empty f32 array of shape [0]

  // Uninitialised memory. Throws resource_exhausted naming the requested size.
  static HostArray empty(DType dtype, const Shape& shape);
  static HostArray zeros(DType dtype, const Shape& shape);
  // Every element is |value|, converted as by cast().
  static HostArray full(DType dtype, const Shape& shape, double value);
  template <class T>
  static HostArray from(const Shape& shape, std::span<const T> values);
  template <class T>
  static HostArray from(const Shape& shape, std::initializer_list<T> values) {
    return from<T>(shape, std::span<const T>(values.begin(), values.size()));
  }
  // Copies |bytes|, which must be exactly storage_bytes(dtype, shape) long.
  static HostArray from_bytes(DType dtype, const Shape& shape, std::span<const std::byte> bytes);
  // Shares memory owned by |owner| (a DLPack import, a mapped file). Tenon never writes to it.
  static HostArray borrow(DType dtype, const Shape& shape, const void* data, std::shared_ptr<const void> owner);

  DType dtype() const noexcept { return dtype_; }
  const Shape& shape() const noexcept { return shape_; }
  std::int64_t elements() const noexcept { return shape_.elements(); }
  std::size_t bytes() const noexcept { return bytes_; }

  const std::byte* data() const noexcept { return data_; }
  // Copies the bytes first if another HostArray shares them or if they are borrowed.
  std::byte* mutable_data();
  // Whether mutable_data() would copy.
  bool is_shared() const noexcept { return bytes_ != 0 && (borrowed_ || owner_.use_count() != 1); }

  // Typed view. Throws invalid_argument if T does not match the dtype. bool can also be viewed as std::uint8_t.
  template <class T>
  std::span<const T> view() const;
  template <class T>
  std::span<T> mutable_view();

  // The same bytes with another shape of the same number of elements (block formats: a copy). Throws invalid_argument.
  HostArray reshape(const Shape& shape) const;

  // Converts every element. Floats round to nearest even; to integers they truncate towards zero and saturate (NaN -> 0);
  // integers saturate; every nonzero value, including NaN, becomes true. See docs/dtypes.md.
  HostArray cast(DType to) const;

  // One element as double (exact except for 64-bit integers beyond 2^53), by row-major index. For tests and printing.
  double value(std::int64_t index) const;
  // All elements as doubles.
  std::vector<double> to_doubles() const;

 private:
  HostArray(DType dtype, const Shape& shape, std::shared_ptr<const void> owner, const std::byte* data, bool borrowed);
  void check_view(DType wanted) const;

  DType dtype_ = DType::f32;
  bool borrowed_ = false;
  Shape shape_{0};
  std::size_t bytes_ = 0;
  std::shared_ptr<const void> owner_;
  const std::byte* data_ = nullptr;
};

template <class T>
HostArray HostArray::from(const Shape& shape, std::span<const T> values) {
  static_assert(std::is_trivially_copyable_v<T>);
  return from_bytes(dtype_of<T>, shape, std::as_bytes(values));
}

template <class T>
std::span<const T> HostArray::view() const {
  check_view(dtype_of<T>);
  return {reinterpret_cast<const T*>(data_), static_cast<std::size_t>(elements())};
}

template <class T>
std::span<T> HostArray::mutable_view() {
  check_view(dtype_of<T>);
  return {reinterpret_cast<T*>(mutable_data()), static_cast<std::size_t>(elements())};
}

}  // namespace tenon
