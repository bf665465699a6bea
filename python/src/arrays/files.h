// .npy and safetensors files for Python.
#pragma once

#include <nanobind/nanobind.h>

namespace tenon::python {

void bind_files(nanobind::module_& module);

}  // namespace tenon::python
