// The elementwise functions of TTNN that stand for Tenon's, and what is known of their results.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "tenon/graph.h"

namespace tenon::ttnn {

// Further calls that give the result Tenon promises for NaN, infinities and zeros, where TTNN's own is another (fast.cpp).
enum class Guard : std::uint8_t {
  none,
  nan,       // a NaN operand is the result
  zero,      // so is a zero, with its sign: sqrt
  pole,      // a zero has the reciprocal's result: rsqrt
  quotient,  // NaN divisors, divisions by zero
  extremum,  // a NaN of either operand is the result
  sign,      // NaN and zeros are the result
  tail,      // of -infinity: 0
  formula,   // TTNN's function is not called: gelu, clamp
};

struct Function {
  std::string_view op;    // Tenon's name of the elementwise op (graph/elementwise.h)
  std::string_view call;  // TTNN's
  bool floats = true, integers = false;
  // Within Tenon's limits, guarded, when measured on simulated chips; subnormals are zero. |narrow|: when it is computed in
  // float32 and the result is rounded to bfloat16 or a block format.
  bool in_limits = false, narrow_in_limits = false, integers_in_limits = false;
  Guard guard = Guard::none;
  bool closed = false;        // of bfloat16 operands, the exact result is a bfloat16 number
  bool takes_number = false;  // as the second operand
  bool with_zero = false;     // the second operand is 0
  // How the op's parameters are passed: "#" by position, a name by that name, "" not at all.
  std::array<std::string_view, 3> parameters = {};
};

// nullptr if TTNN has none.
const Function* find_function(std::string_view op);
std::span<const Function> all_functions();
std::string_view elementwise_name(ElementwiseOp op);

}  // namespace tenon::ttnn
