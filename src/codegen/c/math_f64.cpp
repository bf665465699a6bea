#include "codegen/c/math_library.h"

namespace tenon::emit {
namespace {

// The formulas of math/value.h, which the reference uses.
constexpr Helper kF64[] = {
    // Some platforms' log1p knows neither subnormals nor infinity.
    {"log1p_f64", "", R"(
DEVICE f64 log1p_f64(f64 x) {
  return fabs(x) < 5.5511151231257827e-17 || x == AS_F64(0x7ff0000000000000ul) ? x : log1p(x);
}
)"},
    // NVIDIA's exp is 0 where the result would be the smallest subnormal.
    {"exp_f64", "", R"(
DEVICE f64 exp_f64(f64 x) {
  if (!(x < -700.0)) return exp(x);
  f64 root = exp(0.5 * x);
  return root * root;
}
)"},
    // NVIDIA's lgamma loses digits near its zeros between -11 and -2: there by way of the factors down from [1, 2), whose product
    // is
    // kept with what rounding took from it.
    {"lgamma_f64", "", R"(
DEVICE f64 lgamma_f64(f64 x) {
  if (!(x > -11.0 && x < -2.0) || x == floor(x)) return lgamma(x);
  f64 product = 1.0, lost = 0.0;
  for (; x < 1.0; x += 1.0) {
    f64 next = product * x;
    lost = fma(lost, x, fma(product, x, -next));
    product = next;
  }
  return lgamma(x) - (log(fabs(product)) + lost / product);
}
)"},
    {"erfinv_f64", "", R"(
DEVICE f64 erfinv_f64(f64 x) {
  f64 magnitude = fabs(x);
  if (!(magnitude < 1.0)) return magnitude == 1.0 ? copysign(AS_F64(0x7ff0000000000000ul), x) : AS_F64(0x7ff8000000000000ul);
  if (magnitude < 1e-8) return x * 0.8862269254527580;
  i32 tail = magnitude > 0.5;
  f64 rest = tail ? 1.0 - magnitude : magnitude;
  f64 logarithm = log1p(-magnitude * magnitude);
  f64 b = 4.3307467508053850 + logarithm / 2.0;
  f64 y = sqrt(sqrt(b * b - logarithm / 0.147) - b);
  for (i32 i = 0; i < 4; ++i) {
    f64 error = tail ? rest - erfc(y) : erf(y) - rest;
    f64 step = error / (1.1283791670955126 * exp(-y * y));
    y -= step / (1.0 + y * step);
  }
  return copysign(y, x);
}
)"},
    {"i0_f64", "", R"(
DEVICE f64 i0_f64(f64 x) {
  f64 magnitude = fabs(x), sum = 0.0, term = 1.0;
  if (magnitude <= 25.0) {
    f64 quarter = magnitude * magnitude / 4.0;
    for (i32 k = 1; term > sum * 1e-18; ++k) {
      sum += term;
      term *= quarter / ((f64)k * (f64)k);
    }
    return sum;
  }
  if (!(magnitude <= 1000.0)) return magnitude * AS_F64(0x7ff0000000000000ul);
  for (i32 k = 1; term > 1e-18; ++k) {
    sum += term;
    term *= (2.0 * k - 1.0) * (2.0 * k - 1.0) / (8.0 * magnitude * k);
  }
  f64 root = exp(magnitude / 2.0);
  return root * (root * (sum / sqrt(6.283185307179586 * magnitude)));
}
)"},
};

}  // namespace

std::span<const Helper> f64_helpers() { return kF64; }

}  // namespace tenon::emit
