#include "conformance/judge/limits.h"

#include <cmath>
#include <limits>

#include "ops/elementwise/elementwise.h"

namespace tenon::conformance {
namespace {

using E = ElementwiseOp;

constexpr double kFunctionUlp = 4;

// Ops of one IEEE operation, or of none.
double arithmetic_limit(E op) {
  switch (op) {
    case E::Add:
    case E::Sub:
    case E::Mul:
    case E::Div:
    case E::DivNoNan:
    case E::Square:
    case E::Reciprocal:
    case E::Sqrt:
    case E::ReluSquared: return 0.5;
    case E::Remainder:
    case E::AddAlpha:
    case E::SubAlpha:
    case E::ReverseSub:
    case E::AddCMul:
    case E::AddCDiv:
    case E::Mac:
    case E::Lerp:
    case E::RoundDecimals:
    case E::Softshrink: return 1;
    case E::Ldexp:
    case E::SquaredDifference:
    case E::LeakyRelu:
    case E::Prelu:
    case E::PreluWeights:
    case E::Rsqrt:
    case E::Deg2Rad:
    case E::Rad2Deg:
    case E::Softsign: return 2;
    case E::FloorDiv:
    case E::TruncDiv:
    case E::Fmod:
    case E::Maximum:
    case E::Minimum:
    case E::Fmax:
    case E::Fmin:
    case E::CopySign:
    case E::Neg:
    case E::Abs:
    case E::Sign:
    case E::Identity:
    case E::Clamp:
    case E::NanToNum:
    case E::Floor:
    case E::Ceil:
    case E::Trunc:
    case E::Round:
    case E::Frac:
    case E::Where:
    case E::Relu:
    case E::Relu6:
    case E::Hardtanh:
    case E::Threshold:
    case E::Hardshrink:
    case E::Heaviside:
    case E::HeavisideValues: return 0;
    default: return kFunctionUlp;
  }
}

}  // namespace

Limit elementwise_limit(ElementwiseOp op, DType compute) {
  const ElementwiseTraits& t = traits(op);
  if (t.returns_bool || (t.kinds & kFloats) == 0 || !is_float(compute)) return {};
  return {arithmetic_limit(op), {}};
}

bool keeps_sign_of_zero(ElementwiseOp op) {
  switch (op) {
    case E::Neg:
    case E::Abs:
    case E::CopySign:
    case E::Identity:
    case E::Where:
    case E::Mul:
    case E::Div:
    case E::Sqrt:
    case E::FloorDiv:
    case E::Remainder:
    case E::Add:
    case E::Sub: return true;
    default: return false;
  }
}

double unit_roundoff(DType compute) { return compute == DType::f64 ? 0x1p-53 : 0x1p-24; }

double ulp(double x, DType dtype) {
  struct Format {
    int digits, lowest;  // bits of the significand, exponent of the smallest normal number
  };
  const Format f = dtype == DType::f64    ? Format{53, -1022}
                   : dtype == DType::f16  ? Format{11, -14}
                   : dtype == DType::bf16 ? Format{8, -126}
                                          : Format{24, -126};
  if (!std::isfinite(x)) return std::numeric_limits<double>::infinity();
  const int exponent = x == 0 ? f.lowest : std::max(std::ilogb(x), f.lowest);
  return std::ldexp(1.0, exponent - (f.digits - 1));
}

double sum_limit(std::int64_t n) { return n <= 1 ? 0 : 2 + std::log2(static_cast<double>(n)); }
double accumulation_limit(std::int64_t n) { return n <= 0 ? 0 : 4 + 2 * std::sqrt(static_cast<double>(n)); }

}  // namespace tenon::conformance
