// The ops that f32 lanes compute by a formula of their own (math_f32.h) rather than by the op's body: where the body, written for
// any value type, would be slower or less accurate in f32. The tests hold both to the same reference.
#pragma once

#include "backends/cpu/kernels/math_f32.h"
#include "ops/elementwise/elementwise.h"

namespace tenon::cpu {
namespace {

TENON_INLINE F32 native(elementwise::Sigmoid, F32 x) { return sigmoid(x); }
TENON_INLINE F32 native(elementwise::Silu, F32 x) { return silu(x); }
// Without the lookup and FMA instructions the bodies in wide lanes are the faster ones.
#if TENON_CPU_LEVEL >= 3
TENON_INLINE F32 native(elementwise::Mac, F32 x, F32 y, F32 z) { return fma(x, y, z); }
TENON_INLINE F32 native(elementwise::Gelu, F32 x) { return gelu(x); }
TENON_INLINE F32 native(elementwise::Erfc, F32 x) { return erfc(x); }
TENON_INLINE F32 native(elementwise::Ndtr, F32 x) { return normal_distribution(x); }
TENON_INLINE F32 native(elementwise::QuickGelu, F32 x) { return quick_gelu(x); }
TENON_INLINE F32 native(elementwise::Mish, F32 x) { return mish(x); }
TENON_INLINE F32 native(elementwise::GeluTanh, F32 x) { return gelu_tanh(x); }
#endif
TENON_INLINE F32 native(elementwise::LogSigmoid, F32 x) { return log_sigmoid(x); }
TENON_INLINE F32 native(elementwise::Softplus, F32 x, F32 threshold) { return select(x > threshold, x, softplus(x)); }
// x / alpha may be subnormal where the result is not.
TENON_INLINE F32 native(elementwise::Celu, F32 x, F32 alpha) {
  const F32 negative = min(x, F32(0)), quotient = negative / alpha;
  return select(x > F32(0), x, select(abs(quotient) < F32(0x1p-25f), negative, alpha * expm1(quotient)));
}

}  // namespace
}  // namespace tenon::cpu
