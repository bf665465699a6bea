#include "codegen/c/math_library.h"

namespace tenon::emit {
namespace {

// The formulas, and the reasons for them, are those of backends/cpu/kernels/math_f32.h; without its table lookups, which other
// processors have no instruction for. Coefficients: Chebyshev interpolation in 50 digits, error noted with each.
constexpr Helper kF32[] = {
    {"exp_parts", "", R"(
// exp(x) = 2^n (1 + rest), kept apart where something is multiplied before the result may become subnormal.
typedef struct { f32 rest, n; u32 n_bits; } ExpParts;
DEVICE f32 expm1_reduced(f32 r) {
  f32 p = fma(fma(fma(fma(1.39261761e-3f, r, 8.36317307e-3f), r, 4.16665547e-2f), r, 1.66665770e-1f), r, 5.00000000e-1f);
  return fma(p, r * r, r);
}
DEVICE ExpParts exp_parts(f32 x, f32 low) {
  ExpParts e;
  f32 t = fma(x, 1.44269504f, 12582912.0f);
  e.n = t - 12582912.0f;
  e.n_bits = AS_U32(t) << 23;
  e.rest = expm1_reduced(fma(e.n, 2.12194440e-4f, fma(e.n, -0.693359375f, x)) + low);
  return e;
}
DEVICE f32 exp_times(ExpParts e, f32 x) { return fma(x, e.rest, x); }
DEVICE f32 exp_scaled(ExpParts e, f32 x) {
  i32 low = e.n < -100.0f;
  return x * AS_F32(e.n_bits + (low ? (191u << 23) : (126u << 23))) * (low ? 5.42101086e-20f : 2.0f);
}
DEVICE f32 exp_value(ExpParts e) { return exp_scaled(e, e.rest + 1.0f); }
DEVICE f32 between(f32 x, f32 low, f32 high) { x = x < low ? low : x; return x > high ? high : x; }
)"},
    {"exp_f32", "exp_parts", R"(
DEVICE f32 exp_f32(f32 x) { return exp_value(exp_parts(between(x, -126.0f, 89.0f), -0.0f)); }
)"},
    // Quotients by one y: r = row_reciprocal(y) once, then each within the last bit of rounding, correctly where no bits are lost
    // below the smallest normal number.
    {"quotient_by_row", "", R"(
DEVICE f32 row_reciprocal(f32 y) { return fabs(y) > 1e-18f && fabs(y) < 1e18f ? 1.0f / y : AS_F32(0x7fc00000u); }
DEVICE f32 quotient_by_row(f32 x, f32 y, f32 r) {
  f32 q = x * r, rest = fma(-q, y, x);
  return fabs(rest) < AS_F32(0x7f800000u) ? fma(rest, r, q) : x / y;
}
)"},
    {"exp2_f32", "exp_parts", R"(
DEVICE f32 exp2_f32(f32 x) {
  ExpParts e;
  x = between(x, -151.0f, 129.0f);
  f32 t = x + 12582912.0f;
  e.n = t - 12582912.0f;
  e.n_bits = AS_U32(t) << 23;
  e.rest = expm1_reduced((x - e.n) * 0.693147181f);
  return exp_value(e);
}
)"},
    {"expm1_f32", "exp_parts", R"(
DEVICE f32 expm1_f32(f32 x) {
  ExpParts e = exp_parts(between(x, -20.0f, 89.0f), -0.0f);
  f32 half_scale = AS_F32(e.n_bits + (126u << 23));
  f32 y = fma(half_scale, e.rest, half_scale - 0.5f);
  return fabs(x) < 2.98023224e-8f ? x : y + y;
}
)"},
    {"log_parts", "", R"(
DEVICE f32 log_polynomial(f32 f) {
  f32 p = fma(6.97161147e-2f, f, -1.14797338e-1f);
  p = fma(fma(fma(p, f, 1.16854199e-1f), f, -1.24256873e-1f), f, 1.42490576e-1f);
  return fma(fma(fma(fma(p, f, -1.66678023e-1f), f, 2.00007157e-1f), f, -2.49999970e-1f), f, 3.33333312e-1f);
}
// x = 2^e (1 + f), 1 + f between sqrt(1/2) and sqrt(2).
typedef struct { f32 e, f; } LogParts;
DEVICE LogParts log_parts(f32 x) {
  LogParts parts;
  i32 tiny = x < 1.17549435e-38f;
  u32 u = AS_U32(tiny ? x * 8388608.0f : x) - 0x3f3504f3u;
  parts.e = (f32)(((i32)u >> 23) - (tiny ? 23 : 0));
  parts.f = AS_F32((u & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
  return parts;
}
DEVICE f32 log_rest(f32 f) {
  f32 square = f * f;
  return fma(-0.5f, square, square * f * log_polynomial(f));
}
DEVICE f32 log_sum(f32 e, f32 f) {
  f32 square = f * f;
  f32 y = fma(square * f, log_polynomial(f), e * -2.12194440e-4f);
  y = fma(-0.5f, square, y);
  return fma(e, 0.693359375f, f + y);
}
DEVICE f32 log_special(f32 x, f32 y) {
  y = x < AS_F32(0x7f800000u) ? y : x;
  return x > 0.0f ? y : (x == 0.0f ? AS_F32(0xff800000u) : AS_F32(0x7fc00000u));
}
)"},
    {"log_f32", "log_parts", R"(
DEVICE f32 log_f32(f32 x) {
  LogParts parts = log_parts(x);
  return log_special(x, log_sum(parts.e, parts.f));
}
)"},
    {"log2_f32", "log_parts", R"(
DEVICE f32 log2_f32(f32 x) {
  LogParts parts = log_parts(x);
  f32 rest = log_rest(parts.f);
  f32 y = fma(parts.f, 0.44269504f, rest * 0.44269504f) + rest + parts.f;
  return log_special(x, y + parts.e);
}
)"},
    {"log10_f32", "log_parts", R"(
DEVICE f32 log10_f32(f32 x) {
  LogParts parts = log_parts(x);
  f32 rest = log_rest(parts.f);
  f32 y = (parts.f + rest) * -3.20551810e-3f;
  y = fma(rest, 0.4375f, fma(parts.e, 2.48745664e-4f, y));
  y = fma(parts.f, 0.4375f, y);
  return log_special(x, fma(parts.e, 0.30078125f, y));
}
)"},
    {"log1p_f32", "log_parts", R"(
DEVICE f32 log1p_f32(f32 x) {
  f32 u = 1.0f + x;
  f32 lost = x < 1.0f ? x - (u - 1.0f) : 1.0f - (u - x);
  u32 reduced = AS_U32(u) - 0x3f3504f3u;
  i32 e = (i32)reduced >> 23;
  i32 scale = (i32)(0x3f800000u - ((u32)e << 23));
  f32 shrink = AS_F32((u32)(scale > 0 ? scale : 0));
  f32 f = (AS_F32((reduced & 0x7fffffu) + 0x3f3504f3u) - 1.0f) + lost * shrink;
  f32 y = log_special(u, log_sum((f32)e, f));
  return fabs(x) < 2.98023224e-8f ? x : (x == AS_F32(0x7f800000u) ? x : y);
}
)"},
    {"tanh_f32", "expm1_f32", R"(
DEVICE f32 tanh_f32(f32 x) {
  f32 t = fabs(x);
  f32 e = expm1_f32(-2.0f * (t > 9.1f ? 9.1f : t));
  return copysign(e / (e + 2.0f), x);
}
)"},
    {"times_exp_minus_square", "exp_parts", R"(
// scale exp(more - factor t^2), t in [0, 15], factor 1 or 1/2, more below the last bits; t^2 in two exact parts.
DEVICE f32 times_exp_minus_square(f32 scale, f32 t, f32 factor, f32 more) {
  f32 head = AS_F32(AS_U32(t) & 0xfffff000u);
  f32 rest = (t - head) * (t + head);
  f32 x = head * head * -factor;
  ExpParts e = exp_parts(x < -126.0f ? -126.0f : x, fma(rest, -factor, more));
  return exp_scaled(e, exp_times(e, scale));
}
)"},
    {"tail_place", "times_exp_minus_square", R"(
// r (1 + rest) = 1 / (t + middle) and u = (t - middle) / (t + middle), both right to the last bit: the tails below are steep in them.
typedef struct { f32 r, rest, u; } TailPlace;
DEVICE TailPlace tail_place(f32 t, f32 middle) {
  TailPlace w;
  f32 sum = t + middle, low = t - (sum - middle);
  w.r = RECIPROCAL(sum);
  w.rest = fma(-w.r, low, fma(-w.r, sum, 1.0f));
  f32 twice = w.r * (-2.0f * middle);
  w.u = fma(twice, w.rest, fma(w.r, -2.0f * middle, 1.0f));
  return w;
}
)"},
    {"erfc_tail", "tail_place", R"(
// erfc(t) for t >= 0: erfc(t) exp(t^2) (t + 3) in (t - 3) / (t + 3) on [0, 10.2]; error 5.6e-9.
DEVICE f32 erfc_tail(f32 t) {
  t = t > 10.2f ? 10.2f : t;
  TailPlace w = tail_place(t, 3.0f);
  f32 u = w.u, p = fma(fma(-3.33824523e-4f, u, -4.99071240e-4f), u, 3.07808344e-3f);
  p = fma(fma(fma(p, u, -1.21696444e-3f), u, -2.68366764e-2f), u, 1.19527222e-1f);
  p = fma(fma(fma(fma(p, u, -3.10466608e-1f), u, 5.90228425e-1f), u, -8.83394461e-1f), u, 1.07400691f);
  return times_exp_minus_square(p * w.r, t, 1.0f, w.rest);
}
)"},
    {"erf_f32", "erfc_tail", R"(
// Up to 1 erf(x) / x - 1 in x^2; error 1.2e-9.
DEVICE f32 erf_f32(f32 x) {
  f32 t = fabs(x), s = t < 1.0f ? x * x : 0.0f;
  f32 p = fma(fma(7.87587506e-5f, s, -8.01686429e-4f), s, 5.18908742e-3f);
  p = fma(fma(fma(fma(p, s, -2.68542120e-2f), s, 1.12835947e-1f), s, -3.76126267e-1f), s, 1.28379166e-1f);
  f32 tail = copysign(1.0f - erfc_tail(t < 1.0f ? 1.0f : t), x);
  return t < 1.0f ? fma(x, p, x) : tail;
}
)"},
    {"erfc_f32", "erfc_tail", R"(
DEVICE f32 erfc_f32(f32 x) {
  f32 y = erfc_tail(fabs(x));
  return x < 0.0f ? 2.0f - y : y;
}
)"},
    {"normal_tail", "tail_place", R"(
// scale Phi(-t) for t >= 0, Phi the normal distribution: Phi(-t) exp(t^2 / 2) (t + 4) in (t - 4) / (t + 4) on [0, 14.5]; error 1.3e-8.
DEVICE f32 normal_tail(f32 scale, f32 t) {
  TailPlace w = tail_place(t, 4.0f);
  f32 u = w.u, p = fma(fma(-1.22983157e-4f, u, 1.94801851e-4f), u, 1.56931365e-3f);
  p = fma(fma(fma(p, u, -3.52357406e-3f), u, -7.52721291e-3f), u, 6.04064697e-2f);
  p = fma(fma(fma(fma(p, u, -1.86523006e-1f), u, 3.87136680e-1f), u, -6.07896606e-1f), u, 7.55285139e-1f);
  return times_exp_minus_square(scale * (p * w.r), t, 0.5f, w.rest);
}
)"},
    {"gelu_f32", "normal_tail", R"(
// max(x, 0) - |x| Phi(-|x|): the negative tail is right down to where it underflows.
DEVICE f32 gelu_f32(f32 x) {
  f32 t = fabs(x);
  t = t > 14.5f ? 14.5f : t;
  return (x < 0.0f ? -0.0f : x) - normal_tail(t, t);
}
)"},
    {"ndtr_f32", "normal_tail", R"(
DEVICE f32 ndtr_f32(f32 x) {
  f32 t = fabs(x);
  f32 tail = normal_tail(1.0f, t > 14.5f ? 14.5f : t);
  return x < 0.0f ? tail : 1.0f - tail;
}
)"},
    {"sigmoid_f32", "exp_f32", R"(
DEVICE f32 sigmoid_f32(f32 x) {
  f32 e = exp_f32(-fabs(x));
  return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}
)"},
    {"times_sigmoid", "exp_parts", R"(
DEVICE f32 limited(f32 x) { return x < -126.0f ? -126.0f : x; }
DEVICE ExpParts exp_minus_magnitude(f32 head, f32 rest) {
  f32 away = AS_F32(AS_U32(rest) ^ ((AS_U32(head) & 0x80000000u) ^ 0x80000000u));
  return exp_parts(limited(-fabs(head)), away);
}
// x sigmoid(u), e = exp(-|u|), u of the sign of x.
DEVICE f32 times_sigmoid(f32 x, ExpParts e) {
  i32 negative = x < 0.0f;
  f32 quotient = (negative ? exp_times(e, x) : x) / (1.0f + exp_value(e));
  f32 scaled = exp_scaled(e, quotient);
  return negative ? scaled : quotient;
}
)"},
    {"silu_f32", "times_sigmoid", R"(
DEVICE f32 silu_f32(f32 x) {
  x = limited(x);
  return times_sigmoid(x, exp_parts(limited(-fabs(x)), -0.0f));
}
)"},
    {"mish_f32", "times_sigmoid", R"(
DEVICE f32 mish_f32(f32 x) {
  x = limited(x);
  ExpParts parts = exp_parts(limited(-fabs(x)), -0.0f);
  f32 e = exp_value(parts), half_e = e * 0.5f, twice = e + e;
  i32 negative = x < 0.0f;
  f32 above = negative ? exp_times(parts, fma(x, half_e, x)) : x * (1.0f + twice);
  f32 below = 1.0f + (negative ? fma(e, half_e, e) : fma(twice, e, twice));
  f32 quotient = above / below;
  f32 scaled = exp_scaled(parts, quotient);
  return negative ? scaled : quotient;
}
)"},
    {"quick_gelu_f32", "times_sigmoid", R"(
DEVICE f32 quick_gelu_f32(f32 x) {
  x = limited(x);
  f32 c = x > 126.0f ? 126.0f : x;
  f32 head = c * 1.70200002f;
  f32 rest = fma(c, 1.70200002f, -head) + c * -2.19345093e-08f;
  return times_sigmoid(x, exp_minus_magnitude(head, rest));
}
)"},
    {"gelu_tanh_f32", "times_sigmoid", R"(
// x sigmoid(x (a + b x^2)), the argument in two parts.
DEVICE f32 gelu_tanh_f32(f32 x) {
  x = limited(x);
  f32 c = x > 126.0f ? 126.0f : x;
  f32 square = c * c, square_rest = fma(c, c, -square);
  f32 term = square * 0.0713548139f;
  f32 term_rest = fma(square, 0.0713548139f, -term) + fma(square_rest, 0.0713548139f, square * 2.3988324e-09f);
  f32 sum = term + 1.59576917f, part = sum - 1.59576917f;
  f32 sum_rest = (1.59576917f - (sum - part)) + (term - part) + (term_rest + -4.53406803e-08f);
  f32 head = c * sum;
  return times_sigmoid(x, exp_minus_magnitude(head, fma(c, sum, -head) + c * sum_rest));
}
)"},
    {"log1p_unit", "exp_f32", R"(
// log(1 + e) / e on [0, 1].
DEVICE f32 log1p_unit(f32 e) {
  f32 p = fma(fma(-3.17605702e-3f, e, 1.95425273e-2f), e, -5.63736128e-2f);
  p = fma(fma(fma(p, e, 1.05436238e-1f), e, -1.52696671e-1f), e, 1.96632743e-1f);
  return fma(fma(fma(fma(p, e, -2.49516163e-1f), e, 3.33297105e-1f), e, -4.99998926e-1f), e, 1.0f);
}
)"},
    {"softplus_f32", "log1p_unit", R"(
DEVICE f32 softplus_f32(f32 x, f32 threshold) {
  f32 e = exp_f32(-fabs(x));
  f32 y = fma(e, log1p_unit(e), x < 0.0f ? 0.0f : x);
  return x > threshold ? x : y;
}
)"},
    {"log_sigmoid_f32", "log1p_unit", R"(
DEVICE f32 log_sigmoid_f32(f32 x) {
  f32 e = exp_f32(-fabs(x));
  return (x > 0.0f ? 0.0f : x) - e * log1p_unit(e);
}
)"},
    {"celu_f32", "expm1_f32", R"(
DEVICE f32 celu_f32(f32 x, f32 alpha) {
  f32 negative = x > 0.0f ? 0.0f : x, quotient = negative / alpha;
  f32 y = fabs(quotient) < 2.98023224e-8f ? negative : alpha * expm1_f32(quotient);
  return x > 0.0f ? x : y;
}
)"},
    {"sin_shifted", "", R"(
// Three-part reduction by pi/2: for |x| up to 30000.
DEVICE f32 sin_shifted(f32 x, u32 quadrant) {
  f32 t = fma(x, 0.636619772f, 12582912.0f);
  f32 n = t - 12582912.0f;
  f32 r = fma(n, 1.71512489e-15f, fma(n, 4.37113883e-8f, fma(n, -1.57079637f, x)));
  f32 square = r * r;
  f32 s = fma(fma(fma(2.73265368e-6f, square, -1.98407218e-4f), square, 8.33333308e-3f), square, -1.66666667e-1f);
  s = fma(r * square, s, r);
  f32 c = fma(fma(2.46111775e-5f, square, -1.38886566e-3f), square, 4.16666666e-2f);
  c = fma(square * square, c, fma(square, -0.5f, 1.0f));
  u32 q = AS_U32(t) + quadrant;
  return AS_F32(AS_U32((q & 1u) == 0u ? s : c) ^ ((q & 2u) << 30));
}
)"},
    {"sin_f32", "sin_shifted", R"(
DEVICE f32 sin_f32(f32 x) {
  if (!(fabs(x) <= 30000.0f)) return (f32)sin((WIDE)x);
  return x == 0.0f ? x : sin_shifted(x, 0u);
}
)"},
    {"cos_f32", "sin_shifted", R"(
DEVICE f32 cos_f32(f32 x) {
  if (!(fabs(x) <= 30000.0f)) return (f32)cos((WIDE)x);
  return sin_shifted(x, 1u);
}
)"},
};

constexpr Helper kCuda[] = {
    {"exp_f32", "", "DEVICE f32 exp_f32(f32 x) { return expf(x); }\n"},
    {"exp2_f32", "", "DEVICE f32 exp2_f32(f32 x) { return exp2f(x); }\n"},
    {"expm1_f32", "", "DEVICE f32 expm1_f32(f32 x) { return expm1f(x); }\n"},
    {"log_f32", "", "DEVICE f32 log_f32(f32 x) { return logf(x); }\n"},
    {"log2_f32", "", "DEVICE f32 log2_f32(f32 x) { return log2f(x); }\n"},
    {"log10_f32", "", "DEVICE f32 log10_f32(f32 x) { return log10f(x); }\n"},
    {"log1p_f32", "", "DEVICE f32 log1p_f32(f32 x) { return log1pf(x); }\n"},
    {"tanh_f32", "", "DEVICE f32 tanh_f32(f32 x) { return tanhf(x); }\n"},
    {"erf_f32", "", "DEVICE f32 erf_f32(f32 x) { return erff(x); }\n"},
    {"sin_f32", "", "DEVICE f32 sin_f32(f32 x) { return sinf(x); }\n"},
    {"cos_f32", "", "DEVICE f32 cos_f32(f32 x) { return cosf(x); }\n"},
    // The instructions forget the sign of what is no number.
    {"half_to_f32", "", R"(
DEVICE f32 half_to_f32(u16 h) {
  f32 x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h));
  return AS_F32((AS_U32(x) & 0x7fffffffu) | (u32)(h & 0x8000u) << 16);
}
)"},
    {"f32_to_half", "", R"(
DEVICE u16 f32_to_half(f32 x) {
  u16 h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
  return (u16)((h & 0x7fffu) | (AS_U32(x) >> 16 & 0x8000u));
}
)"},
    {"bfloat_to_f32", "", "DEVICE f32 bfloat_to_f32(u16 b) { return AS_F32((u32)b << 16); }\n"},
    {"f32_to_bfloat", "", R"(
DEVICE u16 f32_to_bfloat(f32 x) {
#if __CUDA_ARCH__ >= 800
  u16 b;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(b) : "f"(x));
  return (u16)((b & 0x7fffu) | (AS_U32(x) >> 16 & 0x8000u));
#else
  u32 bits = AS_U32(x);
  return (u16)((bits & 0x7fffffffu) > 0x7f800000u ? bits >> 16 | 0x0040u : (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
#endif
}
)"},
    // Four matrices of 8 x 8 elements of 16 bits: |row| is where this work-item's row of one of them begins.
    {"load_matrices", "", R"(
DEVICE void load_matrices(u32* to, u32 row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(row));
}
)"},
    // sum += a b, a of 16 x 16 and b of 16 x 8 elements; each work-item of a warp has its share.
    {"multiply_matrices_f16", "", R"(
DEVICE void multiply_matrices_f16(f32* sum, uint4 a, u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3]) : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
}
)"},
    {"multiply_matrices_bf16", "", R"(
DEVICE void multiply_matrices_bf16(f32* sum, uint4 a, u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3]) : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
}
)"},
};

}  // namespace

std::span<const Helper> f32_helpers() { return kF32; }
std::span<const Helper> cuda_helpers() { return kCuda; }

}  // namespace tenon::emit
