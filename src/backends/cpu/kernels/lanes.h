// Lanes: the CPU's SIMD value types, and the basic part of the value concept (math/value.h) for them.
//
// Lanes<float> is one vector of the level's native width (16, 32 or 64 bytes); Lanes<double> is one vector of doubles: f64,
// and the wide type in which f32 bodies that need it are evaluated. Functions are found by argument-dependent lookup.
//
// This header is compiled once per instruction set (kernels.cmake). Everything in it has internal linkage, and so has every
// template instantiated on its types: code of one level can never be linked into another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#if TENON_CPU_LEVEL > 0
#include <immintrin.h>
#endif

#define TENON_INLINE [[gnu::always_inline]] inline

namespace tenon::cpu {
namespace {

#if TENON_CPU_LEVEL == 4
inline constexpr int kVectorBytes = 64;
#elif TENON_CPU_LEVEL == 3
inline constexpr int kVectorBytes = 32;
#else
inline constexpr int kVectorBytes = 16;
#endif
inline constexpr bool kLevelHasFma = TENON_CPU_LEVEL >= 3, kLevelHasLookup = TENON_CPU_LEVEL >= 3;

typedef float FloatV __attribute__((vector_size(kVectorBytes)));
typedef double DoubleV __attribute__((vector_size(kVectorBytes)));
typedef float HalfFloatV __attribute__((vector_size(kVectorBytes / 2)));
typedef std::uint8_t FloatBytesV __attribute__((vector_size(kVectorBytes / 4)));  // a byte per lane
typedef std::uint8_t DoubleBytesV __attribute__((vector_size(kVectorBytes / 8)));
typedef std::int32_t Int32V __attribute__((vector_size(kVectorBytes)));
typedef std::int64_t Int64V __attribute__((vector_size(kVectorBytes)));
typedef std::uint32_t Uint32V __attribute__((vector_size(kVectorBytes)));
typedef std::uint64_t Uint64V __attribute__((vector_size(kVectorBytes)));

template <class T>
struct LaneTypes;
template <>
struct LaneTypes<float> {
  using Vector = FloatV;
  using Signed = Int32V;
  using Unsigned = Uint32V;
  using Bytes = FloatBytesV;
  using Word = std::uint32_t;
  static constexpr Word kSign = 0x8000'0000u;
};
template <>
struct LaneTypes<double> {
  using Vector = DoubleV;
  using Signed = Int64V;
  using Unsigned = Uint64V;
  using Bytes = DoubleBytesV;
  using Word = std::uint64_t;
  static constexpr Word kSign = 0x8000'0000'0000'0000u;
};

#if TENON_CPU_LEVEL == 4
TENON_INLINE FloatV look_up_vector(const float (&row)[16], Uint32V index) {
  return (FloatV)_mm512_permutexvar_ps((__m512i)index, _mm512_load_ps(row));
}
TENON_INLINE FloatV look_up_vector(const float (&row)[32], Uint32V index) {
  return (FloatV)_mm512_permutex2var_ps(_mm512_load_ps(row), (__m512i)index, _mm512_load_ps(row + 16));
}
TENON_INLINE DoubleV look_up_vector(const double (&row)[8], Uint64V index) {
  return (DoubleV)_mm512_permutexvar_pd((__m512i)index, _mm512_load_pd(row));
}
#elif TENON_CPU_LEVEL == 3
TENON_INLINE FloatV look_up_vector(const float (&row)[8], Uint32V index) {
  return (FloatV)_mm256_permutevar8x32_ps(_mm256_load_ps(row), (__m256i)index);
}
#endif

// All bits of a lane are set where the mask is true.
template <class T>
struct LaneMask {
  typename LaneTypes<T>::Signed v;

  LaneMask() = default;
  TENON_INLINE LaneMask(typename LaneTypes<T>::Signed x) : v(x) {}
  TENON_INLINE explicit LaneMask(bool x) : v((x ? -1 : 0) - typename LaneTypes<T>::Signed{}) {}
};

template <class T>
struct Lanes {
  using Type = T;
  using Mask = LaneMask<T>;
  using Vector = typename LaneTypes<T>::Vector;
  using Signed = typename LaneTypes<T>::Signed;
  using Unsigned = typename LaneTypes<T>::Unsigned;
  static constexpr int kCount = kVectorBytes / static_cast<int>(sizeof(T));
  static constexpr bool kHasFma = kLevelHasFma;
  // Elements of a row that look_up() can choose from: what one permute instruction does, or for floats with AVX-512 two.
  static constexpr int kLookups = !kLevelHasLookup ? 0 : sizeof(T) == 8 ? (kCount == 8 ? 8 : 0) : kCount == 16 ? 32 : 8;

  Vector v;

  Lanes() = default;
  TENON_INLINE explicit Lanes(Vector x) : v(x) {}
  TENON_INLINE explicit Lanes(T x) : v(x - Vector{}) {}  // x - 0 keeps the sign of -0
  template <class U>
    requires(std::is_arithmetic_v<U> && !std::is_same_v<U, T>)
  TENON_INLINE explicit Lanes(U x) : Lanes(static_cast<T>(x)) {}

  TENON_INLINE static Lanes from_bits(Unsigned x) { return Lanes((Vector)x); }
  TENON_INLINE static Unsigned either(Mask mask, typename LaneTypes<T>::Word a, typename LaneTypes<T>::Word b) {
    return (Unsigned)(mask.v ? (Signed)(Unsigned{} + a) : (Signed)(Unsigned{} + b));
  }
  TENON_INLINE static Mask is_zero(Unsigned x) { return Mask((Signed)(x == 0u)); }
  // The exponent's place of f32, and the sign above it, as a number.
  TENON_INLINE static Lanes exponent(Unsigned x) { return Lanes(__builtin_convertvector((Signed)x >> 23, Vector)); }
  // Of the index the lowest bits count.
  template <int Elements>
  TENON_INLINE static Lanes look_up(const T (&row)[Elements], Unsigned index) {
    return Lanes(look_up_vector(row, index));
  }
};
using F32 = Lanes<float>;
using Wide = Lanes<double>;

template <class T>
TENON_INLINE typename Lanes<T>::Unsigned bits(Lanes<T> x) {
  return (typename Lanes<T>::Unsigned)x.v;
}
template <class T>
TENON_INLINE Lanes<T> from_bits(typename Lanes<T>::Unsigned x) {
  return Lanes<T>((typename Lanes<T>::Vector)x);
}

// --- Arithmetic and comparison ---
#define TENON_BINARY(op)                                      \
  template <class T>                                          \
  TENON_INLINE Lanes<T> operator op(Lanes<T> x, Lanes<T> y) { \
    return Lanes<T>(x.v op y.v);                              \
  }
TENON_BINARY(+)
TENON_BINARY(-)
TENON_BINARY(*)
TENON_BINARY(/)
#undef TENON_BINARY
template <class T>
TENON_INLINE Lanes<T> operator-(Lanes<T> x) {
  return from_bits<T>(bits(x) ^ LaneTypes<T>::kSign);
}

#define TENON_COMPARE(op)                                        \
  template <class T>                                             \
  TENON_INLINE LaneMask<T> operator op(Lanes<T> x, Lanes<T> y) { \
    return LaneMask<T>((typename Lanes<T>::Signed)(x.v op y.v)); \
  }
TENON_COMPARE(<)
TENON_COMPARE(<=)
TENON_COMPARE(>)
TENON_COMPARE(>=)
TENON_COMPARE(==)
TENON_COMPARE(!=)
#undef TENON_COMPARE

#define TENON_MASK(op)                                                 \
  template <class T>                                                   \
  TENON_INLINE LaneMask<T> operator op(LaneMask<T> x, LaneMask<T> y) { \
    return LaneMask<T>(x.v op y.v);                                    \
  }
TENON_MASK(&)
TENON_MASK(|)
TENON_MASK(^)
#undef TENON_MASK
template <class T>
TENON_INLINE LaneMask<T> operator!(LaneMask<T> x) {
  return LaneMask<T>(~x.v);
}

template <class T>
TENON_INLINE Lanes<T> select(LaneMask<T> condition, Lanes<T> x, Lanes<T> y) {
  return Lanes<T>(condition.v ? x.v : y.v);
}
template <class T>
TENON_INLINE LaneMask<T> is_nan(Lanes<T> x) {
  return x != x;
}

// --- Sign ---
template <class T>
TENON_INLINE Lanes<T> abs(Lanes<T> x) {
  return from_bits<T>(bits(x) & ~LaneTypes<T>::kSign);
}
template <class T>
TENON_INLINE Lanes<T> copysign(Lanes<T> x, Lanes<T> y) {
  return from_bits<T>((bits(x) & ~LaneTypes<T>::kSign) | (bits(y) & LaneTypes<T>::kSign));
}
template <class T>
TENON_INLINE LaneMask<T> signbit(Lanes<T> x) {
  return LaneMask<T>((typename Lanes<T>::Signed)x.v < 0);
}
template <class T>
TENON_INLINE LaneMask<T> is_inf(Lanes<T> x) {
  return abs(x) == Lanes<T>(std::numeric_limits<T>::infinity());
}

// --- Minimum and maximum ---
// What the hardware does: y where either is NaN, and where both are zeros.
template <class T>
TENON_INLINE Lanes<T> hardware_min(Lanes<T> x, Lanes<T> y) {
  return Lanes<T>(x.v < y.v ? x.v : y.v);
}
template <class T>
TENON_INLINE Lanes<T> hardware_max(Lanes<T> x, Lanes<T> y) {
  return Lanes<T>(x.v > y.v ? x.v : y.v);
}
template <class T>
TENON_INLINE Lanes<T> min(Lanes<T> x, Lanes<T> y) {
  return select(is_nan(x), x, hardware_min(x, y));
}
template <class T>
TENON_INLINE Lanes<T> max(Lanes<T> x, Lanes<T> y) {
  return select(is_nan(x), x, hardware_max(x, y));
}
// x limited to [low, high]; NaN stays NaN.
template <class T>
TENON_INLINE Lanes<T> clamp_keeping_nan(Lanes<T> x, T low, T high) {
  return hardware_min(Lanes<T>(high), hardware_max(Lanes<T>(low), x));
}

// --- Rounding, roots, fused multiply-add: instructions where there are some ---
// One rounding if the level has FMA, two otherwise: only for code that is right both ways.
template <class T, class F>
TENON_INLINE Lanes<T> per_lane(Lanes<T> x, F f) {
  Lanes<T> result;
  for (int i = 0; i < Lanes<T>::kCount; ++i) result.v[i] = f(x.v[i]);
  return result;
}
template <class T, class F>
TENON_INLINE Lanes<T> per_lane(Lanes<T> x, Lanes<T> y, F f) {
  Lanes<T> result;
  for (int i = 0; i < Lanes<T>::kCount; ++i) result.v[i] = f(x.v[i], y.v[i]);
  return result;
}

#if TENON_CPU_LEVEL == 4
TENON_INLINE F32 fma(F32 x, F32 y, F32 z) { return F32((FloatV)_mm512_fmadd_ps((__m512)x.v, (__m512)y.v, (__m512)z.v)); }
TENON_INLINE Wide fma(Wide x, Wide y, Wide z) { return Wide((DoubleV)_mm512_fmadd_pd((__m512d)x.v, (__m512d)y.v, (__m512d)z.v)); }
TENON_INLINE F32 sqrt(F32 x) { return F32((FloatV)_mm512_sqrt_ps((__m512)x.v)); }
TENON_INLINE Wide sqrt(Wide x) { return Wide((DoubleV)_mm512_sqrt_pd((__m512d)x.v)); }
#define TENON_ROUND(name, mode)                                                                 \
  TENON_INLINE F32 name(F32 x) { return F32((FloatV)_mm512_roundscale_ps((__m512)x.v, mode)); } \
  TENON_INLINE Wide name(Wide x) { return Wide((DoubleV)_mm512_roundscale_pd((__m512d)x.v, mode)); }
TENON_INLINE bool any(LaneMask<float> m) { return _mm512_movepi32_mask((__m512i)m.v) != 0; }
TENON_INLINE bool any(LaneMask<double> m) { return _mm512_movepi64_mask((__m512i)m.v) != 0; }
#elif TENON_CPU_LEVEL == 3
TENON_INLINE F32 fma(F32 x, F32 y, F32 z) { return F32((FloatV)_mm256_fmadd_ps((__m256)x.v, (__m256)y.v, (__m256)z.v)); }
TENON_INLINE Wide fma(Wide x, Wide y, Wide z) { return Wide((DoubleV)_mm256_fmadd_pd((__m256d)x.v, (__m256d)y.v, (__m256d)z.v)); }
TENON_INLINE F32 sqrt(F32 x) { return F32((FloatV)_mm256_sqrt_ps((__m256)x.v)); }
TENON_INLINE Wide sqrt(Wide x) { return Wide((DoubleV)_mm256_sqrt_pd((__m256d)x.v)); }
#define TENON_ROUND(name, mode)                                                            \
  TENON_INLINE F32 name(F32 x) { return F32((FloatV)_mm256_round_ps((__m256)x.v, mode)); } \
  TENON_INLINE Wide name(Wide x) { return Wide((DoubleV)_mm256_round_pd((__m256d)x.v, mode)); }
TENON_INLINE bool any(LaneMask<float> m) { return _mm256_movemask_ps((__m256)m.v) != 0; }
TENON_INLINE bool any(LaneMask<double> m) { return _mm256_movemask_pd((__m256d)m.v) != 0; }
#elif TENON_CPU_LEVEL == 2
template <class T>
TENON_INLINE Lanes<T> fma(Lanes<T> x, Lanes<T> y, Lanes<T> z) {
  return x * y + z;
}
TENON_INLINE F32 sqrt(F32 x) { return F32((FloatV)_mm_sqrt_ps((__m128)x.v)); }
TENON_INLINE Wide sqrt(Wide x) { return Wide((DoubleV)_mm_sqrt_pd((__m128d)x.v)); }
#define TENON_ROUND(name, mode)                                                         \
  TENON_INLINE F32 name(F32 x) { return F32((FloatV)_mm_round_ps((__m128)x.v, mode)); } \
  TENON_INLINE Wide name(Wide x) { return Wide((DoubleV)_mm_round_pd((__m128d)x.v, mode)); }
TENON_INLINE bool any(LaneMask<float> m) { return _mm_movemask_ps((__m128)m.v) != 0; }
TENON_INLINE bool any(LaneMask<double> m) { return _mm_movemask_pd((__m128d)m.v) != 0; }
#else
template <class T>
TENON_INLINE Lanes<T> fma(Lanes<T> x, Lanes<T> y, Lanes<T> z) {
  return x * y + z;
}
template <class T>
TENON_INLINE Lanes<T> sqrt(Lanes<T> x) {
  return per_lane(x, [](T a) { return static_cast<T>(__builtin_sqrt(a)); });
}
#define TENON_ROUND(name, mode)                                                  \
  template <class T>                                                             \
  TENON_INLINE Lanes<T> name(Lanes<T> x) {                                       \
    return per_lane(x, [](T a) { return static_cast<T>(__builtin_##name(a)); }); \
  }
template <class T>
TENON_INLINE bool any(LaneMask<T> m) {
  typename LaneTypes<T>::Word all = 0;
  for (int i = 0; i < Lanes<T>::kCount; ++i) all |= static_cast<typename LaneTypes<T>::Word>(m.v[i]);
  return all != 0;
}
#endif
TENON_ROUND(rint, 8)  // to nearest even, no exceptions; then down, up, towards zero
TENON_ROUND(floor, 9)
TENON_ROUND(ceil, 10)
TENON_ROUND(trunc, 11)
#undef TENON_ROUND

#if TENON_CPU_LEVEL == 4
// x 2^n, rounded once.
TENON_INLINE F32 scale_by_instruction(F32 x, F32 n) { return F32((FloatV)_mm512_scalef_ps((__m512)x.v, (__m512)n.v)); }
TENON_INLINE Wide scale_by_instruction(Wide x, Wide n) { return Wide((DoubleV)_mm512_scalef_pd((__m512d)x.v, (__m512d)n.v)); }
#endif

// --- Between f32 and wide: one F32 is two Wide ---
TENON_INLINE Wide widen(HalfFloatV x) { return Wide(__builtin_convertvector(x, DoubleV)); }
TENON_INLINE HalfFloatV narrow(Wide x) { return __builtin_convertvector(x.v, HalfFloatV); }
#if TENON_CPU_LEVEL == 4
TENON_INLINE HalfFloatV low_half(FloatV x) { return __builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7); }
TENON_INLINE HalfFloatV high_half(FloatV x) { return __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15); }
TENON_INLINE FloatV join(HalfFloatV a, HalfFloatV b) {
  return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}
#elif TENON_CPU_LEVEL == 3
TENON_INLINE HalfFloatV low_half(FloatV x) { return __builtin_shufflevector(x, x, 0, 1, 2, 3); }
TENON_INLINE HalfFloatV high_half(FloatV x) { return __builtin_shufflevector(x, x, 4, 5, 6, 7); }
TENON_INLINE FloatV join(HalfFloatV a, HalfFloatV b) { return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7); }
#else
TENON_INLINE HalfFloatV low_half(FloatV x) { return __builtin_shufflevector(x, x, 0, 1); }
TENON_INLINE HalfFloatV high_half(FloatV x) { return __builtin_shufflevector(x, x, 2, 3); }
TENON_INLINE FloatV join(HalfFloatV a, HalfFloatV b) { return __builtin_shufflevector(a, b, 0, 1, 2, 3); }
#endif
TENON_INLINE F32 quotient_by_parameter(F32 x, F32 y) { return x / y; }

// f32 lanes evaluated by a function of wide lanes, rounded once.
template <class F>
TENON_INLINE F32 through_wide(F32 x, F f) {
  return F32(join(narrow(f(widen(low_half(x.v)))), narrow(f(widen(high_half(x.v))))));
}
template <class F>
TENON_INLINE F32 through_wide(F32 x, F32 y, F f) {
  return F32(
      join(narrow(f(widen(low_half(x.v)), widen(low_half(y.v)))), narrow(f(widen(high_half(x.v)), widen(high_half(y.v))))));
}

// Only the lanes that need it get the wide result: what an element gives must not depend on its neighbours.
template <class F>
TENON_INLINE F32 replaced_where(LaneMask<float> mask, F32 y, F32 x, F f) {
  return any(mask) ? select(mask, through_wide(x, f), y) : y;
}
template <class F>
TENON_INLINE F32 replaced_where(LaneMask<float> mask, F32 y, F32 a, F32 b, F f) {
  return any(mask) ? select(mask, through_wide(a, b, f), y) : y;
}

template <class F>
TENON_INLINE F32 replaced_where(LaneMask<float> mask, F32 y, F32 a, F32 b, F32 c, F f) {
  if (!any(mask)) return y;
  const auto of = [&](auto half) { return narrow(f(widen(half(a.v)), widen(half(b.v)), widen(half(c.v)))); };
  return select(mask, F32(join(of([](FloatV v) { return low_half(v); }), of([](FloatV v) { return high_half(v); }))), y);
}
// f(y), where only the lanes of the mask may differ from y.
template <class F>
TENON_INLINE F32 corrected_where(LaneMask<float> mask, F32 y, F f) {
  return any(mask) ? f(y) : y;
}

// --- Polynomials, coefficients from the constant term upwards ---
// By Estrin's scheme: pairs, then pairs of pairs. Two or three operations more than Horner's, but half as long a chain of
// operations that wait for each other.
template <class T, int N>
TENON_INLINE Lanes<T> estrin(Lanes<T> x, const Lanes<T> (&c)[N]) {
  if constexpr (N == 1) {
    return c[0];
  } else {
    Lanes<T> pairs[(N + 1) / 2];
    for (int i = 0; i < N / 2; ++i) pairs[i] = fma(c[2 * i + 1], x, c[2 * i]);
    if constexpr (N % 2 != 0) pairs[N / 2] = c[N - 1];
    return estrin(x * x, pairs);
  }
}
// f32 by Horner's scheme, whose error is smaller; doubles have digits to spare.
template <int N>
TENON_INLINE F32 polynomial(F32 x, const float (&c)[N]) {
  F32 result(c[N - 1]);
  for (int i = N - 2; i >= 0; --i) result = fma(result, x, F32(c[i]));
  return result;
}
template <int N>
TENON_INLINE Wide polynomial(Wide x, const double (&c)[N]) {
  Wide lanes[N];
  for (int i = 0; i < N; ++i) lanes[i] = Wide(c[i]);
  return estrin(x, lanes);
}

}  // namespace
}  // namespace tenon::cpu
