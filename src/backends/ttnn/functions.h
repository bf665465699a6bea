// The elementwise functions of TTNN that stand for Tenon's, and what is known of their results.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "tenon/graph.h"

namespace tenon::ttnn {

struct Function {
  std::string_view op;    // Tenon's name of the elementwise op (graph/elementwise.h)
  std::string_view call;  // TTNN's
  bool floats = true, integers = false;
  // Within Tenon's limits when measured on simulated chips, special values included except subnormals.
  bool floats_in_limits = false, integers_in_limits = false;
  bool takes_number = false;  // as the second operand
  // How the op's parameters are passed: "#" by position, a name by that name, "" not at all.
  std::array<std::string_view, 3> parameters = {};
};

// nullptr if TTNN has none.
const Function* find_function(std::string_view op);
std::span<const Function> all_functions();
std::string_view elementwise_name(ElementwiseOp op);

}  // namespace tenon::ttnn
