#include <fmt/format.h>

#include <map>

#include "model/onnx/converters/families.h"

namespace tenon::onnx {
namespace {

using namespace build;

// ONNX's name and the catalogue's, for ops that mean the same.
const std::map<std::string_view, std::string_view> kUnary{
    {"Abs", "abs"},
    {"Acos", "acos"},
    {"Acosh", "acosh"},
    {"Asin", "asin"},
    {"Asinh", "asinh"},
    {"Atan", "atan"},
    {"Atanh", "atanh"},
    {"Ceil", "ceil"},
    {"Cos", "cos"},
    {"Cosh", "cosh"},
    {"Erf", "erf"},
    {"Exp", "exp"},
    {"Floor", "floor"},
    {"HardSwish", "hardswish"},
    {"IsNaN", "isnan"},
    {"Log", "log"},
    {"Mish", "mish"},
    {"Neg", "neg"},
    {"Not", "logical_not"},
    {"Reciprocal", "reciprocal"},
    {"Relu", "relu"},
    {"Round", "round"},
    {"Sigmoid", "sigmoid"},
    {"Sign", "sign"},
    {"Sin", "sin"},
    {"Sinh", "sinh"},
    {"Softsign", "softsign"},
    {"Sqrt", "sqrt"},
    {"Tan", "tan"},
    {"Tanh", "tanh"},
    {"BitwiseNot", "bitwise_not"},
};

const std::map<std::string_view, std::string_view> kBinary{
    {"Add", "add"},
    {"Sub", "sub"},
    {"Mul", "mul"},
    {"And", "logical_and"},
    {"Or", "logical_or"},
    {"Xor", "logical_xor"},
    {"Equal", "eq"},
    {"Greater", "gt"},
    {"GreaterOrEqual", "ge"},
    {"Less", "lt"},
    {"LessOrEqual", "le"},
    {"BitwiseAnd", "bitwise_and"},
    {"BitwiseOr", "bitwise_or"},
    {"BitwiseXor", "bitwise_xor"},
};

Results unary(const NodeContext& node) { return {node.apply(kUnary.at(node.op()), {node.in(0)})}; }

// Before opset 7 the second operand was aligned by an attribute, not from the last axis.
Expr second(const NodeContext& node) {
  const Expr y = node.in(1);
  if (node.version() >= 7 || node.integer("broadcast", 0) == 0 || !node.given("axis")) return y;
  const int axis = node.axis("axis", -1, node.rank(0));
  Dims extents = dims(y.shape());
  while (axis + static_cast<int>(extents.size()) < node.rank(0)) extents.push_back(1);
  return reshape(y, Shape(extents));
}

Results equal_strings(const NodeContext& node) {
  const Value &a = *node.value(0), &b = *node.value(1);
  const Shape shape = broadcast(a.shape, b.shape);
  HostArray out = HostArray::empty(DType::boolean, shape);
  const auto place = [&](const Shape& from, std::int64_t index) {
    const Strides strides = contiguous_strides(from), outer = contiguous_strides(shape);
    std::int64_t offset = 0;
    for (int i = 0; i < from.rank(); ++i) {
      const int axis = i + shape.rank() - from.rank();
      if (from[i] > 1)
        offset += index / outer[static_cast<std::size_t>(axis)] % shape[axis] * strides[static_cast<std::size_t>(i)];
    }
    return static_cast<std::size_t>(offset);
  };
  for (std::int64_t i = 0; i < shape.elements(); ++i)
    out.mutable_view<std::uint8_t>()[static_cast<std::size_t>(i)] =
        (*a.strings)[place(a.shape, i)] == (*b.strings)[place(b.shape, i)];
  return {out};
}

Results binary(const NodeContext& node) {
  if (node.op() == "Equal" && node.value(0)->is_string()) return equal_strings(node);
  return {node.apply(kBinary.at(node.op()), {node.in(0), second(node)})};
}

Results div(const NodeContext& node) {
  const Expr x = node.in(0), y = second(node);
  return {is_integer(x.dtype()) ? node.apply("trunc_div", {x, y}) : x / y};
}

Results pow_op(const NodeContext& node) {
  const Expr x = node.in(0), y = second(node);
  if (is_integer(x.dtype()) && is_float(y.dtype())) {
    const DType wide = DType::f64;
    return {cast(build::pow(cast(x, wide), cast(y, wide)), x.dtype())};
  }
  return {build::pow(x, convert(y, x.dtype()))};
}

Results mod(const NodeContext& node) {
  return {node.apply(node.integer("fmod", 0) != 0 ? "fmod" : "remainder", {node.in(0), node.in(1)})};
}

Results bit_shift(const NodeContext& node) {
  const std::string direction = node.text("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") node.fail(fmt::format("direction '{}' is neither LEFT nor RIGHT", direction));
  return {node.apply(direction == "LEFT" ? "left_shift" : "right_shift", {node.in(0), node.in(1)})};
}

Results variadic(const NodeContext& node) {
  Expr result = node.in(0);
  for (std::size_t i = 1; i < node.inputs(); ++i) {
    const Expr next = node.in(i);
    if (node.op() == "Max")
      result = maximum(result, next);
    else if (node.op() == "Min")
      result = minimum(result, next);
    else
      result = result + next;
  }
  if (node.op() == "Mean") result = result / static_cast<double>(node.inputs());
  return {result};
}

Results clip(const NodeContext& node) {
  Expr x = node.in(0);
  if (node.version() < 11) {
    if (node.given("min")) x = maximum(x, node.number("min", 0));
    if (node.given("max")) x = minimum(x, node.number("max", 0));
    return {x};
  }
  if (node.has(1)) x = maximum(x, node.in(1));
  if (node.has(2)) x = minimum(x, node.in(2));
  return {x};
}

Results elu(const NodeContext& node) { return {node.apply("elu", {node.in(0)}, {{"alpha", node.number("alpha", 1)}})}; }
Results celu(const NodeContext& node) { return {node.apply("celu", {node.in(0)}, {{"alpha", node.number("alpha", 1)}})}; }
Results leaky_relu(const NodeContext& node) {
  return {node.apply("leaky_relu", {node.in(0)}, {{"negative_slope", node.number("alpha", 0.01)}})};
}

Results selu(const NodeContext& node) {
  const double alpha = node.number("alpha", node.version() < 6 ? 1.6732 : 1.67326319217681884765625);
  const double gamma = node.number("gamma", node.version() < 6 ? 1.0507 : 1.05070102214813232421875);
  const Expr x = node.in(0);
  return {where(x <= 0.0, node.apply("expm1", {x}) * alpha, x) * gamma};
}

Results hard_sigmoid(const NodeContext& node) {
  const Expr x = node.in(0) * node.number("alpha", 0.2) + node.number("beta", 0.5);
  return {minimum(maximum(x, 0.0), 1.0)};
}

Results thresholded_relu(const NodeContext& node) {
  const Expr x = node.in(0);
  return {where(x <= node.number("alpha", 1), 0.0, x)};
}

Results shrink(const NodeContext& node) {
  const Expr x = node.in(0);
  const double bias = node.number("bias", 0), lambda = node.number("lambd", 0.5);
  const Expr wide = is_float(x.dtype()) ? x : cast(x, DType::f64);
  const Expr y = where(wide < same(wide, -lambda), wide + bias, where(wide > same(wide, lambda), wide - bias, same(wide, 0)));
  return {cast(y, x.dtype())};
}

Results softplus(const NodeContext& node) { return {node.apply("softplus", {node.in(0)})}; }

Results swish(const NodeContext& node) {
  const Expr x = node.in(0);
  return {x * sigmoid(x * node.number("alpha", 1))};
}

Results gelu_op(const NodeContext& node) {
  return {node.apply("gelu", {node.in(0)}, {{"approximate", node.text("approximate", "none")}})};
}

Results prelu(const NodeContext& node) {
  const Expr x = node.in(0);
  Expr slope = node.in(1);
  if (node.version() < 7 && slope.rank() == 1 && x.rank() > 2) slope = along(slope, 1, x.rank());
  return {where(x < same(x, 0), x * slope, x)};
}

Results is_inf_op(const NodeContext& node) {
  const Expr x = node.in(0);
  const bool low = node.integer("detect_negative", 1) != 0, high = node.integer("detect_positive", 1) != 0;
  if (low && high) return {node.apply("isinf", {x})};
  if (low || high) return {node.apply(low ? "isneginf" : "isposinf", {x})};
  return {expand_to(node.constant(HostArray::full(DType::boolean, {}, 0)), x.shape())};
}

Results where_op(const NodeContext& node) {
  if (!node.value(1)->is_string()) {
    const ElementType type = node.type(1);
    return {Result(where(node.in(0), node.in(1), node.in(2)), type)};
  }
  const Value &a = *node.value(1), &b = *node.value(2);
  const HostArray condition = node.host(0);
  if (condition.shape() != a.shape || a.shape != b.shape) node.refuse("strings are not broadcast");
  std::vector<std::string> out;
  for (std::size_t i = 0; i < a.strings->size(); ++i)
    out.push_back(condition.view<std::uint8_t>()[i] ? (*a.strings)[i] : (*b.strings)[i]);
  return {text(a.shape, std::move(out))};
}

Results swiglu(const NodeContext& node) {
  const Expr gate = node.in(0);
  return {gate * sigmoid(gate * node.number("alpha", 1)) * node.in(1)};
}

Results binarizer(const NodeContext& node) {
  const Expr x = node.in(0);
  return {where(x <= node.number("threshold", 0), same(x, 0), same(x, 1) + x * 0.0)};
}

}  // namespace

void add_elementwise(ConverterTable& table) {
  for (const auto& [op, name] : kUnary) table.add(op, unary);
  for (const auto& [op, name] : kBinary) table.add(op, binary);
  table.add({"Max", "Min", "Sum", "Mean"}, variadic);
  table.add("Div", div);
  table.add("Pow", pow_op);
  table.add("Mod", mod);
  table.add("BitShift", bit_shift);
  table.add("Clip", clip);
  table.add("Elu", elu);
  table.add("Celu", celu);
  table.add("LeakyRelu", leaky_relu);
  table.add("Selu", selu);
  table.add("HardSigmoid", hard_sigmoid);
  table.add("ThresholdedRelu", thresholded_relu);
  table.add("Shrink", shrink);
  table.add("Softplus", softplus);
  table.add("Swish", swish);
  table.add("Gelu", gelu_op);
  table.add("PRelu", prelu);
  table.add("IsInf", is_inf_op);
  table.add("Where", where_op);
  table.add("SwiGLU", swiglu);
  table.add("ai.onnx.ml.Binarizer", binarizer);
}

}  // namespace tenon::onnx
