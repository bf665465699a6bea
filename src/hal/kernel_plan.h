// KernelPlan: a graph as kernel launches and library calls over buffers, for CUDA and OpenCL.
//
// A plan is made once per graph, without a device. The graph is simplified and fused (graph/optimize/fusion.h); every group
// becomes one or two kernels, every other primitive a few. Intermediate values are placed in one workspace, whose memory is
// reused as soon as a value is dead. Steps run in order and see the results of earlier ones: an in-order queue or stream needs no
// synchronisation.
//
// Matrix products and convolutions become library steps if PlanOptions says that the backend has a library for them; otherwise
// they are kernels. The parts of the planner are in kernel_plan/.
//
// A run binds inputs and outputs (dense, in their dtypes; block formats as encoded bytes), needs the constants on the device,
// sets the status words to zero if has_status, runs all steps and waits; if has_status, it then reads the words and calls
// throw_status(). It allocates no memory.
// Thread safety: a value; concurrent runs need separate workspaces.
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

// Device memory that a step reads or writes.
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
  std::array<std::uint32_t, 3> groups{1, 1, 1};  // work-groups (blocks) per axis; y and z at most 65535. Size: Kernel::group_size
  std::vector<KernelArgument> arguments;
};

// One operand of a matrix product. Element (batch, row, column) is at
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
  // The epilogue; used only for library products that support it.
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
  // Returns true if the backend's library runs this step. Called once per product while planning; null means never.
  std::function<bool(const MatMulStep&)> library_matmul;
  std::function<bool(const ConvStep&)> library_conv;
  bool fuse = true;  // false: every node has its own kernel
};

struct KernelPlan {
  std::vector<TensorType> input_types, output_types;
  std::vector<Kernel> kernels;  // without duplicates
  std::vector<PlanStep> steps;
  std::vector<std::byte> constants;  // uploaded once
  std::uint64_t workspace_bytes = 0;
  // The program indexes elements: kernels store the first out-of-range index in the status words.
  bool has_status = false;
};
inline constexpr std::uint64_t kStatusBytes = 32;  // 4 x i64: found, index, extent, unused

// Throws unimplemented, naming the unsupported part, for a graph that the target cannot run (see check_kernels).
KernelPlan plan_kernels(const Graph& graph, const KernelTarget& target, const PlanOptions& options = {});

// Throws unimplemented if the target lacks a feature that the graph needs (f64). Cheap; for Backend::check.
void check_kernels(const Graph& graph, const KernelTarget& target);

// Throws out_of_range if the kernels of a run found an invalid index. |words| are the kStatusBytes of the status.
void throw_status(std::span<const std::int64_t> words);

}  // namespace tenon
