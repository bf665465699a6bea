// The elementary functions of wide lanes (doubles) for bodies of f32: those of math/double.h in wide precision.
//
// Compiled once per instruction set, like lanes.h.
#pragma once

#include "backends/cpu/kernels/lanes.h"
#include "math/double.h"
#include "math/double_special.h"

namespace tenon::cpu {
namespace {

using math::acosh;
using math::asinh;
using math::atan2;
using math::atanh;
using math::cbrt;
using math::cos;
using math::cosh;
using math::erf;
using math::erfinv;
using math::fmod;
using math::i0;
using math::lgamma;
using math::log10;
using math::log1p;
using math::log2;
using math::pow;
using math::sin;
using math::tan;

// Those that full precision has, too.
#define TENON_WIDE(name) \
  TENON_INLINE Wide name(Wide x) { return math::name<math::Precision::wide>(x); }
TENON_WIDE(exp)
TENON_WIDE(exp2)
TENON_WIDE(expm1)
TENON_WIDE(log)
TENON_WIDE(sinh)
TENON_WIDE(tanh)
TENON_WIDE(asin)
TENON_WIDE(acos)
TENON_WIDE(atan)
TENON_WIDE(erfc)
#undef TENON_WIDE

}  // namespace
}  // namespace tenon::cpu
