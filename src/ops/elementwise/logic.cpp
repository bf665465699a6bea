#include "ops/elementwise/logic.h"

#include "ops/register.h"

namespace tenon {
namespace {

using E = ElementwiseOp;

// Turning every bit of a bool's byte would not give a bool.
std::vector<NodeId> build_bitwise_not(const OpCall& call) {
  return add_elementwise(call, call.node(0).dtype == DType::boolean ? E::LogicalNot : E::BitwiseNot, {});
}

void register_comparisons(OpList& ops) {
  Entry(ops, "eq", E::Eq).aliases({"equal"}).formula("x = y").doc("Equal; NaN equals nothing.").example("eq([1, 2], 2)");
  Entry(ops, "ne", E::Ne)
      .aliases({"not_equal"})
      .formula("x ≠ y")
      .doc("Not equal; NaN differs from everything.")
      .example("ne([1, 2], 2)");
  Entry(ops, "lt", E::Lt).aliases({"less"}).formula("x < y").doc("Less than.").example("lt([1, 2, 3], 2)");
  Entry(ops, "le", E::Le).aliases({"less_equal"}).formula("x ≤ y").doc("Less than or equal.").example("le([1, 2, 3], 2)");
  Entry(ops, "gt", E::Gt).aliases({"greater"}).formula("x > y").doc("Greater than.").example("gt([1, 2, 3], 2)");
  Entry(ops, "ge", E::Ge).aliases({"greater_equal"}).formula("x ≥ y").doc("Greater than or equal.").example("ge([1, 2, 3], 2)");
  Entry(ops, "eqz", E::Eqz).formula("x = 0").doc("True where zero.").example("eqz([-1, 0, 1])");
  Entry(ops, "nez", E::Nez).formula("x ≠ 0").doc("True where not zero.").example("nez([-1, 0, 1])");
  Entry(ops, "ltz", E::Ltz).formula("x < 0").doc("True where negative.").example("ltz([-1, 0, 1])");
  Entry(ops, "lez", E::Lez).formula("x ≤ 0").doc("True where zero or negative.").example("lez([-1, 0, 1])");
  Entry(ops, "gtz", E::Gtz).formula("x > 0").doc("True where positive.").example("gtz([-1, 0, 1])");
  Entry(ops, "gez", E::Gez).formula("x ≥ 0").doc("True where zero or positive.").example("gez([-1, 0, 1])");
  Entry(ops, "isclose", E::IsClose)
      .formula("|x − y| ≤ atol + rtol·|y|")
      .doc("Equal within a tolerance; infinities are equal only to themselves. Integers are compared as float32.")
      .example("isclose([1, 1.1], 1.0000001)")
      .at_least_zero("rtol", 1e-5, "tolerance relative to |y|")
      .at_least_zero("atol", 1e-8, "absolute tolerance")
      .boolean("equal_nan", false, "whether NaN equals NaN");
}

void register_logic(OpList& ops) {
  Entry(ops, "logical_and", E::LogicalAnd)
      .formula("x ∧ y")
      .doc("Both are not zero.")
      .example("logical_and([0, 1, 2], [1, 0, 3])");
  Entry(ops, "logical_or", E::LogicalOr)
      .formula("x ∨ y")
      .doc("At least one is not zero.")
      .example("logical_or([0, 1, 0], [0, 0, 3])");
  Entry(ops, "logical_xor", E::LogicalXor)
      .formula("x ⊻ y")
      .doc("Exactly one is not zero.")
      .example("logical_xor([0, 1, 2], [1, 0, 3])");
  Entry(ops, "logical_not", E::LogicalNot).formula("¬x").doc("True where zero.").example("logical_not([0, 1, 2])");
  Entry(ops, "isnan", E::IsNan).formula("x ≠ x").doc("True where not a number.").example("isnan([1, nan])");
  Entry(ops, "isinf", E::IsInf).formula("|x| = ∞").doc("True where infinite, of either sign.").example("isinf([1, -inf])");
  Entry(ops, "isfinite", E::IsFinite)
      .formula("|x| < ∞")
      .doc("True where neither infinite nor NaN.")
      .example("isfinite([1, inf, nan])");
  Entry(ops, "isposinf", E::IsPosInf).formula("x = ∞").doc("True where plus infinity.").example("isposinf([inf, -inf])");
  Entry(ops, "isneginf", E::IsNegInf).formula("x = −∞").doc("True where minus infinity.").example("isneginf([inf, -inf])");
  Entry(ops, "signbit", E::SignBit)
      .formula("sign bit of x")
      .doc("True where the sign bit is set, including for -0.0.")
      .example("signbit([-1.5, 0, 2])");
}

void register_bits(OpList& ops) {
  Entry(ops, "bitwise_and", E::BitwiseAnd).formula("x & y").doc("Bits set in both.").example("bitwise_and([12, 10], 6)");
  Entry(ops, "bitwise_or", E::BitwiseOr).formula("x | y").doc("Bits set in either.").example("bitwise_or([12, 10], 6)");
  Entry(ops, "bitwise_xor", E::BitwiseXor).formula("x ^ y").doc("Bits set in exactly one.").example("bitwise_xor([12, 10], 6)");
  Entry(ops, "bitwise_not", E::BitwiseNot)
      .aliases({"invert", "bitwise_invert"})
      .formula("~x")
      .doc("Inverts every bit; for a bool, the negation.")
      .example("bitwise_not([0, 5])")
      .build(build_bitwise_not);
  Entry(ops, "left_shift", E::LeftShift)
      .aliases({"bitwise_left_shift"})
      .formula("x << y")
      .doc("Shifts bits left; 0 if shifted by the type's width or more, or by a negative amount.")
      .example("left_shift([1, 3], 4)");
  Entry(ops, "right_shift", E::RightShift)
      .aliases({"bitwise_right_shift"})
      .formula("x >> y")
      .doc(
          "Shifts bits right, keeping the sign; shifting by the type's width or more, or by a negative amount, shifts out every "
          "bit.")
      .example("right_shift([16, -16], 2)");
}

}  // namespace

void register_logic_ops(OpList& ops) {
  register_comparisons(ops);
  register_logic(ops);
  register_bits(ops);
}

}  // namespace tenon
