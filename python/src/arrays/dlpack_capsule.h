// DLPack in Python: capsules in and out (the structs are those of tenon/array/dlpack.h).
#pragma once

#include <nanobind/nanobind.h>

#include "arrays/convert.h"

namespace tenon::python {

// The array of an object with __dlpack__, borrowed where its layout allows and |copy| does not demand a copy. An array on a CUDA
// device is borrowed there if the device is in this process; on others it is copied to host memory by its own library. Raises
// tenon.ExchangeRefused where |copy| is never and one is needed, or where that library cannot copy.
Tensor from_dlpack_object(PyObject* object, Copy copy);

// The arguments of Array.__dlpack__.
struct DlpackRequest {
  nb::handle stream, max_version, device;
  Copy copy = Copy::if_needed;
};

// What __dlpack_device__ answers: evaluates the array.
nb::object dlpack_device_of(const Tensor& tensor);

// A capsule of the versioned form if the version allows it: on the CUDA device where the array is, if this process has it open,
// and in host memory otherwise. Raises tenon.ExchangeRefused for what is not possible.
nb::object to_dlpack_capsule(const Tensor& tensor, const DlpackRequest& request);

}  // namespace tenon::python
