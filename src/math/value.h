// The value types an elementwise body can be instantiated with, and Scalar<T>, the plainest of them.
//
// A body is a template over V. It may use, found by argument-dependent lookup:
//   V(2.5)                             a constant, converted to V's type
//   + - * / unary-                     integers wrap; x / y of integers truncates, and is 0 where y is 0
//   < <= > >= == !=                    -> V::Mask;  on masks: & | ^ ! , select(mask, V, V)
//   min max                            propagate NaN
//   abs sign-free bit work: copysign(x, y), signbit(x) -> Mask
//   floor ceil trunc rint(half to even) fmod(x, y)
//   sqrt cbrt exp exp2 expm1 log log2 log10 log1p pow
//   sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh
//   erf erfc erfinv lgamma i0
//   is_nan(x) is_inf(x) -> Mask
// Integers have + - * / min max abs signbit pow select and the comparisons; floor, ceil, trunc and rint leave them as they are,
// is_nan and is_inf are false, fmod is the remainder of truncating division (0 where y is 0); and, only for them,
//   & | ^ ~ << >> gcd                  a shift by the width or more, or by a negative amount, shifts every bit out
// A body whose formula differs for integers asks with `if constexpr (value::kIsInteger<V>)`.
//
// Value types: Scalar<double> (the reference), Scalar<float>, Scalar<integers> (CPU kernels), the CPU's SIMD lanes
// (backends/cpu), and Sym (symbolic.h), which records the primitives for the code emitters.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "math/special.h"

// The instruction set this translation unit is compiled for: part of every symbol here and of the bodies, so that the linker
// cannot give one level's copy of a function to another.
#ifndef TENON_ISA
#define TENON_ISA portable
#endif

namespace tenon::value {
inline namespace TENON_ISA {

// True for the value types that hold integers.
template <class V>
inline constexpr bool kIsInteger = false;

// The mask of a Scalar: a bool whose & | ^ ! are masks again.
struct ScalarMask {
  bool v;

  ScalarMask() = default;
  constexpr ScalarMask(bool x) : v(x) {}
  constexpr operator bool() const { return v; }

  friend constexpr ScalarMask operator&(ScalarMask a, ScalarMask b) { return a.v && b.v; }
  friend constexpr ScalarMask operator|(ScalarMask a, ScalarMask b) { return a.v || b.v; }
  friend constexpr ScalarMask operator^(ScalarMask a, ScalarMask b) { return a.v != b.v; }
  friend constexpr ScalarMask operator!(ScalarMask a) { return !a.v; }
};

template <class T>
struct Scalar {
  using Mask = ScalarMask;
  using Type = T;
  T v;

  Scalar() = default;
  constexpr explicit Scalar(T x) : v(x) {}
  // A constant of the body; integers saturate.
  template <class U>
    requires(std::is_arithmetic_v<U> && !std::is_same_v<U, T>)
  constexpr explicit Scalar(U x) : v(convert(x)) {}

 private:
  template <class U>
  static constexpr T convert(U x) {
    if constexpr (std::is_integral_v<T> && std::is_floating_point_v<U>) {
      if (!(x == x)) return 0;
      // The limits are compared as U, where max() may round up to a power of two: >= keeps the cast defined.
      if (x <= static_cast<U>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
      if (x >= static_cast<U>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
    }
    return static_cast<T>(x);
  }
};

template <class T>
inline constexpr bool kIsInteger<Scalar<T>> = std::is_integral_v<T>;

template <class T>
concept Real = std::is_floating_point_v<T>;
template <class T>
concept Whole = std::is_integral_v<T>;

// An unsigned type at least as wide as T that does not promote to int: arithmetic in it wraps, with no undefined overflow.
template <Whole T>
using Bits = std::conditional_t<(sizeof(T) > 4), std::uint64_t, std::uint32_t>;

// --- Arithmetic ---
template <Real T>
constexpr Scalar<T> operator+(Scalar<T> x, Scalar<T> y) {
  return Scalar<T>(x.v + y.v);
}
template <Real T>
constexpr Scalar<T> operator-(Scalar<T> x, Scalar<T> y) {
  return Scalar<T>(x.v - y.v);
}
template <Real T>
constexpr Scalar<T> operator*(Scalar<T> x, Scalar<T> y) {
  return Scalar<T>(x.v * y.v);
}
template <Real T>
constexpr Scalar<T> operator/(Scalar<T> x, Scalar<T> y) {
  return Scalar<T>(x.v / y.v);
}
template <Real T>
constexpr Scalar<T> operator-(Scalar<T> x) {
  return Scalar<T>(-x.v);
}

template <Whole T>
constexpr Scalar<T> operator+(Scalar<T> x, Scalar<T> y) {
  return Scalar<T>(static_cast<T>(static_cast<Bits<T>>(x.v) + static_cast<Bits<T>>(y.v)));
}
template <Whole T>
constexpr Scalar<T> operator-(Scalar<T> x, Scalar<T> y) {
  return Scalar<T>(static_cast<T>(static_cast<Bits<T>>(x.v) - static_cast<Bits<T>>(y.v)));
}
template <Whole T>
constexpr Scalar<T> operator*(Scalar<T> x, Scalar<T> y) {
  return Scalar<T>(static_cast<T>(static_cast<Bits<T>>(x.v) * static_cast<Bits<T>>(y.v)));
}
template <Whole T>
constexpr Scalar<T> operator-(Scalar<T> x) {
  return Scalar<T>(T{0}) - x;
}
template <Whole T>
constexpr Scalar<T> operator/(Scalar<T> x, Scalar<T> y) {
  if (y.v == 0) return Scalar<T>(T{0});
  if constexpr (std::is_signed_v<T>) {
    if (y.v == -1) return -x;  // the smallest value wraps
  }
  return Scalar<T>(static_cast<T>(x.v / y.v));
}
template <Whole T>
constexpr Scalar<T> fmod(Scalar<T> x, Scalar<T> y) {
  if (y.v == 0) return Scalar<T>(T{0});
  if constexpr (std::is_signed_v<T>) {
    if (y.v == -1) return Scalar<T>(T{0});
  }
  return Scalar<T>(static_cast<T>(x.v % y.v));
}
template <Whole T>
constexpr Scalar<T> remainder(Scalar<T> x, Scalar<T> y) {
  return fmod(x, y);
}

// --- Comparison and choice ---
template <class T>
constexpr ScalarMask operator<(Scalar<T> x, Scalar<T> y) {
  return x.v < y.v;
}
template <class T>
constexpr ScalarMask operator<=(Scalar<T> x, Scalar<T> y) {
  return x.v <= y.v;
}
template <class T>
constexpr ScalarMask operator>(Scalar<T> x, Scalar<T> y) {
  return x.v > y.v;
}
template <class T>
constexpr ScalarMask operator>=(Scalar<T> x, Scalar<T> y) {
  return x.v >= y.v;
}
template <class T>
constexpr ScalarMask operator==(Scalar<T> x, Scalar<T> y) {
  return x.v == y.v;
}
template <class T>
constexpr ScalarMask operator!=(Scalar<T> x, Scalar<T> y) {
  return x.v != y.v;
}
template <class T>
constexpr Scalar<T> select(ScalarMask condition, Scalar<T> x, Scalar<T> y) {
  return Scalar<T>(condition.v ? x.v : y.v);
}
template <class T>
constexpr ScalarMask is_nan(Scalar<T> x) {
  return x.v != x.v;
}
template <class T>
constexpr ScalarMask is_inf(Scalar<T> x) {
  if constexpr (Real<T>) return x.v == std::numeric_limits<T>::infinity() || x.v == -std::numeric_limits<T>::infinity();
  return false;
}
template <class T>
constexpr Scalar<T> max(Scalar<T> x, Scalar<T> y) {
  return Scalar<T>(x.v > y.v || x.v != x.v ? x.v : y.v);
}
template <class T>
constexpr Scalar<T> min(Scalar<T> x, Scalar<T> y) {
  return Scalar<T>(x.v < y.v || x.v != x.v ? x.v : y.v);
}

// --- Sign and rounding ---
template <class T>
ScalarMask signbit(Scalar<T> x) {
  if constexpr (Real<T>)
    return std::signbit(x.v);
  else
    return x.v < 0;
}
template <class T>
Scalar<T> abs(Scalar<T> x) {
  if constexpr (Real<T>)
    return Scalar<T>(std::fabs(x.v));
  else
    return select(signbit(x), -x, x);
}
template <Real T>
Scalar<T> copysign(Scalar<T> x, Scalar<T> y) {
  return Scalar<T>(std::copysign(x.v, y.v));
}
template <Real T>
Scalar<T> fmod(Scalar<T> x, Scalar<T> y) {
  return Scalar<T>(std::fmod(x.v, y.v));
}
#define TENON_ROUNDING(function)            \
  template <class T>                        \
  Scalar<T> function(Scalar<T> x) {         \
    if constexpr (Real<T>)                  \
      return Scalar<T>(std::function(x.v)); \
    else                                    \
      return x;                             \
  }
TENON_ROUNDING(floor)
TENON_ROUNDING(ceil)
TENON_ROUNDING(trunc)
// In the default rounding mode, which nothing here changes: half to even.
TENON_ROUNDING(rint)
#undef TENON_ROUNDING

// --- Functions of the C library ---
#define TENON_FUNCTION(function)          \
  template <Real T>                       \
  Scalar<T> function(Scalar<T> x) {       \
    return Scalar<T>(std::function(x.v)); \
  }
TENON_FUNCTION(sqrt)
TENON_FUNCTION(cbrt)
TENON_FUNCTION(exp)
TENON_FUNCTION(exp2)
TENON_FUNCTION(expm1)
TENON_FUNCTION(log)
TENON_FUNCTION(log2)
TENON_FUNCTION(log10)
TENON_FUNCTION(log1p)
TENON_FUNCTION(sin)
TENON_FUNCTION(cos)
TENON_FUNCTION(tan)
TENON_FUNCTION(asin)
TENON_FUNCTION(acos)
TENON_FUNCTION(atan)
TENON_FUNCTION(sinh)
TENON_FUNCTION(cosh)
TENON_FUNCTION(tanh)
TENON_FUNCTION(asinh)
TENON_FUNCTION(acosh)
TENON_FUNCTION(atanh)
TENON_FUNCTION(erf)
TENON_FUNCTION(erfc)
#undef TENON_FUNCTION

template <Real T>
Scalar<T> pow(Scalar<T> x, Scalar<T> y) {
  return Scalar<T>(std::pow(x.v, y.v));
}
// By squaring, wrapping. A negative exponent gives the truncated quotient 1 / x^|y|: 0 unless x is 1 or -1.
template <Whole T>
constexpr Scalar<T> pow(Scalar<T> x, Scalar<T> y) {
  using U = std::make_unsigned_t<T>;
  U exponent = static_cast<U>(y.v);
  if constexpr (std::is_signed_v<T>) {
    if (y.v < 0) {
      if (x.v != 1 && x.v != -1) return Scalar<T>(T{0});
      exponent &= 1;
    }
  }
  Scalar<T> result(T{1});
  for (; exponent != 0; exponent = static_cast<U>(exponent >> 1)) {
    if (exponent & 1) result = result * x;
    x = x * x;
  }
  return result;
}
template <Real T>
Scalar<T> atan2(Scalar<T> y, Scalar<T> x) {
  return Scalar<T>(std::atan2(y.v, x.v));
}
template <Real T>
Scalar<T> lgamma(Scalar<T> x) {
  // std::lgamma writes a global (signgam): a race between threads.
  int sign = 0;
  return Scalar<T>(static_cast<T>(::lgamma_r(static_cast<double>(x.v), &sign)));
}

// --- Functions the C library lacks (special.h) ---
template <Real T>
Scalar<T> erfinv(Scalar<T> x) {
  return Scalar<T>(static_cast<T>(math::erfinv_of_platform(Scalar<double>(static_cast<double>(x.v))).v));
}
template <Real T>
Scalar<T> i0(Scalar<T> x) {
  return Scalar<T>(static_cast<T>(math::i0_of_platform(Scalar<double>(static_cast<double>(x.v))).v));
}

// --- Integers only ---
template <Whole T>
constexpr Scalar<T> operator&(Scalar<T> x, Scalar<T> y) {
  return Scalar<T>(static_cast<T>(x.v & y.v));
}
template <Whole T>
constexpr Scalar<T> operator|(Scalar<T> x, Scalar<T> y) {
  return Scalar<T>(static_cast<T>(x.v | y.v));
}
template <Whole T>
constexpr Scalar<T> operator^(Scalar<T> x, Scalar<T> y) {
  return Scalar<T>(static_cast<T>(x.v ^ y.v));
}
template <Whole T>
constexpr Scalar<T> operator~(Scalar<T> x) {
  return Scalar<T>(static_cast<T>(~x.v));
}
template <Whole T>
constexpr bool shifts_everything(T amount) {
  return static_cast<std::make_unsigned_t<T>>(amount) >= sizeof(T) * 8;
}
template <Whole T>
constexpr Scalar<T> operator<<(Scalar<T> x, Scalar<T> y) {
  if (shifts_everything(y.v)) return Scalar<T>(T{0});
  return Scalar<T>(static_cast<T>(static_cast<Bits<T>>(x.v) << y.v));
}
template <Whole T>
constexpr Scalar<T> operator>>(Scalar<T> x, Scalar<T> y) {
  const T amount = shifts_everything(y.v) ? static_cast<T>(sizeof(T) * 8 - 1) : y.v;
  // An unsigned value shifted by its width less one keeps its top bit.
  if (std::is_unsigned_v<T> && shifts_everything(y.v)) return Scalar<T>(T{0});
  return Scalar<T>(static_cast<T>(x.v >> amount));
}
// Never negative, save the smallest value with itself or 0, which wraps.
template <Whole T>
constexpr Scalar<T> gcd(Scalar<T> x, Scalar<T> y) {
  using U = std::make_unsigned_t<T>;
  const auto magnitude = [](T v) {
    return static_cast<U>(v < 0 ? Bits<T>{0} - static_cast<Bits<T>>(v) : static_cast<Bits<T>>(v));
  };
  U a = magnitude(x.v), b = magnitude(y.v);
  while (b != 0) {
    const U rest = static_cast<U>(a % b);
    a = b;
    b = rest;
  }
  return Scalar<T>(static_cast<T>(a));
}

}  // namespace TENON_ISA
}  // namespace tenon::value
