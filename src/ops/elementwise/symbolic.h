// Sym: a value type that records operations. A body instantiated with it becomes a small program of scalar primitives, from which
// a code generator writes the inner expression of a kernel in its own language, so that no op is written twice.
//
//   SymbolicBody body = expand(ElementwiseOp::Silu);
//   for (const SymbolicNode& n : body.nodes) emit(n);      // operands come before their users
//   emit_return(body.result());
//
// Thread safety: pure functions on values.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "ops/elementwise/elementwise.h"

namespace tenon {

// The primitives, as defined in value.h: leaves first, then those with one, two and three operands.
// clang-format off
#define TENON_SCALAR_LEAVES(X) X(input) X(condition) X(parameter) X(constant)
#define TENON_SCALAR_UNARY(X)                                                                                      \
  X(neg) X(abs) X(signbit) X(floor) X(ceil) X(trunc) X(rint) X(sqrt) X(cbrt) X(exp) X(exp2) X(expm1) X(log)        \
  X(log2) X(log10) X(log1p) X(sin) X(cos) X(tan) X(asin) X(acos) X(atan) X(sinh) X(cosh) X(tanh) X(asinh)          \
  X(acosh) X(atanh) X(erf) X(erfc) X(erfinv) X(lgamma) X(i0) X(is_nan) X(is_inf) X(mask_not) X(bit_not)
#define TENON_SCALAR_BINARY(X)                                                                                     \
  X(add) X(sub) X(mul) X(div) X(lt) X(le) X(gt) X(ge) X(eq) X(ne) X(min) X(max) X(copysign) X(fmod) X(pow)         \
  X(atan2) X(mask_and) X(mask_or) X(mask_xor) X(bit_and) X(bit_or) X(bit_xor) X(shift_left) X(shift_right) X(gcd)
// clang-format on

enum class ScalarPrim : std::uint8_t {
#define TENON_X(name) name,
  TENON_SCALAR_LEAVES(TENON_X) TENON_SCALAR_UNARY(TENON_X) TENON_SCALAR_BINARY(TENON_X) select
#undef TENON_X
};
std::string_view name(ScalarPrim prim) noexcept;
int operand_count(ScalarPrim prim) noexcept;
bool returns_mask(ScalarPrim prim) noexcept;  // a comparison, a logical operation on masks, a condition

struct SymbolicNode {
  ScalarPrim prim{};
  std::array<int, 3> operands{-1, -1, -1};  // indices of earlier nodes
  int index = 0;                            // the index of the input or of the parameter
  double constant = 0;

  friend bool operator==(const SymbolicNode&, const SymbolicNode&) = default;
};

struct SymbolicBody {
  std::vector<SymbolicNode> nodes;  // in evaluation order, without duplicates; the last is the result
  int result() const { return static_cast<int>(nodes.size()) - 1; }
};

// The op's body as primitives, on floats or on integers (the formulas of a few ops differ).
// Throws internal if the op's traits exclude that kind.
SymbolicBody expand(ElementwiseOp op, bool integers = false);

}  // namespace tenon
