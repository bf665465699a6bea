#include "codegen/c/math_library.h"

namespace tenon::emit {
namespace {

// Conversions follow array/convert.h, random numbers graph/random.h, block formats array/block_format.h.
constexpr Helper kCommon[] = {
    {"half_to_f32", "", R"(
DEVICE f32 half_to_f32(u16 h) {
  u32 sign = (u32)(h & 0x8000u) << 16, magnitude = (u32)(h & 0x7fffu) << 13;
  u32 subnormal = AS_U32(AS_F32(magnitude + (113u << 23)) - AS_F32(113u << 23));
  u32 special = magnitude | 0x7f800000u | (magnitude > 0x0f800000u ? 0x00400000u : 0u);
  u32 finite = magnitude < 0x00800000u ? subnormal : magnitude + (112u << 23);
  return AS_F32(sign | (magnitude >= 0x0f800000u ? special : finite));
}
)"},
    {"f32_to_half", "", R"(
DEVICE u16 f32_to_half(f32 x) {
  u32 bits = AS_U32(x), sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
  u32 normal = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  u32 subnormal = AS_U32(AS_F32(magnitude) + 0.5f) - 0x3f000000u;
  u32 special = magnitude > 0x7f800000u ? (0x7e00u | ((magnitude >> 13) & 0x3ffu)) : 0x7c00u;
  u32 finite = magnitude < 0x38800000u ? subnormal : normal;
  return (u16)(sign | (magnitude >= 0x47800000u ? special : finite));
}
)"},
    {"bfloat_to_f32", "", R"(
DEVICE f32 bfloat_to_f32(u16 b) {
  u32 wide = (u32)b << 16;
  return AS_F32(wide | ((wide & 0x7fffffffu) > 0x7f800000u ? 0x00400000u : 0u));
}
)"},
    {"f32_to_bfloat", "", R"(
DEVICE u16 f32_to_bfloat(f32 x) {
  u32 bits = AS_U32(x);
  u32 rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return (u16)((bits & 0x7fffffffu) > 0x7f800000u ? ((bits >> 16) | 0x0040u) : rounded);
}
)"},
    // Rounding to odd: rounded once more, to fewer bits, the result is the correctly rounded one.
    {"f64_to_f32_odd", "", R"(
DEVICE f32 f64_to_f32_odd(f64 x) {
  f32 nearest = (f32)x;
  f64 back = (f64)nearest;
  u32 bits = AS_U32(nearest);
  u32 odd = (bits - (fabs(back) > fabs(x) ? 1u : 0u)) | 1u;
  return AS_F32(back == x || x != x ? bits : odd);
}
)"},
    {"u64_to_f32_odd", "", R"(
DEVICE f32 u64_to_f32_odd(u64 x) {
  i32 shift = 0;
  while ((x >> shift) >= ((u64)1 << 24)) ++shift;
  u64 lost = x & (((u64)1 << shift) - 1);
  u64 kept = (x >> shift) | (lost != 0 ? 1u : 0u);
  return (f32)kept * AS_F32((u32)(127 + shift) << 23);
}
)"},
    {"i64_to_f32_odd", "u64_to_f32_odd", R"(
DEVICE f32 i64_to_f32_odd(i64 x) { return x < 0 ? -u64_to_f32_odd(~(u64)x + 1) : u64_to_f32_odd((u64)x); }
)"},
    {"philox", "", R"(
typedef struct { u32 w[4]; } Words;
DEVICE Words philox(u64 seed, u64 block, u32 stream) {
  u32 c0 = (u32)block, c1 = (u32)(block >> 32), c2 = stream, c3 = 0u, k0 = (u32)seed, k1 = (u32)(seed >> 32);
  for (i32 round = 0; round < 10; ++round) {
    u32 n0 = HIGH_PRODUCT(0xCD9E8D57u, c2) ^ c1 ^ k0, n2 = HIGH_PRODUCT(0xD2511F53u, c0) ^ c3 ^ k1;
    c1 = 0xCD9E8D57u * c2;
    c3 = 0xD2511F53u * c0;
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  Words words;
  words.w[0] = c0; words.w[1] = c1; words.w[2] = c2; words.w[3] = c3;
  return words;
}
)"},
    {"uniform_f32", "philox", R"(
DEVICE f32 uniform_f32(u64 seed, u64 i) {
  Words words = philox(seed, i >> 2, 0u);
  u32 k = (u32)i & 3u;
  u32 w = k == 0u ? words.w[0] : (k == 1u ? words.w[1] : (k == 2u ? words.w[2] : words.w[3]));
  return (f32)(w >> 8) * 5.96046448e-8f;
}
)"},
    {"unit_f64", "", R"(
DEVICE f64 unit_f64(u32 low, u32 high) { return (f64)((((u64)high << 32) | low) >> 11) * 1.1102230246251565e-16; }
)"},
    {"uniform_f64", "philox unit_f64", R"(
DEVICE f64 uniform_f64(u64 seed, u64 i) {
  Words words = philox(seed, i >> 1, 1u);
  return (i & 1u) == 0u ? unit_f64(words.w[0], words.w[1]) : unit_f64(words.w[2], words.w[3]);
}
)"},
    {"normal_f64", "philox unit_f64", R"(
DEVICE f64 normal_f64(u64 seed, u64 i) {
  Words words = philox(seed, i, 2u);
  f64 u = unit_f64(words.w[0], words.w[1]) + 1.1102230246251565e-16, v = unit_f64(words.w[2], words.w[3]);
  return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}
)"},
    {"reciprocal_root", "", "DEVICE f32 reciprocal_root(f32 x) { return 1.0f / sqrt(x); }\n"},
    {"f32_towards_zero", "", R"(
DEVICE f32 f32_towards_zero(u32 x) {
  f32 nearest = (f32)x;
  return (u64)nearest > (u64)x ? AS_F32(AS_U32(nearest) - 1u) : nearest;
}
)"},
    {"normal_pair", "f32_towards_zero normal_cos_f32 normal_sin_f32", R"(
DEVICE void normal_pair(u32 radius, u32 angle, f32* pair) {
  f32 v = f32_towards_zero(radius | 1u), x = (f32)(((i32)(angle << 2) >> 8) | 1) * 1.1920929e-7f;
  u32 sign = angle & 0x80000000u;
  f32 c = AS_F32(AS_U32(normal_cos_f32(v, x)) ^ sign), s = AS_F32(AS_U32(normal_sin_f32(v, x)) ^ sign);
  pair[0] = (angle & 0x40000000u) != 0u ? s : c;
  pair[1] = (angle & 0x40000000u) != 0u ? c : s;
}
)"},
    {"normal_f32", "philox normal_pair", R"(
DEVICE f32 normal_f32(u64 seed, u64 i) {
  Words words = philox(seed, i >> 2, 3u);
  f32 pair[2];
  normal_pair((i & 2u) != 0u ? words.w[2] : words.w[0], (i & 2u) != 0u ? words.w[3] : words.w[1], pair);
  return (i & 1u) != 0u ? pair[1] : pair[0];
}
)"},
    {"block_encode", "", R"(
// One element as its code under a shared exponent: a sign above |bits| bits of magnitude.
DEVICE u32 block_encode(f32 x, i32 shared, i32 bits) {
  u32 word = AS_U32(x);
  i32 exponent = (i32)((word >> 23) & 0xffu);
  if (exponent == 0) return 0u;
  i32 significand = (i32)((word & 0x7fffffu) | 0x800000u);
  if ((word & 0x7fffffffu) > 0x7f800000u) significand |= 0x400000;
  i32 shift = shared - exponent < 31 ? shared - exponent : 31, dropped = 24 - bits, largest = (1 << bits) - 1;
  significand >>= shift;
  i32 rounded = (significand + (1 << (dropped - 1)) - 1 + ((significand >> dropped) & 1)) >> dropped;
  i32 magnitude = rounded < largest ? rounded : largest;
  return magnitude == 0 ? 0u : ((u32)magnitude | ((word >> 31) << bits));
}
)"},
    {"block_decode", "", R"(
DEVICE f32 block_decode(i32 exponent, u32 code, i32 bits) {
  u32 top = 1u << (bits - 1), magnitude = code & (2u * top - 1u), sign = (code >> bits) << 31;
  if (magnitude == 0u) return 0.0f;
  if (exponent == 255 && magnitude >= top) return AS_F32(sign | (magnitude == top ? 0x7f800000u : 0x7fc00000u));
  // In two exact steps where the unit alone would be subnormal.
  i32 power = exponent - (bits - 1), low = power < 1;
  f32 unit = AS_F32((u32)(low ? power + 32 : power) << 23);
  return AS_F32(AS_U32((f32)magnitude * unit * (low ? 2.32830644e-10f : 1.0f)) | sign);
}
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
    // Integers in the order of floats; NaN stands anywhere.
    {"order_f32", "", R"(
DEVICE i32 order_f32(f32 x) {
  i32 bits = AS_I32(x);
  return bits ^ ((bits >> 31) & 0x7fffffff);
}
)"},
    {"unorder_f32", "", "DEVICE f32 unorder_f32(i32 key) { return AS_F32((u32)(key ^ ((key >> 31) & 0x7fffffff))); }\n"},
    {"order_f64", "", R"(
DEVICE i64 order_f64(f64 x) {
  i64 bits = AS_I64(x);
  return bits ^ ((bits >> 63) & 0x7fffffffffffffffl);
}
)"},
    {"unorder_f64", "", "DEVICE f64 unorder_f64(i64 key) { return AS_F64((u64)(key ^ ((key >> 63) & 0x7fffffffffffffffl))); }\n"},
    {"resolve", "", R"(
// An index that may count from the end. One outside the axis is told to the host, and answered with 0.
DEVICE i64 resolve(i64 index, i64 extent, GLOBAL i64* status) {
  i64 i = index < 0 ? index + extent : index;
  if (i >= 0 && i < extent) return i;
  if (ATOMIC_CAS((GLOBAL i32*)status, 0, 1) == 0) {
    status[1] = index;
    status[2] = extent;
  }
  return 0;
}
)"},
};

constexpr Helper kInteger[] = {
    {"div", "", R"(
DEVICE T div_T(T x, T y) {
  if (y == 0) return 0;
  if (y == (T)-1 && (T)-1 < 0) return (T)((U)0 - (U)x);
  return (T)(x / y);
}
)"},
    {"fmod", "", R"(
DEVICE T fmod_T(T x, T y) {
  if (y == 0 || (y == (T)-1 && (T)-1 < 0)) return 0;
  return (T)(x % y);
}
)"},
    {"pow", "", R"(
DEVICE T pow_T(T x, T y) {
  U exponent = (U)y & MASK;
  if (y < 0) {
    if (x != 1 && x != (T)-1) return 0;
    exponent &= 1;
  }
  T result = 1;
  for (; exponent != 0; exponent >>= 1) {
    if (exponent & 1) result = (T)((U)result * (U)x);
    x = (T)((U)x * (U)x);
  }
  return result;
}
)"},
    {"gcd", "", R"(
DEVICE T gcd_T(T x, T y) {
  U a = (x < 0 ? (U)0 - (U)x : (U)x) & MASK, b = (y < 0 ? (U)0 - (U)y : (U)y) & MASK;
  while (b != 0) {
    U rest = a % b;
    a = b;
    b = rest;
  }
  return (T)a;
}
)"},
    {"shift_left", "", R"(
DEVICE T shift_left_T(T x, T y) { return y < 0 || y >= BITS ? (T)0 : (T)((U)x << y); }
)"},
    {"shift_right", "", R"(
DEVICE T shift_right_T(T x, T y) {
  if (y < 0 || y >= BITS) return (T)((T)-1 < 0 ? (x < 0 ? -1 : 0) : 0);
  return (T)(x >> y);
}
)"},
    // From floats: towards zero, saturating, NaN gives 0. The first value beyond is a power of two, exact in any float.
    {"from_f32", "", R"(
DEVICE T from_f32_T(f32 x) {
  if (x != x) return 0;
  if (x < LOW_F) return LOWEST;
  if (x >= BEYOND_F) return HIGHEST;
  return (T)x;
}
)"},
    {"from_f64", "", R"(
DEVICE T from_f64_T(f64 x) {
  if (x != x) return 0;
  if (x < LOW_D) return LOWEST;
  if (x >= BEYOND_D) return HIGHEST;
  return (T)x;
}
)"},
};

}  // namespace

std::span<const Helper> common_helpers() { return kCommon; }
std::span<const Helper> integer_helpers() { return kInteger; }

}  // namespace tenon::emit
