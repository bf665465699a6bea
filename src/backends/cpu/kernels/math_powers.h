// Powers of two and logarithms of two, for functions of doubles (math_wide.h, math_f64.h).
//
// Compiled once per instruction set, like lanes.h.
#pragma once

#include "backends/cpu/kernels/lanes.h"

namespace tenon::cpu {
namespace {

inline constexpr double kRoundD = 6755399441055744.0;  // 1.5 * 2^52, as kRoundF
// The first part has 33 bits: its product with an exponent is exact.
inline constexpr double kLn2HighD = 0x1.62e42feep-1, kLn2LowD = 0x1.a39ef35793c76p-33;
inline constexpr double kLog2ED = 0x1.71547652b82fep+0, kLn2D = 0x1.62e42fefa39efp-1;

// p * 2^n, n within +-1150, its bits as for F32.
TENON_INLINE Wide scale_by_power(Wide p, Wide n, [[maybe_unused]] Uint64V n_bits) {
#if TENON_CPU_LEVEL == 4
  return Wide((DoubleV)_mm512_scalef_pd((__m512d)p.v, (__m512d)n.v));
#else
  const LaneMask<double> low = n < Wide(-1000.0);
  const Uint64V offset =
      (Uint64V)(low.v ? (Int64V{} + (std::int64_t{1023 + 128} << 52)) : (Int64V{} + (std::int64_t{1023 - 1} << 52)));
  return p * from_bits<double>(n_bits + offset) * select(low, Wide(0x1p-128), Wide(2.0));
#endif
}

}  // namespace
}  // namespace tenon::cpu
