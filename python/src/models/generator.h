// The Python classes of language models.
#pragma once

#include <nanobind/nanobind.h>

namespace tenon::python {

void bind_generator(nanobind::module_& module);

}  // namespace tenon::python
