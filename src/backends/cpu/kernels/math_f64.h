// Elementary functions of f64 lanes: our own (math/double.h), those of the C library for vectors (libmvec), within four
// units in the last place, or the C library's own for one lane after the other.
//
// Compiled once per instruction set, like lanes.h; not together with math_wide.h, whose functions have the same names, are faster
// and less exact.
#pragma once

#include "backends/cpu/kernels/math_powers.h"
#include "math/coefficients.h"
#include "math/double_functions.h"

#if TENON_CPU_LEVEL == 4
#define TENON_NATIVE_V __m512d
#define TENON_NAME_1(name) _ZGVeN8v_##name
#define TENON_NAME_2(name) _ZGVeN8vv_##name
#elif TENON_CPU_LEVEL == 3
#define TENON_NATIVE_V __m256d
#define TENON_NAME_1(name) _ZGVdN4v_##name
#define TENON_NAME_2(name) _ZGVdN4vv_##name
#else
#define TENON_NATIVE_V __m128d
#define TENON_NAME_1(name) _ZGVbN2v_##name
#define TENON_NAME_2(name) _ZGVbN2vv_##name
#endif

extern "C" {
#define TENON_X(name) TENON_NATIVE_V TENON_NAME_1(name)(TENON_NATIVE_V) noexcept;
TENON_LIBRARY_VECTOR_FUNCTIONS(TENON_X)
TENON_OWN_VECTOR_FUNCTIONS(TENON_X)
TENON_OWN_LOOKUP_FUNCTIONS(TENON_X)
#undef TENON_X
#define TENON_X(name) TENON_NATIVE_V TENON_NAME_2(name)(TENON_NATIVE_V, TENON_NATIVE_V) noexcept;
TENON_VECTOR_FUNCTIONS_OF_TWO(TENON_X)
#undef TENON_X
}

namespace tenon::cpu {
namespace {

#define TENON_X(name) \
  TENON_INLINE Wide name(Wide x) { return Wide((DoubleV)TENON_NAME_1(name)((TENON_NATIVE_V)x.v)); }
TENON_LIBRARY_VECTOR_FUNCTIONS(TENON_X)
#if TENON_CPU_LEVEL < 3
TENON_OWN_VECTOR_FUNCTIONS(TENON_X)
#endif
#if TENON_CPU_LEVEL < 4
TENON_OWN_LOOKUP_FUNCTIONS(TENON_X)
#endif
#undef TENON_X
#define TENON_X(name) \
  TENON_INLINE Wide name(Wide x, Wide y) { return Wide((DoubleV)TENON_NAME_2(name)((TENON_NATIVE_V)x.v, (TENON_NATIVE_V)y.v)); }
TENON_VECTOR_FUNCTIONS_OF_TWO(TENON_X)
#undef TENON_X

#if TENON_CPU_LEVEL >= 3
// What math/double.h asks for.
namespace double_math {
using namespace coefficients;
using DV = DoubleV;
using IV = Int64V;
using UV = Uint64V;
#define ALL(x) (Wide(x).v)
#define FMA(a, b, c) (fma(Wide(a), Wide(b), Wide(c)).v)
#define BITS(x) ((UV)(x))
#define FROM_BITS(u) ((DV)(u))
#define SCALED(x, n) scaled_d(x, n)
#define POLYNOMIAL(c, x) (polynomial(Wide(x), c).v)
TENON_INLINE DV scaled_d(DV x, DV n) { return scale_by_power(Wide(x), Wide(n), BITS(n + kRoundD) << 52).v; }
TENON_INLINE DV abs_d(DV x) { return abs(Wide(x)).v; }
TENON_INLINE DV copysign_d(DV x, DV sign) { return copysign(Wide(x), Wide(sign)).v; }
TENON_INLINE DV sqrt_d(DV x) { return sqrt(Wide(x)).v; }
TENON_INLINE DV between_d(DV x, double low, double high) { return clamp_keeping_nan(Wide(x), low, high).v; }
#if TENON_CPU_LEVEL == 4
// A row of the table has something of each piece; the pieces' boundaries are where the leading bits of x + bias change.
template <int rows>
TENON_INLINE DV pieces_d(DV x, const double (&table)[rows][8], double bias) {
  const __m512i index = _mm512_srli_epi64((__m512i)(x + bias), 51);
  const auto look_up = [&](int row) { return Wide((DV)_mm512_permutexvar_pd(index, _mm512_load_pd(table[row]))); };
  const Wide u = Wide(x) - look_up(0);
  Wide y = look_up(rows - 1);
  for (int row = rows - 2; row > 0; --row) y = fma(y, u, look_up(row));
  return y.v;
}
#define PIECES(c, x) pieces_d(x, c, c##Bias)
#define TENON_LOOKUP_FUNCTION(name, needs, ...) TENON_INLINE __VA_ARGS__
#else
#define TENON_LOOKUP_FUNCTION(name, needs, ...)
#endif
#define TENON_TYPE(name, ...) __VA_ARGS__
#define TENON_HELPER(name, needs, ...) TENON_INLINE __VA_ARGS__
#define TENON_FUNCTION(name, needs, ...) TENON_INLINE __VA_ARGS__
#include "math/double.h"
#undef TENON_TYPE
#undef TENON_HELPER
#undef TENON_FUNCTION
#undef TENON_LOOKUP_FUNCTION
#undef PIECES
#undef ALL
#undef FMA
#undef BITS
#undef FROM_BITS
#undef SCALED
#undef POLYNOMIAL
}  // namespace double_math
#define TENON_X(name) \
  TENON_INLINE Wide name(Wide x) { return Wide(double_math::name##_d(x.v)); }
TENON_OWN_VECTOR_FUNCTIONS(TENON_X)
#if TENON_CPU_LEVEL == 4
TENON_OWN_LOOKUP_FUNCTIONS(TENON_X)
#endif
#undef TENON_X
#endif

// Those that much is made of, within one unit in the last place (libmvec's: up to three).
// exp(r) 2^n, r = head + rest within +-ln(2) / 2: by its power series.
TENON_INLINE Wide exp_reduced(Wide head, Wide rest, Wide n, Uint64V n_bits) {
  constexpr double series[] = {1.0 / 2,     1.0 / 6,      1.0 / 24,      1.0 / 120,      1.0 / 720,         1.0 / 5040,
                               1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600.0, 1.0 / 6227020800.0};
  return scale_by_power(Wide(1) + (head + fma(polynomial(head, series), head * head, rest)), n, n_bits);
}
TENON_INLINE Wide exp(Wide x) {
  x = clamp_keeping_nan(x, -746.0, 710.0);
  const Wide t = fma(x, Wide(kLog2ED), Wide(kRoundD)), n = t - Wide(kRoundD);
  const Wide high = x - n * Wide(kLn2HighD), low = n * Wide(-kLn2LowD), head = high + low;
  return exp_reduced(head, (high - head) + low, n, bits(t) << 52);
}
TENON_INLINE Wide exp2(Wide x) {
  x = clamp_keeping_nan(x, -1076.0, 1025.0);
  const Wide t = x + Wide(kRoundD), n = t - Wide(kRoundD), r = x - n;
  // The products of the first parts are exact: 19 and 33 bits.
  const Wide first = (r + Wide(0x1p33)) - Wide(0x1p33), high = first * Wide(kLn2HighD);
  const Wide low = fma(first, Wide(kLn2LowD), (r - first) * Wide(kLn2D)), head = high + low;
  return exp_reduced(head, (high - head) + low, n, bits(t) << 52);
}

TENON_INLINE Wide fmod(Wide x, Wide y) {
  return per_lane(x, y, [](double a, double b) { return __builtin_fmod(a, b); });
}
TENON_INLINE Wide lgamma(Wide x) { return per_lane(x, lgamma_of); }
TENON_INLINE Wide erfinv(Wide x) { return per_lane(x, erfinv_of); }
TENON_INLINE Wide i0(Wide x) { return per_lane(x, i0_of); }

}  // namespace
}  // namespace tenon::cpu

#undef TENON_NATIVE_V
#undef TENON_NAME_1
#undef TENON_NAME_2
