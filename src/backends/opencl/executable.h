// OpenclExecutable: a KernelPlan on one OpenCL device, an Executable; and the device's buffers.
#pragma once

#include <array>
#include <atomic>
#include <mutex>

#include "backends/opencl/context.h"
#include "backends/opencl/memory.h"
#include "hal/kernel_plan.h"

namespace tenon::opencl {

// A tensor on the device. If the device is a CPU, the bytes are those of a host array, so that nothing is copied on upload and
// download.
class OpenClBuffer final : public Buffer {
 public:
  // In the device's memory, or on a CPU in a new host array.
  OpenClBuffer(TensorType type, std::shared_ptr<Context> context, MemoryBudget::Share share);
  // Shares |array|, which is not written to: a run that writes to this buffer allocates memory first.
  OpenClBuffer(std::shared_ptr<Context> context, const HostArray& array);

  MemoryId get() const { return memory_.get(); }
  // Memory for a new result; the previous contents may be discarded.
  MemoryId fresh();
  bool is_host() const { return is_host_; }
  // The bytes, which the caller then shares.
  HostArray share() const;

 private:
  void bind(HostArray array);

  std::shared_ptr<Context> context_;
  bool is_host_ = false;
  HostArray array_;
  mutable std::atomic<bool> shared_{false};
  Memory memory_;
  MemoryBudget::Share share_;
};

class OpenclExecutable final : public Executable {
 public:
  OpenclExecutable(std::shared_ptr<Context> context, KernelPlan plan, const std::shared_ptr<MemoryBudget>& budget);

  std::span<const TensorType> input_types() const noexcept override { return plan_.input_types; }
  std::span<const TensorType> output_types() const noexcept override { return plan_.output_types; }
  void run(std::span<const Buffer* const> inputs, std::span<Buffer* const> outputs) override;
  using Executable::run;

 private:
  // An argument that changes with each run.
  struct Binding {
    Uint position;
    Location::Space space;
    std::size_t index;
  };
  struct ReleaseKernel {
    void operator()(KernelId kernel) const { api().clReleaseKernel(kernel); }
  };
  struct Command {
    std::unique_ptr<KernelObject, ReleaseKernel> kernel;
    std::array<std::size_t, 3> global{}, local{};
    std::vector<Binding> bindings;
  };
  void add_command(const KernelLaunch& launch, const Module& module);
  void set_arguments(Command& command, const KernelLaunch& launch);
  void start(const Command& command);
  void start_all(QueueId queue);
  // A separate allocation for every place that steps use, because releasing sub-buffers crashes a widespread driver.
  void allocate_pieces();
  void read_status();

  std::shared_ptr<Context> context_;
  KernelPlan plan_;
  std::vector<std::shared_ptr<Module>> modules_;
  MemoryBudget::Share share_;
  Memory status_;
  std::map<std::uint64_t, Memory> workspace_, constants_;  // by offset
  std::vector<Command> commands_;                          // kernels go before the memory they refer to
  std::mutex running_;                      // arguments belong to the kernels, so runs of one program follow each other
  std::vector<MemoryId> inputs_, outputs_;  // of the current run
};

// A buffer of at least one byte.
Memory allocate(Context& context, std::uint64_t bytes);

}  // namespace tenon::opencl
