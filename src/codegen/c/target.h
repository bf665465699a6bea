// KernelTarget: what generated kernels are written for.
//
// One emitter writes C for two dialects. A kernel's text uses a small vocabulary (KERNEL, GLOBAL, LOCAL, BARRIER, group_id,
// the types u8 ... i64, f32, f64) that prelude() defines in either dialect, so the text below it is the same.
//
// A processor under OpenCL is a target of its own kind: there one work-item is a whole work-group and loops over many
// neighbouring elements, which its compiler vectorises; on a GPU neighbouring work-items take neighbouring elements.
#pragma once

#include <cstddef>
#include <string>

namespace tenon {

enum class Dialect { opencl, cuda };

struct KernelTarget {
  Dialect dialect = Dialect::opencl;
  bool is_cpu = false;
  bool has_f64 = true;            // without: f64 tensors are refused, and f32 ops that want double precision lose some of it
  bool has_matrix_units = false;  // that multiply 16-bit floats: NVIDIA from compute capability 8.0 on
  int compute_units = 1;          // multiprocessors, cores: how much work keeps it busy
  int max_group_size = 256;
  std::size_t local_bytes = 32 * 1024;  // of one work-group
};

// The vocabulary, in the target's dialect.
std::string prelude(const KernelTarget& target);

}  // namespace tenon
