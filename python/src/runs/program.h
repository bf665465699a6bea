// The Python class of recorded programs.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "tenon/graph.h"

namespace tenon::python {

struct CallOptions;

void bind_program(nanobind::module_& module);

// The routing decision for |graph| as JSON (devices.cpp). Releases the GIL.
std::string explain_json(const Graph& graph, const CallOptions& options);

}  // namespace tenon::python
