#include "backends/ttnn/backend.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <mutex>
#include <set>

#include "backends/ttnn/program.h"
#include "base/log.h"
#include "base/system/child_output.h"
#include "device/detectors.h"
#include "device/naming.h"
#include "hal/kernel_cache.h"
#include "hal/worker/worker.h"
#include "tenon/error.h"

namespace tenon::ttnn {
namespace {

constexpr std::chrono::seconds kResetTimeout{60};

std::string python_of(const DeviceInfo& device) {
  for (const RuntimeInfo& runtime : device.runtimes)
    if (runtime.backend == "ttnn") return runtime.library;
  throw Error(ErrorCode::unavailable, fmt::format("no Python with TTNN was found for {}", device.id),
              "pip install ttnn (CPython 3.10 or 3.12), or name the Python that has it in TENON_TTNN_PYTHON");
}

std::string detail(const DeviceInfo& device, const char* key) {
  const auto found = device.details.find(key);
  return found == device.details.end() ? "" : found->second;
}

class TtnnBackend final : public Backend {
 public:
  std::string_view name() const noexcept override { return "ttnn"; }

  // Cards are found by their detector; this is the chip of a simulator.
  std::vector<DeviceInfo> devices() override {
    Detection found = make_ttnn_detector()->detect({});
    for (DeviceInfo& device : found.devices) {
      device.backends = {"ttnn"};
      device.runtimes = found.runtimes;
    }
    return std::move(found.devices);
  }

  using Backend::open;
  std::unique_ptr<OpenDevice> open(const DeviceInfo& device, const OpenOptions& options) override {
    const Math math = configured_math();
    const TranslatingWorker program{
        .command = {python_of(device), worker_file("tenon-ttnn-worker", "TENON_TTNN_WORKER")},
        .translate = [math](const Graph& graph, const DeviceInfo& opened) { return translate(graph, opened, math); }};
    const WorkerOptions worker{.environment = worker_environment(device)};
    try {
      auto opened = open_in_worker(program, device, options, worker);
      const std::lock_guard lock(mutex_);
      dirty_.erase(device.id);
      return opened;
    } catch (const Error& error) {
      // A chip whose last user died may need a reset before it answers.
      if (error.code() != ErrorCode::unavailable || !reset_if_dirty(device)) throw;
      return open_in_worker(program, device, options, worker);
    }
  }

  void recover(const DeviceInfo& device) override {
    const std::lock_guard lock(mutex_);
    dirty_.insert(device.id);
  }

  // Measured on simulated chips with compiled firmware; the first open of all compiles it, which takes some seconds more.
  Latency latency(const DeviceInfo&) const override { return {1.0, 0.05}; }

 private:
  bool reset_if_dirty(const DeviceInfo& device) {
    {
      const std::lock_guard lock(mutex_);
      if (dirty_.erase(device.id) == 0 || !detail(device, "simulator").empty()) return false;
    }
    const std::string number = device_file_number(device);
    if (!child_output({"tt-smi", "-r", number}, kResetTimeout)) {
      logging::warn("{} did not open after its last user died, and tt-smi -r {} did not reset it", device.id, number);
      return false;
    }
    logging::warn("{} did not open after its last user died; it was reset with tt-smi -r {}", device.id, number);
    return true;
  }

  std::mutex mutex_;
  std::set<std::string> dirty_;  // whose last user died
};

}  // namespace

std::map<std::string, std::string> worker_environment(const DeviceInfo& device) {
  std::map<std::string, std::string> variables;
  const auto unless_set = [&](const char* name, std::string value) {
    if (!std::getenv(name)) variables[name] = std::move(value);
  };
  const std::string simulator = detail(device, "simulator");
  if (simulator.empty()) {
    variables["TT_VISIBLE_DEVICES"] = device_file_number(device);
    variables["TT_METAL_SIMULATOR"] = "";
  } else {
    variables["TT_METAL_SIMULATOR"] = simulator;
    unless_set("TT_METAL_SLOW_DISPATCH_MODE", "1");
    unless_set("TT_METAL_DISABLE_SFPLOADMACRO", "1");
  }
  // TTNN writes to the current folder otherwise.
  if (const std::string& folder = KernelCache::process().folder(); !folder.empty()) {
    unless_set("TT_METAL_CACHE", folder + "/ttnn");
    unless_set("TT_METAL_LOGS_PATH", folder + "/ttnn");
  }
  unless_set("TT_METAL_INSPECTOR", "0");
  unless_set("TT_METAL_RISCV_DEBUG_INFO", "0");  // 0.2 MB for a compiled function instead of 5 to 8
  unless_set("OMPI_MCA_btl", "self");            // or every process leaves 16 MiB in /dev/shm
  unless_set("TT_LOGGER_LEVEL", "error");
  unless_set("LOGURU_LEVEL", "ERROR");
  return variables;
}

std::unique_ptr<Backend> make_backend() { return std::make_unique<TtnnBackend>(); }

}  // namespace tenon::ttnn
