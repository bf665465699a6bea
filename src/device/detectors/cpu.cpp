#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <sstream>

#include "base/system/memory_limit.h"
#include "base/threads/thread_pool.h"
#include "device/detectors.h"

namespace tenon {
namespace {

struct Processor {
  std::string vendor, model;
  std::set<std::string, std::less<>> flags;
  int threads = 0;
};

bool is_printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
}

// "key<tabs>: value" in blocks, one per CPU; x86 and ARM use different keys.
Processor read_cpuinfo(const SystemRoot& machine) {
  Processor processor;
  // The first block is sufficient; a machine with 500 CPUs has a megabyte of them.
  std::istringstream lines(machine.read("/proc/cpuinfo").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string key = line.substr(0, line.find_last_not_of(" \t", colon - 1 < colon ? colon - 1 : 0) + 1);
    const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
    const std::string value = begin == std::string::npos ? "" : line.substr(begin);
    if (!is_printable(value)) continue;
    if (key == "vendor_id" && processor.vendor.empty()) processor.vendor = value;
    if (key == "CPU implementer" && processor.vendor.empty()) processor.vendor = "ARM";
    if (key == "model name" && processor.model.empty()) processor.model = value;
    if ((key == "flags" || key == "Features") && processor.flags.empty()) {
      std::istringstream words(value);
      for (std::string word; words >> word;) processor.flags.insert(word);
    }
  }
  if (processor.vendor == "GenuineIntel") processor.vendor = "Intel";
  if (processor.vendor == "AuthenticAMD") processor.vendor = "AMD";
  return processor;
}

bool has_all(const Processor& processor, std::initializer_list<const char*> flags) {
  return std::all_of(flags.begin(), flags.end(), [&](const char* flag) { return processor.flags.contains(flag); });
}

// The levels of the x86-64 psABI, by Linux's names of their features.
std::string architecture_of(const Processor& processor) {
  if (!processor.flags.contains("lm")) return processor.flags.contains("asimd") ? "aarch64" : "";
  if (!has_all(processor, {"cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"})) return "x86-64";
  if (!has_all(processor, {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"})) return "x86-64-v2";
  if (!has_all(processor, {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"})) return "x86-64-v3";
  return "x86-64-v4";
}

std::string instruction_sets(const Processor& processor) {
  std::string found;
  for (const char* flag : {"sse4_2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16",
                           "avx_vnni", "amx_tile", "amx_bf16", "amx_int8", "asimd", "asimdhp", "sve", "sve2", "bf16", "i8mm"})
    if (processor.flags.contains(flag)) found += (found.empty() ? "" : " ") + std::string(flag);
  return found;
}

struct Topology {
  int threads = 0;
  std::set<std::int64_t> packages;
  std::set<std::pair<std::int64_t, std::int64_t>> cores;  // package, core
};

bool is_numbered(const std::string& name, std::string_view prefix) {
  return name.size() > prefix.size() && name.starts_with(prefix) &&
         std::all_of(name.begin() + static_cast<std::ptrdiff_t>(prefix.size()), name.end(),
                     [](char c) { return c >= '0' && c <= '9'; });
}

Topology read_topology(const SystemRoot& machine) {
  Topology topology;
  const std::string folder = "/sys/devices/system/cpu";
  for (const std::string& name : machine.list(folder)) {
    if (!is_numbered(name, "cpu")) continue;
    const auto package = machine.number(folder + "/" + name + "/topology/physical_package_id");
    const auto core = machine.number(folder + "/" + name + "/topology/core_id");
    if (!core) continue;  // offline
    ++topology.threads;
    topology.packages.insert(package.value_or(0));
    topology.cores.insert({package.value_or(0), *core});
  }
  return topology;
}

std::string read_caches(const SystemRoot& machine) {
  std::string caches;
  const std::string folder = "/sys/devices/system/cpu/cpu0/cache";
  for (const std::string& index : machine.list(folder)) {
    const auto level = machine.number(folder + "/" + index + "/level");
    const auto type = machine.line(folder + "/" + index + "/type");
    const auto size = machine.line(folder + "/" + index + "/size");
    if (!level || !type || !size || *type == "Instruction") continue;
    caches += fmt::format("{}L{} {}", caches.empty() ? "" : ", ", *level, *size);
  }
  return caches;
}

class CpuDetector final : public Detector {
 public:
  std::string_view name() const noexcept override { return "cpu"; }

  Detection detect(const SystemRoot& machine) const override {
    const Processor processor = read_cpuinfo(machine);
    const Topology topology = read_topology(machine);
    DeviceInfo device;
    device.id = "cpu:0";
    device.kind = DeviceKind::cpu;
    device.name = processor.model.empty() ? "CPU" : processor.model;
    device.vendor = processor.vendor;
    device.architecture = architecture_of(processor);
    for (const char* flag : {"avx512_bf16", "avx512_fp16", "amx_bf16", "asimdhp", "bf16"})
      device.supports_mixed_precision |= processor.flags.contains(flag);
    device.driver_version = machine.line("/proc/sys/kernel/osrelease").value_or("");
    read_memory(machine, device);
    describe(machine, processor, topology, device);
    return {.devices = {std::move(device)}};
  }

 private:
  static void read_memory(const SystemRoot& machine, DeviceInfo& device) {
    constexpr std::size_t unknown = std::numeric_limits<std::size_t>::max();
    const std::size_t limit = read_memory_limit(machine.path()), available = read_memory_available(machine.path());
    if (limit != unknown) device.memory_total_bytes = limit;
    if (available != unknown) device.memory_free_bytes = std::min(available, limit);
  }

  static void describe(const SystemRoot& machine, const Processor& processor, const Topology& topology, DeviceInfo& device) {
    const auto detail = [&](const char* key, const std::string& value) {
      if (!value.empty()) device.details[key] = value;
    };
    const auto count = [&](const char* key, std::size_t value) {
      if (value > 0) detail(key, std::to_string(value));
    };
    count("packages", topology.packages.size());
    count("cores", topology.cores.size());
    count("threads", static_cast<std::size_t>(topology.threads));
    const int usable = machine.is_this_machine()
                           ? usable_cores()
                           : usable_cores(machine.path(), machine.affinity().value_or(std::max(1, topology.threads)));
    count("usable_cores", static_cast<std::size_t>(usable));
    detail("caches", read_caches(machine));
    detail("instruction_sets", instruction_sets(processor));
    std::size_t nodes = 0;
    for (const std::string& node : machine.list("/sys/devices/system/node")) nodes += is_numbered(node, "node");
    count("numa_nodes", nodes);
    if (nodes == 1) device.numa_node = 0;
  }
};

}  // namespace

std::unique_ptr<Detector> make_cpu_detector() { return std::make_unique<CpuDetector>(); }

}  // namespace tenon
