#include "backends/opencl/context.h"

#include <fmt/format.h>

#include <algorithm>

#include "hal/kernel_cache.h"
#include "tenon/error.h"

namespace tenon::opencl {
namespace {

constexpr std::size_t kModulesKept = 128;

template <class T>
T info(DeviceId device, Uint what, T otherwise = {}) {
  T value{};
  return api().clGetDeviceInfo(device, what, sizeof value, &value, nullptr) == kSuccess ? value : otherwise;
}

std::string text(DeviceId device, Uint what) {
  std::size_t size = 0;
  if (api().clGetDeviceInfo(device, what, 0, nullptr, &size) != kSuccess || size == 0) return {};
  std::string value(size, '\0');
  if (api().clGetDeviceInfo(device, what, size, value.data(), nullptr) != kSuccess) return {};
  value.resize(std::char_traits<char>::length(value.c_str()));
  return value;
}

std::string pci_address_of(DeviceId device, const std::string& extensions) {
  if (extensions.find("cl_khr_pci_bus_info") != std::string::npos) {
    PciInfo pci{};
    if (api().clGetDeviceInfo(device, kDevicePciInfoKhr, sizeof pci, &pci, nullptr) == kSuccess)
      return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", pci.domain, pci.bus, pci.device, pci.function);
  }
  if (extensions.find("cl_nv_device_attribute_query") != std::string::npos) {
    const Uint bus = info<Uint>(device, kDevicePciBusNv, ~0u), slot = info<Uint>(device, kDevicePciSlotNv);
    // The slot holds the device number above three bits of function.
    if (bus != ~0u)
      return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", info<Uint>(device, kDevicePciDomainNv), bus, slot >> 3, slot & 7);
  }
  return {};
}

Hardware describe(PlatformId platform, const std::string& platform_name, DeviceId device) {
  Hardware h;
  h.platform = platform;
  h.platform_name = platform_name;
  h.device = device;
  h.name = text(device, kDeviceName);
  h.vendor = text(device, kDeviceVendor);
  h.driver_version = text(device, kDriverVersion);
  h.version = text(device, kDeviceVersion);
  h.extensions = text(device, kDeviceExtensions);
  h.pci_address = pci_address_of(device, h.extensions);
  h.is_cpu = (info<Bits>(device, kDeviceType) & kDeviceTypeCpu) != 0;
  h.correctly_rounded_divide = (info<Bits>(device, kDeviceSingleConfig) & kCorrectlyRoundedDivide) != 0;
  h.memory_bytes = info<Ulong>(device, kDeviceGlobalMemory);
  h.largest_allocation_bytes = info<Ulong>(device, kDeviceMaxAllocation);
  h.base_alignment_bytes = std::max<std::size_t>(info<Uint>(device, kDeviceBaseAlignment) / 8, 1);
  h.target.dialect = Dialect::opencl;
  h.target.is_cpu = h.is_cpu;
  h.target.has_f64 = h.extensions.find("cl_khr_fp64") != std::string::npos || info<Bits>(device, kDeviceDoubleConfig) != 0;
  h.target.compute_units = static_cast<int>(std::max<Uint>(info<Uint>(device, kDeviceMaxComputeUnits), 1));
  h.target.max_group_size = static_cast<int>(std::max<std::size_t>(info<std::size_t>(device, kDeviceMaxGroupSize), 1));
  h.target.local_bytes = info<Ulong>(device, kDeviceLocalMemory);
  return h;
}

}  // namespace

std::vector<Hardware> all_hardware() {
  std::vector<Hardware> all;
  if (!api()) return all;
  Uint count = 0;
  if (api().clGetPlatformIDs(0, nullptr, &count) != kSuccess) return all;
  std::vector<PlatformId> platforms(count);
  if (count > 0) check(api().clGetPlatformIDs(count, platforms.data(), nullptr), "listing OpenCL platforms");
  for (PlatformId platform : platforms) {
    char name[256] = {};
    api().clGetPlatformInfo(platform, kPlatformName, sizeof name - 1, name, nullptr);
    Uint devices = 0;
    if (api().clGetDeviceIDs(platform, kDeviceTypeAll, 0, nullptr, &devices) != kSuccess || devices == 0) continue;
    std::vector<DeviceId> ids(devices);
    if (api().clGetDeviceIDs(platform, kDeviceTypeAll, devices, ids.data(), nullptr) != kSuccess) continue;
    for (DeviceId id : ids) all.push_back(describe(platform, name, id));
  }
  return all;
}

Context::Context(const Hardware& hardware) : hardware_(hardware) {
  Int status = kSuccess;
  context_ = api().clCreateContext(nullptr, 1, &hardware_.device, nullptr, nullptr, &status);
  opencl::check(status, fmt::format("opening {}", hardware_.name));
  queue_ = api().clCreateCommandQueue(context_, hardware_.device, 0, &status);
  if (status == kSuccess) return;
  queue_ = nullptr;
  close();
  opencl::check(status, fmt::format("creating a queue on {}", hardware_.name));
}

Context::~Context() { close(); }

void Context::close() {
  {
    const std::lock_guard lock(modules_mutex_);
    recent_.clear();
    modules_.clear();
  }
  const std::lock_guard lock(mutex_);
  if (queue_) api().clReleaseCommandQueue(queue_);
  queue_ = nullptr;
  if (context_) api().clReleaseContext(context_);
  context_ = nullptr;
}

void Context::check(Int status, const std::string& what) {
  if (means_lost(status)) lost_ = true;
  opencl::check(status, fmt::format("{} on {}", what, hardware_.name));
}

std::vector<std::shared_ptr<Module>> Context::modules(std::span<const Kernel> kernels) {
  const std::lock_guard lock(modules_mutex_);
  std::vector<std::shared_ptr<Module>> found(kernels.size());
  std::vector<const Kernel*> missing;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    if (const auto known = modules_.find(kernels[i].entry); known != modules_.end()) found[i] = known->second.lock();
    if (!found[i]) missing.push_back(&kernels[i]);
  }
  if (missing.empty()) return found;
  const std::shared_ptr<Module> module = compile(missing);
  for (const Kernel* kernel : missing) modules_[kernel->entry] = module;
  for (auto& entry : found)
    if (!entry) entry = module;
  recent_.push_back(module);
  if (recent_.size() > kModulesKept) recent_.pop_front();
  if (modules_.size() > 16 * kModulesKept) std::erase_if(modules_, [](const auto& entry) { return entry.second.expired(); });
  return found;
}

std::shared_ptr<Module> Context::compile(const std::vector<const Kernel*>& kernels) {
  std::string options = compiler_options(hardware_.target);
  if (!hardware_.correctly_rounded_divide) options = "-w -cl-std=CL1.2";
  const KernelKey key{module_text(hardware_.target, kernels), options, hardware_.platform_name + " " + hardware_.version,
                      hardware_.name + " " + hardware_.driver_version};
  const KernelCache& cache = KernelCache::process();
  if (const auto binary = cache.find(key)) {
    Int status = kSuccess, loaded = kSuccess;
    const std::size_t size = binary->size();
    const auto* bytes = reinterpret_cast<const unsigned char*>(binary->data());
    const ProgramId program = api().clCreateProgramWithBinary(context_, 1, &hardware_.device, &size, &bytes, &loaded, &status);
    if (status == kSuccess && loaded == kSuccess &&
        api().clBuildProgram(program, 1, &hardware_.device, options.c_str(), nullptr, nullptr) == kSuccess)
      return std::make_shared<Module>(program);
    if (status == kSuccess && program) api().clReleaseProgram(program);
  }
  auto module = std::make_shared<Module>(build(key.source, options));
  cache.store(key, binary_of(module->get()));
  return module;
}

ProgramId Context::build(const std::string& source, const std::string& options) {
  Int status = kSuccess;
  const char* lines = source.c_str();
  const std::size_t length = source.size();
  const ProgramId program = api().clCreateProgramWithSource(context_, 1, &lines, &length, &status);
  check(status, "creating a program");
  status = api().clBuildProgram(program, 1, &hardware_.device, options.c_str(), nullptr, nullptr);
  if (status == kSuccess) return program;
  std::size_t size = 0;
  api().clGetProgramBuildInfo(program, hardware_.device, kProgramBuildLog, 0, nullptr, &size);
  std::string log(size, '\0');
  if (size > 0) api().clGetProgramBuildInfo(program, hardware_.device, kProgramBuildLog, size, log.data(), nullptr);
  api().clReleaseProgram(program);
  if (status != kBuildFailure) check(status, "compiling a kernel");
  throw Error(ErrorCode::internal, fmt::format("a generated kernel did not compile on {}: {}", hardware_.name, log.c_str()),
              "this is a bug in Tenon or in the OpenCL platform; use another device and report it");
}

std::vector<std::byte> Context::binary_of(ProgramId program) const {
  std::size_t size = 0;
  if (api().clGetProgramInfo(program, kProgramBinarySizes, sizeof size, &size, nullptr) != kSuccess) return {};
  std::vector<std::byte> binary(size);
  auto* bytes = reinterpret_cast<unsigned char*>(binary.data());
  if (api().clGetProgramInfo(program, kProgramBinaries, sizeof bytes, &bytes, nullptr) != kSuccess) return {};
  return binary;
}

}  // namespace tenon::opencl
