#include "backends/cpu/backend.h"

#include <unistd.h>

#include <fstream>
#include <string>

#include "backends/cpu/executable.h"

namespace tenon::cpu {
namespace {

std::string model_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) {
      const std::size_t colon = line.find(": ");
      if (colon != std::string::npos) return line.substr(colon + 2);
    }
  return "CPU";
}

DeviceInfo describe() {
  DeviceInfo info;
  info.id = "cpu:0";
  info.kind = DeviceKind::cpu;
  info.name = model_name();
  info.backends = {"cpu"};
  const long pages = sysconf(_SC_PHYS_PAGES), free_pages = sysconf(_SC_AVPHYS_PAGES), size = sysconf(_SC_PAGESIZE);
  if (pages > 0 && size > 0) info.memory_total_bytes = static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(size);
  if (free_pages > 0 && size > 0)
    info.memory_free_bytes = static_cast<std::uint64_t>(free_pages) * static_cast<std::uint64_t>(size);
  return info;
}

class CpuDevice final : public OpenDevice {
 public:
  CpuDevice(DeviceInfo info, ThreadPool& pool, const OpenOptions& options = {})
      : info_(std::move(info)),
        pool_(pool),
        budget_(options.budget) {
    if (!options.fuse) limits_.max_nodes = 1;
  }

  const DeviceInfo& info() const noexcept override { return info_; }
  std::unique_ptr<Executable> compile(const Graph& graph) override {
    return std::make_unique<CpuExecutable>(graph, pool_, limits_);
  }
  std::unique_ptr<Buffer> allocate(const TensorType& type) override {
    MemoryBudget::Share share;
    if (budget_) share = budget_->reserve(storage_bytes(type.dtype, type.shape));
    return std::make_unique<CpuBuffer>(type, std::move(share));
  }
  // Shares the array's memory, so it takes nothing from the budget.
  std::unique_ptr<Buffer> upload(const HostArray& array) override { return std::make_unique<CpuBuffer>(array, true); }
  HostArray download(const Buffer& buffer) override { return static_cast<const CpuBuffer&>(buffer).share(); }

 private:
  DeviceInfo info_;
  ThreadPool& pool_;
  std::shared_ptr<MemoryBudget> budget_;
  FusionLimits limits_;
};

class CpuBackend final : public Backend {
 public:
  std::string_view name() const noexcept override { return "cpu"; }
  std::vector<DeviceInfo> devices() override { return {describe()}; }
  using Backend::open;
  std::unique_ptr<OpenDevice> open(const DeviceInfo& device, const OpenOptions& options) override {
    return std::make_unique<CpuDevice>(device, process_pool(), options);
  }
};

}  // namespace

std::unique_ptr<Backend> make_backend() { return std::make_unique<CpuBackend>(); }

std::unique_ptr<OpenDevice> open_with(ThreadPool& pool) { return std::make_unique<CpuDevice>(describe(), pool); }

}  // namespace tenon::cpu
