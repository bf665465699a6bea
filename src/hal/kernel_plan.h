// KernelPlan: a graph as kernel launches and library calls over buffers: what a CUDA or an OpenCL program runs.
//
// Made once a graph, without a device. The graph is simplified and fused (graph/fusion.h); every group becomes one kernel or two,
// every other primitive a few. Values between steps lie in one workspace, planned here, memory reused as soon as nobody reads it.
// Steps run in order, each seeing what the ones before it wrote: one in-order queue or stream needs no other synchronisation.
//
// Matrix products and convolutions become steps of their own where PlanOptions says that the backend has a library for them;
// otherwise they are kernels like everything else. The parts of the planner: kernel_plan/.
//
// A run: bind inputs and outputs (dense, in their dtypes; block formats in their encoded bytes), have constants() on the device,
// set the status words to zero if has_status, run all steps, wait; if has_status read them and call throw_status(). Nothing is
// allocated between.
// Thread safety: a value; side by side runs need a workspace each.
//
//   KernelPlan plan = plan_kernels(graph, target);
//   compile(module_text(target, plan.kernels...));
//   for (const auto& step : plan.steps)
//     if (auto* launch = std::get_if<KernelLaunch>(&step))
//       enqueue(plan.kernels[launch->kernel], launch->groups, launch->arguments);
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <variant>
#include <vector>

#include "codegen/c/kernel.h"
#include "tenon/backend.h"
#include "tenon/graph.h"

namespace tenon {

// A piece of device memory that a step reads or writes.
struct Location {
  enum class Space : std::uint8_t {
    input,      // argument |index| of the program; offset 0
    output,     // result |index|; offset 0
    workspace,  // |offset_bytes| into the workspace, a multiple of kLocationAlignment
    constants,  // |offset_bytes| into KernelPlan::constants, likewise
    status,     // the status words
  };
  Space space = Space::input;
  int index = 0;
  std::uint64_t offset_bytes = 0;
  std::uint64_t bytes = 0;

  friend bool operator==(const Location&, const Location&) = default;
};
inline constexpr std::uint64_t kLocationAlignment = 512;

// In the order of the kernel's parameters: a buffer is a pointer to its
// first byte, numbers are passed by value.
using KernelArgument = std::variant<Location, std::int32_t, std::int64_t, float, double>;

struct KernelLaunch {
  int kernel = 0;                                // index into KernelPlan::kernels
  std::array<std::uint32_t, 3> groups{1, 1, 1};  // work-groups (blocks) an axis; y and z at most 65535. Size: Kernel::group_size
  std::vector<KernelArgument> arguments;
};

// One operand of a matrix product: element (batch, row, column) lies at
// offset + batch * batch_stride + row * row_stride + column * column_stride, in elements of |stored|.
// One of row_stride and column_stride is 1 and the other at least the other extent; batch_stride may be 0 (shared by the batch).
struct MatrixOperand {
  Location where;
  DType stored = DType::f32;
  std::int64_t offset = 0;
  std::int64_t batch_stride = 0, row_stride = 0, column_stride = 1;
};

// result[b] = activation(a[b] (m x k) * b[b] (k x n) + bias), accumulated in |compute|.
struct MatMulStep {
  enum class Activation : std::uint8_t { none, relu };
  std::int64_t batches = 1, m = 0, n = 0, k = 0;
  DType compute = DType::f32;  // f32, f64 or an integer (wrapping)
  MatrixOperand a, b;
  MatrixOperand result;  // dense rows, column_stride 1; stored as |compute| or as f16 / bf16, rounded once
  // The epilogue; only offered for library products that asked for it.
  bool has_bias = false;
  MatrixOperand bias;  // n elements, column_stride 1, row_stride 0
  Activation activation = Activation::none;
};

// Convolution of dense x [batch, channels, spatial...] with dense weight [outs, channels / groups, kernel...].
struct ConvStep {
  Location x, weight, result;
  DType x_stored = DType::f32, weight_stored = DType::f32, result_stored = DType::f32, compute = DType::f32;
  Shape x_shape, weight_shape, result_shape;
  ConvAttr attr;
};

using PlanStep = std::variant<KernelLaunch, MatMulStep, ConvStep>;

struct PlanOptions {
  // True: the backend runs this step itself. Asked once per product while planning; null means never.
  std::function<bool(const MatMulStep&)> library_matmul;
  std::function<bool(const ConvStep&)> library_conv;
  bool fuse = true;  // off: no node shares a kernel with another
};

struct KernelPlan {
  std::vector<TensorType> input_types, output_types;
  std::vector<Kernel> kernels;  // none twice
  std::vector<PlanStep> steps;
  std::vector<std::byte> constants;  // to be uploaded once
  std::uint64_t workspace_bytes = 0;
  // The program looks elements up by index: kernels leave the first index out of range in the status words.
  bool has_status = false;
};
inline constexpr std::uint64_t kStatusBytes = 32;  // 4 x i64: found, index, extent, unused

// Throws unimplemented, naming what, for a graph the target cannot run (see check_kernels).
KernelPlan plan_kernels(const Graph& graph, const KernelTarget& target, const PlanOptions& options = {});

// Throws unimplemented where the target lacks what the graph needs (f64). Cheap: for Backend::check.
void check_kernels(const Graph& graph, const KernelTarget& target);

// Throws out_of_range if the kernels of a run met a bad index. |words| are the kStatusBytes of the status.
void throw_status(std::span<const std::int64_t> words);

}  // namespace tenon
