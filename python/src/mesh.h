// The Python class of meshes.
#pragma once

#include <nanobind/nanobind.h>

namespace tenon::python {

void bind_mesh(nanobind::module_& module);

}  // namespace tenon::python
