// DLPack in Python: capsules in and out (the structs are those of tenon/dlpack.h).
#pragma once

#include <nanobind/nanobind.h>

#include "convert.h"

namespace tenon::python {

// The array of an object with __dlpack__, borrowed where its layout allows and |copy| does not demand a copy.
Tensor from_dlpack_object(PyObject* object, Copy copy);

// For Array.__dlpack__: a capsule of the versioned form if |max_version| allows it. |copy| always gives memory of its own.
nb::object to_dlpack_capsule(const Tensor& tensor, nb::handle max_version, Copy copy);

}  // namespace tenon::python
