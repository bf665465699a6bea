// What exchanges of arrays in host memory and of tensors on devices share: reading and making DLPack's structs.
#pragma once

#include <algorithm>
#include <array>
#include <memory>

#include "tenon/array/dlpack.h"

namespace tenon::dlpack {

// Throw unimplemented for types that DLPack or Tenon lacks.
DataType data_type_of(DType dtype);
DType dtype_of(const DataType& type);
// Throws invalid_argument for a malformed tensor.
Shape shape_of(const Tensor& tensor);
bool is_row_major(const Tensor& tensor, const Shape& shape);

// Calls the deleter once, when its last owner is destroyed. Throws invalid_argument for null.
template <class Managed>
std::shared_ptr<Managed> adopt(Managed* managed);
// Throws unimplemented for another major version.
void check_version(const ManagedTensor& tensor);
void check_version(const ManagedTensorVersioned& tensor);

// The memory's owner, and the extents and strides that a tensor points to.
template <class Managed>
struct Exported {
  Managed managed{};
  std::shared_ptr<const void> owner;
  std::array<std::int64_t, kMaxRank> shape{};
  Strides strides{};

  static void free(Managed* self) { delete static_cast<Exported*>(self->manager_context); }
};

// A row-major tensor over |data|, which lives as long as |owner|. The version and the flags are left to the caller.
template <class Managed>
Managed* export_memory(DType dtype, const Shape& shape, void* data, const Device& device, std::shared_ptr<const void> owner) {
  const DataType type = data_type_of(dtype);
  auto out = std::make_unique<Exported<Managed>>();
  std::copy(shape.begin(), shape.end(), out->shape.begin());
  out->strides = contiguous_strides(shape);
  out->managed.manager_context = out.get();
  out->managed.deleter = &Exported<Managed>::free;
  out->managed.tensor = {.data = data,
                         .device = device,
                         .ndim = shape.rank(),
                         .dtype = type,
                         .shape = out->shape.data(),
                         .strides = out->strides.data(),
                         .byte_offset = 0};
  out->owner = std::move(owner);
  return &out.release()->managed;
}

}  // namespace tenon::dlpack
