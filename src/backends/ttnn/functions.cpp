#include "backends/ttnn/functions.h"

#include <algorithm>

#include "graph/elementwise.h"

namespace tenon::ttnn {
namespace {

// Of one operand, floats only; not within the limits, or never measured.
constexpr Function unary(std::string_view op, std::string_view call = {}) { return {.op = op, .call = call.empty() ? op : call}; }
constexpr Function with(std::string_view op, std::string_view call, std::array<std::string_view, 3> parameters) {
  Function function = unary(op, call);
  function.parameters = parameters;
  return function;
}
constexpr Function binary(std::string_view op, std::string_view call = {}) {
  Function function = unary(op, call);
  function.takes_number = true;
  return function;
}
constexpr Function integer(std::string_view op, std::string_view call) {
  return {.op = op, .call = call, .floats = false, .integers = true, .integers_in_limits = true};
}
constexpr Function compared_with_zero(std::string_view op, std::string_view call) {
  Function function = unary(op, call);
  function.with_zero = true;
  return function;
}
// Within the limits in float32, and therefore in bfloat16.
constexpr Function trusted(Function function, Guard guard = Guard::none) {
  function.in_limits = function.narrow_in_limits = true;
  function.guard = guard;
  return function;
}
// Within the limits where the result has the 8 digits of bfloat16: a quotient, for example, is off by more than half a unit of
// float32, but quotients and roots of such numbers are never that close to the middle of two of them.
constexpr Function narrow(Function function, Guard guard = Guard::nan) {
  function.narrow_in_limits = true;
  function.guard = guard;
  return function;
}
constexpr Function closed(Function function) {
  function.closed = true;
  return function;
}
// Exact on int32 as well.
constexpr Function number(std::string_view op, std::string_view call = {}) {
  Function function = trusted(binary(op, call));
  function.integers = function.integers_in_limits = true;
  return function;
}

// What is trusted was measured: float32 within 2e-7 of the exact result, NaN, infinities and -0 as IEEE 754 says, if need be with
// a guard. Not trusted, because it was found different: pow, fmod, remainder (at their edges), sin and cos (beyond 1e7), softplus
// and gelu (1e-4 in their tails; gelu has a formula of its own), erfc (its table ends at 5). The others were not measured; simple
// ones have a formula of calls that were, so that a model's clamp does not leave the chip's compute cores.
constexpr Function kFunctions[] = {
    number("add"),
    number("sub", "subtract"),
    number("mul", "multiply"),
    narrow(binary("div", "divide"), Guard::quotient),
    with("addalpha", "addalpha", {"#"}),
    with("subalpha", "subalpha", {"#"}),
    binary("div_no_nan"),
    binary("floor_div"),
    binary("remainder"),
    binary("fmod"),
    binary("pow"),
    narrow(binary("squared_difference"), Guard::formula),
    closed(trusted(unary("maximum"), Guard::extremum)),
    closed(trusted(unary("minimum"), Guard::extremum)),
    binary("ldexp"),
    closed(trusted(unary("neg"))),
    closed(trusted(unary("abs"))),
    closed(trusted(unary("sign"), Guard::sign)),
    trusted(unary("square")),
    narrow(unary("reciprocal")),
    closed(trusted(unary("identity"))),
    trusted(with("clamp", "clamp", {"#", "#"}), Guard::formula),
    closed(trusted(unary("floor"))),
    closed(trusted(unary("ceil"))),
    closed(trusted(unary("trunc"))),
    closed(trusted(unary("round"))),
    unary("frac"),
    with("addcmul", "addcmul", {"value"}),
    with("addcdiv", "addcdiv", {"value"}),
    unary("mac"),
    unary("lerp"),
    closed(trusted(unary("where"))),
    closed(trusted(unary("eq"))),
    closed(trusted(unary("ne"))),
    closed(trusted(unary("lt"))),
    closed(trusted(unary("le"))),
    closed(trusted(unary("gt"))),
    closed(trusted(unary("ge"))),
    closed(trusted(compared_with_zero("eqz", "eq"))),
    closed(trusted(compared_with_zero("nez", "ne"))),
    closed(trusted(compared_with_zero("ltz", "lt"))),
    closed(trusted(compared_with_zero("lez", "le"))),
    closed(trusted(compared_with_zero("gtz", "gt"))),
    closed(trusted(compared_with_zero("gez", "ge"))),
    with("isclose", "isclose", {"rtol", "atol"}),
    unary("logical_and"),
    unary("logical_or"),
    unary("logical_xor"),
    unary("logical_not"),
    closed(trusted(unary("isnan"))),
    closed(trusted(unary("isinf"))),
    closed(trusted(unary("isfinite"))),
    unary("isposinf"),
    unary("isneginf"),
    closed(trusted(unary("signbit"))),
    integer("bitwise_and", "bitwise_and"),
    integer("bitwise_or", "bitwise_or"),
    integer("bitwise_xor", "bitwise_xor"),
    narrow(unary("sqrt"), Guard::zero),
    narrow(unary("rsqrt"), Guard::pole),
    unary("cbrt"),
    trusted(unary("exp")),
    unary("exp2"),
    unary("expm1"),
    trusted(unary("log")),
    narrow(unary("log2"), Guard::formula),
    narrow(unary("log10"), Guard::formula),
    unary("log1p"),
    binary("logaddexp"),
    binary("logaddexp2"),
    binary("xlogy"),
    unary("hypot"),
    unary("sin"),
    unary("cos"),
    unary("tan"),
    unary("asin"),
    unary("acos"),
    unary("atan"),
    unary("sinh"),
    unary("cosh"),
    trusted(unary("tanh")),
    unary("asinh"),
    unary("acosh"),
    unary("atanh"),
    unary("atan2"),
    narrow(unary("deg2rad"), Guard::formula),
    narrow(unary("rad2deg"), Guard::formula),
    trusted(unary("erf")),
    unary("erfc"),
    unary("erfinv"),
    unary("lgamma"),
    unary("i0"),
    unary("digamma"),
    closed(trusted(unary("relu"))),
    trusted(unary("relu6"), Guard::formula),
    narrow(with("leaky_relu", "leaky_relu", {"#"}), Guard::formula),
    with("prelu", "prelu", {"#"}),
    trusted(with("hardtanh", "hardtanh", {"min_val", "max_val"}), Guard::formula),
    narrow(unary("hardsigmoid"), Guard::formula),
    unary("hardswish"),
    with("threshold", "threshold", {"#", "#"}),
    with("hardshrink", "hardshrink", {"lambd"}),
    with("softshrink", "softshrink", {"lambd"}),
    with("heaviside", "heaviside", {"#"}),
    narrow(unary("sigmoid")),
    unary("log_sigmoid"),
    narrow(unary("silu"), Guard::tail),
    unary("mish"),
    narrow(unary("gelu"), Guard::formula),
    with("elu", "elu", {"alpha"}),
    with("celu", "celu", {"alpha"}),
    unary("selu"),
    unary("softsign"),
    unary("tanhshrink"),
};

}  // namespace

std::span<const Function> all_functions() { return kFunctions; }

const Function* find_function(std::string_view op) {
  const auto found = std::ranges::find(kFunctions, op, &Function::op);
  return found == std::end(kFunctions) ? nullptr : found;
}

std::string_view elementwise_name(ElementwiseOp op) { return name(op); }

}  // namespace tenon::ttnn
