#include <deque>
#include <string>
#include <vector>

#include "codegen/c/math_library.h"
#include "math/coefficients.h"

namespace tenon::emit {
namespace {

// For sixteen elements at once, with AVX-512, in double precision. First what elements of f64 use as well; from exp_f64v on
// functions for ops of f32 that are evaluated wider. Their formulas, and the reasons for them, are those of
// backends/cpu/kernels/math_wide.h: about 1e-13, and right for what f32 bodies produce.
constexpr Helper kWide[] = {
    {"wide_lanes", "lanes", R"(
typedef double16 F64V; typedef long16 I64V; typedef ulong16 U64V;
#define FMA_W(a, b, c) fma((F64V)(a), (F64V)(b), (F64V)(c))
#define BITS_W as_ulong16
#define FROM_BITS_W as_double16
#define WIDENED_V(x) __builtin_convertvector((F32V)(x), F64V)
#define NARROWED_V(x) __builtin_convertvector((F64V)(x), F32V)
#define INFINITY_W AS_F64(0x7ff0000000000000ul)
#define NAN_W AS_F64(0x7ff8000000000000ul)
#define ROUND_W 6755399441055744.0
DEVICE F64V joined_w(double8 low, double8 high) { return (F64V)(low, high); }
#define ROUNDED_W(part, mode) __builtin_ia32_rndscalepd_mask(part, mode, part, -1, 4)
DEVICE F64V abs_f64v(F64V x) { return FROM_BITS_W(BITS_W(x) & 0x7ffffffffffffffful); }
DEVICE F64V copysign_f64v(F64V x, F64V s) {
  return FROM_BITS_W((BITS_W(x) & 0x7ffffffffffffffful) | (BITS_W(s) & 0x8000000000000000ul));
}
DEVICE F64V sqrt_f64v(F64V x) { return joined_w(__builtin_ia32_sqrtpd512(x.lo, 4), __builtin_ia32_sqrtpd512(x.hi, 4)); }
DEVICE F64V rint_f64v(F64V x) { return joined_w(ROUNDED_W(x.lo, 8), ROUNDED_W(x.hi, 8)); }
DEVICE F64V floor_f64v(F64V x) { return joined_w(ROUNDED_W(x.lo, 9), ROUNDED_W(x.hi, 9)); }
DEVICE F64V ceil_f64v(F64V x) { return joined_w(ROUNDED_W(x.lo, 10), ROUNDED_W(x.hi, 10)); }
DEVICE F64V trunc_f64v(F64V x) { return joined_w(ROUNDED_W(x.lo, 11), ROUNDED_W(x.hi, 11)); }
DEVICE F64V max_f64v(F64V a, F64V b) { F64V y = a > b ? a : b; return a != a ? a : y; }
DEVICE F64V min_f64v(F64V a, F64V b) { F64V y = a < b ? a : b; return a != a ? a : y; }
DEVICE I64V first_w(i32 part) { return __builtin_convertvector(first_v(part), I64V); }
DEVICE i32 any_w(I64V mask) { return (u8)(__builtin_ia32_cvtq2mask512(mask.lo) | __builtin_ia32_cvtq2mask512(mask.hi)) != 0; }
// x 2^n, rounded once.
DEVICE F64V scaled_w(F64V x, F64V n) {
  return joined_w(__builtin_ia32_scalefpd512_mask(x.lo, n.lo, x.lo, -1, 4), __builtin_ia32_scalefpd512_mask(x.hi, n.hi, x.hi, -1, 4));
}
DEVICE F64V between_w(F64V x, f64 low, f64 high) { x = x < low ? (F64V)low : x; return x > high ? (F64V)high : x; }
)"},
    {"lanes_f64", "wide_lanes", R"(
typedef double16 __attribute__((aligned(8))) AnywhereW;
#define LOAD_F64_V(p) ((F64V)(*(GLOBAL const AnywhereW*)(p)))
#define STORE_F64_V(p, v) (*(GLOBAL AnywhereW*)(p) = (v))
DEVICE void STREAM_F64_V(GLOBAL f64* p, F64V v) {
  if (((u64)p & 63) != 0) {
    STORE_F64_V(p, v);
    return;
  }
  __builtin_nontemporal_store(v.lo, (GLOBAL double8*)p);
  __builtin_nontemporal_store(v.hi, (GLOBAL double8*)(p + 8));
}
DEVICE F64V LOAD_PART_F64_V(GLOBAL const f64* p, i32 part) { F64V v = 0.0; for (i32 l = 0; l < part; ++l) v[l] = p[l]; return v; }
DEVICE void STORE_PART_F64_V(GLOBAL f64* p, F64V v, i32 part) { for (i32 l = 0; l < part; ++l) p[l] = v[l]; }
)"},
    {"host_call_v", "wide_lanes", R"(
DEVICE F64V host_call_v(i64 function, F64V x) {
  f64 lanes[LANES] __attribute__((aligned(128)));
  *(F64V*)lanes = x;
  UNROLL_BY(1) for (i32 l = 0; l < LANES; ++l) lanes[l] = host_call(function, lanes[l]);
  return *(F64V*)lanes;
}
)"},
    {"host_call_2_v", "wide_lanes", R"(
DEVICE F64V host_call_2_v(i64 function, F64V x, F64V y) {
  f64 lanes[LANES] __attribute__((aligned(128))), others[LANES] __attribute__((aligned(128)));
  *(F64V*)lanes = x;
  *(F64V*)others = y;
  UNROLL_BY(1) for (i32 l = 0; l < LANES; ++l) lanes[l] = host_call_2(function, lanes[l], others[l]);
  return *(F64V*)lanes;
}
)"},
    // Functions of eight doubles.
    {"vector_call_v", "wide_lanes", R"(
DEVICE F64V vector_call_v(i64 function, F64V x) { return joined_w(host_call_8(function, x.lo), host_call_8(function, x.hi)); }
)"},
    {"vector_call_2_v", "wide_lanes", R"(
DEVICE F64V vector_call_2_v(i64 function, F64V x, F64V y) {
  return joined_w(host_call_8_2(function, x.lo, y.lo), host_call_8_2(function, x.hi, y.hi));
}
)"},
    {"folds_w", "wide_lanes", R"(
DEVICE f64 product_of_w(F64V v) {
  double8 a = v.lo * v.hi;
  double4 b = a.lo * a.hi;
  double2 c = b.lo * b.hi;
  return c.x * c.y;
}
#define FOLDS_W(name, op) \
  DEVICE f64 name(F64V v) { \
    double8 a = v.lo op v.hi ? v.lo : v.hi; \
    double4 b = a.lo op a.hi ? a.lo : a.hi; \
    double2 c = b.lo op b.hi ? b.lo : b.hi; \
    return c.x op c.y ? c.x : c.y; \
  }
FOLDS_W(max_of_w, >)
FOLDS_W(min_of_w, <)
)"},
    {"exp_f64v", "wide_lanes exp_polynomial_w", R"(
DEVICE F64V expm1_reduced_w(F64V r) { return FMA_W(exp_polynomial_w(r), r * r, r); }
// exp(x) = 2^n (1 + expm1_reduced_w(r)).
DEVICE F64V exp_rest_w(F64V x, F64V n) { return FMA_W(n, -0x1.a39ef35793c76p-33, FMA_W(n, -0x1.62e42feep-1, x)); }
DEVICE F64V exp_f64v(F64V x) {
  x = between_w(x, -746.0, 710.0);
  F64V n = FMA_W(x, 0x1.71547652b82fep+0, ROUND_W) - ROUND_W;
  return scaled_w(expm1_reduced_w(exp_rest_w(x, n)) + 1.0, n);
}
)"},
    {"exp2_f64v", "exp_f64v", R"(
DEVICE F64V exp2_f64v(F64V x) {
  x = between_w(x, -1076.0, 1025.0);
  F64V n = (x + ROUND_W) - ROUND_W;
  return scaled_w(expm1_reduced_w((x - n) * 0x1.62e42fefa39efp-1) + 1.0, n);
}
)"},
    {"expm1_f64v", "exp_f64v", R"(
DEVICE F64V expm1_f64v(F64V x) {
  F64V c = between_w(x, -40.0, 710.0), t = FMA_W(c, 0x1.71547652b82fep+0, ROUND_W), n = t - ROUND_W;
  F64V half_scale = FROM_BITS_W((BITS_W(t) << 52) + (1022ul << 52));
  F64V y = FMA_W(half_scale, expm1_reduced_w(exp_rest_w(c, n)), half_scale - 0.5);
  return abs_f64v(x) < 0x1p-54 ? x : y + y;
}
)"},
    {"log_parts_w", "wide_lanes log_polynomial_w", R"(
// log(x) = e ln(2) + log_m.
typedef struct { F64V e, log_m; } LogPartsW;
DEVICE LogPartsW log_parts_w(F64V x) {
  I64V tiny = x < 0x1p-1022;
  U64V u = BITS_W(tiny ? x * 0x1p54 : x) - 0x3fe6a09e667f3bcdul;
  LogPartsW parts;
  parts.e = __builtin_convertvector((I64V)as_long16(u) >> 52, F64V) - (tiny ? (F64V)54.0 : (F64V)0.0);
  F64V f = FROM_BITS_W((u & 0xffffffffffffful) + 0x3fe6a09e667f3bcdul) - 1.0;
  F64V s = f / (f + 2.0), square = s * s, twice = s + s;
  parts.log_m = FMA_W(twice * square, log_polynomial_w(square), twice);
  return parts;
}
DEVICE F64V log_special_w(F64V x, F64V y) {
  y = x < INFINITY_W ? y : x;
  return x > 0.0 ? y : (x == 0.0 ? (F64V)(-INFINITY_W) : (F64V)NAN_W);
}
)"},
    {"log_f64v", "log_parts_w", R"(
DEVICE F64V log_f64v(F64V x) {
  LogPartsW parts = log_parts_w(x);
  return log_special_w(x, FMA_W(parts.e, 0x1.62e42feep-1, FMA_W(parts.e, 0x1.a39ef35793c76p-33, parts.log_m)));
}
)"},
    {"log2_f64v", "log_parts_w", R"(
DEVICE F64V log2_f64v(F64V x) {
  LogPartsW parts = log_parts_w(x);
  return log_special_w(x, FMA_W(parts.log_m, 0x1.71547652b82fep+0, parts.e));
}
)"},
    {"log10_f64v", "log_parts_w", R"(
DEVICE F64V log10_f64v(F64V x) {
  LogPartsW parts = log_parts_w(x);
  return log_special_w(x, FMA_W(parts.e, 0x1.34413509f79ffp-2, parts.log_m * 0x1.bcb7b1526e50ep-2));
}
)"},
    {"log1p_f64v", "log_f64v", R"(
DEVICE F64V log1p_f64v(F64V x) {
  F64V u = x + 1.0, y = log_f64v(u) + (x - (u - 1.0)) / u;
  y = x == INFINITY_W ? x : y;
  y = u == 0.0 ? (F64V)(-INFINITY_W) : y;
  return abs_f64v(x) < 0x1p-54 ? x : y;
}
)"},
    {"pow_f64v", "exp2_f64v log2_f64v", R"(
DEVICE F64V pow_f64v(F64V x, F64V y) {
  F64V magnitude = abs_f64v(x), logarithm = log2_f64v(magnitude), halved = y * 0.5;
  // 1^inf is 1, not the NaN of 0 * inf.
  F64V product = ((logarithm == 0.0) & (y == y)) ? (F64V)0.0 : y * logarithm;
  I64V integer = trunc_f64v(y) == y, odd = integer & (trunc_f64v(halved) != halved);
  F64V result = exp2_f64v(product);
  result = odd ? copysign_f64v(result, x) : result;
  result = ((x < 0.0) & ~integer & (magnitude < INFINITY_W)) ? (F64V)NAN_W : result;
  result = y != y ? y : result;
  return ((y == 0.0) | (x == 1.0)) ? (F64V)1.0 : result;
}
)"},
    {"cbrt_f64v", "exp2_f64v log2_f64v", R"(
DEVICE F64V cbrt_f64v(F64V x) { return copysign_f64v(exp2_f64v(log2_f64v(abs_f64v(x)) * (1.0 / 3.0)), x); }
)"},
    {"sin_reduced_w", "wide_lanes sin_polynomial_w cos_polynomial_w", R"(
typedef struct { F64V r; U64V quadrant; } ReducedW;
DEVICE ReducedW reduced_w(F64V x) {
  F64V t = FMA_W(x, 0x1.45f306dc9c883p-1, ROUND_W), n = t - ROUND_W;
  ReducedW reduced;
  reduced.r = FMA_W(n, -0x1.3198a2e037073p-69, FMA_W(n, -0x1.0b4611a6p-34, FMA_W(n, -0x1.921fb544p+0, x)));
  reduced.quadrant = BITS_W(t);
  return reduced;
}
DEVICE F64V sin_reduced_w(F64V r) { F64V square = r * r; return FMA_W(r * square, sin_polynomial_w(square), r); }
DEVICE F64V cos_reduced_w(F64V r) {
  F64V square = r * r;
  return FMA_W(square * square, cos_polynomial_w(square), FMA_W(square, -0.5, 1.0));
}
DEVICE I64V is_odd_w(U64V q) { return as_long16(q << 63) < 0; }
DEVICE F64V sin_shifted_w(F64V x, u64 quadrant) {
  ReducedW reduced = reduced_w(x);
  U64V q = reduced.quadrant + quadrant;
  F64V y = is_odd_w(q) ? cos_reduced_w(reduced.r) : sin_reduced_w(reduced.r);
  return FROM_BITS_W(BITS_W(y) ^ ((q & 2ul) << 62));
}
// Angles beyond the reduction's range one by one; what an element gives does not depend on its neighbours.
#define LARGE_ANGLES_W(x, y, function) { \
  I64V large = !(abs_f64v(x) <= 1.6e6); \
  if (any_w(large)) \
    for (i32 l = 0; l < LANES; ++l) \
      if (large[l]) y[l] = function(x[l]); \
}
)"},
    {"sin_f64v", "sin_reduced_w", R"(
DEVICE F64V sin_f64v(F64V x) {
  F64V y = x == 0.0 ? x : sin_shifted_w(x, 0ul);
  LARGE_ANGLES_W(x, y, sin)
  return y;
}
)"},
    {"cos_f64v", "sin_reduced_w", R"(
DEVICE F64V cos_f64v(F64V x) {
  F64V y = sin_shifted_w(x, 1ul);
  LARGE_ANGLES_W(x, y, cos)
  return y;
}
)"},
    {"tan_f64v", "sin_reduced_w", R"(
DEVICE F64V tan_f64v(F64V x) {
  ReducedW reduced = reduced_w(x);
  F64V s = sin_reduced_w(reduced.r), c = cos_reduced_w(reduced.r);
  I64V odd = is_odd_w(reduced.quadrant);
  F64V y = x == 0.0 ? x : (odd ? -c : s) / (odd ? s : c);
  LARGE_ANGLES_W(x, y, tan)
  return y;
}
)"},
    {"atan_unit_w", "wide_lanes atan_polynomial_w", R"(
DEVICE F64V atan_unit_w(F64V t) {
  I64V upper = t > 0x1.a827999fcef32p-2;
  F64V u = upper ? (t - 1.0) / (t + 1.0) : t, square = u * u;
  F64V y = FMA_W(u * square, atan_polynomial_w(square), u);
  return upper ? y + 0x1.921fb54442d18p-1 : y;
}
)"},
    {"atan_f64v", "atan_unit_w", R"(
DEVICE F64V atan_f64v(F64V x) {
  F64V t = abs_f64v(x);
  I64V large = t > 1.0;
  F64V y = atan_unit_w(large ? 1.0 / t : t);
  return copysign_f64v(large ? 0x1.921fb54442d18p+0 - y : y, x);
}
)"},
    {"atan2_f64v", "atan_unit_w", R"(
DEVICE F64V atan2_f64v(F64V y, F64V x) {
  F64V a = abs_f64v(x), b = abs_f64v(y), low = min_f64v(a, b), high = max_f64v(a, b);
  F64V ratio = high == 0.0 ? (F64V)0.0 : low / high;
  F64V angle = atan_unit_w(low == INFINITY_W ? (F64V)1.0 : ratio);
  angle = b > a ? 0x1.921fb54442d18p+0 - angle : angle;
  angle = as_long16(x) < 0 ? 0x1.921fb54442d18p+1 - angle : angle;
  return (x != x) | (y != y) ? x + y : copysign_f64v(angle, y);
}
)"},
    {"asin_half_w", "wide_lanes asin_polynomial_w", R"(
DEVICE F64V asin_half_w(F64V t) { F64V square = t * t; return FMA_W(t * square, asin_polynomial_w(square), t); }
)"},
    {"asin_f64v", "asin_half_w", R"(
DEVICE F64V asin_f64v(F64V x) {
  F64V t = abs_f64v(x);
  I64V upper = t > 0.5;
  F64V y = asin_half_w(upper ? sqrt_f64v((1.0 - t) * 0.5) : t);
  return copysign_f64v(upper ? 0x1.921fb54442d18p+0 - (y + y) : y, x);
}
)"},
    {"acos_f64v", "asin_half_w", R"(
DEVICE F64V acos_f64v(F64V x) {
  F64V t = abs_f64v(x);
  I64V upper = t > 0.5;
  F64V y = asin_half_w(upper ? sqrt_f64v((1.0 - t) * 0.5) : t);
  F64V near_one = x < 0.0 ? 0x1.921fb54442d18p+1 - (y + y) : y + y;
  return upper ? near_one : 0x1.921fb54442d18p+0 - copysign_f64v(y, x);
}
)"},
    {"sinh_f64v", "expm1_f64v", R"(
DEVICE F64V sinh_f64v(F64V x) {
  F64V t = abs_f64v(x), e = expm1_f64v(t);
  return copysign_f64v(0.5 * (t > 40.0 ? e : e + e / (e + 1.0)), x);
}
)"},
    {"cosh_f64v", "exp_f64v", R"(
DEVICE F64V cosh_f64v(F64V x) { F64V e = exp_f64v(abs_f64v(x)); return FMA_W(0.5, e, 0.5 / e); }
)"},
    {"tanh_f64v", "expm1_f64v", R"(
DEVICE F64V tanh_f64v(F64V x) { F64V e = expm1_f64v(-2.0 * abs_f64v(x)); return copysign_f64v(e / (e + 2.0), x); }
)"},
    {"asinh_f64v", "log1p_f64v", R"(
DEVICE F64V asinh_f64v(F64V x) {
  F64V t = abs_f64v(x), square = t * t, y = log1p_f64v(t + square / (1.0 + sqrt_f64v(1.0 + square)));
  return t == INFINITY_W ? x : copysign_f64v(y, x);
}
)"},
    {"acosh_f64v", "log1p_f64v", R"(
DEVICE F64V acosh_f64v(F64V x) {
  F64V t = x - 1.0, y = log1p_f64v(t + sqrt_f64v(t * (t + 2.0)));
  return x < 1.0 ? (F64V)NAN_W : y;
}
)"},
    {"atanh_f64v", "log1p_f64v", R"(
DEVICE F64V atanh_f64v(F64V x) {
  F64V t = abs_f64v(x);
  return copysign_f64v(0.5 * log1p_f64v((t + t) / (1.0 - t)), x);
}
)"},
    {"erfc_tail_w", "exp_f64v erfcx_polynomial_w", R"(
// erfc of a magnitude of 1 or more.
DEVICE F64V erfc_tail_w(F64V t) {
  t = t > 28.0 ? (F64V)28.0 : t;
  return exp_f64v(-(t * t)) * erfcx_polynomial_w((t - 2.0) / (t + 2.0)) / FMA_W(t, 2.0, 1.0);
}
)"},
    {"erf_f64v", "erfc_tail_w erf_polynomial_w", R"(
DEVICE F64V erf_f64v(F64V x) {
  F64V t = abs_f64v(x);
  return t < 1.0 ? x * erf_polynomial_w(x * x) : copysign_f64v(1.0 - erfc_tail_w(t < 1.0 ? (F64V)1.0 : t), x);
}
)"},
    {"erfc_f64v", "erfc_tail_w erf_polynomial_w", R"(
DEVICE F64V erfc_f64v(F64V x) {
  F64V t = abs_f64v(x), tail = erfc_tail_w(t < 1.0 ? (F64V)1.0 : t);
  return t < 1.0 ? 1.0 - x * erf_polynomial_w(x * x) : (x < 0.0 ? 2.0 - tail : tail);
}
)"},
    {"erfinv_f64v", "log_f64v erfinv_central_polynomial_w erfinv_tail_polynomial_w", R"(
DEVICE F64V erfinv_f64v(F64V x) {
  F64V w = -log_f64v((1.0 - x) * (1.0 + x)), magnitude = abs_f64v(x);
  F64V central = erfinv_central_polynomial_w((w > 6.0 ? (F64V)6.0 : w) - 3.0);
  F64V tail = erfinv_tail_polynomial_w(sqrt_f64v(between_w(w, 6.0, 20.0)) - 3.5);
  F64V y = x * (w < 6.0 ? central : tail);
  return magnitude < 1.0 ? y : (magnitude == 1.0 ? x * INFINITY_W : (F64V)NAN_W);
}
)"},
    {"lgamma_f64v", "log_f64v sin_reduced_w lgamma_polynomial_w", R"(
DEVICE F64V lgamma_f64v(F64V x) {
  F64V t = abs_f64v(x), z = t * (t + 7.0);
  I64V is_small = t < 8.0, negative = x < 0.0;
  F64V product = is_small ? z * (z + 6.0) * ((z + 10.0) * (z + 12.0)) : (F64V)1.0;
  F64V u = is_small ? t + 8.0 : t, inverse = 1.0 / u;
  F64V rest = FMA_W(inverse, lgamma_polynomial_w(inverse * inverse), 0x1.d67f1c864beb5p-1 - u);
  F64V stirling = FMA_W(u - 0.5, log_f64v(u), rest);
  F64V part = abs_f64v(t - rint_f64v(t));
  F64V sine = part > 0.25 ? cos_reduced_w((0.5 - part) * 0x1.921fb54442d18p+1) : sin_reduced_w(part * 0x1.921fb54442d18p+1);
  F64V logarithm = log_f64v(negative ? 0x1.921fb54442d18p+1 * product / (t * sine) : product);
  F64V y = negative ? logarithm - stirling : stirling - logarithm;
  y = (x == 1.0) | (x == 2.0) ? (F64V)0.0 : y;
  return t == INFINITY_W ? t : y;
}
)"},
    {"i0_f64v", "exp_f64v i0_small_polynomial_w i0_large_polynomial_w", R"(
DEVICE F64V i0_f64v(F64V x) {
  F64V t = abs_f64v(x), scaled = (t > 8.0 ? (F64V)8.0 : t) * 0.125;
  F64V small = i0_small_polynomial_w(scaled * scaled);
  F64V large = exp_f64v(t) * (i0_large_polynomial_w(8.0 / (t < 8.0 ? (F64V)8.0 : t)) / sqrt_f64v(t));
  return t <= 8.0 ? small : (t == INFINITY_W ? t : large);
}
)"},
    {"fmod_f64v", "wide_lanes", R"(
// Exact. The quotient's integer part has at most 29 bits, its product with y fits a double; larger ones one by one.
DEVICE F64V fmod_f64v(F64V x, F64V y) {
  F64V a = abs_f64v(x), b = abs_f64v(y), quotient = a / b;
  F64V r = quotient < 1.0 ? a : a - trunc_f64v(quotient) * b;
  r = r < 0.0 ? r + b : r;
  r = copysign_f64v(r >= b ? r - b : r, x);
  I64V large = !(quotient < 0x1p28);
  if (any_w(large))
    for (i32 l = 0; l < LANES; ++l)
      if (large[l]) r[l] = fmod(x[l], y[l]);
  return r;
}
)"},
};

// Keeps the texts that its helpers show.
class WideHelpers {
 public:
  WideHelpers() {
    namespace c = coefficients;
    add("exp_polynomial_w", c::kWideExp);
    add("log_polynomial_w", c::kWideLog);
    add("sin_polynomial_w", c::kWideSin);
    add("cos_polynomial_w", c::kWideCos);
    add("atan_polynomial_w", c::kWideAtan);
    add("asin_polynomial_w", c::kWideAsin);
    add("erf_polynomial_w", c::kWideErf);
    add("erfcx_polynomial_w", c::kWideErfcx);
    add("erfinv_central_polynomial_w", c::kWideErfinvCentral);
    add("erfinv_tail_polynomial_w", c::kWideErfinvTail);
    add("lgamma_polynomial_w", c::kWideLgamma);
    add("i0_small_polynomial_w", c::kWideI0Small);
    add("i0_large_polynomial_w", c::kWideI0Large);
    helpers_.insert(helpers_.end(), std::begin(kWide), std::end(kWide));
  }
  std::span<const Helper> helpers() const { return helpers_; }

 private:
  void add(std::string_view name, std::span<const double> coefficients) {
    const std::string& text = texts_.emplace_back(polynomial_text("F64V", "FMA_W", name, coefficients));
    helpers_.push_back({name, "wide_lanes", text});
  }

  std::deque<std::string> texts_;
  std::vector<Helper> helpers_;
};

}  // namespace

std::span<const Helper> wide_lanes_helpers() {
  static const WideHelpers* const instance = new WideHelpers;
  return instance->helpers();
}

}  // namespace tenon::emit
