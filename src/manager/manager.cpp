#include "tenon/manager.h"

#include <fmt/format.h>

#include <chrono>
#include <list>
#include <map>
#include <mutex>
#include <unordered_map>

#include "backends/all.h"
#include "device/detect.h"
#include "manager/inventory.h"
#include "tenon/error.h"

namespace tenon {
namespace {

// Compiled programs kept per manager; the least recently used goes first.
constexpr std::size_t kMaxExecutables = 64;

class Stopwatch {
 public:
  // Seconds since the last call, or since construction.
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - last_).count();
    last_ = now;
    return seconds;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace

struct DeviceManager::State {
  Config config;
  BackendRegistry registry;
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<OpenDevice>> open_devices;
  Detectors detectors;  // the program's own

  struct Compiled {
    std::string key;
    std::shared_ptr<Executable> executable;
  };
  std::list<Compiled> recent;  // most recently used first
  std::unordered_map<std::string, std::list<Compiled>::iterator> compiled;

  std::shared_ptr<Executable> find_compiled(const std::string& key) {
    const std::lock_guard lock(mutex);
    const auto found = compiled.find(key);
    if (found == compiled.end()) return nullptr;
    recent.splice(recent.begin(), recent, found->second);
    return found->second->executable;
  }

  void keep_compiled(const std::string& key, std::shared_ptr<Executable> executable) {
    const std::lock_guard lock(mutex);
    if (compiled.count(key)) return;
    recent.push_front({key, std::move(executable)});
    compiled[key] = recent.begin();
    if (recent.size() > kMaxExecutables) {
      compiled.erase(recent.back().key);
      recent.pop_back();
    }
  }
};

DeviceManager::DeviceManager(Config config) : state_(std::make_shared<State>()) {
  state_->config = std::move(config);
  register_all_backends(state_->registry);
}
DeviceManager::~DeviceManager() = default;

const Config& DeviceManager::config() const noexcept { return state_->config; }

Detection DeviceManager::detect() const {
  std::vector<const Detector*> own;
  {
    const std::lock_guard lock(state_->mutex);
    for (const auto& detector : state_->detectors) own.push_back(detector.get());
  }
  Detection found = tenon::detect({}, own);
  found.devices = inventory(std::move(found.devices), state_->registry);
  return found;
}

std::vector<DeviceInfo> DeviceManager::devices() const { return detect().devices; }

void DeviceManager::add_detector(std::unique_ptr<Detector> detector) {
  const std::lock_guard lock(state_->mutex);
  state_->detectors.push_back(std::move(detector));
}

DeviceInfo DeviceManager::find(std::string_view wish) const {
  // Looking at the whole machine takes milliseconds, which a run on the processor should not pay.
  for (const DeviceInfo& device : state_->registry.devices())
    if (device.available && (wish == "auto" || wish == device.id || wish == name(device.kind))) return device;
  const std::vector<DeviceInfo> all = devices();
  if (const DeviceInfo* device = find_device(all, wish)) return *device;
  std::string known;
  for (const DeviceInfo& device : all) known += (known.empty() ? "" : ", ") + device.id;
  throw Error(ErrorCode::not_found, fmt::format("there is no device '{}'", wish),
              fmt::format("devices of this machine: {}", known));
}

std::shared_ptr<OpenDevice> DeviceManager::open(std::string_view wish) {
  const DeviceInfo info = find(wish);
  if (!info.available)
    throw Error(ErrorCode::unavailable, fmt::format("{} cannot be used: {}", info.id, info.reason), info.remedy);
  const std::lock_guard lock(state_->mutex);
  std::shared_ptr<OpenDevice>& device = state_->open_devices[info.id];
  if (!device) device = state_->registry.find(info.backends.at(0))->open(info);
  return device;
}

RunResult DeviceManager::run(const Graph& graph, std::span<const HostArray> inputs, const RunOptions& options) {
  if (inputs.size() != graph.inputs().size())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the program takes {} inputs, got {}", graph.inputs().size(), inputs.size()));
  if (options.repeat < 1) throw Error(ErrorCode::invalid_argument, "repeat must be at least 1");

  RunResult result;
  Stopwatch watch;
  const auto stage = [&](const char* name) { result.timeline.push_back({name, watch.lap()}); };

  const std::shared_ptr<OpenDevice> device = open(options.device);
  result.device = device->info();
  stage("opening");

  const std::string key = result.device.id + '\n' + graph.text();
  std::shared_ptr<Executable> executable = state_->find_compiled(key);
  if (!executable) {
    executable = device->compile(graph);
    state_->keep_compiled(key, executable);
  }
  stage("compiling");

  std::vector<std::unique_ptr<Buffer>> uploaded, results;
  std::vector<const Buffer*> in;
  std::vector<Buffer*> out;
  for (const HostArray& array : inputs) {
    uploaded.push_back(device->upload(array));
    in.push_back(uploaded.back().get());
  }
  for (const TensorType& type : executable->output_types()) {
    results.push_back(device->allocate(type));
    out.push_back(results.back().get());
  }
  stage("uploading");

  double best = 0;
  for (int i = 0; i < options.repeat; ++i) {
    executable->run(in, out);
    const double seconds = watch.lap();
    best = i == 0 ? seconds : std::min(best, seconds);
  }
  result.timeline.push_back({"computing", best});

  for (const auto& buffer : results) result.outputs.push_back(device->download(*buffer));
  stage("downloading");
  return result;
}

}  // namespace tenon
