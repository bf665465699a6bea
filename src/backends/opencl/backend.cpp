#include "backends/opencl/backend.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/opencl/executable.h"
#include "device/detect.h"
#include "device/detectors.h"
#include "tenon/error.h"

namespace tenon::opencl {
namespace {

class OpenClDevice final : public OpenDevice {
 public:
  OpenClDevice(DeviceInfo info, const Hardware& hardware, const OpenOptions& options)
      : info_(std::move(info)),
        context_(std::make_shared<Context>(hardware)),
        budget_(options.budget) {
    choices_.fuse = options.fuse;
  }

  const DeviceInfo& info() const noexcept override { return info_; }

  std::unique_ptr<Executable> compile(const Graph& graph) override {
    return std::make_unique<OpenclExecutable>(context_, plan_kernels(graph, context_->hardware().target, choices_), budget_);
  }

  std::unique_ptr<Buffer> allocate(const TensorType& type) override {
    const std::uint64_t bytes = storage_bytes(type.dtype, type.shape);
    const std::uint64_t largest = context_->hardware().largest_allocation_bytes;
    if (!context_->hardware().is_cpu && largest > 0 && bytes > largest)
      throw Error(ErrorCode::resource_exhausted,
                  fmt::format("a tensor of {} bytes exceeds the limit of {} for one tensor, {} bytes", bytes, info_.id, largest));
    MemoryBudget::Share share;
    if (budget_) share = budget_->reserve(bytes);
    return std::make_unique<OpenClBuffer>(type, context_, std::move(share));
  }

  std::unique_ptr<Buffer> upload(const HostArray& array) override {
    // On a CPU the bytes are shared, which uses none of the budget.
    if (context_->hardware().is_cpu) return std::make_unique<OpenClBuffer>(context_, array);
    auto buffer = allocate({array.dtype(), array.shape()});
    if (array.bytes() == 0) return buffer;
    const std::lock_guard lock(context_->mutex());
    context_->check(api().clEnqueueWriteBuffer(context_->queue(), static_cast<OpenClBuffer*>(buffer.get())->get(), 1, 0,
                                               array.bytes(), array.data(), 0, nullptr, nullptr),
                    "uploading");
    return buffer;
  }

  HostArray download(const Buffer& buffer) override {
    const auto& from = static_cast<const OpenClBuffer&>(buffer);
    if (from.is_host()) return from.share();
    HostArray array = HostArray::empty(buffer.type().dtype, buffer.type().shape);
    if (array.bytes() == 0) return array;
    const std::lock_guard lock(context_->mutex());
    context_->check(
        api().clEnqueueReadBuffer(context_->queue(), from.get(), 1, 0, array.bytes(), array.mutable_data(), 0, nullptr, nullptr),
        "downloading");
    return array;
  }

  void prepare(std::span<const Graph> graphs) {
    std::vector<Kernel> kernels;
    for (const Graph& graph : graphs)
      for (Kernel& kernel : plan_kernels(graph, context_->hardware().target).kernels)
        if (std::find(kernels.begin(), kernels.end(), kernel) == kernels.end()) kernels.push_back(std::move(kernel));
    context_->modules(kernels);
  }

  void close() override { context_->close(); }
  bool is_lost() const noexcept override { return context_->is_lost(); }

 private:
  DeviceInfo info_;
  std::shared_ptr<Context> context_;
  std::shared_ptr<MemoryBudget> budget_;
  PlanOptions choices_;
};

// --- Finding devices ---
// The platforms' files name the vendors whose devices they can drive; querying a platform itself would load its compiler. A CPU
// platform is a separate device; cards are those that the detectors find.

constexpr std::string_view kProcessorName = "CPU through OpenCL";

std::vector<DeviceInfo> cards_of(std::string_view vendor) {
  std::unique_ptr<Detector> detector;
  if (vendor == "NVIDIA") detector = make_nvidia_detector();
  if (vendor == "AMD") detector = make_amd_detector();
  if (vendor == "Intel") detector = make_intel_detector();
  if (!detector) return {};
  const Detector* const one = detector.get();
  return detect_with(SystemRoot(), std::span(&one, 1)).devices;
}

class OpenClBackend final : public Backend {
 public:
  std::string_view name() const noexcept override { return "opencl"; }

  std::vector<DeviceInfo> devices() override {
    std::vector<DeviceInfo> found;
    std::vector<std::string> makers;
    bool processor = false;
    for (const RuntimeInfo& runtime : make_opencl_detector()->detect(SystemRoot()).runtimes) {
      if (runtime.vendor.empty())
        processor = true;
      else if (std::find(makers.begin(), makers.end(), runtime.vendor) == makers.end())
        makers.push_back(runtime.vendor);
    }
    if (processor) found.push_back(processor_device());
    for (const std::string& maker : makers)
      for (DeviceInfo& card : cards_of(maker)) {
        card.backends = {"opencl"};
        found.push_back(std::move(card));
      }
    return found;
  }

  using Backend::open;
  std::unique_ptr<OpenDevice> open(const DeviceInfo& device, const OpenOptions& options) override {
    if (!api())
      throw Error(ErrorCode::unavailable, fmt::format("{} cannot be opened: {}", device.id, api().error),
                  "install the OpenCL loader: apt-get install ocl-icd-libopencl1");
    const std::vector<Hardware> all = all_hardware();
    const auto found = std::find_if(all.begin(), all.end(), [&](const Hardware& h) { return is_hardware_of(h, device, all); });
    if (found == all.end())
      throw Error(ErrorCode::unavailable, fmt::format("no OpenCL platform provides {}", device.id),
                  device.kind == DeviceKind::cpu
                      ? "clinfo lists what the platforms offer; POCL_DEVICES chooses among PoCL's devices"
                      : "clinfo lists the devices of the platforms; a platform may not support this card");
    DeviceInfo info = device;
    if (info.name == kProcessorName) info.name = found->name;
    info.driver_version = info.driver_version.empty() ? found->driver_version : info.driver_version;
    info.runtime_version = info.runtime_version.empty() ? found->version : info.runtime_version;
    return std::make_unique<OpenClDevice>(std::move(info), *found, options);
  }

  // A platform says whether it has float64 only when it is loaded; nearly all do, and compile() refuses for the others.
  void check(const DeviceInfo&, const Graph& graph) const override { check_kernels(graph, KernelTarget{}); }

  Latency latency(const DeviceInfo& device) const override {
    return device.kind == DeviceKind::cpu ? Latency{0.35, 0.001} : Latency{0.3, 0.05};
  }

 private:
  static DeviceInfo processor_device() {
    DeviceInfo info;
    info.id = "opencl:0";
    info.kind = DeviceKind::cpu;
    info.name = kProcessorName;
    info.backends = {"opencl"};
    return info;
  }

  static bool is_hardware_of(const Hardware& hardware, const DeviceInfo& device, const std::vector<Hardware>& all) {
    if (device.kind == DeviceKind::cpu) return hardware.is_cpu;
    if (hardware.is_cpu) return false;
    if (!hardware.pci_address.empty() && !device.pci_address.empty()) return hardware.pci_address == device.pci_address;
    // Without addresses a card is identified only if it is the only one of its vendor.
    const auto of_maker = [&](const Hardware& h) { return !h.is_cpu && h.vendor.find(device.vendor) != std::string::npos; };
    return of_maker(hardware) && std::count_if(all.begin(), all.end(), of_maker) == 1;
  }
};

}  // namespace

void prepare(OpenDevice& device, std::span<const Graph> graphs) { static_cast<OpenClDevice&>(device).prepare(graphs); }

std::unique_ptr<Backend> make_backend() { return std::make_unique<OpenClBackend>(); }

}  // namespace tenon::opencl
