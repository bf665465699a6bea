// Elementwise bodies: arithmetic, rounding, and the ops of three inputs. See ops/elementwise/elementwise.h.
#pragma once

#include "graph/elementwise.h"
#include "math/value.h"

namespace tenon::elementwise {
inline namespace TENON_ISA {

// --- Arithmetic ---
struct Add : Body<ElementwiseOp::Add> {
  template <class V>
  static V apply(V x, V y) {
    return x + y;
  }
};
struct Sub : Body<ElementwiseOp::Sub> {
  template <class V>
  static V apply(V x, V y) {
    return x - y;
  }
};
struct Mul : Body<ElementwiseOp::Mul> {
  template <class V>
  static V apply(V x, V y) {
    return x * y;
  }
};
struct Div : Body<ElementwiseOp::Div> {
  template <class V>
  static V apply(V x, V y) {
    return x / y;
  }
};
struct AddAlpha : Body<ElementwiseOp::AddAlpha> {
  template <class V>
  static V apply(V x, V y, V alpha) {
    return x + alpha * y;
  }
};
struct SubAlpha : Body<ElementwiseOp::SubAlpha> {
  template <class V>
  static V apply(V x, V y, V alpha) {
    return x - alpha * y;
  }
};
struct ReverseSub : Body<ElementwiseOp::ReverseSub> {
  template <class V>
  static V apply(V x, V y, V alpha) {
    return y - alpha * x;
  }
};
struct DivNoNan : Body<ElementwiseOp::DivNoNan> {
  template <class V>
  static V apply(V x, V y) {
    return select(y == V(0), V(0), x / y);
  }
};
// A zero has the sign of the quotient, which x - fmod(x, y) loses.
template <class V>
V with_sign_of_zero(V quotient, V x, V y) {
  return select(quotient == V(0), select(signbit(x) ^ signbit(y), -V(0), V(0)), quotient);
}
struct FloorDiv : Body<ElementwiseOp::FloorDiv> {
  template <class V>
  static V apply(V x, V y) {
    if constexpr (value::kIsInteger<V>) {
      const auto rounds_up = (fmod(x, y) != V(0)) & (signbit(x) ^ signbit(y));
      return x / y - select(rounds_up, V(1), V(0));
    } else {
      // x / y may round up to an integer that the exact quotient does not reach; x - fmod(x, y) is a multiple of y, so its
      // quotient is within rounding of the exact integer.
      const V rest = fmod(x, y);
      const auto rounds_up = (rest != V(0)) & (signbit(rest) ^ signbit(y));
      const V quotient = rint((x - rest) / y) - select(rounds_up, V(1), V(0));
      // fmod(x, infinity) is x, so that 1 // -infinity is -1.
      const auto exact = (y != V(0)) & !is_inf(x);
      return select(exact, with_sign_of_zero(quotient, x, y), floor(x / y));
    }
  }
};
struct TruncDiv : Body<ElementwiseOp::TruncDiv> {
  template <class V>
  static V apply(V x, V y) {
    if constexpr (value::kIsInteger<V>) {
      return x / y;
    } else {
      const auto exact = (y != V(0)) & !is_inf(x) & !is_inf(y);
      return select(exact, with_sign_of_zero(rint((x - fmod(x, y)) / y), x, y), trunc(x / y));
    }
  }
};
struct Remainder : Body<ElementwiseOp::Remainder> {
  template <class V>
  static V apply(V x, V y) {
    const V rest = fmod(x, y);
    const auto other_sign = (rest != V(0)) & (signbit(rest) ^ signbit(y));
    const V result = select(other_sign, rest + y, rest);
    if constexpr (value::kIsInteger<V>)
      return result;
    else
      return select(rest == V(0), select(signbit(y), -V(0), V(0)), result);  // the sign of y, also of a zero
  }
};
struct Fmod : Body<ElementwiseOp::Fmod> {
  template <class V>
  static V apply(V x, V y) {
    return fmod(x, y);
  }
};
struct Pow : Body<ElementwiseOp::Pow> {
  template <class V>
  static V apply(V x, V y) {
    return pow(x, y);
  }
};
struct Gcd : Body<ElementwiseOp::Gcd> {
  template <class V>
  static V apply(V x, V y) {
    return gcd(x, y);
  }
};
struct Lcm : Body<ElementwiseOp::Lcm> {
  template <class V>
  static V apply(V x, V y) {
    return abs(x) / gcd(x, y) * abs(y);
  }
};
struct SquaredDifference : Body<ElementwiseOp::SquaredDifference> {
  template <class V>
  static V apply(V x, V y) {
    const V difference = x - y;
    return difference * difference;
  }
};
struct Maximum : Body<ElementwiseOp::Maximum> {
  template <class V>
  static V apply(V x, V y) {
    return max(x, y);
  }
};
struct Minimum : Body<ElementwiseOp::Minimum> {
  template <class V>
  static V apply(V x, V y) {
    return min(x, y);
  }
};
struct Fmax : Body<ElementwiseOp::Fmax> {
  template <class V>
  static V apply(V x, V y) {
    return select(is_nan(x), y, select(is_nan(y), x, max(x, y)));
  }
};
struct Fmin : Body<ElementwiseOp::Fmin> {
  template <class V>
  static V apply(V x, V y) {
    return select(is_nan(x), y, select(is_nan(y), x, min(x, y)));
  }
};
struct CopySign : Body<ElementwiseOp::CopySign> {
  template <class V>
  static V apply(V x, V y) {
    return copysign(x, y);
  }
};
struct Ldexp : Body<ElementwiseOp::Ldexp> {
  template <class V>
  static V apply(V x, V y) {
    // In two steps, because 2^y may overflow although the product does not.
    const V half = floor(y * V(0.5));
    return x * exp2(half) * exp2(y - half);
  }
};
struct Neg : Body<ElementwiseOp::Neg> {
  template <class V>
  static V apply(V x) {
    return -x;
  }
};
struct Abs : Body<ElementwiseOp::Abs> {
  template <class V>
  static V apply(V x) {
    return abs(x);
  }
};
struct Sign : Body<ElementwiseOp::Sign> {
  template <class V>
  static V apply(V x) {
    return select(x > V(0), V(1), select(x < V(0), -V(1), x));
  }
};
struct Square : Body<ElementwiseOp::Square> {
  template <class V>
  static V apply(V x) {
    return x * x;
  }
};
struct Reciprocal : Body<ElementwiseOp::Reciprocal> {
  template <class V>
  static V apply(V x) {
    return V(1) / x;
  }
};
struct Identity : Body<ElementwiseOp::Identity> {
  template <class V>
  static V apply(V x) {
    return x;
  }
};
struct Clamp : Body<ElementwiseOp::Clamp> {
  template <class V>
  static V apply(V x, V low, V high) {
    return min(max(x, low), high);
  }
};
struct NanToNum : Body<ElementwiseOp::NanToNum> {
  template <class V>
  static V apply(V x, V nan, V posinf, V neginf) {
    return select(is_nan(x), nan, select(is_inf(x), select(x > V(0), posinf, neginf), x));
  }
};

// --- Rounding ---
struct Floor : Body<ElementwiseOp::Floor> {
  template <class V>
  static V apply(V x) {
    return floor(x);
  }
};
struct Ceil : Body<ElementwiseOp::Ceil> {
  template <class V>
  static V apply(V x) {
    return ceil(x);
  }
};
struct Trunc : Body<ElementwiseOp::Trunc> {
  template <class V>
  static V apply(V x) {
    return trunc(x);
  }
};
struct Round : Body<ElementwiseOp::Round> {
  template <class V>
  static V apply(V x) {
    return rint(x);
  }
};
// Rounds to digits after the decimal point (up = 10^n, down = 1) or before it (up = 1, down = 10^n).
struct RoundDecimals : Body<ElementwiseOp::RoundDecimals> {
  template <class V>
  static V apply(V x, V up, V down) {
    const V scaled = x * up / down;
    return select(is_inf(scaled), x, rint(scaled) * down / up);
  }
};
struct Frac : Body<ElementwiseOp::Frac> {
  template <class V>
  static V apply(V x) {
    return x - trunc(x);
  }
};

// --- Three inputs ---
struct AddCMul : Body<ElementwiseOp::AddCMul> {
  template <class V>
  static V apply(V x, V y, V z, V value) {
    return x + value * y * z;
  }
};
struct AddCDiv : Body<ElementwiseOp::AddCDiv> {
  template <class V>
  static V apply(V x, V y, V z, V value) {
    return x + value * y / z;
  }
};
struct Mac : Body<ElementwiseOp::Mac> {
  template <class V>
  static V apply(V x, V y, V z) {
    return x * y + z;
  }
};
struct Lerp : Body<ElementwiseOp::Lerp> {
  template <class V>
  static V apply(V x, V y, V weight) {
    // Starts from the nearer end, so that weights of 0 and 1 give exactly the ends.
    const V difference = y - x;
    return select(abs(weight) < V(0.5), x + weight * difference, y - difference * (V(1) - weight));
  }
};
struct Where : Body<ElementwiseOp::Where> {
  template <class V>
  static V apply(typename V::Mask c, V x, V y) {
    return select(c, x, y);
  }
};

}  // namespace TENON_ISA
}  // namespace tenon::elementwise
