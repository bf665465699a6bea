#include "backends/pjrt/backend.h"

#include <fmt/format.h>

#include <cstdlib>

#include "backends/pjrt/device.h"
#include "backends/pjrt/environment.h"
#include "device/detectors.h"
#include "hal/worker/worker.h"
#include "tenon/error.h"

namespace tenon::pjrt {
namespace {

std::string file_name(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

// The plugin that drives |device|.
std::string library_of(const DeviceInfo& device) {
  if (const auto named = device.details.find("plugin"); named != device.details.end()) return named->second;
  for (const RuntimeInfo& runtime : device.runtimes)
    if (runtime.backend == "pjrt") return runtime.library;
  throw Error(ErrorCode::unavailable, fmt::format("no PJRT plugin was found for {}", device.id),
              "install the vendor's plugin, or name it in PJRT_NAMES_AND_LIBRARY_PATHS");
}

class PjrtBackend final : public Backend {
 public:
  std::string_view name() const noexcept override { return "pjrt"; }

  // CPU plugins only; cards are found by their detectors, which name the plugin that drives them.
  std::vector<DeviceInfo> devices() override {
    std::vector<DeviceInfo> found;
    for (const RuntimeInfo& runtime : make_pjrt_detector()->detect({}).runtimes) {
      if (!runtime.vendor.empty()) continue;
      DeviceInfo device;
      device.id = fmt::format("pjrt:{}", found.size());
      device.kind = DeviceKind::cpu;
      device.name = file_name(runtime.library);
      device.backends = {"pjrt"};
      device.runtimes = {runtime};
      device.details["plugin"] = runtime.library;
      found.push_back(std::move(device));
    }
    return found;
  }

  using Backend::open;
  // A plugin holds its device until its process ends, and terminates the process if it fails.
  std::unique_ptr<OpenDevice> open(const DeviceInfo& device, const OpenOptions& options) override {
    const std::string library = library_of(device);
    if (is_worker()) return open_here(library, device, options);
    WorkerOptions worker{.environment = pinning_variables(device)};
    if (!std::getenv("TF_CPP_MIN_LOG_LEVEL")) worker.environment["TF_CPP_MIN_LOG_LEVEL"] = "2";  // errors only
    const char* given = std::getenv("XLA_FLAGS");
    const std::string flags = xla_flags(library, given ? given : "");
    if (flags.empty()) return open_in_worker(name(), device, options, worker);
    WorkerOptions with_flags = worker;
    with_flags.environment["XLA_FLAGS"] = flags;
    try {
      return open_in_worker(name(), device, options, with_flags);
    } catch (const Error& error) {
      // A plugin terminates its process on an unknown flag.
      if (error.code() != ErrorCode::unavailable) throw;
      return open_in_worker(name(), device, options, worker);
    }
  }

  void check(const DeviceInfo& device, const Graph& graph) const override {
    if (device.kind == DeviceKind::cpu || device.kind == DeviceKind::gpu) return;
    for (NodeId id = 0; id < graph.size(); ++id)
      if (graph[id].dtype == DType::f64 && !graph[id].weak)
        throw Error(ErrorCode::unimplemented, fmt::format("{} does not compute in float64", device.id), "use float32");
  }

  // Measured with XLA's plugins; chips that train their links at start take longer.
  Latency latency(const DeviceInfo& device) const override {
    if (device.kind == DeviceKind::cpu) return {0.1, 0.02};
    return device.kind == DeviceKind::gpu ? Latency{1.0, 0.1} : Latency{5.0, 1.0};
  }
};

}  // namespace

std::unique_ptr<Backend> make_backend() { return std::make_unique<PjrtBackend>(); }

}  // namespace tenon::pjrt
