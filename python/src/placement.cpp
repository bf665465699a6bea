// What the compatibility modules need of placement.h, batch.h and config.h.
#include "tenon/manager/placement.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <string>
#include <vector>

#include "devices.h"
#include "gil.h"
#include "tenon/error.h"
#include "tenon/manager.h"
#include "tenon/manager/batch.h"
#include "tenon/manager/config.h"

namespace nb = nanobind;

namespace tenon::python {
namespace {

std::vector<DeviceInfo> devices_named(nb::sequence ids) {
  std::vector<DeviceInfo> found;
  for (nb::handle id : ids) found.push_back(process_manager().find(nb::cast<std::string>(nb::str(id))));
  return found;
}

nb::dict capabilities() {
  std::vector<DeviceInfo> devices;
  {
    WithoutGil free;
    devices = process_manager().devices();
  }
  const placement::DeviceSummary summary = placement::summarize(devices);
  const placement::Capabilities& known = summary.capabilities;
  nb::dict all;
  all["backend"] = summary.backend;
  all["device_type"] = std::string(name(known.device_type));
  all["device_count"] = known.device_count;
  all["total_memory_mb"] = known.total_memory_mb;
  all["compute_capability"] = known.compute_capability;
  all["cuda_version"] = known.cuda_version;
  all["driver_version"] = known.driver_version;
  all["supports_mixed_precision"] = known.supports_mixed_precision;
  all["supports_distributed"] = known.supports_distributed;
  return all;
}

}  // namespace

void bind_placement(nb::module_& module) {
  module.def("_capabilities", &capabilities);
  // The devices that a batch is distributed over by default.
  module.def("_targets", [] {
    nb::list ids;
    for (const DeviceInfo& device : placement::distribution_targets(process_manager().devices())) ids.append(device.id);
    return ids;
  });
  module.def("_shards", [](std::int64_t rows, nb::sequence ids) {
    nb::list shards;
    for (const placement::Shard& shard : placement::distribute_rows(rows, devices_named(ids)))
      shards.append(nb::make_tuple(shard.device, shard.begin, shard.end));
    return shards;
  });
  module.def("_batch_config", [](const std::string& kind, std::int64_t base) {
    const std::optional<DeviceKind> known = parse_device_kind(kind);
    if (!known) throw Error(ErrorCode::not_found, "unknown kind of device '" + kind + "'");
    const BatchConfig batch = batch_config(*known, base, process_manager().config());
    return nb::make_tuple(batch.batch_size, batch.max_batch_size, batch.min_batch_size, batch.prefetch_factor);
  });
  module.def("_strategy_for_model",
             [](double parameters) { return std::string(name(optimize_for_model_size({}, parameters).memory_strategy)); });
}

}  // namespace tenon::python
