#include "ops/elementwise/functions.h"

#include "ops/register.h"

namespace tenon {
namespace {

using E = ElementwiseOp;

std::vector<NodeId> build_logit(const OpCall& call) {
  return add_elementwise(call, E::Logit, {call.given("eps") ? call.number("eps") : -1.0});
}

void register_exponentials(OpList& ops) {
  Entry(ops, "sqrt", E::Sqrt).formula("√x").doc("Square root; NaN below 0.").example("sqrt([1, 4, 9])");
  Entry(ops, "rsqrt", E::Rsqrt).formula("1 / √x").doc("Reciprocal square root; infinite at 0.").example("rsqrt([1, 4, 16])");
  Entry(ops, "cbrt", E::Cbrt).formula("∛x").doc("Cube root; negative numbers are allowed.").example("cbrt([-8, 27])");
  Entry(ops, "exp", E::Exp).formula("eˣ").doc("Exponential function.").example("exp([0, 1])");
  Entry(ops, "exp2", E::Exp2).formula("2ˣ").doc("Power of two.").example("exp2([0, 0.5, 3])");
  Entry(ops, "exp10", E::Exp10).formula("10ˣ").doc("Power of ten.").example("exp10([-1, 0, 2])");
  Entry(ops, "expm1", E::Expm1).formula("eˣ − 1").doc("Exponential minus one, accurate near 0.").example("expm1([1e-8, 1])");
  Entry(ops, "log", E::Log).formula("ln x").doc("Natural logarithm; -inf at 0, NaN below.").example("log([1, 2.718281828])");
  Entry(ops, "log2", E::Log2).formula("log₂ x").doc("Logarithm to base 2.").example("log2([1, 8])");
  Entry(ops, "log10", E::Log10).formula("log₁₀ x").doc("Logarithm to base 10.").example("log10([1, 1000])");
  Entry(ops, "log1p", E::Log1p).formula("ln(1 + x)").doc("Logarithm of 1 + x, accurate near 0.").example("log1p([1e-8, 1])");
  Entry(ops, "logaddexp", E::LogAddExp)
      .formula("ln(eˣ + eʸ)")
      .doc("Logarithm of the sum of exponentials of two numbers, without overflow.")
      .example("logaddexp([1000, 0], 1000)");
  Entry(ops, "logaddexp2", E::LogAddExp2)
      .formula("log₂(2ˣ + 2ʸ)")
      .doc("Logarithm of the sum of powers of two, without overflow.")
      .example("logaddexp2([3, 0], 3)");
  Entry(ops, "xlogy", E::XLogY)
      .formula("x·ln y")
      .doc("Product with a logarithm; 0 where x is 0 and y is not NaN.")
      .example("xlogy([0, 2], [0, 3])");
  Entry(ops, "xlog1py", E::XLog1pY)
      .formula("x·ln(1 + y)")
      .doc("Product with log1p; 0 where x is 0 and y is not NaN.")
      .example("xlog1py([0, 2], [-1, 3])");
  Entry(ops, "entr", E::Entropy)
      .formula("−x·ln x")
      .doc("Contribution of a probability to the entropy; 0 at 0, -inf below.")
      .example("entr([0, 0.25, 0.5])");
  Entry(ops, "hypot", E::Hypot)
      .formula("√(x² + y²)")
      .doc("Length of a vector, without intermediate overflow.")
      .example("hypot([3, 5], [4, 12])");
  Entry(ops, "logit", E::Logit)
      .formula("ln(x / (1 − x))")
      .doc("Inverse of sigmoid; NaN outside [0, 1] unless eps is given.")
      .example("logit([0.1, 0.5, 0.9])")
      .optional_number("eps", "x is first clamped to [eps, 1 - eps]; default: not clamped")
      .build(build_logit);
}

void register_trigonometry(OpList& ops) {
  Entry(ops, "sin", E::Sin).formula("sin x").doc("Sine of an angle in radians.").example("sin([0, 1.5707963])");
  Entry(ops, "cos", E::Cos).formula("cos x").doc("Cosine of an angle in radians.").example("cos([0, 3.1415927])");
  Entry(ops, "tan", E::Tan).formula("tan x").doc("Tangent of an angle in radians.").example("tan([0, 0.785398])");
  Entry(ops, "asin", E::Asin)
      .aliases({"arcsin"})
      .formula("arcsin x")
      .doc("Inverse of sine; NaN outside [-1, 1].")
      .example("asin([0, 0.5, 1])");
  Entry(ops, "acos", E::Acos)
      .aliases({"arccos"})
      .formula("arccos x")
      .doc("Inverse of cosine; NaN outside [-1, 1].")
      .example("acos([0, 0.5, 1])");
  Entry(ops, "atan", E::Atan).aliases({"arctan"}).formula("arctan x").doc("Inverse of tangent.").example("atan([0, 1, inf])");
  Entry(ops, "atan2", E::Atan2)
      .aliases({"arctan2"})
      .formula("angle of (x, y)")
      .doc("Angle of the point (x, y) in (-π, π]; y comes first.")
      .example("atan2([1, -1], [1, -1])")
      .inputs({"y", "x"});
  Entry(ops, "sinh", E::Sinh).formula("(eˣ − e⁻ˣ) / 2").doc("Hyperbolic sine.").example("sinh([0, 1])");
  Entry(ops, "cosh", E::Cosh).formula("(eˣ + e⁻ˣ) / 2").doc("Hyperbolic cosine.").example("cosh([0, 1])");
  Entry(ops, "tanh", E::Tanh).formula("sinh x / cosh x").doc("Hyperbolic tangent.").example("tanh([-1, 0, 1])");
  Entry(ops, "asinh", E::Asinh).aliases({"arcsinh"}).formula("arsinh x").doc("Inverse of sinh.").example("asinh([0, 1])");
  Entry(ops, "acosh", E::Acosh)
      .aliases({"arccosh"})
      .formula("arcosh x")
      .doc("Inverse of cosh; NaN below 1.")
      .example("acosh([1, 2])");
  Entry(ops, "atanh", E::Atanh)
      .aliases({"arctanh"})
      .formula("artanh x")
      .doc("Inverse of tanh; NaN outside [-1, 1].")
      .example("atanh([0, 0.5])");
  Entry(ops, "sinc", E::Sinc)
      .formula("sin(πx) / (πx)")
      .doc("Normalised sinc: 1 at 0 and 0 at every other integer.")
      .example("sinc([0, 0.5, 1])");
  Entry(ops, "deg2rad", E::Deg2Rad)
      .aliases({"radians"})
      .formula("x·π / 180")
      .doc("Degrees to radians.")
      .example("deg2rad([90, 180])");
  Entry(ops, "rad2deg", E::Rad2Deg)
      .aliases({"degrees"})
      .formula("x·180 / π")
      .doc("Radians to degrees.")
      .example("rad2deg([1, 3.1415927])");
}

void register_special_functions(OpList& ops) {
  Entry(ops, "erf", E::Erf).formula("2/√π ∫₀ˣ e^(−t²) dt").doc("Error function.").example("erf([-1, 0, 1])");
  Entry(ops, "erfc", E::Erfc)
      .formula("1 − erf x")
      .doc("Complementary error function, accurate where it is tiny.")
      .example("erfc([0, 1, 5])");
  Entry(ops, "erfinv", E::Erfinv)
      .formula("erf⁻¹(x)")
      .doc("Inverse of erf; infinite at -1 and 1, NaN outside.")
      .example("erfinv([-0.5, 0, 0.9])");
  Entry(ops, "lgamma", E::Lgamma)
      .aliases({"gammaln"})
      .formula("ln |Γ(x)|")
      .doc("Logarithm of the absolute value of the gamma function; infinite at 0, -1, -2 ...")
      .example("lgamma([1, 5, 0.5])");
  Entry(ops, "digamma", E::Digamma)
      .aliases({"psi"})
      .formula("Γ′(x) / Γ(x)")
      .doc("Derivative of lgamma; NaN at the negative integers.")
      .example("digamma([1, 2, 0.5])");
  Entry(ops, "i0", E::I0).formula("I₀(x)").doc("Modified Bessel function of the first kind, order 0.").example("i0([0, 1, 5])");
  Entry(ops, "ndtr", E::Ndtr)
      .formula("Φ(x) = erfc(−x/√2) / 2")
      .doc("Cumulative distribution function of the standard normal distribution.")
      .example("ndtr([-1.96, 0, 1.96])");
}

}  // namespace

void register_function_ops(OpList& ops) {
  register_exponentials(ops);
  register_trigonometry(ops);
  register_special_functions(ops);
}

}  // namespace tenon
