// Elementwise bodies: arithmetic, rounding, and the ops of three inputs. See elementwise.h.
#pragma once

#include "ops/elementwise/traits.h"
#include "ops/elementwise/value.h"

namespace tenon::elementwise {
inline namespace TENON_ISA {

// --- Arithmetic ---
struct Add {
  static constexpr const char* name = "add";
  static constexpr ElementwiseTraits traits{.inputs = 2, .kinds = kNumbers};
  template <class V>
  static V apply(V x, V y) {
    return x + y;
  }
};
struct Sub {
  static constexpr const char* name = "sub";
  static constexpr ElementwiseTraits traits{.inputs = 2, .kinds = kNumbers};
  template <class V>
  static V apply(V x, V y) {
    return x - y;
  }
};
struct Mul {
  static constexpr const char* name = "mul";
  static constexpr ElementwiseTraits traits{.inputs = 2, .kinds = kNumbers};
  template <class V>
  static V apply(V x, V y) {
    return x * y;
  }
};
struct Div {
  static constexpr const char* name = "div";
  static constexpr ElementwiseTraits traits{.inputs = 2};
  template <class V>
  static V apply(V x, V y) {
    return x / y;
  }
};
struct AddAlpha {
  static constexpr const char* name = "addalpha";
  static constexpr ElementwiseTraits traits{.inputs = 2, .params = 1, .kinds = kNumbers, .wide = true};
  template <class V>
  static V apply(V x, V y, V alpha) {
    return x + alpha * y;
  }
};
struct SubAlpha {
  static constexpr const char* name = "subalpha";
  static constexpr ElementwiseTraits traits{.inputs = 2, .params = 1, .kinds = kNumbers, .wide = true};
  template <class V>
  static V apply(V x, V y, V alpha) {
    return x - alpha * y;
  }
};
struct ReverseSub {
  static constexpr const char* name = "rsub";
  static constexpr ElementwiseTraits traits{.inputs = 2, .params = 1, .kinds = kNumbers, .wide = true};
  template <class V>
  static V apply(V x, V y, V alpha) {
    return y - alpha * x;
  }
};
struct DivNoNan {
  static constexpr const char* name = "div_no_nan";
  static constexpr ElementwiseTraits traits{.inputs = 2};
  template <class V>
  static V apply(V x, V y) {
    return select(y == V(0), V(0), x / y);
  }
};
struct FloorDiv {
  static constexpr const char* name = "floor_div";
  static constexpr ElementwiseTraits traits{.inputs = 2, .kinds = kNumbers, .wide = true};
  template <class V>
  static V apply(V x, V y) {
    if constexpr (value::kIsInteger<V>) {
      const auto rounds_up = (fmod(x, y) != V(0)) & (signbit(x) ^ signbit(y));
      return x / y - select(rounds_up, V(1), V(0));
    } else {
      // x / y may round to an integer that the quotient does not reach; x - fmod(x, y) is a multiple of y, so that its quotient
      // is within rounding of the integer wanted.
      const V rest = fmod(x, y);
      const auto rounds_up = (rest != V(0)) & (signbit(rest) ^ signbit(y));
      const V quotient = rint((x - rest) / y) - select(rounds_up, V(1), V(0));
      const auto exact = (y != V(0)) & !is_inf(x) & !is_inf(y);
      return select(exact, quotient, floor(x / y));
    }
  }
};
struct TruncDiv {
  static constexpr const char* name = "trunc_div";
  static constexpr ElementwiseTraits traits{.inputs = 2, .kinds = kNumbers, .wide = true};
  template <class V>
  static V apply(V x, V y) {
    if constexpr (value::kIsInteger<V>) {
      return x / y;
    } else {
      const auto exact = (y != V(0)) & !is_inf(x) & !is_inf(y);
      return select(exact, rint((x - fmod(x, y)) / y), trunc(x / y));
    }
  }
};
struct Remainder {
  static constexpr const char* name = "remainder";
  static constexpr ElementwiseTraits traits{.inputs = 2, .kinds = kNumbers};
  template <class V>
  static V apply(V x, V y) {
    const V rest = fmod(x, y);
    const auto other_sign = (rest != V(0)) & (signbit(rest) ^ signbit(y));
    return select(other_sign, rest + y, rest);
  }
};
struct Fmod {
  static constexpr const char* name = "fmod";
  static constexpr ElementwiseTraits traits{.inputs = 2, .kinds = kNumbers};
  template <class V>
  static V apply(V x, V y) {
    return fmod(x, y);
  }
};
struct Pow {
  static constexpr const char* name = "pow";
  static constexpr ElementwiseTraits traits{.inputs = 2, .kinds = kNumbers, .wide = true};
  template <class V>
  static V apply(V x, V y) {
    return pow(x, y);
  }
};
struct Gcd {
  static constexpr const char* name = "gcd";
  static constexpr ElementwiseTraits traits{.inputs = 2, .kinds = kIntegers};
  template <class V>
  static V apply(V x, V y) {
    return gcd(x, y);
  }
};
struct Lcm {
  static constexpr const char* name = "lcm";
  static constexpr ElementwiseTraits traits{.inputs = 2, .kinds = kIntegers};
  template <class V>
  static V apply(V x, V y) {
    return abs(x) / gcd(x, y) * abs(y);
  }
};
struct SquaredDifference {
  static constexpr const char* name = "squared_difference";
  static constexpr ElementwiseTraits traits{.inputs = 2, .kinds = kNumbers};
  template <class V>
  static V apply(V x, V y) {
    const V difference = x - y;
    return difference * difference;
  }
};
struct Maximum {
  static constexpr const char* name = "maximum";
  static constexpr ElementwiseTraits traits{.inputs = 2, .kinds = kAll};
  template <class V>
  static V apply(V x, V y) {
    return max(x, y);
  }
};
struct Minimum {
  static constexpr const char* name = "minimum";
  static constexpr ElementwiseTraits traits{.inputs = 2, .kinds = kAll};
  template <class V>
  static V apply(V x, V y) {
    return min(x, y);
  }
};
struct Fmax {
  static constexpr const char* name = "fmax";
  static constexpr ElementwiseTraits traits{.inputs = 2, .kinds = kNumbers};
  template <class V>
  static V apply(V x, V y) {
    return select(is_nan(x), y, select(is_nan(y), x, max(x, y)));
  }
};
struct Fmin {
  static constexpr const char* name = "fmin";
  static constexpr ElementwiseTraits traits{.inputs = 2, .kinds = kNumbers};
  template <class V>
  static V apply(V x, V y) {
    return select(is_nan(x), y, select(is_nan(y), x, min(x, y)));
  }
};
struct CopySign {
  static constexpr const char* name = "copysign";
  static constexpr ElementwiseTraits traits{.inputs = 2};
  template <class V>
  static V apply(V x, V y) {
    return copysign(x, y);
  }
};
struct Ldexp {
  static constexpr const char* name = "ldexp";
  static constexpr ElementwiseTraits traits{.inputs = 2, .wide = true};
  template <class V>
  static V apply(V x, V y) {
    // In two steps: 2^y alone may overflow where the product does not.
    const V half = floor(y * V(0.5));
    return x * exp2(half) * exp2(y - half);
  }
};
struct Neg {
  static constexpr const char* name = "neg";
  static constexpr ElementwiseTraits traits{.kinds = kNumbers};
  template <class V>
  static V apply(V x) {
    return -x;
  }
};
struct Abs {
  static constexpr const char* name = "abs";
  static constexpr ElementwiseTraits traits{.kinds = kNumbers};
  template <class V>
  static V apply(V x) {
    return abs(x);
  }
};
struct Sign {
  static constexpr const char* name = "sign";
  static constexpr ElementwiseTraits traits{.kinds = kNumbers};
  template <class V>
  static V apply(V x) {
    return select(x > V(0), V(1), select(x < V(0), -V(1), x));
  }
};
struct Square {
  static constexpr const char* name = "square";
  static constexpr ElementwiseTraits traits{.kinds = kNumbers};
  template <class V>
  static V apply(V x) {
    return x * x;
  }
};
struct Reciprocal {
  static constexpr const char* name = "reciprocal";
  static constexpr ElementwiseTraits traits{};
  template <class V>
  static V apply(V x) {
    return V(1) / x;
  }
};
struct Identity {
  static constexpr const char* name = "identity";
  static constexpr ElementwiseTraits traits{.kinds = kAll};
  template <class V>
  static V apply(V x) {
    return x;
  }
};
struct Clamp {
  static constexpr const char* name = "clamp";
  static constexpr ElementwiseTraits traits{.params = 2, .kinds = kNumbers};
  template <class V>
  static V apply(V x, V low, V high) {
    return min(max(x, low), high);
  }
};
struct NanToNum {
  static constexpr const char* name = "nan_to_num";
  static constexpr ElementwiseTraits traits{.params = 3, .kinds = kNumbers};
  template <class V>
  static V apply(V x, V nan, V posinf, V neginf) {
    return select(is_nan(x), nan, select(is_inf(x), select(x > V(0), posinf, neginf), x));
  }
};

// --- Rounding ---
struct Floor {
  static constexpr const char* name = "floor";
  static constexpr ElementwiseTraits traits{.kinds = kNumbers};
  template <class V>
  static V apply(V x) {
    return floor(x);
  }
};
struct Ceil {
  static constexpr const char* name = "ceil";
  static constexpr ElementwiseTraits traits{.kinds = kNumbers};
  template <class V>
  static V apply(V x) {
    return ceil(x);
  }
};
struct Trunc {
  static constexpr const char* name = "trunc";
  static constexpr ElementwiseTraits traits{.kinds = kNumbers};
  template <class V>
  static V apply(V x) {
    return trunc(x);
  }
};
struct Round {
  static constexpr const char* name = "round";
  static constexpr ElementwiseTraits traits{.kinds = kNumbers};
  template <class V>
  static V apply(V x) {
    return rint(x);
  }
};
// To tens (up = 10^n, down = 1) after the point, or (up = 1, down = 10^n) before it.
struct RoundDecimals {
  static constexpr const char* name = "round_decimals";
  static constexpr ElementwiseTraits traits{.params = 2, .wide = true};
  template <class V>
  static V apply(V x, V up, V down) {
    const V scaled = x * up / down;
    return select(is_inf(scaled), x, rint(scaled) * down / up);
  }
};
struct Frac {
  static constexpr const char* name = "frac";
  static constexpr ElementwiseTraits traits{};
  template <class V>
  static V apply(V x) {
    return x - trunc(x);
  }
};

// --- Three inputs ---
struct AddCMul {
  static constexpr const char* name = "addcmul";
  static constexpr ElementwiseTraits traits{.inputs = 3, .params = 1, .kinds = kNumbers, .wide = true};
  template <class V>
  static V apply(V x, V y, V z, V value) {
    return x + value * y * z;
  }
};
struct AddCDiv {
  static constexpr const char* name = "addcdiv";
  static constexpr ElementwiseTraits traits{.inputs = 3, .params = 1, .wide = true};
  template <class V>
  static V apply(V x, V y, V z, V value) {
    return x + value * y / z;
  }
};
struct Mac {
  static constexpr const char* name = "mac";
  static constexpr ElementwiseTraits traits{.inputs = 3, .kinds = kNumbers, .wide = true};
  template <class V>
  static V apply(V x, V y, V z) {
    return x * y + z;
  }
};
struct Lerp {
  static constexpr const char* name = "lerp";
  static constexpr ElementwiseTraits traits{.inputs = 3, .wide = true};
  template <class V>
  static V apply(V x, V y, V weight) {
    // From the nearer end, so that weights of 0 and 1 give the ends themselves.
    const V difference = y - x;
    return select(abs(weight) < V(0.5), x + weight * difference, y - difference * (V(1) - weight));
  }
};
struct Where {
  static constexpr const char* name = "where";
  static constexpr ElementwiseTraits traits{.inputs = 3, .kinds = kAll, .condition = true};
  template <class V>
  static V apply(typename V::Mask c, V x, V y) {
    return select(c, x, y);
  }
};

}  // namespace TENON_ISA
}  // namespace tenon::elementwise
