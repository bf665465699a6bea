// Kernel: one generated kernel, without a module around it.
//
// The text names the helper functions it calls (math.h); module_text() puts the prelude and each helper once before any number of
// kernels. The entry's name is made from the text, so equal kernels have equal names, in one module and in a cache.
// Shapes and strides are arguments, not text: a kernel serves every shape of its structure.
#pragma once

#include <array>
#include <set>
#include <span>
#include <string>

#include "codegen/c/target.h"

namespace tenon {

struct Kernel {
  std::string entry;
  std::string text;                        // from the KERNEL line to its closing brace
  std::set<std::string> helpers;           // functions of math.h it calls
  std::array<int, 3> group_size{1, 1, 1};  // it must be launched with
  int dynamic_bytes = 0;                   // of local memory that the launch provides, besides what the text declares (CUDA)
  bool needs_warpgroup_products = false;   // must be compiled for the target's exact architecture (CUDA)

  friend bool operator==(const Kernel&, const Kernel&) = default;
};

// A complete source for the dialect's compiler.
std::string module_text(const KernelTarget& target, std::span<const Kernel* const> kernels);

// Options under which the compilers keep to the graph's arithmetic (no contraction, correctly rounded division and root).
// OpenCL: for clBuildProgram, where the device has correctly rounded division. CUDA: for NVRTC, one option a line.
std::string compiler_options(const KernelTarget& target);

}  // namespace tenon
