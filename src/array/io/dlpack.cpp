#include "tenon/array/dlpack.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "array/io/dlpack_parts.h"
#include "array/strided_copy.h"
#include "tenon/error.h"

namespace tenon {
namespace dlpack {
namespace {

constexpr const char* kBrokenHint = "the program that made this tensor describes it wrongly; export a copy of it";

// The published layout for 64-bit machines.
static_assert(sizeof(dlpack::Tensor) == 48 && offsetof(dlpack::Tensor, shape) == 24 &&
              offsetof(dlpack::Tensor, byte_offset) == 40);
static_assert(sizeof(dlpack::ManagedTensor) == 64 && offsetof(dlpack::ManagedTensor, deleter) == 56);
static_assert(sizeof(dlpack::ManagedTensorVersioned) == 80 && offsetof(dlpack::ManagedTensorVersioned, tensor) == 32);

}  // namespace

DataType data_type_of(DType dtype) {
  const auto bits = static_cast<std::uint8_t>(8 * element_bytes(dtype));
  if (is_block(dtype))
    throw Error(ErrorCode::unimplemented, fmt::format("DLPack cannot describe {}", name(dtype)),
                "cast to float32 or bfloat16 first");
  if (dtype == DType::boolean) return {kBool, 8, 1};
  if (dtype == DType::bf16) return {kBfloat, 16, 1};
  if (is_float(dtype)) return {kFloat, bits, 1};
  return {is_signed_integer(dtype) ? kInt : kUInt, bits, 1};
}

DType dtype_of(const DataType& type) {
  if (type.lanes == 1)
    for (DType dtype : all_dtypes()) {
      if (is_block(dtype)) continue;
      const DataType candidate = data_type_of(dtype);
      if (candidate.code == type.code && candidate.bits == type.bits) return dtype;
    }
  throw Error(ErrorCode::unimplemented,
              fmt::format("DLPack type code {} of {} bits and {} lanes is not supported", type.code, type.bits, type.lanes),
              "use bool, integers, float16, bfloat16, float32 or float64");
}

// Calls the deleter once, when its last owner is destroyed.
template <class Managed>
std::shared_ptr<Managed> adopt(Managed* managed) {
  if (managed == nullptr)
    throw Error(ErrorCode::invalid_argument, "the DLPack tensor is null",
                "pass the tensor that was exported, and each only once");
  return std::shared_ptr<Managed>(managed, [](Managed* tensor) {
    if (tensor->deleter != nullptr) tensor->deleter(tensor);
  });
}
template std::shared_ptr<ManagedTensor> adopt(ManagedTensor*);
template std::shared_ptr<ManagedTensorVersioned> adopt(ManagedTensorVersioned*);

void check_version(const ManagedTensor&) {}
void check_version(const ManagedTensorVersioned& tensor) {
  if (tensor.version.major != kMajorVersion)
    throw Error(ErrorCode::unimplemented,
                fmt::format("the tensor has DLPack version {}.{}, but only version {} is supported", tensor.version.major,
                            tensor.version.minor, kMajorVersion),
                "export it as version 1 or in the unversioned form");
}

Shape shape_of(const Tensor& tensor) {
  if (tensor.ndim < 0 || tensor.ndim > kMaxRank)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the DLPack tensor has {} axes; 0 to {} are supported", tensor.ndim, kMaxRank),
                "reshape it to fewer axes first");
  if (tensor.ndim > 0 && tensor.shape == nullptr)
    throw Error(ErrorCode::invalid_argument, "the DLPack tensor has no shape", kBrokenHint);
  const std::span<const std::int64_t> extents(tensor.shape, static_cast<std::size_t>(tensor.ndim));
  if (std::ranges::any_of(extents, [](std::int64_t extent) { return extent < 0; }))
    throw Error(ErrorCode::invalid_argument, "the DLPack tensor has a negative extent", kBrokenHint);
  return Shape(extents);
}

bool is_row_major(const Tensor& tensor, const Shape& shape) {
  if (tensor.strides == nullptr || shape.elements() == 0) return true;
  const Strides wanted = contiguous_strides(shape);
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (shape[axis] != 1 && tensor.strides[axis] != wanted[static_cast<std::size_t>(axis)]) return false;
  return true;
}

}  // namespace dlpack

namespace {

using dlpack::kBrokenHint;

HostArray copy_tensor(const std::byte* data, DType dtype, const Shape& shape, const std::int64_t* strides) {
  const Strides contiguous = contiguous_strides(shape);
  const auto size = static_cast<std::int64_t>(element_bytes(dtype));
  Strides byte_strides{};
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const auto a = static_cast<std::size_t>(axis);
    const std::int64_t stride = strides == nullptr ? contiguous[a] : strides[axis];
    constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max() / 8 / kMaxRank;
    const std::int64_t reach = kLargest / std::max<std::int64_t>(shape[axis], 1);
    if (stride > reach || stride < -reach)
      throw Error(ErrorCode::invalid_argument, fmt::format("the DLPack tensor's stride {} overflows", stride), kBrokenHint);
    byte_strides[a] = stride * size;
  }
  HostArray out = HostArray::empty(dtype, shape);
  copy_strided(data, shape, std::span(byte_strides).first(static_cast<std::size_t>(shape.rank())), element_bytes(dtype),
               out.mutable_data());
  if (dtype == DType::boolean) return HostArray::from_bytes(dtype, shape, {out.data(), out.bytes()});
  return out;
}

// The CPU's own memory, and what CUDA and ROCm pinned for transfers.
bool is_in_host_memory(std::int32_t type) {
  constexpr std::int32_t kPinnedByCuda = 3, kPinnedByRocm = 11;
  return type == dlpack::kCpu || type == kPinnedByCuda || type == kPinnedByRocm;
}

HostArray import_tensor(const dlpack::Tensor& tensor, std::shared_ptr<const void> owner) {
  if (!is_in_host_memory(tensor.device.type))
    throw Error(ErrorCode::unimplemented,
                fmt::format("the DLPack tensor is on device type {}, but only tensors in host memory can be imported",
                            tensor.device.type),
                "copy it to the host first");
  const DType dtype = dlpack::dtype_of(tensor.dtype);
  const Shape shape = dlpack::shape_of(tensor);
  if (shape.elements() == 0) return HostArray::empty(dtype, shape);
  if (tensor.data == nullptr) throw Error(ErrorCode::invalid_argument, "the DLPack tensor has no data", kBrokenHint);
  const std::byte* const data = static_cast<const std::byte*>(tensor.data) + tensor.byte_offset;
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(data) % element_bytes(dtype) == 0;
  // The owner of a borrowed bool could change its bytes to values other than 0 and 1.
  if (is_aligned && dtype != DType::boolean && dlpack::is_row_major(tensor, shape))
    return HostArray::borrow(dtype, shape, data, std::move(owner));
  return copy_tensor(data, dtype, shape, tensor.strides);
}

// |data|: the bytes of |array|.
template <class Managed>
Managed* export_array(HostArray array, std::byte* data) {
  const DType dtype = array.dtype();
  const Shape shape = array.shape();
  return dlpack::export_memory<Managed>(dtype, shape, data, {dlpack::kCpu, 0}, std::make_shared<HostArray>(std::move(array)));
}

template <class Managed>
HostArray import_managed(Managed* tensor) {
  const auto owner = dlpack::adopt(tensor);
  dlpack::check_version(*owner);
  return import_tensor(owner->tensor, owner);
}

}  // namespace

dlpack::ManagedTensor* to_dlpack(HostArray array) {
  std::byte* const data = array.mutable_data();
  return export_array<dlpack::ManagedTensor>(std::move(array), data);
}

dlpack::ManagedTensorVersioned* to_dlpack_versioned(HostArray array) {
  const bool is_shared = array.is_shared();
  std::byte* const data = is_shared ? const_cast<std::byte*>(array.data()) : array.mutable_data();
  dlpack::ManagedTensorVersioned* const out = export_array<dlpack::ManagedTensorVersioned>(std::move(array), data);
  out->version = {dlpack::kMajorVersion, dlpack::kMinorVersion};
  out->flags = is_shared ? dlpack::kReadOnly : 0;
  return out;
}

HostArray from_dlpack(dlpack::ManagedTensor* tensor) { return import_managed(tensor); }
HostArray from_dlpack(dlpack::ManagedTensorVersioned* tensor) { return import_managed(tensor); }

}  // namespace tenon
