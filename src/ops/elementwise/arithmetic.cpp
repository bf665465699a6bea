#include "ops/elementwise/arithmetic.h"

#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

#include "ops/register.h"
#include "ops/whole_number.h"

namespace tenon {
namespace {

using E = ElementwiseOp;
using Nodes = std::vector<NodeId>;

Nodes build_div(const OpCall& call) {
  const std::string& mode = call.text("rounding_mode");
  return add_elementwise(call, mode == "trunc" ? E::TruncDiv : mode == "floor" ? E::FloorDiv : E::Div, {});
}

// The body's parameters are doubles: bounds beyond 2^53 of 64-bit integers are literals. nullopt where doubles will do.
std::optional<Nodes> exact_clamp(const OpCall& call, std::span<const std::string_view> bounds) {
  if (!is_integer(call.node(0).dtype)) return std::nullopt;
  bool is_needed = false;
  for (const std::string_view name : bounds)
    if (call.given(name)) {
      const std::optional<std::int64_t> bound = whole_number(call, name);
      if (!bound) return std::nullopt;
      is_needed = is_needed || !is_exact_double(*bound);
    }
  if (!is_needed) return std::nullopt;
  Graph& graph = call.graph();
  NodeId x = call.input(0);
  for (const std::string_view name : bounds)
    if (call.given(name)) {
      const NodeId operands[] = {x, graph.literal(*whole_number(call, name))};
      x = graph.elementwise(name == "min" ? E::Maximum : E::Minimum, operands);
    }
  return Nodes{x};
}

Nodes build_clamp(const OpCall& call) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr std::string_view bounds[] = {"min", "max"};
  if (auto exact = exact_clamp(call, bounds)) return *exact;
  const double low = call.given("min") ? call.number("min") : -infinity;
  const double high = call.given("max") ? call.number("max") : infinity;
  return add_elementwise(call, E::Clamp, {low, high});
}
Nodes build_clamp_min(const OpCall& call) {
  constexpr std::string_view bounds[] = {"min"};
  if (auto exact = exact_clamp(call, bounds)) return *exact;
  return add_elementwise(call, E::Clamp, {call.number("min"), std::numeric_limits<double>::infinity()});
}
Nodes build_clamp_max(const OpCall& call) {
  constexpr std::string_view bounds[] = {"max"};
  if (auto exact = exact_clamp(call, bounds)) return *exact;
  return add_elementwise(call, E::Clamp, {-std::numeric_limits<double>::infinity(), call.number("max")});
}

double largest_finite(DType dtype) {
  switch (dtype) {
    case DType::f16: return 65504;
    case DType::f64: return std::numeric_limits<double>::max();
    case DType::bf16: return 0x1.FEp127;
    case DType::bfloat8_b: return 0x1.FCp127;
    case DType::bfloat4_b: return 0x1.Cp127;
    default: return std::numeric_limits<float>::max();
  }
}

Nodes build_nan_to_num(const OpCall& call) {
  // A literal alone becomes f32 in the end.
  const Node& x = call.node(0);
  const double largest = largest_finite(x.weak ? DType::f32 : x.dtype);
  const double posinf = call.given("posinf") ? call.number("posinf") : largest;
  const double neginf = call.given("neginf") ? call.number("neginf") : -largest;
  return add_elementwise(call, E::NanToNum, {call.number("nan"), posinf, neginf});
}

Nodes build_round(const OpCall& call) {
  const double decimals = static_cast<double>(call.integer("decimals"));
  const bool nothing_to_cut = decimals > 0 && !is_float(call.node(0).dtype);
  if (decimals == 0 || nothing_to_cut) return add_elementwise(call, E::Round, {});
  return add_elementwise(call, E::RoundDecimals,
                         {std::pow(10.0, std::fmax(decimals, 0)), std::pow(10.0, std::fmax(-decimals, 0))});
}

Nodes build_float_power(const OpCall& call) {
  Graph& graph = call.graph();
  const NodeId operands[] = {graph.cast(call.input(0), DType::f64), graph.cast(call.input(1), DType::f64)};
  return {graph.elementwise(E::Pow, operands)};
}

void register_basic(OpList& ops) {
  Entry(ops, "add", E::Add).formula("x + y").doc("Sum. Integers wrap around.").example("add([1, 2], 10)");
  Entry(ops, "sub", E::Sub).formula("x − y").doc("Difference. Integers wrap around.").example("sub([5, 7], 2)");
  Entry(ops, "subtract", E::Sub).formula("x − y").doc("Difference; the same as sub.").example("subtract([5, 7], 2)");
  Entry(ops, "rsub", E::ReverseSub)
      .formula("y − alpha·x")
      .doc("Difference with the operands reversed and the subtrahend scaled.")
      .example("rsub([1, 2], 10)")
      .number("alpha", 1, "factor of x");
  Entry(ops, "mul", E::Mul).formula("x · y").doc("Product. Integers wrap around.").example("mul([1, 2, 3], 0.5)");
  Entry(ops, "multiply", E::Mul).formula("x · y").doc("Product; the same as mul.").example("multiply([1, 2, 3], 4)");
  for (const char* name : {"div", "divide"})
    Entry(ops, name, E::Div)
        .formula("x / y")
        .doc(
            "Quotient; a float even for integers. With a rounding_mode the quotient is rounded and keeps the type of the inputs.")
        .example(name[3] == 0 ? "div([1, 2, 3], 2)" : "divide([7, -7], 2, rounding_mode='floor')")
        .choice("rounding_mode", {"none", "trunc", "floor"},
                "none: not rounded; trunc: towards zero; floor: towards minus infinity")
        .build(build_div);
  Entry(ops, "true_divide", E::Div)
      .formula("x / y")
      .doc("Quotient; a float even for integers.")
      .example("true_divide(1, [2, 4])");
  Entry(ops, "div_no_nan", E::DivNoNan)
      .aliases({"divide_no_nan"})
      .formula("y = 0 ? 0 : x / y")
      .doc("Quotient that is 0 where the divisor is 0.")
      .example("div_no_nan([1, 0, 3], [2, 0, 0])");
  Entry(ops, "floor_div", E::FloorDiv)
      .aliases({"floor_divide"})
      .formula("⌊x / y⌋")
      .doc("Quotient rounded towards minus infinity. Integers divided by 0 give 0.")
      .example("floor_div([7, -7], 2)");
  Entry(ops, "trunc_div", E::TruncDiv)
      .formula("trunc(x / y)")
      .doc("Quotient rounded towards zero. Integers divided by 0 give 0.")
      .example("trunc_div([7, -7], 2)");
  Entry(ops, "remainder", E::Remainder)
      .aliases({"mod"})
      .formula("x − y·⌊x / y⌋")
      .doc("Remainder with the sign of the divisor, like Python's %. A divisor of 0 gives 0 for integers and NaN for floats.")
      .example("remainder([7, -7], 3)");
  Entry(ops, "fmod", E::Fmod)
      .formula("x − y·trunc(x / y)")
      .doc("Remainder with the sign of the dividend, as in C. A divisor of 0 gives 0 for integers and NaN for floats.")
      .example("fmod([7, -7], 3)");
  Entry(ops, "pow", E::Pow)
      .aliases({"power"})
      .formula("xʸ")
      .doc("Power. Integers wrap around; negative exponents give 0, except for the bases 1 and -1.")
      .example("pow([1, 2, 3], 2)")
      .inputs({"x", "exponent"});
  Entry(ops, "float_power", E::Pow)
      .formula("xʸ in float64")
      .doc("Power computed and returned in float64.")
      .example("float_power([1, 2, 3], -1)")
      .inputs({"x", "exponent"})
      .build(build_float_power)
      .composed();
  Entry(ops, "gcd", E::Gcd)
      .formula("gcd(|x|, |y|)")
      .doc("Greatest common divisor of integers; gcd(0, n) is |n|.")
      .example("gcd([12, 18], 8)");
  Entry(ops, "lcm", E::Lcm)
      .formula("|x·y| / gcd(x, y)")
      .doc("Least common multiple of integers; 0 if one of them is 0.")
      .example("lcm([4, 6], 10)");
  Entry(ops, "squared_difference", E::SquaredDifference)
      .formula("(x − y)²")
      .doc("Square of the difference.")
      .example("squared_difference([1, 2, 3], 2)");
  Entry(ops, "addalpha", E::AddAlpha)
      .formula("x + alpha·y")
      .doc("Sum with the second operand scaled.")
      .example("addalpha(1, 2, alpha=3)")
      .number("alpha", 1, "factor of y");
  Entry(ops, "subalpha", E::SubAlpha)
      .formula("x − alpha·y")
      .doc("Difference with the second operand scaled.")
      .example("subalpha(10, 2, alpha=3)")
      .number("alpha", 1, "factor of y");
}

void register_extremes(OpList& ops) {
  Entry(ops, "maximum", E::Maximum)
      .formula("max(x, y)")
      .doc("The larger value; NaN if either is NaN.")
      .example("maximum([1, 5], 3)");
  Entry(ops, "minimum", E::Minimum)
      .formula("min(x, y)")
      .doc("The smaller value; NaN if either is NaN.")
      .example("minimum([1, 5], 3)");
  Entry(ops, "fmax", E::Fmax)
      .formula("max(x, y)")
      .doc("The larger value; if one is NaN, the other.")
      .example("fmax([1, nan], 0)");
  Entry(ops, "fmin", E::Fmin)
      .formula("min(x, y)")
      .doc("The smaller value; if one is NaN, the other.")
      .example("fmin([1, nan], 0)");
  for (const char* name : {"clamp", "clip"})
    Entry(ops, name, E::Clamp)
        .formula("min(max(x, min), max)")
        .doc("Clamps values to a range; NaN stays NaN. If min exceeds max, every result is max.")
        .example(name[2] == 'a' ? "clamp([-2, 0, 7], min=-1, max=5)" : "clip([-2, 0, 7], -1, 5)")
        .optional_number("min", "lower bound; default: unbounded")
        .optional_number("max", "upper bound; default: unbounded")
        .build(build_clamp);
  Entry(ops, "clamp_min", E::Clamp)
      .formula("max(x, min)")
      .doc("Clamps values from below.")
      .example("clamp_min([-2, 0, 7], 1)")
      .number("min", 0, "lower bound")
      .build(build_clamp_min);
  Entry(ops, "clamp_max", E::Clamp)
      .formula("min(x, max)")
      .doc("Clamps values from above.")
      .example("clamp_max([-2, 0, 7], 1)")
      .number("max", 0, "upper bound")
      .build(build_clamp_max);
  Entry(ops, "nan_to_num", E::NanToNum)
      .formula("NaN → nan, ∞ → posinf, −∞ → neginf")
      .doc("Replaces NaN and infinities with numbers.")
      .example("nan_to_num([1, nan, inf])")
      .number("nan", 0, "replacement for NaN")
      .optional_number("posinf", "replacement for infinity; default: the largest finite value of the dtype")
      .optional_number("neginf", "replacement for minus infinity; default: the smallest finite value of the dtype")
      .build(build_nan_to_num);
}

void register_sign_and_rounding(OpList& ops) {
  Entry(ops, "neg", E::Neg).aliases({"negative"}).formula("−x").doc("Negation. Integers wrap around.").example("neg([1, -2])");
  Entry(ops, "positive", E::Identity).formula("x").doc("The value itself.").example("positive([1, -2])");
  Entry(ops, "identity", E::Identity).formula("x").doc("The value itself, with the same dtype.").example("identity([1, -2])");
  Entry(ops, "clone", E::Identity).formula("x").doc("A copy.").example("clone([1, 2])");
  Entry(ops, "abs", E::Abs)
      .aliases({"absolute"})
      .formula("|x|")
      .doc("Absolute value. The smallest integer of a signed type stays unchanged.")
      .example("abs([-1, 2])");
  Entry(ops, "sign", E::Sign).formula("−1, 0 or 1").doc("Sign; NaN gives NaN.").example("sign([-3, 0, 2])");
  Entry(ops, "sgn", E::Sign).formula("−1, 0 or 1").doc("Sign; the same as sign for real numbers.").example("sgn([-3, 0, 2])");
  Entry(ops, "copysign", E::CopySign)
      .formula("|x|·sign(y)")
      .doc("The magnitude of x with the sign bit of y.")
      .example("copysign([1, 2], [-1, 1])");
  Entry(ops, "square", E::Square).formula("x²").doc("Square. Integers wrap around.").example("square([1, 2, 3])");
  Entry(ops, "reciprocal", E::Reciprocal).formula("1 / x").doc("Reciprocal; infinite at 0.").example("reciprocal([1, 2, 4])");
  Entry(ops, "ldexp", E::Ldexp)
      .formula("x · 2ʸ")
      .doc("Scales by a power of two without intermediate overflow.")
      .example("ldexp([1, 3], 4)")
      .inputs({"x", "exponent"});
  Entry(ops, "floor", E::Floor).formula("⌊x⌋").doc("Rounds down; integers are unchanged.").example("floor([-1.5, 1.5])");
  Entry(ops, "ceil", E::Ceil).formula("⌈x⌉").doc("Rounds up; integers are unchanged.").example("ceil([-1.5, 1.5])");
  Entry(ops, "trunc", E::Trunc).aliases({"fix"}).formula("trunc(x)").doc("Rounds towards zero.").example("trunc([-1.5, 1.5])");
  Entry(ops, "round", E::Round)
      .formula("round(x·10ᵈ) / 10ᵈ")
      .doc("Rounds to nearest, ties to even.")
      .example("round([0.5, 1.5, 2.567], decimals=0)")
      .integer("decimals", 0, -300, 300, "number of decimal digits to keep; negative values round before the decimal point")
      .build(build_round);
  Entry(ops, "frac", E::Frac).formula("x − trunc(x)").doc("Fractional part, with the sign of x.").example("frac([-1.25, 2.5])");
}

void register_three_inputs(OpList& ops) {
  Entry(ops, "addcmul", E::AddCMul)
      .formula("x + value·y·z")
      .doc("Adds a scaled product.")
      .example("addcmul(1, 2, 3, value=5)")
      .number("value", 1, "factor of the product");
  Entry(ops, "addcdiv", E::AddCDiv)
      .formula("x + value·y/z")
      .doc("Adds a scaled quotient; integers are computed as float32.")
      .example("addcdiv(10, 6, 2, value=2)")
      .number("value", 1, "factor of the quotient");
  Entry(ops, "mac", E::Mac).formula("x·y + z").doc("Multiply-add.").example("mac([1, 2], 3, 4)");
  Entry(ops, "lerp", E::Lerp)
      .formula("x + weight·(y − x)")
      .doc("Linear interpolation, exact at both ends.")
      .example("lerp(0, [10, 20], 0.25)")
      .inputs({"x", "y", "weight"});
  Entry(ops, "where", E::Where)
      .formula("condition ? x : y")
      .doc("Selects per element; a condition that is not bool is true where it is not 0.")
      .example("where([1, 2, 3] > 2, 10, 20)");
}

}  // namespace

void register_arithmetic_ops(OpList& ops) {
  register_basic(ops);
  register_extremes(ops);
  register_sign_and_rounding(ops);
  register_three_inputs(ops);
}

}  // namespace tenon
