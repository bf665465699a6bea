#include "devices.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "arrays/convert.h"
#include "base/text/json_writer.h"
#include "lease/turnstile/run_directory.h"
#include "lease/turnstile/turnstile.h"
#include "present/device/device.h"
#include "present/device/device_status.h"
#include "present/route.h"
#include "runs/evaluation.h"
#include "runs/program.h"
#include "runs/waiting.h"
#include "tenon/manager.h"
#include "tenon/tensor/program.h"

namespace tenon::python {
namespace {

template <class Write>
std::string json_list(const Write& write) {
  std::string text;
  JsonWriter json(text);
  json.begin_array();
  write(json);
  json.end_array();
  return text;
}

std::string devices_json() {
  WithoutGil free;
  DeviceManager& manager = process_manager();
  const std::vector<DeviceStatus> all = manager.status();
  return json_list([&](JsonWriter& json) {
    for (const DeviceInfo& device : manager.devices()) {
      const auto status =
          std::find_if(all.begin(), all.end(), [&](const DeviceStatus& one) { return one.device.id == device.id; });
      present::write_device(json, device, status == all.end() ? nullptr : &*status);
    }
  });
}

// As the command shows it: every device, and every other one that has a queue.
std::string queue_json() {
  WithoutGil free;
  std::vector<Turnstile::Queue> queues;
  for (const DeviceInfo& device : process_manager().devices()) queues.push_back({.device = device.id});
  if (const std::optional<RunDirectory> directory = RunDirectory::open_existing())
    for (const Turnstile& turnstile : Turnstile::all(*directory)) {
      const auto known =
          std::find_if(queues.begin(), queues.end(), [&](const auto& queue) { return queue.device == turnstile.device(); });
      if (known != queues.end())
        *known = turnstile.queue();
      else
        queues.push_back(turnstile.queue());
    }
  return json_list([&](JsonWriter& json) {
    for (const Turnstile::Queue& queue : queues) present::write_queue(json, queue);
  });
}

}  // namespace

std::string explain_json(const Graph& graph, const CallOptions& options) {
  const RunOptions run{.device = options.device, .routing = options.routing, .prefer = options.prefer};
  WithoutGil free;
  std::string text;
  JsonWriter json(text);
  present::write_route(json, run.device, process_manager().explain(graph, run));
  return text;
}

void bind_devices(nb::module_& module) {
  module.def("_devices", &devices_json);
  module.def("_queue", &queue_json);
  module.def(
      "_explain",
      [](nb::handle array, nb::handle device, nb::handle routing, nb::handle prefer) {
        CallOptions options;
        options.device = nb::cast<std::string>(device);
        return explain_json(Program::record({}, std::array{tensor_in(array.ptr())}).graph(), options.choose(routing, prefer));
      },
      nb::arg("array"), nb::arg("device"), nb::arg("routing").none(), nb::arg("prefer").none());
  module.def("_find", [](const std::string& request) {
    WithoutGil free;
    return process_manager().find(request).id;
  });
  module.def(
      "_close",
      [](nb::handle device) {
        wait([id = device.is_none() ? std::string() : nb::cast<std::string>(nb::str(device))](Waiting&) {
          if (id.empty())
            process_manager().close_all();
          else
            process_manager().close(id);
        });
      },
      nb::arg("device").none());
  module.def("_set_default_device", [](const std::string& device) {
    WithoutGil free;
    process_manager().set_default_device(device);
  });
  module.def("_default_device", [] {
    WithoutGil free;
    return process_manager().default_device().id;
  });
}

}  // namespace tenon::python
