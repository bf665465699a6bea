// Elementwise bodies: activation functions. See ops/elementwise/elementwise.h.
//
// If a formula has a limit at an infinity that plain evaluation misses (silu(-inf) is 0, not -inf * 0), the body returns the
// limit.
#pragma once

#include <numbers>

#include "ops/elementwise/functions.h"

namespace tenon::elementwise {
inline namespace TENON_ISA {

// Below this value the activations that vanish are 0 in any precision; a larger factor would only give inf * 0.
inline constexpr double kFarLeft = -1000;

// --- Piecewise linear ---
struct Relu : Body<ElementwiseOp::Relu> {
  template <class V>
  static V apply(V x) {
    return max(x, V(0));
  }
};
struct Relu6 : Body<ElementwiseOp::Relu6> {
  template <class V>
  static V apply(V x) {
    return min(max(x, V(0)), V(6));
  }
};
struct ReluSquared : Body<ElementwiseOp::ReluSquared> {
  template <class V>
  static V apply(V x) {
    const V positive = max(x, V(0));
    return positive * positive;
  }
};
struct LeakyRelu : Body<ElementwiseOp::LeakyRelu> {
  template <class V>
  static V apply(V x, V slope) {
    return select(x > V(0), x, x * slope);
  }
};
struct Prelu : Body<ElementwiseOp::Prelu> {
  template <class V>
  static V apply(V x, V weight) {
    return select(x > V(0), x, x * weight);
  }
};
// prelu with a tensor of weights.
struct PreluWeights : Body<ElementwiseOp::PreluWeights> {
  template <class V>
  static V apply(V x, V weight) {
    return select(x > V(0), x, x * weight);
  }
};
struct Hardtanh : Body<ElementwiseOp::Hardtanh> {
  template <class V>
  static V apply(V x, V low, V high) {
    return min(max(x, low), high);
  }
};
struct Hardsigmoid : Body<ElementwiseOp::Hardsigmoid> {
  template <class V>
  static V apply(V x) {
    return min(max(x + V(3), V(0)), V(6)) / V(6);
  }
};
struct Hardswish : Body<ElementwiseOp::Hardswish> {
  template <class V>
  static V apply(V x) {
    // Below -3 the result is 0; clamp x there, so that -inf is not multiplied by 0.
    const V y = max(x, V(-3));
    return y * (min(y + V(3), V(6)) / V(6));
  }
};
struct Threshold : Body<ElementwiseOp::Threshold> {
  template <class V>
  static V apply(V x, V threshold, V value) {
    return select(x <= threshold, value, x);
  }
};
struct Hardshrink : Body<ElementwiseOp::Hardshrink> {
  template <class V>
  static V apply(V x, V lambda) {
    return select(abs(x) <= lambda, V(0), x);
  }
};
struct Softshrink : Body<ElementwiseOp::Softshrink> {
  template <class V>
  static V apply(V x, V lambda) {
    return select(abs(x) <= lambda, V(0), select(x > V(0), x - lambda, x + lambda));
  }
};
struct Heaviside : Body<ElementwiseOp::Heaviside> {
  template <class V>
  static V apply(V x, V value) {
    return select(x == V(0), value, select(x < V(0), V(0), select(x > V(0), V(1), x)));
  }
};
// heaviside with a tensor of values.
struct HeavisideValues : Body<ElementwiseOp::HeavisideValues> {
  template <class V>
  static V apply(V x, V value) {
    return Heaviside::apply(x, value);
  }
};

// --- Smooth ---
struct Sigmoid : Body<ElementwiseOp::Sigmoid> {
  template <class V>
  static V apply(V x) {
    // Uses the exponential of negative numbers only: it never overflows, and the left tail keeps its precision.
    const V e = exp(-abs(x));
    return select(x >= V(0), V(1), e) / (V(1) + e);
  }
};
struct LogSigmoid : Body<ElementwiseOp::LogSigmoid> {
  template <class V>
  static V apply(V x) {
    return min(x, V(0)) - log1p(exp(-abs(x)));
  }
};
struct Silu : Body<ElementwiseOp::Silu> {
  template <class V>
  static V apply(V x) {
    // x e^x where e^x is subnormal: e^(x + 64) has all its bits, and the factor e^-64 rounds once, at the end.
    const V y = max(x, V(kFarLeft));
    const V magnitude = -abs(y);
    const auto far = magnitude < V(-64);
    const V e = exp(select(far, magnitude + V(64), magnitude));
    const V scale = select(far, V(1.6038108905486378e-28), V(1));
    return select(y >= V(0), y, y * e * scale) / (V(1) + e * scale);
  }
};
// With beta = 1.
struct Softplus : Body<ElementwiseOp::Softplus> {
  template <class V>
  static V apply(V x, V threshold) {
    return select(x > threshold, x, max(x, V(0)) + log1p(exp(-abs(x))));
  }
};
struct SoftplusBeta : Body<ElementwiseOp::SoftplusBeta> {
  template <class V>
  static V apply(V x, V beta, V threshold) {
    const V y = x * beta;
    return select(y > threshold, x, (max(y, V(0)) + log1p(exp(-abs(y)))) / beta);
  }
};
struct Mish : Body<ElementwiseOp::Mish> {
  template <class V>
  static V apply(V x) {
    // tanh(log(1 + e)) = (e^2 + 2e) / (e^2 + 2e + 2), written in e = exp(-|x|) on either side.
    const V y = max(x, V(kFarLeft));
    const V e = exp(-abs(y));
    const V left = e * (e + V(2));
    const V right = V(1) + V(2) * e;
    const auto positive = y >= V(0);
    return y * select(positive, right, left) / select(positive, right + V(2) * e * e, left + V(2));
  }
};
struct Gelu : Body<ElementwiseOp::Gelu> {
  template <class V>
  static V apply(V x) {
    // erfc, not 1 + erf: the left tail is a product of small numbers, not a difference of large ones.
    const V y = max(x, V(kFarLeft));
    return V(0.5) * y * erfc(y * V(-1 / std::numbers::sqrt2));
  }
};
struct GeluTanh : Body<ElementwiseOp::GeluTanh> {
  template <class V>
  static V apply(V x) {
    // (1 + tanh u) / 2 is sigmoid(2u).
    const V y = max(x, V(-100));
    const V u = V(2 * 0.7978845608028654) * (y + V(0.044715) * y * y * y);
    return y * Sigmoid::apply(u);
  }
};
struct QuickGelu : Body<ElementwiseOp::QuickGelu> {
  template <class V>
  static V apply(V x) {
    const V y = max(x, V(kFarLeft));
    return y * Sigmoid::apply(V(1.702) * y);
  }
};
struct Elu : Body<ElementwiseOp::Elu> {
  template <class V>
  static V apply(V x, V alpha) {
    return select(x > V(0), x, alpha * expm1(min(x, V(0))));
  }
};
struct Celu : Body<ElementwiseOp::Celu> {
  template <class V>
  static V apply(V x, V alpha) {
    return select(x > V(0), x, alpha * expm1(min(x, V(0)) / alpha));
  }
};
struct Selu : Body<ElementwiseOp::Selu> {
  template <class V>
  static V apply(V x) {
    constexpr double scale = 1.0507009873554804934193349852946;
    constexpr double alpha = 1.6732632423543772848170429916717;
    return select(x > V(0), V(scale) * x, V(scale * alpha) * expm1(min(x, V(0))));
  }
};
struct Softsign : Body<ElementwiseOp::Softsign> {
  template <class V>
  static V apply(V x) {
    return select(is_inf(x), copysign(V(1), x), x / (V(1) + abs(x)));
  }
};
struct Tanhshrink : Body<ElementwiseOp::Tanhshrink> {
  template <class V>
  static V apply(V x) {
    // The terms agree in their first digits; Lambert's continued fraction of tanh gives the difference without subtracting.
    const V z = x * x;
    const V fraction = x * z * horner(z, 4583103525.0, 349188840.0, 6891885.0, 42900.0, 65.0) /
                       horner(z, 13749310575.0, 6547290750.0, 413513100.0, 7567560.0, 45045.0, 66.0);
    return select(abs(x) < V(1.5), fraction, x - tanh(x));
  }
};
struct Logit : Body<ElementwiseOp::Logit> {
  template <class V>
  static V apply(V x, V eps) {
    // A negative eps clamps nothing. Near 1/2 the logarithm of a quotient loses precision that atanh keeps: 2p - 1 is exact.
    const V p = select(eps < V(0), x, min(max(x, eps), V(1) - eps));
    const V centred = V(2) * p - V(1);
    const auto middle = abs(centred) < V(0.5);
    return select(middle, V(2) * atanh(select(middle, centred, V(0))), log(p) - log1p(-p));
  }
};

}  // namespace TENON_ISA
}  // namespace tenon::elementwise
