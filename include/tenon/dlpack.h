// DLPack: arrays handed to and taken from other libraries (NumPy, PyTorch, JAX) without a copy.
//
// The structs have the published layout of DLPack 1.x, under names of our own, so that a program may include DLPack's
// header as well and pass pointers with a reinterpret_cast. Both forms exist: the first one, that every library
// knows, and the versioned one.
//
// Ownership: to_dlpack* gives a tensor that its receiver frees by calling its deleter once. from_dlpack takes the
// tensor over in every case, also when it throws: the deleter is called exactly once, at the latest when the last copy
// of the array goes, from whatever thread that happens in.
// Errors: unimplemented for another device than the CPU, for types Tenon lacks, for another major version;
// invalid_argument for a malformed tensor.
//
//   dlpack::ManagedTensor* tensor = to_dlpack(std::move(array));   // hand over, e.g. in a Python capsule "dltensor"
//   HostArray back = from_dlpack(tensor);
#pragma once

#include <cstdint>

#include "tenon/array.h"

namespace tenon {

namespace dlpack {

inline constexpr std::uint32_t kMajorVersion = 1;
inline constexpr std::uint32_t kMinorVersion = 1;

inline constexpr std::int32_t kCpu = 1;  // of the device types, the one handled here

enum TypeCode : std::uint8_t { kInt = 0, kUInt = 1, kFloat = 2, kOpaque = 3, kBfloat = 4, kComplex = 5, kBool = 6 };

inline constexpr std::uint64_t kReadOnly = 1;  // flag: the receiver must not write
inline constexpr std::uint64_t kIsCopied = 2;  // flag: the bytes are the receiver's alone

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

// This form cannot say that its bytes must not be written, so they are the receiver's alone: they are copied when
// |array| shares them. Pass a moved array to avoid it. Throws unimplemented for the block formats.
dlpack::ManagedTensor* to_dlpack(HostArray array);
// Never copies: a tensor whose bytes are shared or borrowed is flagged read-only.
dlpack::ManagedTensorVersioned* to_dlpack_versioned(HostArray array);

// Row-major, aligned tensors are borrowed; others, and all of bool, are copied. Writing to the array never writes to
// the tensor. A tensor of another major version has its deleter called and is not looked at otherwise.
HostArray from_dlpack(dlpack::ManagedTensor* tensor);
HostArray from_dlpack(dlpack::ManagedTensorVersioned* tensor);

}  // namespace tenon
