// ExactPlan: a graph as kernels for the data-movement cores of a Tenstorrent chip (the exact tier).
//
// These cores compute in software floats that follow IEEE 754 to the bit, so that every primitive and every dtype gives Tenon's
// results. A plan is made without a device.
// Thread safety: a value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hal/kernel_plan.h"
#include "tenon/graph.h"

namespace tenon::ttnn {

// Device memory that launches refer to by its place in ExactPlan::slots. Its tensor has lines of kTensixLineBytes.
struct ExactSlot {
  enum class Kind : std::uint8_t { input, output, temporary, constant, status };
  Kind kind = Kind::temporary;
  int index = 0;                   // of an input or output
  std::uint64_t offset_bytes = 0;  // of a constant, into ExactPlan::constants
  std::uint64_t bytes = 0;

  std::uint64_t lines() const { return bytes == 0 ? 1 : (bytes + kTensixLineBytes - 1) / kTensixLineBytes; }
};

struct ExactLaunch {
  int kernel = 0;
  std::uint64_t groups = 1;
  // What all processors are given (codegen/c/target.h). The number of processors (word 0), the lines per buffer (word 4) and the
  // addresses of buffers are 0: they are known when the program runs.
  std::vector<std::uint32_t> words;
  struct BufferWord {
    int word = 0, slot = 0;
  };
  std::vector<BufferWord> buffers;
};

struct ExactKernel {
  std::string entry;
  std::string source;  // complete; compiled for one launch, its kernel_main() runs the kernel
};

struct ExactPlan {
  std::vector<TensorType> input_types, output_types;
  std::vector<ExactKernel> kernels;
  std::vector<ExactSlot> slots;  // inputs and outputs first, in order
  std::vector<ExactLaunch> launches;
  std::vector<std::byte> constants;
  int status_slot = -1;  // if the program indexes elements
};

// Throws the errors of plan_kernels().
ExactPlan plan_exact(const Graph& graph);
// What plan_exact() compiles for.
const KernelTarget& exact_target();

}  // namespace tenon::ttnn
