#include <fmt/format.h>

#include <cmath>

#include "ops/build.h"
#include "ops/parameters.h"
#include "ops/register.h"

namespace tenon {
namespace {

using namespace build;
using Results = std::vector<NodeId>;

Results one_hot(const OpCall& call) {
  Expr x = input(call, 0);
  if (x.rank() == kMaxRank) call.fail(fmt::format("the input may have at most {} axes", kMaxRank - 1));
  // An index out of range becomes the nearest such one, so that there is a short type for all.
  const std::int64_t classes = call.integer("classes");
  const DType type = counting_dtype(classes);
  if (x.dtype() == DType::i64) x = maximum(x, -1.0);
  if (x.dtype() != DType::i32 && element_bytes(x.dtype()) >= 4) x = minimum(x, static_cast<double>(classes));
  const Expr each = counted(call.graph(), Shape{classes}, 0, 0, type);
  return {build::cast(build::unsqueeze(build::cast(x, type), x.rank()) == each, call.dtype("dtype")).id()};
}

struct Range {
  double low, high;
};

Range range_of(const OpCall& call, DType dtype, std::int64_t zero_point) {
  const Range range = dtype == DType::u8 ? Range{0, 255} : Range{-128, 127};
  if (static_cast<double>(zero_point) < range.low || static_cast<double>(zero_point) > range.high)
    call.fail(fmt::format("zero_point {} is out of range for {}", zero_point, name(dtype)));
  return range;
}

double scale_of(const OpCall& call) {
  const double scale = call.number("scale");
  if (!(scale > 0) || !std::isfinite(scale)) call.fail("scale must be positive");
  return scale;
}

// In double, so that every device rounds a tie to the same integer.
Expr quantized(const OpCall& call, Expr x, DType dtype) {
  const std::int64_t zero = call.integer("zero_point");
  const Range range = range_of(call, dtype, zero);
  const Expr steps = rint(build::cast(x, DType::f64) / scale_of(call)) + static_cast<double>(zero);
  return minimum(maximum(steps, range.low), range.high);
}

DType quantized_dtype(const OpCall& call) { return call.text("dtype") == "uint8" ? DType::u8 : DType::i8; }

Results quantize(const OpCall& call) {
  const DType dtype = quantized_dtype(call);
  return {build::cast(quantized(call, input(call, 0), dtype), dtype).id()};
}

Results dequantize(const OpCall& call) {
  const Expr x = input(call, 0);
  range_of(call, x.dtype(), call.integer("zero_point"));
  return {((build::cast(x, DType::f32) - static_cast<double>(call.integer("zero_point"))) * scale_of(call)).id()};
}

Results fake_quantize(const OpCall& call) {
  const Expr x = input(call, 0);
  const Expr steps = quantized(call, x, quantized_dtype(call)) - static_cast<double>(call.integer("zero_point"));
  return {build::cast(steps * scale_of(call), x.dtype()).id()};
}

enum class Gate { sigmoid, silu, gelu };

template <Gate gate>
Results gated(const OpCall& call) {
  const Expr x = floating(input(call, 0));
  const int axis = call.axis("axis", x.rank());
  const std::int64_t n = x.extent(axis);
  if (n % 2 != 0) call.fail(fmt::format("axis {} must have an even number of elements, but has {}", axis, n));
  const Expr a = narrow(x, axis, 0, n / 2), b = narrow(x, axis, n > 0 ? n / 2 : 0, n / 2);
  if constexpr (gate == Gate::sigmoid) return {(a * sigmoid(b)).id()};
  if constexpr (gate == Gate::silu) return {(silu(a) * b).id()};
  return {(gelu(a) * b).id()};
}

Family gated_family() { return {.category = "activation", .dtypes = number_dtypes()}; }
Family indexing_family() { return {.category = "indexing"}; }
Family quantization_family() { return {.category = "quantization", .dtypes = float_dtypes()}; }

}  // namespace

void register_neural_ops(OpList& ops) {
  const Parameter half = axis_parameter(-1, "axis that is split into the halves a and b");
  Entry(ops, gated_family(), "glu", gated<Gate::sigmoid>)
      .parameters({half})
      .formula("a sigmoid(b)")
      .doc("Gated linear unit over the two halves of an axis.")
      .example("glu([1.0, 2.0, 3.0, 4.0])");
  Entry(ops, gated_family(), "swiglu", gated<Gate::silu>)
      .parameters({half})
      .formula("silu(a) b")
      .doc("Gated unit with silu over the two halves of an axis.")
      .example("swiglu([1.0, 2.0, 3.0, 4.0])");
  Entry(ops, gated_family(), "geglu", gated<Gate::gelu>)
      .parameters({half})
      .formula("gelu(a) b")
      .doc("Gated unit with gelu over the two halves of an axis.")
      .example("geglu([1.0, 2.0, 3.0, 4.0])");
  Entry(ops, indexing_family(), "one_hot", one_hot)
      .dtypes(integer_dtypes())
      .parameters({{.name = "classes",
                    .type = ParameterType::integer,
                    .required = true,
                    .min = 1.0,
                    .max = 2147483647.0,
                    .doc = "extent of the new axis"},
                   dtype_parameter("float32")})
      .formula("y[.., j] = 1 where j = x, else 0")
      .doc("Encodes each index as a row with a single 1; an index out of range gives a row of zeros.")
      .example("one_hot([0, 2, 1], classes=3)");

  const Parameter scale{
      .name = "scale", .type = ParameterType::number, .required = true, .doc = "distance between adjacent quantized values"};
  const Parameter zero{.name = "zero_point",
                       .type = ParameterType::integer,
                       .fallback = std::int64_t{0},
                       .min = -128.0,
                       .max = 255.0,
                       .doc = "the integer that represents 0"};
  const Parameter dtype = choice_parameter("dtype", {"int8", "uint8"}, "integer type of the result");
  Entry(ops, quantization_family(), "quantize", quantize)
      .parameters({scale, zero, dtype})
      .formula("clamp(round(x / scale) + zero_point)")
      .doc("Quantizes floats to 8-bit integers, rounding ties to even and saturating.")
      .example("quantize([-1.0, 0.24, 0.26, 100.0], scale=0.1)");
  Entry(ops, quantization_family(), "dequantize", dequantize)
      .dtypes({DType::i8, DType::u8})
      .parameters({scale, zero})
      .formula("(x - zero_point) scale")
      .doc("Converts quantized 8-bit integers back to float32.")
      .example("dequantize(cast([-10, 0, 127], dtype=int8), scale=0.1)");
  Entry(ops, quantization_family(), "fake_quantize", fake_quantize)
      .parameters({scale, zero, dtype})
      .formula("dequantize(quantize(x))")
      .doc("x after quantization to 8 bits and back.")
      .example("fake_quantize([-1.0, 0.24, 0.26, 100.0], scale=0.1)");
}

}  // namespace tenon
