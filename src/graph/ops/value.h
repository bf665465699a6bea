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
//   for integers: & | ^ ~ << >>, remainder(x, y) of truncating division (0 where y is 0)
// Value types: Scalar<double> (the reference), Scalar<float>, Scalar<integers> (CPU kernels), the CPU's SIMD lanes
// (backends/cpu), and Sym (symbolic.h), which records the primitives for the code emitters.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace tenon::value {

template <class T>
struct Scalar {
  using Mask = bool;
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

}  // namespace tenon::value
