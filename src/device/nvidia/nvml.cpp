#include <fmt/format.h>
#include <unistd.h>

#include "base/system/dynamic_library.h"
#include "device/nvidia/nvidia_management.h"
#include "device/pci.h"

namespace tenon {
namespace {

// The part of NVML's published C interface that is used here.
using Handle = struct NvmlDevice*;
using Result = int;
constexpr Result kSuccess = 0, kNoPermission = 4, kDriverNotLoaded = 9, kVersionMismatch = 18;
constexpr unsigned kTemperatureOfGpu = 0, kStreamingClock = 1;
constexpr int kModeProhibited = 2, kModeExclusiveProcess = 3;

struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};
struct Memory {
  unsigned long long total, free, used;
};
struct Utilization {
  unsigned gpu, memory;
};
struct Process {
  unsigned pid;
  unsigned long long used_memory;
  unsigned instance, compute_instance;
};

class Nvml {
 public:
  explicit Nvml(DynamicLibrary library) : library_(std::move(library)) {}

  // Also false if this version of the library lacks the function. The argument types are those of the function.
  template <class... Arguments>
  bool ask(const char* function, Arguments... arguments) const {
    auto* const call = library_.function<Result(Arguments...)>(function);
    return call && call(arguments...) == kSuccess;
  }

  std::string text(const char* function, Handle handle) const {
    char buffer[96] = {};
    return ask(function, handle, static_cast<char*>(buffer), static_cast<unsigned>(sizeof buffer - 1)) ? buffer : "";
  }
  std::optional<unsigned> value(const char* function, Handle handle) const {
    unsigned value = 0;
    if (!ask(function, handle, &value)) return std::nullopt;
    return value;
  }
  std::optional<unsigned> value_of(const char* function, Handle handle, unsigned which) const {
    unsigned value = 0;
    if (!ask(function, handle, which, &value)) return std::nullopt;
    return value;
  }
  const DynamicLibrary& library() const { return library_; }

 private:
  DynamicLibrary library_;
};

void read_identity(const Nvml& nvml, Handle handle, DeviceInfo& card) {
  card.name = nvml.text("nvmlDeviceGetName", handle);
  card.uuid = nvml.text("nvmlDeviceGetUUID", handle);
  card.serial = nvml.text("nvmlDeviceGetSerial", handle);
  card.firmware_version = nvml.text("nvmlDeviceGetVbiosVersion", handle);
  PciInfo pci{};
  if (nvml.ask("nvmlDeviceGetPciInfo_v3", handle, &pci)) {
    pci.bus_id[sizeof pci.bus_id - 1] = '\0';
    card.pci_address = pci_address(pci.bus_id);
  }
  int major = 0, minor = 0;
  if (nvml.ask("nvmlDeviceGetCudaComputeCapability", handle, &major, &minor)) {
    card.compute_capability = fmt::format("{}.{}", major, minor);
    card.architecture = nvidia_architecture(card.compute_capability);
  }
}

void read_state(const Nvml& nvml, Handle handle, DeviceInfo& card) {
  Memory memory{};
  if (nvml.ask("nvmlDeviceGetMemoryInfo", handle, &memory)) {
    card.memory_total_bytes = memory.total;
    card.memory_free_bytes = memory.free;
  }
  if (const auto milliwatts = nvml.value("nvmlDeviceGetPowerUsage", handle)) card.power_watts = *milliwatts / 1000.0;
  if (const auto milliwatts = nvml.value("nvmlDeviceGetEnforcedPowerLimit", handle))
    card.power_limit_watts = *milliwatts / 1000.0;
  if (const auto celsius = nvml.value_of("nvmlDeviceGetTemperature", handle, kTemperatureOfGpu))
    card.temperature_celsius = *celsius;
  if (const auto mhz = nvml.value_of("nvmlDeviceGetClockInfo", handle, kStreamingClock))
    card.details["clock"] = fmt::format("{} MHz", *mhz);
  if (const auto cores = nvml.value("nvmlDeviceGetNumGpuCores", handle)) card.details["cores"] = std::to_string(*cores);
  Utilization utilization{};
  if (nvml.ask("nvmlDeviceGetUtilizationRates", handle, &utilization))
    card.details["utilization"] = fmt::format("{} %", utilization.gpu);
}

void read_use(const Nvml& nvml, Handle handle, DeviceInfo& card) {
  Process processes[64];
  unsigned count = std::size(processes);
  if (nvml.ask("nvmlDeviceGetComputeRunningProcesses_v3", handle, &count, static_cast<Process*>(processes)))
    for (unsigned i = 0; i < count && i < std::size(processes); ++i)
      if (const int pid = static_cast<int>(processes[i].pid); pid != getpid()) card.holders.push_back(pid);
  int mode = 0;
  if (!nvml.ask("nvmlDeviceGetComputeMode", handle, &mode)) return;
  card.exclusive = mode == kModeExclusiveProcess;
  if (mode != kModeProhibited) return;
  card.available = false;
  card.reason = "its compute mode is 'prohibited'";
  card.remedy = fmt::format("as root: nvidia-smi -i {} -c DEFAULT", card.pci_address);
}

void explain(Result result, NvidiaAnswer& answer) {
  switch (result) {
    case kNoPermission:
      answer.problem = "no permission to access the NVIDIA driver";
      answer.remedy = "allow this user to read and write /dev/nvidiactl and /dev/nvidia*";
      return;
    case kDriverNotLoaded:
      answer.problem = "the NVIDIA kernel driver is not loaded";
      answer.remedy = "as root: modprobe nvidia";
      return;
    case kVersionMismatch:
      answer.problem = "the NVIDIA library and the loaded kernel driver have different versions";
      answer.remedy = "restart the machine to load the installed driver";
      return;
    default:
      answer.problem = fmt::format("NVML failed to initialize (error {})", result);
      answer.remedy = "run nvidia-smi and follow its instructions";
  }
}

std::string cuda_version(const Nvml& nvml) {
  int version = 0;
  if (!nvml.ask("nvmlSystemGetCudaDriverVersion_v2", &version) && !nvml.ask("nvmlSystemGetCudaDriverVersion", &version))
    return "";
  return fmt::format("CUDA {}.{}", version / 1000, version % 1000 / 10);
}

std::vector<DeviceInfo> read_cards(const Nvml& nvml) {
  std::vector<DeviceInfo> cards;
  char driver[96] = {};
  nvml.ask("nvmlSystemGetDriverVersion", static_cast<char*>(driver), static_cast<unsigned>(sizeof driver - 1));
  const std::string cuda = cuda_version(nvml);
  unsigned count = 0;
  nvml.ask("nvmlDeviceGetCount_v2", &count);
  for (unsigned i = 0; i < count; ++i) {
    Handle handle = nullptr;
    if (!nvml.ask("nvmlDeviceGetHandleByIndex_v2", i, &handle)) continue;
    DeviceInfo card;
    card.id = fmt::format("cuda:{}", i);
    card.kind = DeviceKind::gpu;
    card.vendor = "NVIDIA";
    card.driver_version = driver;
    card.runtime_version = cuda;
    card.supports_mixed_precision = true;
    read_identity(nvml, handle, card);
    read_state(nvml, handle, card);
    read_use(nvml, handle, card);
    cards.push_back(std::move(card));
  }
  return cards;
}

}  // namespace

NvidiaAnswer ask_nvml() {
  const std::string names[] = {"libnvidia-ml.so.1", "/usr/lib/wsl/lib/libnvidia-ml.so.1",
                               "/usr/local/nvidia/lib64/libnvidia-ml.so.1"};
  return ask_nvml(names);
}

NvidiaAnswer ask_nvml(std::span<const std::string> names) {
  NvidiaAnswer answer;
  const Nvml nvml(DynamicLibrary::load(names));
  if (!nvml.library()) {
    answer.problem = "NVIDIA's management library libnvidia-ml.so.1 is not installed";
    answer.remedy =
        "install the NVIDIA driver's libraries (Debian: libnvidia-ml1); in a container, use the NVIDIA runtime, which provides "
        "them";
    return answer;
  }
  auto* const start = nvml.library().function<Result()>("nvmlInit_v2");
  if (!start) {
    answer.problem = "NVIDIA's management library is too old: it does not have nvmlInit_v2";
    answer.remedy = "install driver version 450 or newer";
    return answer;
  }
  if (const Result result = start(); result != kSuccess) {
    explain(result, answer);
    return answer;
  }
  answer.cards = read_cards(nvml);
  if (auto* const stop = nvml.library().function<Result()>("nvmlShutdown")) stop();
  return answer;
}

}  // namespace tenon
