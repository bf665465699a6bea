// Elementary functions of vectors of doubles, within 2.5 units in the last place, each written once: the CPU backend compiles
// them (backends/cpu/kernels/math_f64.h), generated kernels for processors carry their text (codegen/c/math_lanes_f64.cpp). They
// want AVX2 and FMA, look-ups AVX-512.
//
// Included where its macros are defined, so without a guard:
//
//   TENON_TYPE(name, code)              a type
//   TENON_HELPER(name, needs, code)     a function for those below it; |needs| has the names of what it uses
//   TENON_FUNCTION(name, needs, code)   name_d(DV), for everybody
//   TENON_LOOKUP_FUNCTION(...)          the same, by look-ups
//
// and, for the code, which is at home in C++ and in OpenCL C: DV, IV and UV, vectors of as many f64, i64 and u64 as a register
// holds; ALL(x), a vector of it; FMA(a, b, c); BITS(x) and FROM_BITS(u); SCALED(x, n), x 2^n rounded once; abs_d, copysign_d,
// sqrt_d, and between_d(x, low, high), which keeps NaN; POLYNOMIAL(c, x) of the coefficients c of math/coefficients.h, and
// PIECES(c, x) of a table of them for pieces of a range.
//
// Why these are not the C library's (libmvec): those are called, and on Zen 4 the time of such a call depends on the physical
// page the stack has there, it seems because stores on it hold up loads of the function's constants: on one page of thirteen tanh
// took up to 2.6 times, atan up to 4.8 times as long. And what lies outside a function's domain the library computes one by one:
// log took eight times as long where half of its arguments were negative. Others stay its own: it is much faster than ours would
// be (sin, cos, log2), or they were not written.
//
// clang-format off

// --- exp and what is made of it ---
// exp(x) = 2^n (1 + head + rest), head within +-ln(2) / 2; |lost| is added to x.
TENON_TYPE(ExpPartsD, typedef struct { DV n, head, rest; } ExpPartsD;)
TENON_HELPER(exp_parts_d, "ExpPartsD kDoubleExp",
ExpPartsD exp_parts_d(DV x, DV lost) {
  ExpPartsD parts;
  parts.n = FMA(x, 0x1.71547652b82fep+0, 6755399441055744.0) - 6755399441055744.0;
  DV high = FMA(parts.n, -0x1.62e42feep-1, x), low = FMA(parts.n, -0x1.a39ef35793c76p-33, lost);
  parts.head = high + low;
  DV left = (high - parts.head) + low;
  parts.rest = FMA(parts.head * parts.head, POLYNOMIAL(kDoubleExp, parts.head), left);
  return parts;
})
// (exp(x) - 1) / 2: without overflow where exp(x) has none.
TENON_HELPER(half_expm1_d, "exp_parts_d",
DV half_expm1_d(DV x) {
  ExpPartsD parts = exp_parts_d(x, ALL(0.0));
  DV halved = SCALED(ALL(1.0), parts.n - 1.0);
  return FMA(halved, parts.rest, FMA(halved, parts.head, halved - 0.5));
})
// exp(x) / 2.
TENON_HELPER(half_exp_d, "exp_parts_d",
DV half_exp_d(DV x) {
  ExpPartsD parts = exp_parts_d(x, ALL(0.0));
  return SCALED(1.0 + (parts.head + parts.rest), parts.n - 1.0);
})
TENON_FUNCTION(expm1, "half_expm1_d",
DV expm1_d(DV x) {
  DV halved = half_expm1_d(between_d(x, -50.0, 710.0));
  return abs_d(x) < 0x1p-54 ? x : halved + halved;
})
TENON_FUNCTION(sinh, "half_expm1_d half_exp_d",
DV sinh_d(DV x) {
  DV t = between_d(abs_d(x), 0.0, 711.0), halved = half_expm1_d(t);
  DV y = t > 40.0 ? half_exp_d(t) : halved + halved / (halved + halved + 1.0);
  return copysign_d(t < 0x1p-27 ? t : y, x);
})
TENON_FUNCTION(tanh, "half_expm1_d",
DV tanh_d(DV x) {
  DV t = between_d(abs_d(x), 0.0, 20.0), halved = half_expm1_d(t + t);
  return copysign_d(halved / (halved + 1.0), x);
})

// --- The logarithm ---
TENON_FUNCTION(log, "kWideLog",
DV log_d(DV x) {
  // x = 2^e (1 + f), f between sqrt(1/2) - 1 and sqrt(2) - 1; the exponent is read as the last bits of 1.5 2^52 + 1024.
  IV tiny = x < 0x1p-1022;
  UV u = BITS(tiny ? x * 0x1p54 : x) + (0x4000000000000000ul - 0x3fe6a09e667f3bcdul);
  DV e = FROM_BITS((u >> 52) + 0x4338000000000000ul) - (tiny ? ALL(6755399441056822.0) : ALL(6755399441056768.0));
  DV f = FROM_BITS((u & 0xffffffffffffful) + 0x3fe6a09e667f3bcdul) - 1.0;
  // log(1 + f) = f - square + rest.
  DV s = f / (f + 2.0), z = s * s, square = 0.5 * f * f, rest = s * FMA(z + z, POLYNOMIAL(kWideLog, z), square);
  DV y = e * 0x1.62e42feep-1 - ((square - FMA(e, 0x1.a39ef35793c76p-33, rest)) - f);
  DV outside = x == 0.0 ? ALL(-1.0 / 0.0) : ALL(0.0 / 0.0);
  return x > 0.0 ? (x < 1.0 / 0.0 ? y : x) : outside;
})

// --- Angles ---
TENON_FUNCTION(atan, "kDoubleAtan",
DV atan_d(DV x) {
  DV t = abs_d(x);
  IV middle = t > 0x1.a827999fcef32p-2, high = t > 0x1.3504f333f9de6p+1;
  DV u = (high ? ALL(-1.0) : middle ? t - 1.0 : t) / (high ? t : middle ? t + 1.0 : ALL(1.0)), z = u * u;
  DV base = high ? ALL(0x1.921fb54442d18p+0) : middle ? ALL(0x1.921fb54442d18p-1) : ALL(0.0);
  DV base_rest = high ? ALL(0x1.1a62633145c07p-54) : middle ? ALL(0x1.1a62633145c07p-55) : ALL(0.0);
  return copysign_d(base + (u + FMA(u * z, POLYNOMIAL(kDoubleAtan, z), base_rest)), x);
})
// With t = |x| > 1/2, asin(x) = pi / 2 - 2 asin(sqrt((1 - t) / 2)).
TENON_TYPE(AsinPartsD, typedef struct { DV s, rest; IV upper; } AsinPartsD;)
TENON_HELPER(asin_parts_d, "AsinPartsD kDoubleAsin",
AsinPartsD asin_parts_d(DV x) {
  AsinPartsD parts;
  DV t = abs_d(x);
  parts.upper = t > 0.5;
  DV z = parts.upper ? (1.0 - t) * 0.5 : t * t;
  parts.s = parts.upper ? sqrt_d(z) : t;
  parts.rest = parts.s * z * POLYNOMIAL(kDoubleAsin, z);
  return parts;
})
TENON_FUNCTION(asin, "asin_parts_d",
DV asin_d(DV x) {
  AsinPartsD p = asin_parts_d(x);
  DV complement = 0x1.921fb54442d18p+0 - 2.0 * (p.s + (p.rest - 0x1.1a62633145c07p-55));
  return copysign_d(p.upper ? complement : p.s + p.rest, x);
})
TENON_FUNCTION(acos, "asin_parts_d",
DV acos_d(DV x) {
  AsinPartsD p = asin_parts_d(x);
  DV twice = 2.0 * (p.s + p.rest);
  DV upper = x < 0.0 ? 0x1.921fb54442d18p+1 - 2.0 * (p.s + (p.rest - 0x1.1a62633145c07p-54)) : twice;
  return p.upper ? upper : 0x1.921fb54442d18p+0 - (x - (0x1.1a62633145c07p-54 - copysign_d(p.rest, x)));
})

// --- The error function ---
// erfc(t) = 2^n (1 + head + rest) erfcx(t) of t = |x|.
TENON_LOOKUP_FUNCTION(erfc, "exp_parts_d kDoubleErfcx8",
DV erfc_d(DV x) {
  DV t = between_d(abs_d(x), 0.0, 28.0), square = t * t, y = PIECES(kDoubleErfcx8, t);
  ExpPartsD parts = exp_parts_d(-square, -FMA(t, t, -square));
  y = SCALED(FMA(y, parts.head + parts.rest, y), parts.n);
  return x < 0.0 ? 2.0 - y : y;
})
// clang-format on
