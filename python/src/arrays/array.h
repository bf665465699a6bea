// Array: the class of Python's tensors.
#pragma once

#include <nanobind/nanobind.h>

namespace tenon::python {

void bind_array(nanobind::module_& module);

}  // namespace tenon::python
