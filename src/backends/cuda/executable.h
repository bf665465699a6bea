// CudaExecutable: a graph as kernels and products on one card.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "backends/cuda/context.h"
#include "hal/kernel_plan.h"

namespace tenon::cuda {

KernelTarget target_of(const Card& card);

struct ExecutableOptions {
  // Products of at least this many multiplications go to the library; for smaller ones, loading it costs more than it saves.
  std::int64_t library_from = std::int64_t{1} << 21;
  bool fuse = true;
};

class CudaExecutable final : public Executable {
 public:
  CudaExecutable(std::shared_ptr<Context> context, const Graph& graph, const ExecutableOptions& options);
  ~CudaExecutable() override;

  std::span<const TensorType> input_types() const noexcept override { return plan_.input_types; }
  std::span<const TensorType> output_types() const noexcept override { return plan_.output_types; }

  using Executable::run;
  void run(std::span<const Buffer* const> inputs, std::span<Buffer* const> outputs) override;

  // Enqueues a run in the card's stream and returns. The buffers must live until the stream has been waited for; out-of-range
  // indices are not reported.
  void enqueue(std::span<const Buffer* const> inputs, std::span<Buffer* const> outputs);

 private:
  struct Launch {
    RawFunction function = nullptr;
    std::array<unsigned, 3> groups{}, group_size{};
    unsigned local_bytes = 0;
    bool begins_early = false;
    std::size_t first = 0;  // the start of its arguments in |pointers_|
  };
  struct ProductCall {
    std::shared_ptr<Product> product;
    MatrixOperand a, b, result, bias;
    bool has_bias = false;
  };
  using Call = std::variant<Launch, ProductCall>;
  // An argument that changes with each run.
  struct Bound {
    std::size_t value;
    bool is_output;
    std::size_t index;
  };

  void make_plan(const Graph& graph, const ExecutableOptions& options);
  void place_memory();
  void prepare_calls();
  Launch prepare(const KernelLaunch& launch, RawFunction function, const Kernel& kernel);
  DevicePointer fixed_address(const Location& where) const;
  DevicePointer address(const MatrixOperand& operand) const;

  DeviceBuffer& ours(Buffer& buffer, const TensorType& type, const char* role, std::size_t index) const;
  void bind(std::span<const Buffer* const> inputs, std::span<Buffer* const> outputs);
  void put_in_stream();
  void put_calls(RawStream stream);
  void put(const Launch& launch, RawStream stream);

  std::shared_ptr<Context> context_;
  KernelPlan plan_;
  std::vector<std::shared_ptr<Product>> products_;  // by matmul step
  std::vector<Call> calls_;
  // Argument values, eight bytes each, and the pointers to them for a launch. Written with the queue held.
  std::vector<std::uint64_t> values_;
  std::vector<void*> pointers_;
  std::vector<Bound> bound_;
  std::vector<DevicePointer> inputs_, outputs_;  // of the run being enqueued
  std::vector<Context::Memory> memory_;
  CapturedRuns captured_;
  DevicePointer workspace_ = 0, constants_ = 0, status_ = 0;
  std::shared_ptr<std::atomic<bool>> results_are_read_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace tenon::cuda
