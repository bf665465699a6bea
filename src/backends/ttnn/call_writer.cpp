#include "backends/ttnn/call_writer.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numbers>

namespace tenon::ttnn {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

const char* form_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return "f32";
    case DType::bf16: return "bf16";
    case DType::i32: return "i32";
    case DType::bfloat8_b: return "bf8";
    case DType::bfloat4_b: return "bf4";
    default: return "";
  }
}
const char* type_of(std::string_view form) {
  if (form == "bf16") return "bfloat16";
  return form == "i32" ? "int32" : "float32";
}

int CallWriter::call(std::string_view function, std::vector<CallArgument> arguments,
                     std::vector<std::pair<std::string, CallArgument>> named) {
  plan_.steps.push_back({std::string(function), std::move(arguments), std::move(named), next_slot_, {}});
  return next_slot_++;
}

int CallWriter::typecast(int slot, std::string_view to) {
  return call("typecast", {TensorArgument{slot}, AttributeArgument{type_of(to)}});
}

int CallWriter::full(const Integers& shape, double value, const std::string& in_form) {
  return call("full", {shape, in_form == "i32" ? CallArgument(static_cast<std::int64_t>(value)) : value},
              {{"dtype", AttributeArgument{type_of(in_form)}},
               {"layout", AttributeArgument{"TILE_LAYOUT"}},
               {"device", DeviceArgument{}}});
}

int CallWriter::where(int condition, CallArgument yes, CallArgument no) {
  return call("where", {TensorArgument{condition}, std::move(yes), std::move(no)});
}

int CallWriter::padded(int x, Integers shape, const Integers& low, const Integers& high, double value,
                       const std::string& in_form) {
  for (std::size_t axis = 0; axis < low.size(); ++axis) {
    if (low[axis] == 0) continue;
    Integers border = shape;
    border[axis] = low[axis];
    const int front = full(border, value, in_form);
    x = call("concat", {TensorsArgument{{front, x}}}, {{"dim", static_cast<std::int64_t>(axis)}});
    shape[axis] += low[axis];
  }
  if (std::ranges::all_of(high, [](std::int64_t n) { return n == 0; })) return x;
  IntegerPairs amounts;
  for (const std::int64_t n : high) amounts.emplace_back(0, n);
  return call("pad", {TensorArgument{x}, amounts, value});
}

// |y|, but |x| where |x| is NaN.
int CallWriter::with_nan_of(const CallArgument& x, int y) { return where(is_nan(x), x, TensorArgument{y}); }

int CallWriter::guarded(Guard guard, const std::vector<CallArgument>& x, int y) {
  switch (guard) {
    case Guard::none:
    case Guard::formula: return y;
    case Guard::nan:
      for (const CallArgument& operand : x)
        if (std::holds_alternative<TensorArgument>(operand)) y = with_nan_of(operand, y);
      return y;
    case Guard::extremum: return with_nan_of(x[1], with_nan_of(x[0], y));
    case Guard::zero: return where(call("eq", {x[0], 0.0}), x[0], TensorArgument{y});
    case Guard::sign: return with_nan_of(x[0], where(call("eq", {x[0], 0.0}), x[0], TensorArgument{y}));
    case Guard::pole: return where(call("eq", {x[0], 0.0}), TensorArgument{call("reciprocal", {x[0]})}, TensorArgument{y});
    case Guard::tail: return with_nan_of(x[0], where(call("eq", {x[0], -kInfinity}), 0.0, TensorArgument{y}));
    case Guard::quotient: {
      if (!std::holds_alternative<TensorArgument>(x[1])) return y;
      const int pole = call("multiply", {x[0], TensorArgument{call("reciprocal", {x[1]})}});
      return with_nan_of(x[1], where(call("eq", {x[1], 0.0}), TensorArgument{pole}, TensorArgument{y}));
    }
  }
  return y;
}

int CallWriter::formula(std::string_view op, const ElementwiseAttr& attr, const std::vector<CallArgument>& operands) {
  const int x = std::get<TensorArgument>(operands[0]).slot;
  if (op == "clamp" || op == "hardtanh") return clamped(x, attr.params[0], attr.params[1]);
  if (op == "relu6") return clamped(x, 0, 6);
  if (op == "hardsigmoid") return multiplied(clamped(call("add", {TensorArgument{x}, 3.0}), 0, 6), 1.0 / 6);
  if (op == "leaky_relu")
    return where(call("gt", {TensorArgument{x}, 0.0}), TensorArgument{x}, TensorArgument{multiplied(x, attr.params[0])});
  if (op == "log2") return multiplied(call("log", {TensorArgument{x}}), std::numbers::log2e);
  if (op == "log10") return multiplied(call("log", {TensorArgument{x}}), std::numbers::log10e);
  if (op == "deg2rad") return multiplied(x, std::numbers::pi / 180);
  if (op == "rad2deg") return multiplied(x, 180 / std::numbers::pi);
  if (op == "squared_difference") {
    const int difference = call("subtract", {operands[0], operands[1]});
    return call("multiply", {TensorArgument{difference}, TensorArgument{difference}});
  }
  return gelu(x);
}

// By comparisons, which NaN passes unchanged.
int CallWriter::clamped(int x, double low, double high) {
  const int raised = where(call("lt", {TensorArgument{x}, low}), low, TensorArgument{x});
  return where(call("gt", {TensorArgument{raised}, high}), high, TensorArgument{raised});
}

// x / 2 (1 + erf(x / sqrt 2)); below -1 by the complement, whose logarithm without x^2 / 2 is a polynomial (Numerical Recipes,
// erfcc: 1.2e-7 relative everywhere).
int CallWriter::gelu(int x) {
  const auto plus = [&](int a, double by) { return call("add", {TensorArgument{a}, by}); };
  const auto product_of = [&](int a, int b) { return call("multiply", {TensorArgument{a}, TensorArgument{b}}); };
  const int half = multiplied(x, 0.5), z = multiplied(x, 0.70710678118654752);
  const int body = product_of(half, plus(call("erf", {TensorArgument{z}}), 1));
  const int t = call("reciprocal", {TensorArgument{plus(multiplied(z, -0.5), 1)}});
  constexpr double kSeries[] = {-0.82215223, 1.48851587, -1.13520398, 0.27886807, -0.18628806,
                                0.09678418,  0.37409196, 1.00002368,  -1.26551223};
  int series = multiplied(t, 0.17087277);
  for (const double term : kSeries) series = plus(term == kSeries[0] ? series : product_of(series, t), term);
  // x^2 / 2 is exact for a bfloat16 number; its exponential is a factor of its own, so that nothing is added to it.
  const int normal = call("exp", {TensorArgument{multiplied(product_of(x, x), -0.5)}});
  const int scale = product_of(t, call("exp", {TensorArgument{series}}));
  const int tail = product_of(product_of(half, scale), normal);
  const int both = where(call("lt", {TensorArgument{x}, -1.0}), TensorArgument{tail}, TensorArgument{body});
  return guarded(Guard::tail, {TensorArgument{x}}, both);
}

void CallWriter::finish() {
  std::map<int, std::size_t> last;
  const auto use = [&](int slot, std::size_t step) { last[slot] = std::max(last[slot], step); };
  for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
    CallStep& step = plan_.steps[i];
    use(step.output, i);
    const auto look = [&](const CallArgument& argument) {
      if (const auto* one = std::get_if<TensorArgument>(&argument)) use(one->slot, i);
      if (const auto* many = std::get_if<TensorsArgument>(&argument))
        for (const int slot : many->slots) use(slot, i);
    };
    for (const CallArgument& argument : step.arguments) look(argument);
    for (const auto& [key, argument] : step.named) look(argument);
  }
  for (const FastInput& input : plan_.inputs) last.erase(input.slot);
  for (const auto& [slot, form] : plan_.outputs) last.erase(slot);
  for (const FastConstant& constant : plan_.constants) last.erase(constant.slot);
  for (const auto& [slot, step] : last) plan_.steps[step].drop.push_back(slot);
  plan_.slots = next_slot_;
}

}  // namespace tenon::ttnn
