// What the files compiled once per instruction set (per_level/*.cpp) offer to kernels.cpp: functions that enter their kernels
// into a table. Each level has them in its own namespace; the linker sees nothing else of these files.
#pragma once

#include "tenon/array/dtype.h"

namespace tenon::cpu {

struct Kernels;
using ElementwiseRow = void (*[13])(const void* const* in, void* out, std::int64_t n, const double* params);  // by dtype

#define TENON_DECLARE_LEVEL(level)                      \
  namespace level {                                     \
  void add_f32_kernels(Kernels& table);                 \
  void add_bf16_kernels(Kernels& table);                \
  void add_f64_kernels(Kernels& table);                 \
  void add_scalar_kernels(ElementwiseRow* elementwise); \
  void add_convert_kernels(Kernels& table);             \
  void add_reduce_kernels(Kernels& table);              \
  void add_memory_kernels(Kernels& table);              \
  void add_transpose_kernels(Kernels& table);           \
  }
TENON_DECLARE_LEVEL(generic)
TENON_DECLARE_LEVEL(v2)
TENON_DECLARE_LEVEL(v3)
TENON_DECLARE_LEVEL(v4)
#undef TENON_DECLARE_LEVEL

#ifdef TENON_CPU_LEVEL
#if TENON_CPU_LEVEL == 4
namespace level = v4;
#elif TENON_CPU_LEVEL == 3
namespace level = v3;
#elif TENON_CPU_LEVEL == 2
namespace level = v2;
#else
namespace level = generic;
#endif
#endif

// Iterations of the next loop touch the same element of every array only, so an output may be one of the inputs.
#if defined(__clang__)
#define TENON_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define TENON_INDEPENDENT _Pragma("GCC ivdep")
#endif

}  // namespace tenon::cpu
