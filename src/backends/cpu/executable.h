// CpuExecutable: the Executable of a graph compiled for the CPU.
//
// The graph is simplified and fused; every group becomes a Loop, every other primitive a call into primitives.h. Intermediate
// values are placed in one workspace, laid out when the program is built; memory is reused as soon as a value is dead. Thread
// safety: run() may be called concurrently; each active call has its own workspace.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "backends/cpu/loop/loop.h"
#include "backends/cpu/products/packed_weights.h"
#include "base/threads/thread_pool.h"
#include "graph/optimize/fusion.h"
#include "tenon/backend.h"

namespace tenon::cpu {

// The arguments of a step when it runs.
struct StepContext {
  ThreadPool& pool;
  std::byte* const* locations;
  std::byte* scratch;
  std::span<const Buffer* const> inputs;  // of the program
};

class ExecutableStep {
 public:
  virtual ~ExecutableStep() = default;
  virtual void run(const StepContext& context) const = 0;
};

class CpuExecutable final : public Executable {
 public:
  CpuExecutable(const Graph& graph, ThreadPool& pool, const FusionLimits& limits = {});
  ~CpuExecutable() override;

  std::span<const TensorType> input_types() const noexcept override { return input_types_; }
  std::span<const TensorType> output_types() const noexcept override { return output_types_; }
  void run(std::span<const Buffer* const> inputs, std::span<Buffer* const> outputs) override;
  using Executable::run;

  std::size_t workspace_bytes() const { return workspace_bytes_; }

 private:
  friend class ExecutableCompiler;

  struct Workspace {
    std::shared_ptr<void> memory;
    std::vector<std::byte*> locations;
    std::byte* scratch = nullptr;
  };
  std::unique_ptr<Workspace> make_workspace() const;

  ThreadPool& pool_;
  std::vector<TensorType> input_types_, output_types_;
  std::vector<std::unique_ptr<ExecutableStep>> steps_;
  std::vector<HostArray> constants_;

  // Locations: inputs, outputs, then those below.
  struct Fixed {
    std::size_t offset = 0;  // in the workspace, or
    const std::byte* constant = nullptr;
  };
  std::vector<Fixed> fixed_locations_;
  std::size_t scratch_offset_ = 0;
  std::size_t workspace_bytes_ = 0;
  std::atomic<Workspace*> spare_{nullptr};  // the workspace of the last run, for the next one
};

// Host memory as a device buffer.
class CpuBuffer final : public Buffer {
 public:
  // |shared|: another owner may hold the same bytes, so a run must not write to them.
  CpuBuffer(const HostArray& array, bool shared) : Buffer({array.dtype(), array.shape()}), array_(array), shared_(shared) {}
  // New memory of its own.
  CpuBuffer(const TensorType& type, MemoryBudget::Share share)
      : Buffer(type),
        array_(HostArray::empty(type.dtype, type.shape)),
        shared_(false),
        share_(std::move(share)) {}

  const std::byte* data() const { return array_.data(); }
  // Memory for a new result; the previous contents may be discarded.
  std::byte* fresh_data();
  HostArray share() const;
  // Copies of the contents in other orders, kept for later runs.
  PackedWeights& packed() const { return packed_; }

 private:
  HostArray array_;
  mutable PackedWeights packed_;
  mutable std::atomic<bool> shared_;
  MemoryBudget::Share share_;
};

}  // namespace tenon::cpu
