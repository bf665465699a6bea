// What Sym records, evaluated primitive by primitive, is what the body computes.
#include "ops/elementwise/symbolic.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "ops/elementwise/reference.h"
#include "tenon/error.h"

namespace tenon {
namespace {

using value::Scalar;

// An interpreter of recorded bodies, in T; masks are 0 or 1.
template <class T>
T interpret(const SymbolicBody& body, const std::vector<T>& in, const std::vector<double>& params) {
  using V = Scalar<T>;
  std::vector<V> values;
  for (const SymbolicNode& n : body.nodes) {
    const auto x = [&](int i) { return values[static_cast<std::size_t>(n.operands[static_cast<std::size_t>(i)])]; };
    const auto mask = [&](int i) { return value::ScalarMask(x(i).v != 0); };
    const auto truth = [](value::ScalarMask m) { return V(m ? 1 : 0); };
    V result(0);
    switch (n.prim) {
      case ScalarPrim::input:
      case ScalarPrim::condition: result = V(in[static_cast<std::size_t>(n.index)]); break;
      case ScalarPrim::parameter: result = V(params[static_cast<std::size_t>(n.index)]); break;
      case ScalarPrim::constant: result = V(n.constant); break;
      case ScalarPrim::neg: result = -x(0); break;
      case ScalarPrim::abs: result = abs(x(0)); break;
      case ScalarPrim::signbit: result = truth(signbit(x(0))); break;
      case ScalarPrim::floor: result = floor(x(0)); break;
      case ScalarPrim::ceil: result = ceil(x(0)); break;
      case ScalarPrim::trunc: result = trunc(x(0)); break;
      case ScalarPrim::rint: result = rint(x(0)); break;
      case ScalarPrim::is_nan: result = truth(is_nan(x(0))); break;
      case ScalarPrim::is_inf: result = truth(is_inf(x(0))); break;
      case ScalarPrim::mask_not: result = truth(!mask(0)); break;
      case ScalarPrim::add: result = x(0) + x(1); break;
      case ScalarPrim::sub: result = x(0) - x(1); break;
      case ScalarPrim::mul: result = x(0) * x(1); break;
      case ScalarPrim::div: result = x(0) / x(1); break;
      case ScalarPrim::lt: result = truth(x(0) < x(1)); break;
      case ScalarPrim::le: result = truth(x(0) <= x(1)); break;
      case ScalarPrim::gt: result = truth(x(0) > x(1)); break;
      case ScalarPrim::ge: result = truth(x(0) >= x(1)); break;
      case ScalarPrim::eq: result = truth(x(0) == x(1)); break;
      case ScalarPrim::ne: result = truth(x(0) != x(1)); break;
      case ScalarPrim::min: result = min(x(0), x(1)); break;
      case ScalarPrim::max: result = max(x(0), x(1)); break;
      case ScalarPrim::fmod: result = fmod(x(0), x(1)); break;
      case ScalarPrim::pow: result = pow(x(0), x(1)); break;
      case ScalarPrim::mask_and: result = truth(mask(0) & mask(1)); break;
      case ScalarPrim::mask_or: result = truth(mask(0) | mask(1)); break;
      case ScalarPrim::mask_xor: result = truth(mask(0) ^ mask(1)); break;
      case ScalarPrim::select: result = select(mask(0), x(1), x(2)); break;
      default:
        if constexpr (std::is_floating_point_v<T>) {
          switch (n.prim) {
            case ScalarPrim::sqrt: result = sqrt(x(0)); break;
            case ScalarPrim::cbrt: result = cbrt(x(0)); break;
            case ScalarPrim::exp: result = exp(x(0)); break;
            case ScalarPrim::exp2: result = exp2(x(0)); break;
            case ScalarPrim::expm1: result = expm1(x(0)); break;
            case ScalarPrim::log: result = log(x(0)); break;
            case ScalarPrim::log2: result = log2(x(0)); break;
            case ScalarPrim::log10: result = log10(x(0)); break;
            case ScalarPrim::log1p: result = log1p(x(0)); break;
            case ScalarPrim::sin: result = sin(x(0)); break;
            case ScalarPrim::cos: result = cos(x(0)); break;
            case ScalarPrim::tan: result = tan(x(0)); break;
            case ScalarPrim::asin: result = asin(x(0)); break;
            case ScalarPrim::acos: result = acos(x(0)); break;
            case ScalarPrim::atan: result = atan(x(0)); break;
            case ScalarPrim::sinh: result = sinh(x(0)); break;
            case ScalarPrim::cosh: result = cosh(x(0)); break;
            case ScalarPrim::tanh: result = tanh(x(0)); break;
            case ScalarPrim::asinh: result = asinh(x(0)); break;
            case ScalarPrim::acosh: result = acosh(x(0)); break;
            case ScalarPrim::atanh: result = atanh(x(0)); break;
            case ScalarPrim::erf: result = erf(x(0)); break;
            case ScalarPrim::erfc: result = erfc(x(0)); break;
            case ScalarPrim::erfinv: result = erfinv(x(0)); break;
            case ScalarPrim::lgamma: result = lgamma(x(0)); break;
            case ScalarPrim::i0: result = i0(x(0)); break;
            case ScalarPrim::copysign: result = copysign(x(0), x(1)); break;
            case ScalarPrim::atan2: result = atan2(x(0), x(1)); break;
            default: ADD_FAILURE() << name(n.prim) << " on floats";
          }
        } else {
          switch (n.prim) {
            case ScalarPrim::bit_not: result = ~x(0); break;
            case ScalarPrim::bit_and: result = x(0) & x(1); break;
            case ScalarPrim::bit_or: result = x(0) | x(1); break;
            case ScalarPrim::bit_xor: result = x(0) ^ x(1); break;
            case ScalarPrim::shift_left: result = x(0) << x(1); break;
            case ScalarPrim::shift_right: result = x(0) >> x(1); break;
            case ScalarPrim::gcd: result = gcd(x(0), x(1)); break;
            default: ADD_FAILURE() << name(n.prim) << " on integers";
          }
        }
    }
    values.push_back(result);
  }
  return values.back().v;
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const std::vector<double> kGrid = {-kInfinity, -1e10, -70.5, -3, -1, -0.4, -1e-7, -0.0,      0,           1e-7,
                                   0.3,        0.5,   1,     2,  25, 300,  1e10,  kInfinity, std::nan("")};
const std::vector<std::int64_t> kWholeGrid = {std::numeric_limits<std::int64_t>::min(), -100, -7, -1, 0, 1, 2, 5, 63, 64, 1000,
                                              std::numeric_limits<std::int64_t>::max()};

// Each input walks the grid, the second and third with other strides.
template <class T>
std::vector<T> inputs_at(const std::vector<T>& grid, std::size_t i, int count) {
  std::vector<T> in;
  for (int k = 0; k < count; ++k) in.push_back(grid[(i * (static_cast<std::size_t>(k) * 4 + 1) + i / grid.size()) % grid.size()]);
  return in;
}

const std::vector<double> kParams = {0.75, 2, -1.5};

TEST(Symbolic, TheRecordedBodyComputesWhatTheFloatBodyDoes) {
  for (int o = 0; o < kElementwiseCount; ++o) {
    const auto op = static_cast<ElementwiseOp>(o);
    if (!(traits(op).kinds & kFloats)) continue;
    const SymbolicBody body = expand(op);
    for (std::size_t i = 0; i < kGrid.size() * kGrid.size(); ++i) {
      std::vector<double> in = inputs_at(kGrid, i, traits(op).inputs);
      if (traits(op).condition) in[0] = in[0] > 0 ? 1 : 0;
      const double expected = evaluate(op, in.data(), kParams.data());
      const double actual = interpret<double>(body, in, kParams);
      ASSERT_TRUE(actual == expected || (std::isnan(actual) && std::isnan(expected)))
          << name(op) << " at " << in[0] << ": " << actual << " instead of " << expected;
    }
  }
}

TEST(Symbolic, TheRecordedBodyComputesWhatTheIntegerBodyDoes) {
  for (int o = 0; o < kElementwiseCount; ++o) {
    const auto op = static_cast<ElementwiseOp>(o);
    if (!(traits(op).kinds & kIntegers)) continue;
    const SymbolicBody body = expand(op, true);
    for (std::size_t i = 0; i < kWholeGrid.size() * kWholeGrid.size(); ++i) {
      std::vector<std::int64_t> in = inputs_at(kWholeGrid, i, traits(op).inputs);
      std::vector<const void*> pointers;
      std::uint8_t condition = in[0] > 0 ? 1 : 0, truth = 0;
      for (const std::int64_t& x : in) pointers.push_back(&x);
      if (traits(op).condition) {
        in[0] = condition;
        pointers[0] = &condition;
      }
      std::int64_t whole = 0;
      const bool returns_bool = traits(op).returns_bool;
      evaluate_block(op, DType::i64, pointers.data(), returns_bool ? static_cast<void*>(&truth) : &whole, 1, kParams.data());
      ASSERT_EQ(interpret<std::int64_t>(body, in, kParams), returns_bool ? truth : whole) << name(op) << " at " << in[0];
    }
  }
}

TEST(Symbolic, OperandsComeBeforeTheirUsersAndNoNodeTwice) {
  for (int o = 0; o < kElementwiseCount; ++o) {
    const auto op = static_cast<ElementwiseOp>(o);
    const SymbolicBody body = expand(op, !(traits(op).kinds & kFloats));
    for (std::size_t i = 0; i < body.nodes.size(); ++i) {
      for (int k = 0; k < 3; ++k) {
        const int operand = body.nodes[i].operands[static_cast<std::size_t>(k)];
        EXPECT_EQ(operand >= 0, k < operand_count(body.nodes[i].prim)) << name(op);
        EXPECT_LT(operand, static_cast<int>(i)) << name(op);
      }
      for (std::size_t j = 0; j < i; ++j) EXPECT_FALSE(body.nodes[i] == body.nodes[j]) << name(op) << " repeats node " << j;
    }
    EXPECT_EQ(returns_mask(body.nodes.back().prim), traits(op).returns_bool) << name(op);
  }
}

TEST(Symbolic, ASharedSubexpressionIsRecordedOnce) {
  const SymbolicBody body = expand(ElementwiseOp::Sigmoid);
  int exponentials = 0;
  for (const SymbolicNode& n : body.nodes) exponentials += n.prim == ScalarPrim::exp;
  EXPECT_EQ(exponentials, 1);
}

TEST(Symbolic, ABodyThatDoesNotExistIsRefused) {
  EXPECT_THROW(expand(ElementwiseOp::Gcd), Error);
  EXPECT_THROW(expand(ElementwiseOp::Exp, true), Error);
}

}  // namespace
}  // namespace tenon
