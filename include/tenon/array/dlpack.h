// DLPack: exchange of arrays with other libraries (NumPy, PyTorch, JAX) without a copy.
//
// The structs have the published layout of DLPack 1.x under Tenon's own names, so that a program may also include DLPack's header
// and pass pointers with a reinterpret_cast. Both forms are supported: the unversioned one, which every library knows, and the
// versioned one.
//
// Ownership: the receiver of a tensor from to_dlpack* frees it by calling its deleter once. from_dlpack always takes ownership,
// even if it throws: the deleter is called exactly once, at the latest when the last copy of the array is destroyed, on the
// thread that destroys it.
// Errors: unimplemented for tensors that are not in host memory (Tensor::from_dlpack also takes those of CUDA devices), for types
// Tenon lacks, and for another major version; invalid_argument for a malformed tensor.
//
//   dlpack::ManagedTensor* tensor = to_dlpack(std::move(array));    // e.g. for a Python capsule "dltensor"
//   HostArray back = from_dlpack(tensor);
#pragma once

#include <cstdint>

#include "tenon/array.h"

namespace tenon {

namespace dlpack {

inline constexpr std::uint32_t kMajorVersion = 1;
inline constexpr std::uint32_t kMinorVersion = 1;

inline constexpr std::int32_t kCpu = 1, kCuda = 2;  // device types

enum TypeCode : std::uint8_t { kInt = 0, kUInt = 1, kFloat = 2, kOpaque = 3, kBfloat = 4, kComplex = 5, kBool = 6 };

inline constexpr std::uint64_t kReadOnly = 1;  // flag: the receiver must not write
inline constexpr std::uint64_t kIsCopied = 2;  // flag: the receiver owns the bytes exclusively

struct Version {
  std::uint32_t major;
  std::uint32_t minor;
};

struct Device {
  std::int32_t type;
  std::int32_t id;
};

struct DataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};

struct Tensor {
  void* data;
  Device device;
  std::int32_t ndim;
  DataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements; null means row-major
  std::uint64_t byte_offset;
};

// DLManagedTensor.
struct ManagedTensor {
  Tensor tensor;
  void* manager_context;
  void (*deleter)(ManagedTensor* self);
};

// DLManagedTensorVersioned.
struct ManagedTensorVersioned {
  Version version;
  void* manager_context;
  void (*deleter)(ManagedTensorVersioned* self);
  std::uint64_t flags;
  Tensor tensor;
};

}  // namespace dlpack

// This form has no read-only flag, so the receiver gets exclusive bytes: they are copied if |array| shares them. Move the array
// in to avoid the copy. Throws unimplemented for the block formats.
dlpack::ManagedTensor* to_dlpack(HostArray array);
// Never copies: a tensor whose bytes are shared or borrowed is flagged read-only.
dlpack::ManagedTensorVersioned* to_dlpack_versioned(HostArray array);

// Row-major, aligned tensors are borrowed; others, and all bool tensors, are copied. Writing to the array never writes to the
// tensor. If the major version differs, only the deleter is called.
HostArray from_dlpack(dlpack::ManagedTensor* tensor);
HostArray from_dlpack(dlpack::ManagedTensorVersioned* tensor);

}  // namespace tenon
