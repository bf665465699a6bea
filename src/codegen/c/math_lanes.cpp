#include "codegen/c/math_library.h"

namespace tenon::emit {
namespace {

// For sixteen elements at once, with AVX-512: the formulas, tables and reasons are those of backends/cpu/kernels/math_f32.h.
constexpr Helper kLanes[] = {
    {"lanes", "", R"(
#define FMA_V(a, b, c) fma((F32V)(a), (F32V)(b), (F32V)(c))
#define BITS_V as_uint16
#define FROM_BITS_V as_float16
DEVICE F32V abs_f32v(F32V x) { return FROM_BITS_V(BITS_V(x) & 0x7fffffffu); }
DEVICE F32V copysign_f32v(F32V x, F32V s) { return FROM_BITS_V((BITS_V(x) & 0x7fffffffu) | (BITS_V(s) & 0x80000000u)); }
DEVICE F32V sqrt_f32v(F32V x) { return __builtin_ia32_sqrtps512(x, 4); }
DEVICE F32V rint_f32v(F32V x) { return __builtin_ia32_rndscaleps_mask(x, 8, x, -1, 4); }
DEVICE F32V floor_f32v(F32V x) { return __builtin_ia32_rndscaleps_mask(x, 9, x, -1, 4); }
DEVICE F32V ceil_f32v(F32V x) { return __builtin_ia32_rndscaleps_mask(x, 10, x, -1, 4); }
DEVICE F32V trunc_f32v(F32V x) { return __builtin_ia32_rndscaleps_mask(x, 11, x, -1, 4); }
DEVICE F32V max_f32v(F32V a, F32V b) { F32V y = a > b ? a : b; return a != a ? a : y; }
DEVICE F32V min_f32v(F32V a, F32V b) { F32V y = a < b ? a : b; return a != a ? a : y; }
// The first lanes, |part| of them.
DEVICE I32V first_v(i32 part) { return (I32V)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) < part; }
// Whether a mask is set anywhere; any() looks at every lane.
DEVICE i32 any_v(I32V mask) { return (u16)__builtin_ia32_cvtd2mask512(mask) != 0; }
// x 2^n, rounded once.
DEVICE F32V scaled_v(F32V x, F32V n) { return __builtin_ia32_scalefps512_mask(x, n, x, -1, 4); }
DEVICE F32V at_least_v(F32V x, f32 low) { return x < low ? (F32V)low : x; }
DEVICE F32V at_most_v(F32V x, f32 high) { return x > high ? (F32V)high : x; }
)"},
    {"lanes_16", "lanes", R"(
typedef ushort16 U16V;
typedef ushort16 __attribute__((aligned(2))) Anywhere16V;
#define LOAD_16_V(p) ((U16V)(*(GLOBAL const Anywhere16V*)(p)))
#define STORE_16_V(p, v) (*(GLOBAL Anywhere16V*)(p) = (v))
#define STREAM_16_V(p, v) { if (((u64)(p) & 31) == 0) __builtin_nontemporal_store(v, (GLOBAL U16V*)(p)); else STORE_16_V(p, v); }
DEVICE U16V LOAD_PART_16_V(GLOBAL const u16* p, i32 part) { U16V v = 0; for (i32 l = 0; l < part; ++l) v[l] = p[l]; return v; }
DEVICE void STORE_PART_16_V(GLOBAL u16* p, U16V v, i32 part) { for (i32 l = 0; l < part; ++l) p[l] = v[l]; }
)"},
    {"lanes_f16", "lanes_16", R"(
// With 8 (no exceptions) the compiler does not look into it: comparing what was loaded, it would compare halves, one by one.
DEVICE F32V FROM_F16_V(U16V h) { return __builtin_ia32_vcvtph2ps512_mask(as_short16(h), (F32V)0.0f, -1, 8); }
DEVICE U16V TO_F16_V(F32V x) { return as_ushort16(__builtin_ia32_vcvtps2ph512_mask(x, 0, (short16)0, -1)); }
#define LOAD_F16_V(p) FROM_F16_V(LOAD_16_V(p))
#define LOAD_PART_F16_V(p, part) FROM_F16_V(LOAD_PART_16_V(p, part))
#define STORE_F16_V(p, v) STORE_16_V(p, TO_F16_V(v))
#define STREAM_F16_V(p, v) { const U16V h = TO_F16_V(v); STREAM_16_V(p, h) }
#define STORE_PART_F16_V(p, v, part) STORE_PART_16_V(p, TO_F16_V(v), part)
)"},
    {"lanes_bf16", "lanes_16", R"(
DEVICE F32V FROM_BF16_V(U16V b) { return FROM_BITS_V(__builtin_convertvector(b, U32V) << 16); }
DEVICE U16V TO_BF16_V(F32V x) {
  U32V bits = BITS_V(x), rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return __builtin_convertvector(x != x ? ((bits >> 16) | 0x0040u) : rounded, U16V);
}
#define LOAD_BF16_V(p) FROM_BF16_V(LOAD_16_V(p))
#define LOAD_PART_BF16_V(p, part) FROM_BF16_V(LOAD_PART_16_V(p, part))
#define STORE_BF16_V(p, v) STORE_16_V(p, TO_BF16_V(v))
#define STREAM_BF16_V(p, v) { const U16V b = TO_BF16_V(v); STREAM_16_V(p, b) }
#define STORE_PART_BF16_V(p, v, part) STORE_PART_16_V(p, TO_BF16_V(v), part)
)"},
    {"folds_v", "lanes", R"(
DEVICE f32 sum_of_v(F32V v) {
  float8 a = v.lo + v.hi;
  float4 b = a.lo + a.hi;
  float2 c = b.lo + b.hi;
  return c.x + c.y;
}
DEVICE f32 product_of_v(F32V v) {
  float8 a = v.lo * v.hi;
  float4 b = a.lo * a.hi;
  float2 c = b.lo * b.hi;
  return c.x * c.y;
}
#define FOLDS_V(name, op) \
  DEVICE f32 name(F32V v) { \
    float8 a = v.lo op v.hi ? v.lo : v.hi; \
    float4 b = a.lo op a.hi ? a.lo : a.hi; \
    float2 c = b.lo op b.hi ? b.lo : b.hi; \
    return c.x op c.y ? c.x : c.y; \
  }
FOLDS_V(max_of_v, >)
FOLDS_V(min_of_v, <)
)"},
    {"exp_parts_v", "lanes", R"(
// exp(x) = 2^n (1 + rest).
typedef struct { F32V rest, n; } ExpPartsV;
DEVICE F32V expm1_reduced_v(F32V r) {
  F32V p = FMA_V(FMA_V(FMA_V(FMA_V(1.39261761e-3f, r, 8.36317307e-3f), r, 4.16665547e-2f), r, 1.66665770e-1f), r, 5.00000000e-1f);
  return FMA_V(p, r * r, r);
}
DEVICE ExpPartsV exp_parts_v(F32V x, F32V low) {
  ExpPartsV e;
  e.n = FMA_V(x, 1.44269504f, 12582912.0f) - 12582912.0f;
  e.rest = expm1_reduced_v(FMA_V(e.n, 2.12194440e-4f, FMA_V(e.n, -0.693359375f, x)) + low);
  return e;
}
DEVICE F32V exp_times_v(ExpPartsV e, F32V x) { return FMA_V(x, e.rest, x); }
DEVICE F32V exp_value_v(ExpPartsV e) { return scaled_v(e.rest + 1.0f, e.n); }
)"},
    {"exp_f32v", "exp_parts_v", R"(
DEVICE F32V exp_f32v(F32V x) { return exp_value_v(exp_parts_v(at_most_v(at_least_v(x, -126.0f), 89.0f), -0.0f)); }
)"},
    {"exp2_f32v", "exp_parts_v", R"(
DEVICE F32V exp2_f32v(F32V x) {
  ExpPartsV e;
  x = at_most_v(at_least_v(x, -151.0f), 129.0f);
  e.n = (x + 12582912.0f) - 12582912.0f;
  e.rest = expm1_reduced_v((x - e.n) * 0.693147181f);
  return exp_value_v(e);
}
)"},
    {"expm1_f32v", "exp_parts_v", R"(
DEVICE F32V expm1_f32v(F32V x) {
  ExpPartsV e = exp_parts_v(at_most_v(at_least_v(x, -20.0f), 89.0f), -0.0f);
  F32V half_scale = scaled_v((F32V)0.5f, e.n);
  F32V y = FMA_V(half_scale, e.rest, half_scale - 0.5f);
  return abs_f32v(x) < 2.98023224e-8f ? x : y + y;
}
)"},
    {"log_parts_v", "lanes", R"(
DEVICE F32V log_polynomial_v(F32V f) {
  F32V p = FMA_V(6.97161147e-2f, f, -1.14797338e-1f);
  p = FMA_V(FMA_V(FMA_V(p, f, 1.16854199e-1f), f, -1.24256873e-1f), f, 1.42490576e-1f);
  return FMA_V(FMA_V(FMA_V(FMA_V(p, f, -1.66678023e-1f), f, 2.00007157e-1f), f, -2.49999970e-1f), f, 3.33333312e-1f);
}
typedef struct { F32V e, f; } LogPartsV;
DEVICE LogPartsV log_parts_v(F32V x) {
  LogPartsV parts;
  I32V tiny = x < 1.17549435e-38f;
  U32V u = BITS_V(tiny ? x * 8388608.0f : x) - 0x3f3504f3u;
  parts.e = convert_float16((as_int16(u) >> 23) - (tiny & 23));
  parts.f = FROM_BITS_V((u & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
  return parts;
}
DEVICE F32V log_rest_v(F32V f) {
  F32V square = f * f;
  return FMA_V(-0.5f, square, square * f * log_polynomial_v(f));
}
DEVICE F32V log_sum_v(F32V e, F32V f) {
  F32V square = f * f;
  F32V y = FMA_V(square * f, log_polynomial_v(f), e * -2.12194440e-4f);
  y = FMA_V(-0.5f, square, y);
  return FMA_V(e, 0.693359375f, f + y);
}
DEVICE F32V log_special_v(F32V x, F32V y) {
  y = x < AS_F32(0x7f800000u) ? y : x;
  F32V low = x == 0.0f ? (F32V)AS_F32(0xff800000u) : (F32V)AS_F32(0x7fc00000u);
  return x > 0.0f ? y : low;
}
)"},
    {"log_f32v", "log_parts_v", R"(
DEVICE F32V log_f32v(F32V x) {
  LogPartsV parts = log_parts_v(x);
  return log_special_v(x, log_sum_v(parts.e, parts.f));
}
)"},
    {"log2_f32v", "log_parts_v", R"(
DEVICE F32V log2_f32v(F32V x) {
  LogPartsV parts = log_parts_v(x);
  F32V rest = log_rest_v(parts.f);
  F32V y = FMA_V(parts.f, 0.44269504f, rest * 0.44269504f) + rest + parts.f;
  return log_special_v(x, y + parts.e);
}
)"},
    {"log10_f32v", "log_parts_v", R"(
DEVICE F32V log10_f32v(F32V x) {
  LogPartsV parts = log_parts_v(x);
  F32V rest = log_rest_v(parts.f);
  F32V y = (parts.f + rest) * -3.20551810e-3f;
  y = FMA_V(rest, 0.4375f, FMA_V(parts.e, 2.48745664e-4f, y));
  y = FMA_V(parts.f, 0.4375f, y);
  return log_special_v(x, FMA_V(parts.e, 0.30078125f, y));
}
)"},
    {"log1p_f32v", "log_parts_v", R"(
DEVICE F32V log1p_f32v(F32V x) {
  F32V u = 1.0f + x;
  F32V lost = x < 1.0f ? x - (u - 1.0f) : 1.0f - (u - x);
  U32V reduced = BITS_V(u) - 0x3f3504f3u;
  I32V e = as_int16(reduced) >> 23;
  I32V scale = 0x3f800000 - (e << 23);
  F32V shrink = FROM_BITS_V(as_uint16(scale > 0 ? scale : (I32V)0));
  F32V f = (FROM_BITS_V((reduced & 0x7fffffu) + 0x3f3504f3u) - 1.0f) + lost * shrink;
  F32V y = log_special_v(u, log_sum_v(convert_float16(e), f));
  y = x == AS_F32(0x7f800000u) ? x : y;
  return abs_f32v(x) < 2.98023224e-8f ? x : y;
}
)"},
    {"piecewise_v", "lanes", R"(
// One instruction looks up a coefficient for every lane. The pieces' boundaries are where the leading bits of t + bias change.
DEVICE F32V look_up_v(__constant const f32* row, I32V index) { return __builtin_ia32_permvarsf512(*(__constant const F32V*)row, index); }
#define ROW_V(r) look_up_v(table[r], index)
DEVICE F32V piecewise_v(F32V t, __constant const f32 (*table)[16], f32 bias) {
  I32V index = as_int16(BITS_V(t + bias) >> 21);
  F32V h = t - ROW_V(0), square = h * h;
  F32V p = FMA_V(ROW_V(3), h, ROW_V(2)), q = FMA_V(ROW_V(5), h, ROW_V(4)), r = FMA_V(ROW_V(7), h, ROW_V(6));
  return FMA_V(FMA_V(r, square * square, FMA_V(q, square, p)), h, ROW_V(1));
}
)"},
    {"tanh_f32v", "piecewise_v", R"(
__constant const f32 kTanhV[8][16] __attribute__((aligned(64))) = {
{1.5f, 2.0f, 2.5f, 3.0f, 3.75f, 4.75f, 5.75f, 6.75f, 8.140625f, 0.0f, 0.0f, 1.875e-1f, 3.75e-1f, 6.25e-1f, 8.75e-1f, 1.125f},
{9.05148254e-1f, 9.6402758e-1f, 9.86614298e-1f, 9.95054754e-1f, 9.98894443e-1f, 9.99850308e-1f, 9.9997974e-1f,
9.99997258e-1f, 9.9999983e-1f, 0.0f, 0.0f, 1.853332e-1f, 3.58357398e-1f, 5.54599722e-1f, 7.03905604e-1f, 8.0930107e-1f},
{1.80706534e-1f, 7.06508069e-2f, 2.65922287e-2f, 9.8660395e-3f, 2.20993778e-3f, 2.99369091e-4f, 4.05204532e-5f,
5.48394322e-6f, 3.40030444e-7f, 0.0f, 1.0f, 9.65651605e-1f, 8.7157998e-1f, 6.9241916e-1f, 5.04516905e-1f, 3.45031777e-1f},
{-1.63566273e-1f, -6.81093321e-2f, -2.623627e-2f, -9.81724752e-3f, -2.20745956e-3f, -2.99319313e-4f, -4.05189561e-5f,
-5.4838366e-6f, -3.39887121e-7f, 0.0f, -3.13486521e-9f, -1.78967302e-1f, -3.12337123e-1f, -3.84015469e-1f, -3.55132278e-1f,
-2.79234588e-1f},
{8.78296854e-2f, 4.21113038e-2f, 1.70207441e-2f, 6.47972033e-3f, 1.46692428e-3f, 1.99274894e-4f, 2.69826524e-5f,
3.65195641e-6f, 2.24024873e-7f, 0.0f, -3.33332079e-1f, -2.8871489e-1f, -1.78601037e-1f, -1.78378282e-2f, 8.18049308e-2f,
1.10974807e-1f},
{-2.49679379e-2f, -1.78926158e-2f, -8.04787801e-3f, -3.17551544e-3f, -7.30604623e-4f, -9.96310996e-5f, -1.3497459e-5f,
-1.82693631e-6f, -1.12464686e-7f, 0.0f, -8.04119821e-5f, 1.13163919e-1f, 1.68109532e-1f, 1.37895476e-1f, 6.07949524e-2f,
3.26733851e-3f},
{-3.09168922e-3f, 4.70827326e-3f, 2.86570429e-3f, 1.22866701e-3f, 3.01362322e-4f, 4.15008868e-5f, 5.62971317e-6f,
7.62140371e-7f, 5.15652837e-8f, 0.0f, 1.35140767e-1f, 9.65218165e-2f, 1.90036809e-2f, -5.43354084e-2f, -5.85474174e-2f,
-3.20385186e-2f},
{7.20238027e-3f, -1.1171285e-4f, -7.15197242e-4f, -3.74085254e-4f, -9.75301062e-5f, -1.36565576e-5f, -1.85665029e-6f,
-2.51424959e-7f, -1.6834242e-8f, 0.0f, -1.66335207e-2f, -5.94319036e-2f, -6.90390016e-2f, -2.40397906e-2f, 1.29941448e-2f,
1.84843331e-2f}};
DEVICE F32V tanh_f32v(F32V x) { return copysign_f32v(piecewise_v(at_most_v(abs_f32v(x), 9.02f), kTanhV, 0.75f), x); }
)"},
    {"erf_f32v", "piecewise_v", R"(
__constant const f32 kErfV[8][16] __attribute__((aligned(64))) = {
{1.875f, 2.375f, 2.875f, 3.375f, 3.78125f, 0.0f, 0.0f, 9.375e-2f, 1.875e-1f, 3.125e-1f, 4.375e-1f, 5.625e-1f, 7.5e-1f, 1.0f,
1.25f, 1.5f},
{9.91990058e-1f, 9.99217062e-1f, 9.99952145e-1f, 9.99998185e-1f, 9.99999911e-1f, 0.0f, 0.0f, 1.05476444e-1f, 2.09117677e-1f,
3.41468634e-1f, 4.63898136e-1f, 5.73674457e-1f, 7.11155634e-1f, 8.42700793e-1f, 9.22900128e-1f, 9.66105146e-1f},
{3.35456979e-2f, 4.00648017e-3f, 2.90242347e-4f, 1.27545314e-5f, 6.9661606e-7f, 0.0f, 1.12837917f, 1.11850523f, 1.0893988f,
1.02339547f, 9.31812176e-1f, 8.22321359e-1f, 6.42931077e-1f, 4.15107504e-1f, 2.36521124e-1f, 1.18930287e-1f},
{-6.28983912e-2f, -9.5153689e-3f, -8.34409836e-4f, -4.3038603e-5f, -2.63384471e-6f, 0.0f, -4.98878903e-11f, -1.04859865e-1f,
-2.04262276e-1f, -3.19811083e-1f, -4.07667827e-1f, -4.62555765e-1f, -4.82198301e-1f, -4.15107499e-1f, -2.95651405e-1f,
-1.78395435e-1f},
{6.745781e-2f, 1.37302285e-2f, 1.50073536e-3f, 9.22263183e-5f, 6.39951964e-6f, 0.0f, -3.76126349e-1f, -3.66281313e-1f,
-3.37599875e-1f, -2.74504366e-1f, -1.91700944e-1f, -1.00648842e-1f, 2.67848778e-2f, 1.38365939e-1f, 1.67535016e-1f,
1.38753008e-1f},
{-4.22646364e-2f, -1.31352627e-2f, -1.88130821e-3f, -1.41698989e-4f, -1.12502303e-5f, 0.0f, -5.10972487e-6f, 5.21227223e-2f,
9.97373337e-2f, 1.4949488e-1f, 1.77823711e-1f, 1.8249259e-1f, 1.50686477e-1f, 6.91855968e-2f, -6.15819137e-3f,
-4.45983532e-2f},
{1.09266783e-2f, 8.36800999e-3f, 1.77092907e-3f, 1.75131867e-4f, 1.56972715e-5f, 0.0f, 1.13066926e-1f, 1.07886682e-1f,
9.36590777e-2f, 6.35892812e-2f, 2.63919256e-2f, -1.07974349e-2f, -5.27407543e-2f, -6.87712021e-2f, -4.70814227e-2f,
-1.49950682e-2f},
{4.25833561e-3f, -3.04864282e-3f, -1.15462028e-3f, -1.524464e-4f, -1.58424007e-5f, 0.0f, -4.19087057e-3f, -1.72648655e-2f,
-3.24050389e-2f, -4.64231341e-2f, -5.11934535e-2f, -4.65687285e-2f, -2.68094716e-2f, 4.48233667e-3f, 2.11459004e-2f,
1.92615186e-2f}};
DEVICE F32V erf_f32v(F32V x) { return copysign_f32v(piecewise_v(at_most_v(abs_f32v(x), 3.95f), kErfV, 0.375f), x); }
)"},
    {"times_exp_minus_square_v", "exp_parts_v", R"(
// scale exp(-factor t^2), t in [0, 15], factor 1 or 1/2; t^2 in two exact parts.
DEVICE F32V times_exp_minus_square_v(F32V scale, F32V t, f32 factor) {
  F32V head = FROM_BITS_V(BITS_V(t) & 0xfffff000u);
  F32V rest = (t - head) * (t + head);
  ExpPartsV e = exp_parts_v(at_least_v(head * head * -factor, -126.0f), rest * -factor);
  return scaled_v(exp_times_v(e, scale), e.n);
}
)"},
    {"erfc_f32v", "piecewise_v times_exp_minus_square_v", R"(
__constant const f32 kErfcxV[8][16] __attribute__((aligned(64))) = {
{1.5f, 2.0f, 2.5f, 3.0f, 3.75f, 4.75f, 5.75f, 6.75f, 8.25f, 9.71875f, 6.25e-2f, 1.875e-1f, 3.75e-1f, 6.25e-1f, 8.75e-1f,
1.125f},
{3.21585416e-1f, 2.55395676e-1f, 2.10806364e-1f, 1.79001151e-1f, 1.45589721e-1f, 1.16302707e-1f, 9.66987782e-2f,
8.26950568e-2f, 6.78949199e-2f, 5.7749116e-2f, 9.33206249e-1f, 8.19181308e-1f, 6.85857233e-1f, 5.56813881e-1f,
4.64311583e-1f, 3.9569808e-1f},
{-1.63622936e-1f, -1.06796467e-1f, -7.43473484e-2f, -5.43722606e-2f, -3.64562668e-2f, -2.35034505e-2f, -1.63432186e-2f,
-1.19959008e-2f, -8.11299133e-3f, -5.880725e-3f, -1.01172839f, -8.21186177e-1f, -6.13986251e-1f, -4.3236182e-1f,
-3.15833898e-1f, -2.38058489e-1f},
{7.61510459e-2f, 4.18027541e-2f, 2.49379975e-2f, 1.58843713e-2f, 8.8787575e-3f, 4.66132672e-3f, 2.72527392e-3f,
1.72272753e-3f, 9.62760642e-4f, 5.95819999e-4f, 8.69973225e-1f, 6.652089e-1f, 4.55612396e-1f, 2.86587747e-1f, 1.87956924e-1f,
1.27882281e-1f},
{-3.29286174e-2f, -1.54600005e-2f, -8.0013667e-3f, -4.47935885e-3f, -2.10698622e-3f, -9.0803731e-4f, -4.48579583e-4f,
-2.44988274e-4f, -1.13458927e-4f, -6.00659591e-5f, -6.38235803e-1f, -4.64305774e-1f, -2.95416459e-1f, -1.68827696e-1f,
-1.0091352e-1f, -6.279354e-2f},
{1.33765697e-2f, 5.44054644e-3f, 2.46698188e-3f, 1.22302136e-3f, 4.88159195e-4f, 1.73917211e-4f, 7.29217874e-5f,
3.45106602e-5f, 1.32843864e-5f, 6.0257524e-6f, 4.15041284e-1f, 2.89075469e-1f, 1.72412715e-1f, 9.05337962e-2f,
4.98280744e-2f, 2.86193939e-2f},
{-5.21898113e-3f, -1.85201439e-3f, -7.40065902e-4f, -3.26431845e-4f, -1.12942854e-4f, -3.32669996e-5f, -1.18410516e-5f,
-4.85688511e-6f, -1.58201911e-6f, -6.03891204e-7f, -2.45381218e-1f, -1.64331003e-1f, -9.28949154e-2f, -4.51480961e-2f,
-2.30374064e-2f, -1.22910242e-2f},
{1.910756e-3f, 5.98605031e-4f, 2.12774965e-4f, 8.41195117e-5f, 2.50197858e-5f, 6.16960274e-6f, 1.8792688e-6f, 6.71684678e-7f,
1.8279714e-7f, 5.973936e-8f, 1.33465469e-1f, 8.62396941e-2f, 4.61931662e-2f, 2.09281485e-2f, 9.96638102e-3f, 4.96953401e-3f}};
DEVICE F32V erfc_f32v(F32V x) {
  F32V t = at_most_v(abs_f32v(x), 10.2f);
  F32V y = times_exp_minus_square_v(piecewise_v(t, kErfcxV, 0.75f), t, 1.0f);
  return x < 0.0f ? 2.0f - y : y;
}
)"},
    {"mills_v", "piecewise_v times_exp_minus_square_v", R"(
__constant const f32 kMillsV[8][16] __attribute__((aligned(64))) = {
{1.25f, 1.75f, 2.25f, 2.75f, 3.5f, 4.5f, 5.5f, 6.5f, 8.0f, 1.0e+1f, 1.2e+1f, 1.375e+1f, 1.25e-1f, 3.75e-1f, 6.25e-1f,
8.75e-1f},
{2.30760321e-1f, 1.85231665e-1f, 1.53651937e-1f, 1.30724734e-1f, 1.06345154e-1f, 8.48033921e-2f, 7.0342694e-2f,
6.00156753e-2f, 4.91225462e-2f, 3.95066941e-2f, 3.30189711e-2f, 2.88628946e-2f, 4.53793222e-1f, 3.79604428e-1f,
3.23356169e-1f, 2.7977057e-1f},
{-1.10491883e-1f, -7.47868688e-2f, -5.32254218e-2f, -3.94492619e-2f, -2.67342475e-2f, -1.7327017e-2f, -1.20574636e-2f,
-8.84039078e-3f, -5.96191232e-3f, -3.87533971e-3f, -2.71462756e-3f, -2.07747941e-3f, -3.42218129e-1f, -2.56590621e-1f,
-1.96844675e-1f, -1.54143032e-1f},
{4.63227377e-2f, 2.71773239e-2f, 1.694737e-2f, 1.11196324e-2f, 6.38765304e-3f, 3.41591043e-3f, 2.01332309e-3f,
1.27656801e-3f, 7.13630478e-4f, 3.76650142e-4f, 2.21720696e-4f, 1.48776375e-4f, 2.05507978e-1f, 1.41691473e-1f,
1.00164124e-1f, 7.24477089e-2f},
{-1.75288837e-2f, -9.0753081e-3f, -5.03120083e-3f, -2.9567255e-3f, -1.45900092e-3f, -6.51770486e-4f, -3.2805191e-4f,
-1.8089619e-4f, -8.42765042e-5f, -3.62768765e-5f, -1.79924189e-5f, -1.06013445e-5f, -1.05509297e-1f, -6.78184717e-2f,
-4.47472054e-2f, -3.02503407e-2f},
{6.1025537e-3f, 2.82373924e-3f, 1.40672924e-3f, 7.47130317e-4f, 3.20124419e-4f, 1.20689082e-4f, 5.22437471e-5f,
2.51797457e-5f, 9.8272581e-6f, 3.46374392e-6f, 1.45091998e-6f, 7.51717945e-7f, 4.80796165e-2f, 2.90647617e-2f,
1.80492056e-2f, 1.14946201e-2f},
{-1.99945938e-3f, -8.33451624e-4f, -3.7573912e-4f, -1.81451526e-4f, -6.8938898e-5f, -2.20239483e-5f, -8.22467964e-6f,
-3.47271314e-6f, -1.15772503e-6f, -3.32996692e-7f, -1.17576401e-7f, -5.33023806e-8f, -1.99741582e-2f, -1.14223782e-2f,
-6.71385603e-3f, -4.04978128e-3f},
{6.09878578e-4f, 2.31180888e-4f, 9.50891657e-5f, 4.2048933e-5f, 1.40880585e-5f, 3.86230258e-6f, 1.25550297e-6f,
4.67418079e-7f, 1.31681031e-7f, 3.12542403e-8f, 9.36424078e-9f, 3.74316368e-9f, 7.62358106e-3f, 4.14499584e-3f,
2.3172958e-3f, 1.33013359e-3f}};
// scale Phi(-t), Phi the normal distribution, by Mills' ratio.
DEVICE F32V normal_tail_v(F32V scale, F32V t) {
  return times_exp_minus_square_v(scale * piecewise_v(t, kMillsV, 1.0f), t, 0.5f);
}
)"},
    {"ndtr_f32v", "mills_v", R"(
DEVICE F32V ndtr_f32v(F32V x) {
  F32V tail = normal_tail_v((F32V)1.0f, at_most_v(abs_f32v(x), 14.5f));
  return x < 0.0f ? tail : 1.0f - tail;
}
)"},
    {"gelu_f32v", "mills_v", R"(
__constant const f32 kNormalTailV[7][32] __attribute__((aligned(64))) = {
{5.0e-1f, 4.01293674e-1f, 3.08537539e-1f, 2.26627352e-1f, 1.58655254e-1f, 1.05649774e-1f, 6.68072013e-2f, 4.00591569e-2f,
2.27501319e-2f, 1.22244727e-2f, 6.20966533e-3f, 2.97976324e-3f, 1.34989803e-3f, 5.77025042e-4f, 2.32629079e-4f,
8.84172852e-5f, 3.16712418e-5f, 1.06885258e-5f, 3.39767312e-6f, 1.01708324e-6f, 2.86651572e-7f, 7.60496052e-8f,
1.89895625e-8f, 4.46217245e-9f, 9.86587645e-10f, 2.05226343e-10f, 4.01600058e-11f, 7.39225778e-12f, 1.27981254e-12f,
2.08385816e-13f, 3.19089167e-14f, 4.59462744e-15f},
{-3.9894228e-1f, -3.86668116e-1f, -3.52065327e-1f, -3.01137432e-1f, -2.41970725e-1f, -1.82649086e-1f, -1.29517596e-1f,
-8.62773189e-2f, -5.39909665e-2f, -3.17396517e-2f, -1.75283004e-2f, -9.09356243e-3f, -4.43184838e-3f, -2.02904805e-3f,
-8.72682704e-4f, -3.52595695e-4f, -1.33830236e-4f, -4.77186436e-5f, -1.59837451e-5f, -5.02950931e-6f, -1.48672042e-6f,
-4.12847469e-7f, -1.07697738e-7f, -2.63924787e-8f, -6.07589747e-9f, -1.31400604e-9f, -2.6695679e-10f, -5.09496591e-11f,
-9.13478465e-12f, -1.53855167e-12f, -2.43434778e-13f, -3.61834483e-14f},
{0.0f, 4.83335145e-2f, 8.80163315e-2f, 1.12926537e-1f, 1.20985362e-1f, 1.14155678e-1f, 9.71381968e-2f, 7.5492654e-2f,
5.39909666e-2f, 3.57071083e-2f, 2.19103756e-2f, 1.25036484e-2f, 6.6477726e-3f, 3.29720308e-3f, 1.52719471e-3f,
6.61116904e-4f, 2.67660453e-4f, 1.01402104e-4f, 3.59634188e-5f, 1.19450806e-5f, 3.71679917e-6f, 1.08372381e-6f,
2.96168472e-7f, 7.58782682e-8f, 1.82276573e-8f, 4.10625838e-9f, 8.67606665e-10f, 1.71954356e-10f, 3.19715697e-11f,
5.57721088e-12f, 9.12872444e-13f, 1.40209343e-13f},
{6.64901271e-2f, 6.0416693e-2f, 4.40080962e-2f, 2.19580108e-2f, 1.63620242e-7f, -1.71231779e-2f, -2.69827134e-2f,
-2.96577886e-2f, -2.69955082e-2f, -2.14904454e-2f, -1.5337319e-2f, -9.94612253e-3f, -5.90914928e-3f, -3.23379838e-3f,
-1.63627551e-3f, -7.67623737e-4f, -3.34570117e-4f, -1.35696236e-4f, -5.12791005e-5f, -1.80737552e-5f, -5.94641262e-6f,
-1.82751921e-6f, -5.24955566e-7f, -1.41010666e-7f, -3.54351703e-8f, -8.33353807e-9f, -1.8347427e-9f, -3.7826229e-10f,
-7.30449028e-11f, -1.32147943e-11f, -2.24021009e-12f, -3.55918242e-13f},
{0.0f, -1.18315913e-2f, -2.01703349e-2f, -2.29381403e-2f, -2.01642014e-2f, -1.36749129e-2f, -6.07117459e-3f, 3.93152317e-4f,
4.49922262e-3f, 6.13715237e-3f, 5.93406581e-3f, 4.75400183e-3f, 3.3238956e-3f, 2.07793047e-3f, 1.17721473e-3f,
6.09467155e-4f, 2.89964656e-4f, 1.2727987e-4f, 5.16967596e-5f, 1.9472581e-5f, 6.81393302e-6f, 2.21815729e-6f, 6.72512743e-7f,
1.90077435e-7f, 5.01215446e-8f, 1.23387719e-8f, 2.8374029e-9f, 6.09797621e-10f, 1.22532788e-10f, 2.30294681e-11f,
4.04971355e-12f, 6.66501259e-13f},
{-9.94115257e-3f, -8.44530768e-3f, -4.57526688e-3f, 1.37685557e-4f, 4.01188794e-3f, 5.96496286e-3f, 5.85352913e-3f,
4.30596876e-3f, 2.25282597e-3f, 4.6902955e-4f, -6.59265926e-4f, -1.11784801e-3f, -1.10565049e-3f, -8.65194848e-4f,
-5.79188718e-4f, -3.42781454e-4f, -1.82483418e-4f, -8.82990578e-5f, -3.91002177e-5f, -1.59207056e-5f, -5.98162687e-6f,
-2.07920804e-6f, -6.70028805e-7f, -2.00502848e-7f, -5.57905431e-8f, -1.44508794e-8f, -3.48758201e-9f, -7.84860749e-10f,
-1.64812977e-10f, -3.23127328e-11f, -5.91779299e-12f, -1.01284484e-12f},
{0.0f, 1.92406229e-3f, 3.06186416e-3f, 3.03203214e-3f, 2.01314177e-3f, 5.77770265e-4f, -6.52930537e-4f, -1.30487568e-3f,
-1.34662679e-3f, -9.90597471e-4f, -5.14261366e-4f, -1.20601454e-4f, 1.09607074e-4f, 1.91082651e-4f, 1.80285316e-4f,
1.32459201e-4f, 8.26353912e-5f, 4.53592147e-5f, 2.23172216e-5f, 9.95212332e-6f, 4.05187598e-6f, 1.5138135e-6f,
5.20936332e-7f, 1.65586222e-7f, 4.8725234e-8f, 1.32967229e-8f, 3.36996291e-9f, 7.94176131e-10f, 1.74203923e-10f,
3.55976241e-11f, 6.78150544e-12f, 1.20517631e-12f}};
// From -4.3 on Phi needs no exponential: polynomials around the multiples of 1/4, whose number stands in the low bits of a sum.
DEVICE F32V look_up_32_v(__constant const f32* row, I32V index) {
  return __builtin_ia32_vpermi2varps512(*(__constant const F32V*)row, index, *(__constant const F32V*)(row + 16));
}
#define PIECE_V(r) look_up_32_v(kNormalTailV[r], piece)
DEVICE F32V gelu_f32v(F32V x) {
  F32V size = abs_f32v(x), t = at_most_v(size, 7.87f), sum = t + 3145728.0f, h = t - (sum - 3145728.0f);
  I32V piece = as_int16(sum);
  F32V square = h * h;
  F32V p = FMA_V(PIECE_V(2), h, PIECE_V(1)), q = FMA_V(PIECE_V(4), h, PIECE_V(3)), r = FMA_V(PIECE_V(6), h, PIECE_V(5));
  F32V tail = t * FMA_V(FMA_V(r, square * square, FMA_V(q, square, p)), h, PIECE_V(0));
  F32V above = x < 0.0f ? (F32V)-0.0f : x;
  F32V y = above - tail;
  I32V far = x < -4.3f;
  if (any_v(far)) {
    t = at_most_v(size, 14.5f);
    y = far ? above - normal_tail_v(t, t) : y;
  }
  return y;
}
)"},
    {"sigmoid_f32v", "exp_f32v", R"(
DEVICE F32V sigmoid_f32v(F32V x) {
  F32V e = exp_f32v(-abs_f32v(x));
  return (x < 0.0f ? e : (F32V)1.0f) / (1.0f + e);
}
)"},
    {"times_sigmoid_v", "exp_parts_v", R"(
DEVICE F32V limited_v(F32V x) { return at_least_v(x, -126.0f); }
DEVICE ExpPartsV exp_minus_magnitude_v(F32V head, F32V rest) {
  F32V away = FROM_BITS_V(BITS_V(rest) ^ ((BITS_V(head) & 0x80000000u) ^ 0x80000000u));
  return exp_parts_v(limited_v(-abs_f32v(head)), away);
}
// x sigmoid(u), e = exp(-|u|), u of the sign of x.
DEVICE F32V times_sigmoid_v(F32V x, ExpPartsV e) {
  I32V negative = x < 0.0f;
  F32V quotient = (negative ? exp_times_v(e, x) : x) / (1.0f + exp_value_v(e));
  return negative ? scaled_v(quotient, e.n) : quotient;
}
)"},
    {"silu_f32v", "times_sigmoid_v", R"(
DEVICE F32V silu_f32v(F32V x) {
  x = limited_v(x);
  return times_sigmoid_v(x, exp_parts_v(limited_v(-abs_f32v(x)), -0.0f));
}
)"},
    {"mish_f32v", "times_sigmoid_v", R"(
DEVICE F32V mish_f32v(F32V x) {
  x = limited_v(x);
  ExpPartsV parts = exp_parts_v(limited_v(-abs_f32v(x)), -0.0f);
  F32V e = exp_value_v(parts), half_e = e * 0.5f, twice = e + e;
  I32V negative = x < 0.0f;
  F32V above = negative ? exp_times_v(parts, FMA_V(x, half_e, x)) : x * (1.0f + twice);
  F32V below = 1.0f + (negative ? FMA_V(e, half_e, e) : FMA_V(twice, e, twice));
  F32V quotient = above / below;
  return negative ? scaled_v(quotient, parts.n) : quotient;
}
)"},
    {"quick_gelu_f32v", "times_sigmoid_v", R"(
DEVICE F32V quick_gelu_f32v(F32V x) {
  x = limited_v(x);
  F32V c = at_most_v(x, 126.0f);
  F32V head = c * 1.70200002f;
  F32V rest = FMA_V(c, 1.70200002f, -head) + c * -2.19345093e-08f;
  return times_sigmoid_v(x, exp_minus_magnitude_v(head, rest));
}
)"},
    {"gelu_tanh_f32v", "times_sigmoid_v", R"(
// x sigmoid(x (a + b x^2)), the argument in two parts.
DEVICE F32V gelu_tanh_f32v(F32V x) {
  x = limited_v(x);
  F32V c = at_most_v(x, 126.0f);
  F32V square = c * c, square_rest = FMA_V(c, c, -square);
  F32V term = square * 0.0713548139f;
  F32V term_rest = FMA_V(square, 0.0713548139f, -term) + FMA_V(square_rest, 0.0713548139f, square * 2.3988324e-09f);
  F32V sum = term + 1.59576917f, part = sum - 1.59576917f;
  F32V sum_rest = (1.59576917f - (sum - part)) + (term - part) + (term_rest + -4.53406803e-08f);
  F32V head = c * sum;
  return times_sigmoid_v(x, exp_minus_magnitude_v(head, FMA_V(c, sum, -head) + c * sum_rest));
}
)"},
    {"log1p_unit_v", "exp_f32v", R"(
// log(1 + e) / e on [0, 1].
DEVICE F32V log1p_unit_v(F32V e) {
  F32V p = FMA_V(FMA_V(-3.17605702e-3f, e, 1.95425273e-2f), e, -5.63736128e-2f);
  p = FMA_V(FMA_V(FMA_V(p, e, 1.05436238e-1f), e, -1.52696671e-1f), e, 1.96632743e-1f);
  return FMA_V(FMA_V(FMA_V(FMA_V(p, e, -2.49516163e-1f), e, 3.33297105e-1f), e, -4.99998926e-1f), e, 1.0f);
}
)"},
    {"softplus_f32v", "log1p_unit_v", R"(
DEVICE F32V softplus_f32v(F32V x, F32V threshold) {
  F32V e = exp_f32v(-abs_f32v(x));
  F32V y = FMA_V(e, log1p_unit_v(e), at_least_v(x, 0.0f));
  return x > threshold ? x : y;
}
)"},
    {"log_sigmoid_f32v", "log1p_unit_v", R"(
DEVICE F32V log_sigmoid_f32v(F32V x) {
  F32V e = exp_f32v(-abs_f32v(x));
  return at_most_v(x, 0.0f) - e * log1p_unit_v(e);
}
)"},
    {"celu_f32v", "expm1_f32v", R"(
DEVICE F32V celu_f32v(F32V x, F32V alpha) {
  F32V negative = at_most_v(x, 0.0f), quotient = negative / alpha;
  F32V y = abs_f32v(quotient) < 2.98023224e-8f ? negative : alpha * expm1_f32v(quotient);
  return x > 0.0f ? x : y;
}
)"},
    {"sin_shifted_v", "lanes", R"(
DEVICE F32V sin_shifted_v(F32V x, u32 quadrant) {
  F32V t = FMA_V(x, 0.636619772f, 12582912.0f), n = t - 12582912.0f;
  F32V r = FMA_V(n, 1.71512489e-15f, FMA_V(n, 4.37113883e-8f, FMA_V(n, -1.57079637f, x)));
  F32V square = r * r;
  F32V s = FMA_V(FMA_V(FMA_V(2.73265368e-6f, square, -1.98407218e-4f), square, 8.33333308e-3f), square, -1.66666667e-1f);
  s = FMA_V(r * square, s, r);
  F32V c = FMA_V(FMA_V(2.46111775e-5f, square, -1.38886566e-3f), square, 4.16666666e-2f);
  c = FMA_V(square * square, c, FMA_V(square, -0.5f, 1.0f));
  U32V q = BITS_V(t) + quadrant;
  F32V y = as_int16(q << 31) < 0 ? c : s;
  return FROM_BITS_V(BITS_V(y) ^ ((q & 2u) << 30));
}
)"},
    {"sin_f32v", "sin_shifted_v", R"(
// Angles beyond the reduction's range one by one; what an element gives does not depend on its neighbours.
DEVICE F32V sin_f32v(F32V x) {
  F32V y = x == 0.0f ? x : sin_shifted_v(x, 0u);
  I32V large = !(abs_f32v(x) <= 30000.0f);
  if (any_v(large))
    for (i32 l = 0; l < LANES; ++l)
      if (large[l]) y[l] = (f32)sin((WIDE)x[l]);
  return y;
}
)"},
    {"cos_f32v", "sin_shifted_v", R"(
// Angles beyond the reduction's range one by one; what an element gives does not depend on its neighbours.
DEVICE F32V cos_f32v(F32V x) {
  F32V y = sin_shifted_v(x, 1u);
  I32V large = !(abs_f32v(x) <= 30000.0f);
  if (any_v(large))
    for (i32 l = 0; l < LANES; ++l)
      if (large[l]) y[l] = (f32)cos((WIDE)x[l]);
  return y;
}
)"},
    {"turning", "lanes", R"(
// |name| copies LANES columns of ROWS elements at |from| with their sides exchanged; ROWS are those of a cache line, which may be
// gone when it is asked for again.
#define EXCHANGE_V(V, ROWS, d, low, high) \
  UNROLL for (i32 i = 0; i < ROWS; ++i) if ((i & d) == 0) { V a = r[i], b = r[i + d]; r[i] = low; r[i + d] = high; }
#define TURN_V(name, T, V, ROWS, LOAD) \
  DEVICE void name(T* to, i32 to_step, GLOBAL const T* from, i64 from_step) { \
    V r[ROWS]; \
    UNROLL for (i32 i = 0; i < 16; ++i) \
      UNROLL for (i32 k = 0; k < ROWS; k += 16) r[k + i] = LOAD(from + i * from_step + k); \
    EXCHANGE_V(V, ROWS, 8, __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23), \
               __builtin_shufflevector(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31)) \
    EXCHANGE_V(V, ROWS, 4, __builtin_shufflevector(a, b, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27), \
               __builtin_shufflevector(a, b, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31)) \
    EXCHANGE_V(V, ROWS, 2, __builtin_shufflevector(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29), \
               __builtin_shufflevector(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31)) \
    EXCHANGE_V(V, ROWS, 1, __builtin_shufflevector(a, b, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30), \
               __builtin_shufflevector(a, b, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31)) \
    UNROLL for (i32 i = 0; i < ROWS; ++i) *(V*)(to + i * to_step) = r[i]; \
  }
)"},
    {"turn_64_v", "turning", R"(
DEVICE void turn_64_v(f64* to, i32 to_step, GLOBAL const f64* from, i64 from_step) {
  UNROLL for (i32 half_of = 0; half_of < 16; half_of += 8) {
    double8 r[8];
    UNROLL for (i32 i = 0; i < 8; ++i) r[i] = vload8(0, from + (half_of + i) * from_step);
    EXCHANGE_V(double8, 8, 4, __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11), __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15))
    EXCHANGE_V(double8, 8, 2, __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13), __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15))
    EXCHANGE_V(double8, 8, 1, __builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14), __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15))
    UNROLL for (i32 i = 0; i < 8; ++i) *(double8*)(to + i * to_step + half_of) = r[i];
  }
}
)"},
    {"turn_32_v", "turning", "TURN_V(turn_32_v, f32, F32V, 16, LOAD_V)\n"},
    {"turn_16_v", "turning lanes_16", "TURN_V(turn_16_v, u16, U16V, 32, LOAD_16_V)\n"},
    {"turn_8_v", "lanes", R"(
// Sixteen cache lines, in four parts of 16 x 16 bytes each: woven together four times, a square has its sides exchanged.
typedef u8 __attribute__((ext_vector_type(64))) LineV;
#define PAIRS_V(k) k, 64 + k, k + 1, 65 + k, k + 2, 66 + k, k + 3, 67 + k, k + 4, 68 + k, k + 5, 69 + k, k + 6, 70 + k, k + 7, 71 + k
#define PART_V(k) k, k + 1, k + 2, k + 3, k + 4, k + 5, k + 6, k + 7, k + 8, k + 9, k + 10, k + 11, k + 12, k + 13, k + 14, k + 15
#define WEAVE_V(to, from) \
  UNROLL for (i32 i = 0; i < 8; ++i) { \
    to[2 * i] = __builtin_shufflevector(from[i], from[i + 8], PAIRS_V(0), PAIRS_V(16), PAIRS_V(32), PAIRS_V(48)); \
    to[2 * i + 1] = __builtin_shufflevector(from[i], from[i + 8], PAIRS_V(8), PAIRS_V(24), PAIRS_V(40), PAIRS_V(56)); \
  }
#define STORE_PART_OF_V(m, part) *(uchar16*)(to + (m + part) * to_step) = __builtin_shufflevector(r[m], r[m], PART_V(part));
DEVICE void turn_8_v(u8* to, i32 to_step, GLOBAL const u8* from, i64 from_step) {
  LineV r[16], s[16];
  UNROLL for (i32 i = 0; i < 16; ++i) __builtin_memcpy(&r[i], (const __private u8*)(u64)(from + i * from_step), 64);
  WEAVE_V(s, r) WEAVE_V(r, s) WEAVE_V(s, r) WEAVE_V(r, s)
  UNROLL for (i32 m = 0; m < 16; ++m) { STORE_PART_OF_V(m, 0) STORE_PART_OF_V(m, 16) STORE_PART_OF_V(m, 32) STORE_PART_OF_V(m, 48) }
}
)"},
};

}  // namespace

std::span<const Helper> lanes_helpers() { return kLanes; }

}  // namespace tenon::emit
