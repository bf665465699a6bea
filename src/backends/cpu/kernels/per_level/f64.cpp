// The elementwise kernels of f64, where the C library has functions of vectors (math_f64.h); elsewhere scalar.cpp has
// them. Compiled once per instruction set (kernels.cmake).
#include "backends/cpu/kernels/elementwise_kernel.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/level.h"
#include "backends/cpu/kernels/math_f64.h"
#include "ops/elementwise/elementwise.h"

namespace tenon::cpu {
namespace {

#if TENON_CPU_LEVEL >= 3
TENON_INLINE Wide native(elementwise::TruncDiv, Wide x, Wide y) {
  return whole_quotient(x, y, LaneMask<double>(false), [](Wide a, Wide b) { return elementwise::TruncDiv::apply(a, b); });
}
TENON_INLINE Wide native(elementwise::FloorDiv, Wide x, Wide y) {
  return whole_quotient(x, y, signbit(x) ^ signbit(y), [](Wide a, Wide b) { return elementwise::FloorDiv::apply(a, b); });
}
#endif

template <class Op, bool stream = false>
constexpr ElementwiseKernel kernel_of() {
  if constexpr ((Op::traits.kinds & kFloats) != 0 && !Op::traits.cancels && !(stream && Op::traits.returns_bool))
    return lanes_kernel<Op, double, Wide, stream>;
  else
    return nullptr;
}

}  // namespace

void level::add_f64_kernels(Kernels& table) {
  find_vector_functions();
  static constexpr ElementwiseKernel kernels[] = {
#define TENON_X(Name, ...) kernel_of<elementwise::Name>(),
      TENON_ELEMENTWISE_OPS(TENON_X)
#undef TENON_X
  };
  static constexpr ElementwiseKernel streaming[] = {
#define TENON_X(Name, ...) kernel_of<elementwise::Name, true>(),
      TENON_ELEMENTWISE_OPS(TENON_X)
#undef TENON_X
  };
  for (int op = 0; op < kElementwiseCount; ++op) {
    if (kernels[op]) table.elementwise[op][static_cast<int>(DType::f64)] = kernels[op];
    table.streaming_f64[op] = streaming[op];
  }
}

}  // namespace tenon::cpu
