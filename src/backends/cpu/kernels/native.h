// The ops that f32 lanes compute by a formula of their own (math/activations.h, math/float_ops.h) rather than by the op's body:
// where the body, written for any value type, would be slower or less accurate in f32. The tests hold both to the same reference.
#pragma once

#include "backends/cpu/kernels/math_f32.h"
#include "math/activations.h"
#include "math/float_ops.h"
#include "ops/elementwise/elementwise.h"

namespace tenon::cpu {
namespace {

#define TENON_X(Op, function)                                \
  template <class... V>                                      \
  TENON_INLINE F32 native(elementwise::Op, F32 x, V... more) \
    requires requires { math::function(x, more...); }        \
  {                                                          \
    return math::function(x, more...);                       \
  }
TENON_FLOAT_ACTIVATIONS(TENON_X)
// Without FMA the bodies in wide lanes are the faster ones.
#if TENON_CPU_LEVEL >= 3
TENON_FUSED_FLOAT_ACTIVATIONS(TENON_X)
TENON_FLOAT_OPS(TENON_X)
TENON_FLOAT_ANGLES(TENON_X)
TENON_INLINE F32 native(elementwise::Erfc, F32 x) { return erfc(x); }
TENON_INLINE F32 native(elementwise::Lerp, F32 x, F32 y, F32 weight) { return math::lerp(x, y, weight); }
TENON_INLINE F32 native(elementwise::Mac, F32 x, F32 y, F32 z) { return fma(x, y, z); }
#endif
#undef TENON_X

// Those that compute for so long that the way of their stores does not matter: they have no kernels with streaming stores.
template <class Op>
inline constexpr bool kIsLong = false;
#define TENON_X(Op, function) \
  template <>                 \
  inline constexpr bool kIsLong<elementwise::Op> = true;
TENON_FLOAT_OPS(TENON_X)
TENON_FLOAT_ANGLES(TENON_X)
#undef TENON_X

}  // namespace
}  // namespace tenon::cpu
