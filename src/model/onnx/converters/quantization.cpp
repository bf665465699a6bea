#include <fmt/format.h>

#include "model/onnx/converters/families.h"
#include "model/onnx/model_watch.h"

namespace tenon::onnx {
namespace {

using namespace build;

// Scales and zero points for each element of |shape|: one for all, one per place of an axis, or one per block of an axis.
Expr per_element(const NodeContext& node, Expr scale, const Shape& shape, std::int64_t axis_number, std::int64_t block) {
  if (scale.shape().elements() == 1 && block == 0) return reshape(scale, {});
  const int axis = normalize_axis(axis_number, shape.rank());
  if (block == 0) return scale.rank() == 1 ? along(scale, axis, shape.rank()) : scale;
  if (block < 0) node.fail("block_size is negative");
  if (scale.rank() != shape.rank())
    node.fail(fmt::format("blocked scales {} for {}", to_string(scale.shape()), to_string(shape)));
  if (shape[axis] % block == 0 && shape[axis] / block == scale.extent(axis) && shape.rank() < kMaxRank) {
    Dims stretched = dims(scale.shape());
    stretched.insert(stretched.begin() + axis + 1, block);
    return reshape(broadcast(unsqueeze(scale, axis + 1), Shape(stretched)), scale.shape().with(axis, shape[axis]));
  }
  Dims places;
  for (std::int64_t i = 0; i < shape[axis]; ++i) places.push_back(i / block);
  return take(scale, node.constant(places), axis);
}

std::pair<double, double> range_of(ElementType type) {
  switch (type) {
    case ElementType::u8: return {0, 255};
    case ElementType::i8: return {-128, 127};
    case ElementType::u16: return {0, 65535};
    case ElementType::i16: return {-32768, 32767};
    case ElementType::u4: return {0, 15};
    case ElementType::i4: return {-8, 7};
    case ElementType::u2: return {0, 3};
    case ElementType::i2: return {-2, 1};
    default: return {-2147483648.0, 2147483647.0};
  }
}

Results quantize_linear(const NodeContext& node) {
  Expr x = node.in(0);
  ElementType to = ElementType::u8;
  if (node.has(2))
    to = node.type(2);
  else if (node.integer("output_dtype", 0) != 0)
    to = static_cast<ElementType>(node.integer("output_dtype"));
  const std::int64_t axis = node.integer("axis", 1), block = node.integer("block_size", 0);
  const Expr scale = per_element(node, node.in(1), x.shape(), axis, block);
  const DType precision = node.integer("precision", 0) != 0 ? held_as(static_cast<ElementType>(node.integer("precision")))
                          : is_float(scale.dtype())         ? scale.dtype()
                                                            : DType::f32;
  Expr y = cast(x, compute_dtype(precision)) / cast(scale, compute_dtype(precision));
  if (precision != compute_dtype(precision)) y = cast(y, precision);
  if (is_small_float(to)) {
    // Rounding to such a type happens on the host, where it is exact.
    const ValuePtr scaled = computed(y);
    return {Result(to_small(node.host(scaled), to, node.integer("saturate", 1) != 0), to)};
  }
  // Constants are folded in double precision, in which a tie of f32 is none.
  if (node.is_known(0) && y.dtype() == DType::f32) y = cast(cast(y, DType::f64), DType::f32);
  y = rint(y);
  if (node.has(2)) y = y + cast(per_element(node, node.in(2), x.shape(), axis, block), y.dtype());
  const auto [low, high] = range_of(to);
  return {Result(cast(minimum(maximum(y, low), high), held_as(to)), to)};
}

// Weights that a model stores in few bits become floats once, not at every call.
HostArray dequantized(const NodeContext& node, std::int64_t axis_number, std::int64_t block) {
  const HostArray x = node.host(0), scales = node.host(1);
  const Shape& shape = x.shape();
  ModelWatch::tell_uses(storage_bytes(DType::f64, shape));
  const std::vector<double> codes = x.to_doubles(), scale = scales.to_doubles(),
                            zero = node.has(2) ? node.host_numbers(2) : std::vector<double>(scale.size(), 0);
  const bool is_single = scale.size() == 1 && block == 0;
  const int axis = is_single ? 0 : normalize_axis(axis_number, shape.rank());
  std::int64_t inner = 1;
  for (int i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
  const std::int64_t extent = is_single ? 1 : shape[axis], blocks = block == 0 ? extent : extent / block + (extent % block != 0);
  if (zero.size() != scale.size() ||
      (!is_single && scales.elements() != (block == 0 ? extent : shape.elements() / extent * blocks)))
    node.fail(fmt::format("scales {} for {}", to_string(scales.shape()), to_string(shape)));
  HostArray out = HostArray::zeros(DType::f32, shape);
  const std::span<float> values = out.mutable_view<float>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::int64_t at = static_cast<std::int64_t>(i) / inner, k = at % extent;
    const std::int64_t place = is_single    ? 0
                               : block == 0 ? k
                                            : (at / extent * blocks + k / block) * inner + static_cast<std::int64_t>(i) % inner;
    values[i] = static_cast<float>((codes[i] - zero[static_cast<std::size_t>(place)]) * scale[static_cast<std::size_t>(place)]);
  }
  return out;
}

Results dequantize_linear(const NodeContext& node) {
  const std::int64_t axis = node.integer("axis", 1), block = node.integer("block_size", 0);
  const bool is_constant = node.is_constant(0) && node.is_constant(1) && (!node.has(2) || node.is_constant(2));
  if (is_constant && block >= 0 && node.type(1) == ElementType::f32 && !is_small_float(node.type(0)) &&
      node.integer("output_dtype", 0) == 0 && node.shape(0).elements() > 0)
    return {node.weight({0, 1, 2}, 0, [&] { return dequantized(node, axis, block); })};
  const Expr x = node.in(0);
  const Expr scale = per_element(node, node.in(1), x.shape(), axis, block);
  const DType to = node.integer("output_dtype", 0) != 0 ? held_as(static_cast<ElementType>(node.integer("output_dtype")))
                   : is_small(node.type(1))             ? DType::f32
                                                        : scale.dtype();
  const DType wide = x.dtype() == DType::i32 || x.dtype() == DType::u32 ? DType::f64 : DType::f32;
  Expr y = cast(x, wide);
  if (node.has(2) && !is_small_float(node.type(0))) y = y - cast(per_element(node, node.in(2), x.shape(), axis, block), wide);
  return {cast(y * cast(scale, wide), to)};
}

Results dynamic_quantize_linear(const NodeContext& node) {
  const Expr x = node.in(0);
  const AxisSet all = all_axes(x.rank());
  const Expr high = reshape(maximum(max_keep(x, all), 0.0), {}), low = reshape(minimum(min_keep(x, all), 0.0), {});
  const Expr scale = (high - low) / 255.0;
  // A tensor of zeros has no range; any scale gives the same zeros.
  const Expr divisor = where(scale == 0.0, 1.0, scale);
  const Expr zero = rint(minimum(maximum(-low / divisor, 0.0), 255.0));
  const Expr y = minimum(maximum(rint(x / divisor) + zero, 0.0), 255.0);
  return {cast(y, DType::u8), scale, cast(zero, DType::u8)};
}

}  // namespace

void add_quantization(ConverterTable& table) {
  table.add("QuantizeLinear", quantize_linear);
  table.add("DequantizeLinear", dequantize_linear);
  table.add("DynamicQuantizeLinear", dynamic_quantize_linear);
}

}  // namespace tenon::onnx
