// The elementary functions of f32 lanes: those of math/float.h, and the rest evaluated in wide lanes.
//
// Compiled once per instruction set, like lanes.h.
#pragma once

#include "backends/cpu/kernels/lanes.h"
#include "backends/cpu/kernels/math_wide.h"
#include "math/float.h"

namespace tenon::cpu {
namespace {

#define TENON_X(name) using math::name;
TENON_FLOAT_FUNCTIONS(TENON_X)
#undef TENON_X

#define TENON_THROUGH_WIDE(name)                            \
  TENON_INLINE F32 name(F32 x) {                            \
    return through_wide(x, [](Wide y) { return name(y); }); \
  }
TENON_THROUGH_WIDE(cbrt)
TENON_THROUGH_WIDE(tan)
TENON_THROUGH_WIDE(asin)
TENON_THROUGH_WIDE(acos)
TENON_THROUGH_WIDE(atan)
TENON_THROUGH_WIDE(sinh)
TENON_THROUGH_WIDE(cosh)
TENON_THROUGH_WIDE(asinh)
TENON_THROUGH_WIDE(acosh)
TENON_THROUGH_WIDE(atanh)
TENON_THROUGH_WIDE(erfinv)
TENON_THROUGH_WIDE(lgamma)
TENON_THROUGH_WIDE(i0)
#undef TENON_THROUGH_WIDE
#define TENON_THROUGH_WIDE(name)                                          \
  TENON_INLINE F32 name(F32 x, F32 y) {                                   \
    return through_wide(x, y, [](Wide a, Wide b) { return name(a, b); }); \
  }
TENON_THROUGH_WIDE(pow)
TENON_THROUGH_WIDE(atan2)
TENON_THROUGH_WIDE(fmod)
#undef TENON_THROUGH_WIDE

}  // namespace
}  // namespace tenon::cpu
