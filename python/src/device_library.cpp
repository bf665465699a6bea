// The device library's calls (tenon/tensor/device_library.h) for tenon.compat.tt_lib.
#include "tenon/tensor/device_library.h"

#include <nanobind/stl/string.h>

#include <string>

#include "devices.h"
#include "runs/waiting.h"
#include "tenon/error.h"

namespace tenon::python {
namespace {

using device_library::Arch;
using device_library::Device;

Arch arch_named(const std::string& text) {
  for (const Arch arch : {Arch::grayskull, Arch::wormhole, Arch::blackhole})
    if (name(arch) == text) return arch;
  throw Error(ErrorCode::not_found, "unknown architecture '" + text + "'", "known are grayskull, wormhole and blackhole");
}

}  // namespace

void bind_device_library(nb::module_& module) {
  nb::class_<Device>(module, "_LibraryDevice")
      .def_prop_ro("id", [](const Device& self) { return self.info().id; })
      .def_prop_ro("arch", [](const Device& self) { return std::string(name(self.arch())); })
      .def_prop_ro("slot", &Device::slot)
      .def_prop_ro("is_initialized", &Device::is_initialized)
      .def_prop_ro("request", [](const Device& self) { return std::string(std::string_view(self)); });
  module.def("_create_device",
             [](const std::string& arch, int slot) { return device_library::create_device(arch_named(arch), slot); });
  module.def("_initialize_device",
             [](const Device& device) { wait([&](Waiting&) { device_library::initialize_device(device); }); });
  module.def("_close_device", [](const Device& device) { wait([&](Waiting&) { device_library::close_device(device); }); });
  module.def("_set_library_default", &device_library::set_default_device);
  module.def("_get_library_default", []() -> nb::object {
    const std::optional<Device> device = device_library::get_default_device();
    return device ? nb::cast(*device) : nb::none();
  });
}

}  // namespace tenon::python
