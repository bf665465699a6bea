// Devices, leases and the configuration for Python.
//
// What there is to know of a device, its queue or a decision comes as JSON from src/present, the description that the command and
// the server use; tenon/_devices.py makes objects of it.
#pragma once

#include <nanobind/nanobind.h>

namespace tenon::python {

void bind_devices(nanobind::module_& module);
void bind_lease(nanobind::module_& module);
void bind_config(nanobind::module_& module);
void bind_placement(nanobind::module_& module);
void bind_device_library(nanobind::module_& module);

}  // namespace tenon::python
