// x[key] and x[key] = value for the keys that Python allows.
#pragma once

#include <nanobind/nanobind.h>

#include "tenon/tensor.h"

namespace tenon::python {

// |key|: an integer, a slice, None, ..., an array-like of integers or bools, or a tuple of these.
Tensor get_index(const Tensor& x, PyObject* key);
Tensor set_index(const Tensor& x, PyObject* key, const Tensor& value);

}  // namespace tenon::python
