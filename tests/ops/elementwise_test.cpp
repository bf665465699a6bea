#include "ops/elementwise/elementwise.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "ops/elementwise/reference.h"
#include "ops/parameter_check.h"
#include "reference/reference.h"
#include "tenon/error.h"
#include "tenon/ops.h"

namespace tenon {
namespace {

using value::Scalar;

double run(std::string_view op, std::vector<double> inputs, std::vector<NamedValue> parameters = {}, DType dtype = DType::f64) {
  Graph graph;
  std::vector<NodeId> nodes;
  for (double x : inputs) nodes.push_back(graph.scalar(x, dtype));
  const std::vector<NodeId> result = apply(graph, find_op(op), nodes, parameters);
  graph.set_outputs(result);
  return reference_run(graph, {})[0].value(0);
}

TEST(Elementwise, TheCalculatorsWorkedExamplesHold) {
  EXPECT_EQ(run("addalpha", {1, 2}, {{"alpha", 3.0}}), 7);
  EXPECT_EQ(run("subalpha", {10, 2}, {{"alpha", 3.0}}), 4);
  EXPECT_EQ(run("addcmul", {1, 2, 3}, {{"value", 5.0}}), 31);
  EXPECT_EQ(run("addcdiv", {10, 6, 2}, {{"value", 2.0}}), 16);
  EXPECT_EQ(run("prelu", {-2}, {{"weight", 0.5}}), -1);
  EXPECT_EQ(run("heaviside", {0}, {{"value", 0.5}}), 0.5);
  EXPECT_EQ(run("threshold", {0.5}, {{"threshold", 1.0}, {"value", 99.0}}), 99);
  EXPECT_NEAR(run("elu", {-1}, {{"alpha", 2.0}}), -1.2642411176571153, 1e-15);
  EXPECT_EQ(run("elu", {-1}, {{"alpha", 2.0}}, DType::bf16), -1.265625);
}

TEST(Elementwise, ParametersMayFollowTheInputs) {
  EXPECT_EQ(run("addalpha", {1, 2, 3}), 7);
  EXPECT_EQ(run("addcmul", {1, 2, 3, 5}), 31);
  EXPECT_EQ(run("prelu", {-2, 0.5}), -1);
  EXPECT_EQ(run("heaviside", {0, 0.5}), 0.5);
  EXPECT_EQ(run("threshold", {0.5, 1, 99}), 99);
  EXPECT_EQ(run("round", {2.567, 2}), 2.57);
  EXPECT_EQ(run("clamp", {7, -1, 5}), 5);
}

TEST(Elementwise, AFormOfAnOpIsChosenByItsParameters) {
  EXPECT_NE(run("gelu", {1}), run("gelu", {1}, {{"approximate", std::string("tanh")}}));
  EXPECT_EQ(run("div", {-7, 2}), -3.5);
  EXPECT_EQ(run("div", {-7, 2}, {{"rounding_mode", std::string("trunc")}}), -3);
  EXPECT_EQ(run("div", {-7, 2}, {{"rounding_mode", std::string("floor")}}), -4);
  EXPECT_EQ(run("round", {1250}, {{"decimals", std::int64_t{-2}}}), 1200);
  EXPECT_EQ(run("softplus", {30}, {{"beta", 0.5}, {"threshold", 10.0}}), 30);
  EXPECT_GT(run("softplus", {30}, {{"beta", 0.5}}), 30);
}

TEST(Elementwise, NoneMeansUnbounded) {
  EXPECT_EQ(run("clamp", {-1e300}, {{"max", 5.0}}), -1e300);
  EXPECT_EQ(run("clamp", {1e300}, {{"min", 5.0}}), 1e300);
  EXPECT_TRUE(std::isnan(run("logit", {1.5})));
  EXPECT_GT(run("logit", {1.5}, {{"eps", 0.1}}), 0);
}

TEST(Elementwise, AFractionalParameterTurnsIntegersIntoFloats) {
  EXPECT_EQ(run("clamp", {3}, {{"max", 2.5}}, DType::i32), 2.5);
  EXPECT_EQ(run("clamp", {3}, {{"max", 2.0}}, DType::i32), 2);
  EXPECT_EQ(run("addalpha", {1, 2}, {{"alpha", 0.25}}, DType::u8), 1.5);
}

TEST(Elementwise, NanToNumStaysWithinTheDtype) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(run("nan_to_num", {infinity}, {}, DType::f16), 65504);
  EXPECT_EQ(run("nan_to_num", {-infinity}, {}, DType::f32), -static_cast<double>(std::numeric_limits<float>::max()));
  EXPECT_TRUE(std::isfinite(run("nan_to_num", {infinity}, {}, DType::bf16)));
}

TEST(Elementwise, BitwiseNotOfABoolIsItsNegation) {
  EXPECT_EQ(run("bitwise_not", {1}, {}, DType::boolean), 0);
  EXPECT_EQ(run("bitwise_not", {0}, {}, DType::boolean), 1);
  EXPECT_EQ(run("bitwise_not", {1}, {}, DType::i32), -2);
}

TEST(Elementwise, FloatsGivenToAnIntegerOpAreRefusedWithAHint) {
  try {
    run("gcd", {12, 18}, {}, DType::bf16);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::invalid_argument);
    EXPECT_NE(std::string(e.what()).find("gcd"), std::string::npos);
    EXPECT_NE(e.hint().find("cast"), std::string::npos);
  }
}

TEST(Elementwise, IntegerArithmeticWrapsAndNeverTraps) {
  using I = Scalar<std::int32_t>;
  constexpr std::int32_t low = std::numeric_limits<std::int32_t>::min(), high = std::numeric_limits<std::int32_t>::max();
  EXPECT_EQ((I(low) / I(-1)).v, low);
  EXPECT_EQ(fmod(I(low), I(-1)).v, 0);
  EXPECT_EQ((I(5) / I(0)).v, 0);
  EXPECT_EQ(abs(I(low)).v, low);
  EXPECT_EQ((I(high) + I(1)).v, low);
  EXPECT_EQ((I(1) << I(40)).v, 0);
  EXPECT_EQ((I(-8) >> I(-1)).v, -1);
  EXPECT_EQ((Scalar<std::uint16_t>(65535) * Scalar<std::uint16_t>(65535)).v, 1);
  EXPECT_EQ(Scalar<std::uint8_t>(-3.0).v, 0);
  EXPECT_EQ(I(1e300).v, high);
  EXPECT_EQ(I(std::nan("")).v, 0);
}

std::int64_t ordered(float x) {
  const auto bits = std::bit_cast<std::int32_t>(x);
  return bits < 0 ? std::int64_t{std::numeric_limits<std::int32_t>::min()} - bits : bits;
}
std::int64_t ulps(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) == std::isnan(b) ? 0 : std::numeric_limits<std::int64_t>::max();
  return std::llabs(ordered(a) - ordered(b));
}

// Finite floats of every size, and near them the points where formulas change.
std::vector<float> sweep() {
  std::vector<float> values = {0.0F, -0.0F, 0.5F, 1.0F, -1.0F, 3.0F, -3.0F, 6.0F, 20.0F, std::numeric_limits<float>::infinity()};
  std::uint32_t state = 12345;
  const auto next = [&] { return state = state * 1664525U + 1013904223U; };
  for (int i = 0; i < 1500; ++i) {
    const float any = std::bit_cast<float>(next());
    if (std::isfinite(any)) values.push_back(any);
    const auto unit = static_cast<float>(next() >> 8) * 0x1p-24F;
    values.push_back((unit - 0.5F) * 240);
    values.push_back((unit - 0.5F) * 8);
    values.push_back(unit);
  }
  return values;
}

template <class Op, std::size_t... I, std::size_t... P>
float in_f32(const float* in, const double* params, std::index_sequence<I...>, std::index_sequence<P...>) {
  using V = Scalar<float>;
  return Op::template apply<V>(V(in[I])..., V(params[P])...).v;
}

template <class Op>
void expect_accurate_in_f32(ElementwiseOp op, const std::vector<float>& values) {
  if constexpr ((Op::traits.kinds & kFloats) && !Op::traits.wide && !Op::traits.returns_bool && !Op::traits.condition) {
    constexpr double params[] = {0.75, 2, -1.5};
    for (std::size_t i = 0; i < values.size(); ++i) {
      const float in[] = {values[i], values[(i * 7 + 3) % values.size()], values[(i * 13 + 5) % values.size()]};
      const double exact[] = {in[0], in[1], in[2]};
      const float actual =
          in_f32<Op>(in, params, std::make_index_sequence<Op::traits.inputs>{}, std::make_index_sequence<Op::traits.params>{});
      const auto expected = static_cast<float>(evaluate(op, exact, params));
      ASSERT_LE(ulps(actual, expected), 4) << name(op) << "(" << in[0] << ", " << in[1] << "): " << actual << " instead of "
                                           << expected;
    }
  }
}

// What is not wide is evaluated in f32 throughout: its formula must not magnify the rounding of its steps.
TEST(Elementwise, FormulasEvaluatedInF32StayWithinFourUlp) {
  const std::vector<float> values = sweep();
#define TENON_X(Name, ...) expect_accurate_in_f32<elementwise::Name>(ElementwiseOp::Name, values);
  TENON_ELEMENTWISE_OPS(TENON_X)
#undef TENON_X
}

TEST(Elementwise, ErfinvInvertsErf) {
  for (double x = -0.99; x < 1; x += 0.01) EXPECT_NEAR(std::erf(erfinv(Scalar<double>(x)).v), x, 4e-16);
  for (double tail = 1e-3; tail > 1e-16; tail /= 3) {
    const double y = erfinv(Scalar<double>(1 - tail)).v;
    EXPECT_NEAR(std::erfc(y) / (1 - (1 - tail)), 1, 1e-13) << tail;
  }
}

}  // namespace
}  // namespace tenon
