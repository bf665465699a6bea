#include "tenon/array.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "array/block_format.h"
#include "array/convert.h"
#include "array/host_memory.h"
#include "tenon/error.h"

namespace tenon {
namespace {

// The target of data() for an array without elements, so that memcpy never gets a null pointer.
alignas(host_memory::kAlignment) constexpr std::byte kNothing[host_memory::kAlignment]{};

template <class T>
void fill_with(std::byte* out, const std::byte* element, std::int64_t n) {
  T value;
  std::memcpy(&value, element, sizeof value);
  std::fill_n(reinterpret_cast<T*>(out), n, value);
}

void fill_elements(std::byte* out, const std::byte* element, std::size_t element_size, std::int64_t n) {
  switch (element_size) {
    case 1: return fill_with<std::uint8_t>(out, element, n);
    case 2: return fill_with<std::uint16_t>(out, element, n);
    case 4: return fill_with<std::uint32_t>(out, element, n);
    default: return fill_with<std::uint64_t>(out, element, n);
  }
}

}  // namespace

std::size_t storage_bytes(DType dtype, const Shape& shape) {
  if (!is_block(dtype)) return static_cast<std::size_t>(shape.elements()) * element_bytes(dtype);
  if (shape.elements() == 0) return 0;
  const auto tiles_along = [](std::int64_t extent) { return (extent + kTileSide - 1) / kTileSide; };
  std::int64_t tiles = 1;
  for (int axis = 0; axis < shape.rank(); ++axis) tiles *= axis < shape.rank() - 2 ? shape[axis] : tiles_along(shape[axis]);
  return static_cast<std::size_t>(tiles) * tile_bytes(dtype);
}

HostArray::HostArray(DType dtype, const Shape& shape, std::shared_ptr<const void> owner, const std::byte* data, bool borrowed)
    : dtype_(dtype),
      borrowed_(borrowed),
      shape_(shape),
      bytes_(storage_bytes(dtype, shape)),
      owner_(std::move(owner)),
      data_(data) {}

HostArray HostArray::empty(DType dtype, const Shape& shape) {
  const std::size_t bytes = storage_bytes(dtype, shape);
  if (bytes == 0) return {dtype, shape, nullptr, kNothing, false};
  std::shared_ptr<void> block = host_memory::allocate_shared(bytes);
  const auto* data = static_cast<const std::byte*>(block.get());
  return {dtype, shape, std::move(block), data, false};
}

HostArray HostArray::zeros(DType dtype, const Shape& shape) {
  HostArray out = empty(dtype, shape);
  std::memset(out.mutable_data(), 0, out.bytes());
  return out;
}

HostArray HostArray::full(DType dtype, const Shape& shape, double value) {
  if (is_block(dtype)) return full(DType::f32, shape, value).cast(dtype);
  HostArray out = empty(dtype, shape);
  alignas(8) std::byte element[8];
  convert_elements(DType::f64, &value, dtype, element, 1);
  fill_elements(out.mutable_data(), element, element_bytes(dtype), out.elements());
  return out;
}

HostArray HostArray::from_bytes(DType dtype, const Shape& shape, std::span<const std::byte> bytes) {
  const std::size_t wanted = storage_bytes(dtype, shape);
  if (bytes.size() != wanted)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} of shape {} needs {} bytes, but got {}", name(dtype), to_string(shape), wanted, bytes.size()));
  HostArray out = empty(dtype, shape);
  if (wanted != 0) std::memcpy(out.mutable_data(), bytes.data(), wanted);
  if (dtype == DType::boolean) normalize_booleans(out.mutable_data(), wanted);
  return out;
}

HostArray HostArray::borrow(DType dtype, const Shape& shape, const void* data, std::shared_ptr<const void> owner) {
  const bool has_bytes = storage_bytes(dtype, shape) != 0;
  if (has_bytes && data == nullptr) throw Error(ErrorCode::invalid_argument, "cannot borrow an array: the data pointer is null");
  return {dtype, shape, std::move(owner), has_bytes ? static_cast<const std::byte*>(data) : kNothing, true};
}

std::byte* HostArray::mutable_data() {
  if (is_shared()) {
    HostArray own = empty(dtype_, shape_);
    std::memcpy(const_cast<std::byte*>(own.data_), data_, bytes_);
    *this = std::move(own);
  }
  // Pairs with the release in the other owners' destructors: their last reads happen before our first write.
  std::atomic_thread_fence(std::memory_order_acquire);
  return const_cast<std::byte*>(data_);
}

HostArray HostArray::reshape(const Shape& shape) const {
  if (shape.elements() != elements())
    throw Error(ErrorCode::invalid_argument, fmt::format("cannot reshape {} ({} elements) to {} ({} elements)", to_string(shape_),
                                                         elements(), to_string(shape), shape.elements()));
  // A new shape puts different elements into a block, so they share other exponents.
  if (is_block(dtype_)) return shape == shape_ ? *this : cast(DType::f32).reshape(shape).cast(dtype_);
  HostArray out = *this;
  out.shape_ = shape;
  return out;
}

HostArray HostArray::cast(DType to) const {
  if (to == dtype_) return *this;
  if (is_block(dtype_)) {
    HostArray floats = empty(DType::f32, shape_);
    decode_block(dtype_, shape_, data_, reinterpret_cast<float*>(floats.mutable_data()));
    return floats.cast(to);
  }
  if (is_block(to)) {
    const HostArray floats = cast(DType::f32);
    HostArray out = empty(to, shape_);
    encode_block(to, shape_, reinterpret_cast<const float*>(floats.data()), out.mutable_data());
    return out;
  }
  HostArray out = empty(to, shape_);
  convert_elements(dtype_, data_, to, out.mutable_data(), elements());
  return out;
}

double HostArray::value(std::int64_t index) const {
  if (index < 0 || index >= elements())
    throw Error(ErrorCode::out_of_range, fmt::format("index {} is out of range for an array of {} elements", index, elements()));
  if (is_block(dtype_)) return static_cast<double>(decode_block_element(dtype_, shape_, data_, index));
  double out = 0;
  convert_elements(dtype_, data_ + static_cast<std::size_t>(index) * element_bytes(dtype_), DType::f64, &out, 1);
  return out;
}

std::vector<double> HostArray::to_doubles() const {
  if (is_block(dtype_)) return cast(DType::f32).to_doubles();
  std::vector<double> out(static_cast<std::size_t>(elements()));
  convert_elements(dtype_, data_, DType::f64, out.data(), elements());
  return out;
}

void HostArray::check_view(DType wanted) const {
  if (wanted == dtype_ || (wanted == DType::u8 && dtype_ == DType::boolean)) return;
  throw Error(ErrorCode::invalid_argument, fmt::format("an array of {} cannot be viewed as {}", name(dtype_), name(wanted)),
              "use cast(DType) to convert it");
}

}  // namespace tenon
