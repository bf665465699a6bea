// KernelTarget: what generated kernels are written for.
//
// One emitter writes C for three dialects. A kernel's text uses a small vocabulary (KERNEL, GLOBAL, LOCAL, BARRIER, group_id,
// the types u8 ... i64, f32, f64) that prelude() defines in each dialect, so the text below it is the same.
//
// A processor under OpenCL is a target of its own kind: there one work-item is a whole work-group and loops over many
// neighbouring elements, which its compiler vectorises; on a GPU neighbouring work-items take neighbouring elements.
// The data-movement cores of a Tenstorrent chip are such processors, too, with a few KiB of stack each (target_tensix.cpp).
#pragma once

#include <cstddef>
#include <string>

namespace tenon {

enum class Dialect { opencl, cuda, tensix };

struct KernelTarget {
  Dialect dialect = Dialect::opencl;
  bool is_cpu = false;
  bool has_f64 = true;            // without: f64 tensors are refused, and f32 ops that want double precision lose some of it
  bool has_matrix_units = false;  // that multiply 16-bit floats: NVIDIA from compute capability 8.0 on
  bool has_warpgroup_products = false;  // of 16-bit floats in local memory: NVIDIA of compute capability 9.0
  int compute_units = 1;                // multiprocessors, cores: how much work keeps it busy
  int max_group_size = 256;
  std::size_t local_bytes = 32 * 1024;  // of one work-group
  // Processors: elements that make starting a work-group worthwhile, and bytes of arrays that a work-item can keep.
  int least_work = 8192;
  std::size_t private_bytes = std::size_t{1} << 20;
};

// The data-movement cores of a Tenstorrent chip; |units| of them.
inline KernelTarget tensix_target(int units) {
  return {.dialect = Dialect::tensix,
          .is_cpu = true,
          .compute_units = units,
          .max_group_size = 1,
          .local_bytes = 0,
          .least_work = 32,
          .private_bytes = 1024};
}

// The vocabulary, in the target's dialect.
std::string prelude(const KernelTarget& target);
std::string tensix_prelude();

// The arguments of a kernel of the tensix dialect as words: first kTensixHead words about the launch, then those of the kernel's
// parameters in order. A buffer is one word, the address of its first line; i64 and f64 are two words, the lower one first.
inline constexpr int kTensixHead = 6;          // processors, groups along x, y, z, lines per buffer, buffers
inline constexpr int kTensixLineBytes = 1024;  // a line of a buffer: what one transfer moves, and one page of its tensor
inline constexpr int kTensixSlotBytes = kTensixLineBytes + 8;  // of one line in a core's memory

}  // namespace tenon
