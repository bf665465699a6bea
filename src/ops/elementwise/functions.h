// Elementwise bodies: exponentials, logarithms, trigonometry, special functions. See ops/elementwise/elementwise.h.
#pragma once

#include <limits>
#include <numbers>

#include "graph/elementwise.h"
#include "math/value.h"

namespace tenon::elementwise {
inline namespace TENON_ISA {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// c0 + c1 z + c2 z^2 + ...
template <class V>
V horner(V, double c) {
  return V(c);
}
template <class V, class... Rest>
V horner(V z, double c, Rest... rest) {
  return V(c) + z * horner(z, rest...);
}

// sin(pi r) and tan(pi r) need only the distance to the nearest integer, which is exact.
template <class V>
V distance_to_integer(V x) {
  return x - rint(x);
}

// --- Powers, exponentials, logarithms ---
struct Sqrt : Body<ElementwiseOp::Sqrt> {
  template <class V>
  static V apply(V x) {
    return sqrt(x);
  }
};
struct Rsqrt : Body<ElementwiseOp::Rsqrt> {
  template <class V>
  static V apply(V x) {
    return V(1) / sqrt(x);
  }
};
struct Cbrt : Body<ElementwiseOp::Cbrt> {
  template <class V>
  static V apply(V x) {
    return cbrt(x);
  }
};
struct Exp : Body<ElementwiseOp::Exp> {
  template <class V>
  static V apply(V x) {
    return exp(x);
  }
};
struct Exp2 : Body<ElementwiseOp::Exp2> {
  template <class V>
  static V apply(V x) {
    return exp2(x);
  }
};
struct Expm1 : Body<ElementwiseOp::Expm1> {
  template <class V>
  static V apply(V x) {
    return expm1(x);
  }
};
struct Log : Body<ElementwiseOp::Log> {
  template <class V>
  static V apply(V x) {
    return log(x);
  }
};
struct Log2 : Body<ElementwiseOp::Log2> {
  template <class V>
  static V apply(V x) {
    return log2(x);
  }
};
struct Log10 : Body<ElementwiseOp::Log10> {
  template <class V>
  static V apply(V x) {
    return log10(x);
  }
};
struct Log1p : Body<ElementwiseOp::Log1p> {
  template <class V>
  static V apply(V x) {
    return log1p(x);
  }
};
struct Exp10 : Body<ElementwiseOp::Exp10> {
  template <class V>
  static V apply(V x) {
    return pow(V(10), x);
  }
};
// log(1 + t) for t = exp(-|x - y|), to be added to the larger operand. Above a half it is computed as log(2) + log1p((t - 1) /
// 2), whose second part is small where the sum may cancel, so that an error of log1p stays below the errors of the operands.
template <class V>
struct LogOnePlus {
  typename V::Mask above_half;
  V rest;

  explicit LogOnePlus(V t) : above_half(t > V(0.5)), rest(log1p(select(above_half, (t - V(1)) * V(0.5), t))) {}
};
struct LogAddExp : Body<ElementwiseOp::LogAddExp> {
  template <class V>
  static V apply(V x, V y) {
    // Equal operands are handled separately, because the difference of two equal infinities is NaN.
    const V apart = select(x == y, V(0), abs(x - y)), larger = max(x, y);
    const LogOnePlus<V> log(exp(-apart));
    // log(2) as a sum of two parts.
    return select(log.above_half, (larger + V(std::numbers::ln2)) + (log.rest + V(2.3190468138462996e-17)), larger + log.rest);
  }
};
struct LogAddExp2 : Body<ElementwiseOp::LogAddExp2> {
  template <class V>
  static V apply(V x, V y) {
    const V apart = select(x == y, V(0), abs(x - y)), larger = max(x, y);
    const LogOnePlus<V> log(exp2(-apart));
    return select(log.above_half, larger + V(1), larger) + log.rest * V(std::numbers::log2e);
  }
};
struct XLogY : Body<ElementwiseOp::XLogY> {
  template <class V>
  static V apply(V x, V y) {
    return select((x == V(0)) & !is_nan(y), V(0), x * log(y));
  }
};
struct XLog1pY : Body<ElementwiseOp::XLog1pY> {
  template <class V>
  static V apply(V x, V y) {
    return select((x == V(0)) & !is_nan(y), V(0), x * log1p(y));
  }
};
struct Entropy : Body<ElementwiseOp::Entropy> {
  template <class V>
  static V apply(V x) {
    return select(x == V(0), V(0), select(x < V(0), V(-kInfinity), -x * log(x)));
  }
};
struct Hypot : Body<ElementwiseOp::Hypot> {
  template <class V>
  static V apply(V x, V y) {
    const V larger = max(abs(x), abs(y));
    const V ratio = min(abs(x), abs(y)) / select(larger == V(0), V(1), larger);
    const V length = larger * sqrt(V(1) + ratio * ratio);
    return select(is_inf(x) | is_inf(y), V(kInfinity), length);
  }
};

// --- Trigonometry ---
struct Sin : Body<ElementwiseOp::Sin> {
  template <class V>
  static V apply(V x) {
    return sin(x);
  }
};
struct Cos : Body<ElementwiseOp::Cos> {
  template <class V>
  static V apply(V x) {
    return cos(x);
  }
};
struct Tan : Body<ElementwiseOp::Tan> {
  template <class V>
  static V apply(V x) {
    return tan(x);
  }
};
struct Asin : Body<ElementwiseOp::Asin> {
  template <class V>
  static V apply(V x) {
    return asin(x);
  }
};
struct Acos : Body<ElementwiseOp::Acos> {
  template <class V>
  static V apply(V x) {
    return acos(x);
  }
};
struct Atan : Body<ElementwiseOp::Atan> {
  template <class V>
  static V apply(V x) {
    return atan(x);
  }
};
struct Sinh : Body<ElementwiseOp::Sinh> {
  template <class V>
  static V apply(V x) {
    return sinh(x);
  }
};
struct Cosh : Body<ElementwiseOp::Cosh> {
  template <class V>
  static V apply(V x) {
    return cosh(x);
  }
};
struct Tanh : Body<ElementwiseOp::Tanh> {
  template <class V>
  static V apply(V x) {
    return tanh(x);
  }
};
struct Asinh : Body<ElementwiseOp::Asinh> {
  template <class V>
  static V apply(V x) {
    return asinh(x);
  }
};
struct Acosh : Body<ElementwiseOp::Acosh> {
  template <class V>
  static V apply(V x) {
    return acosh(x);
  }
};
struct Atanh : Body<ElementwiseOp::Atanh> {
  template <class V>
  static V apply(V x) {
    return atanh(x);
  }
};
struct Atan2 : Body<ElementwiseOp::Atan2> {
  template <class V>
  static V apply(V y, V x) {
    return atan2(y, x);
  }
};
struct Sinc : Body<ElementwiseOp::Sinc> {
  template <class V>
  static V apply(V x) {
    const V nearest = rint(x);
    const V odd = nearest - V(2) * floor(nearest * V(0.5));
    const V sine = sin(V(std::numbers::pi) * (x - nearest)) * (V(1) - V(2) * odd);
    const V angle = V(std::numbers::pi) * x;
    return select(x == V(0), V(1), select(is_inf(x), V(0), sine / angle));
  }
};
struct Deg2Rad : Body<ElementwiseOp::Deg2Rad> {
  template <class V>
  static V apply(V x) {
    return x * V(std::numbers::pi / 180);
  }
};
struct Rad2Deg : Body<ElementwiseOp::Rad2Deg> {
  template <class V>
  static V apply(V x) {
    return x * V(180 / std::numbers::pi);
  }
};

// --- Special functions ---
struct Erf : Body<ElementwiseOp::Erf> {
  template <class V>
  static V apply(V x) {
    return erf(x);
  }
};
struct Erfc : Body<ElementwiseOp::Erfc> {
  template <class V>
  static V apply(V x) {
    return erfc(x);
  }
};
struct Erfinv : Body<ElementwiseOp::Erfinv> {
  template <class V>
  static V apply(V x) {
    return erfinv(x);
  }
};
struct Lgamma : Body<ElementwiseOp::Lgamma> {
  template <class V>
  static V apply(V x) {
    return lgamma(x);
  }
};
struct I0 : Body<ElementwiseOp::I0> {
  template <class V>
  static V apply(V x) {
    return i0(x);
  }
};
struct Digamma : Body<ElementwiseOp::Digamma> {
  template <class V>
  static V apply(V x) {
    // Reflection below 1/2; below 8 the recurrence psi(y) = psi(y + 8) - 1 / y - ... - 1 / (y + 7), whose terms, the first with
    // the last and so on, have the numerators 2 y + 7 and the denominators t, t + 6, t + 10, t + 12; then the asymptotic series.
    const auto reflected = x < V(0.5);
    const V positive = select(reflected, V(1) - x, x);
    const auto small = positive < V(8);
    const V t = select(small, positive, V(1)) * (select(small, positive, V(1)) + V(7));
    const V outer = t * (t + V(6)), inner = (t + V(10)) * (t + V(12));
    const V above = ((t + t) + V(6)) * inner + ((t + t) + V(22)) * outer;
    const V sum = select(small, -(((positive + positive) + V(7)) * above / (outer * inner)), V(0));
    const V y = select(small, positive + V(8), positive);
    const V z = V(1) / (y * y);
    const V series = horner(z, 1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132, -691.0 / 32760, 1.0 / 12, -3617.0 / 8160);
    const V value = log(y) - V(0.5) / y - z * series + sum;
    const V rest = distance_to_integer(x);
    const V reflection = select(reflected, V(std::numbers::pi) / tan(V(std::numbers::pi) * rest), V(0));
    const auto pole = (x < V(0)) & ((rest == V(0)) | is_inf(x));
    return select(pole, V(kNan), value - reflection);
  }
};
struct Ndtr : Body<ElementwiseOp::Ndtr> {
  template <class V>
  static V apply(V x) {
    return V(0.5) * erfc(x * V(-1 / std::numbers::sqrt2));
  }
};

}  // namespace TENON_ISA
}  // namespace tenon::elementwise
