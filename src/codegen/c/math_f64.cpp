#include "codegen/c/math_library.h"

namespace tenon::emit {
namespace {

// Functions of f64 are the platform's; these mend what some of them get wrong.
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
    {"lost_in_product", "", R"(
DEVICE f64 lost_in_product(f64 x, f64 y, f64 product) { return fma(x, y, -product); }
)"},
    // NVIDIA's lgamma loses digits near its zeros between -11 and -2: there by way of the factors down from [1, 2), whose product
    // is kept with what rounding took from it.
    {"lgamma_f64", "lost_in_product", R"(
DEVICE f64 lgamma_f64(f64 x) {
  if (!(x > -11.0 && x < -2.0) || x == floor(x)) return lgamma(x);
  f64 product = 1.0, lost = 0.0;
  for (; x < 1.0; x += 1.0) {
    f64 next = product * x;
    lost = fma(lost, x, lost_in_product(product, x, next));
    product = next;
  }
  return lgamma(x) - (log(fabs(product)) + lost / product);
}
)"},
};

}  // namespace

std::span<const Helper> f64_helpers() { return kF64; }

}  // namespace tenon::emit
