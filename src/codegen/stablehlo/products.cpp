#include <fmt/format.h>

#include <limits>

#include "codegen/stablehlo/nodes.h"

namespace tenon::stablehlo {
namespace {

// "3, 4, 5": the value of |of| for each spatial axis.
template <class F>
std::string spatial_list(int axes, F of) {
  std::string text;
  for (int i = 0; i < axes; ++i) text += (i == 0 ? "" : ", ") + of(static_cast<std::size_t>(i));
  return text;
}
std::string number(std::int64_t value) { return fmt::format("{}", value); }

}  // namespace

Term emit_matmul(const Node& node, const Term& a, const Term& b) {
  const MatMulAttr& attr = node.as<MatMulAttr>();
  Writer& w = a.writer();
  const int rank = node.shape.rank();
  std::vector<std::int64_t> batch;
  for (int i = 0; i < rank - 2; ++i) batch.push_back(i);
  return w.add(fmt::format("stablehlo.dot_general {}, {}, batching_dims = [{}] x [{}], contracting_dims = [{}] x [{}], precision "
                           "= [HIGHEST, HIGHEST] : ({}, {}) -> {}",
                           w.name(a), w.name(b), list_text(batch), list_text(batch), attr.transpose_a ? rank - 2 : rank - 1,
                           attr.transpose_b ? rank - 1 : rank - 2, type_text(a), type_text(b), type_text(a.dtype(), node.shape)),
               a.dtype(), node.shape);
}

Term emit_conv(const Node& node, const Term& x, const Term& weight) {
  const ConvAttr& attr = node.as<ConvAttr>();
  Writer& w = x.writer();
  if (node.shape.elements() == 0 || x.shape().elements() == 0 || weight.shape().elements() == 0)
    return w.splat(0, x.dtype(), node.shape);
  const int axes = node.shape.rank() - 2;
  const std::string spatial = spatial_list(axes, [](std::size_t i) { return fmt::format("{}", i); });
  const std::string stride = spatial_list(axes, [&](std::size_t i) { return number(attr.stride[i]); });
  const std::string dilation = spatial_list(axes, [&](std::size_t i) { return number(attr.dilation[i]); });
  const std::string padding =
      spatial_list(axes, [&](std::size_t i) { return fmt::format("[{}, {}]", attr.pad_low[i], attr.pad_high[i]); });
  return w.add(fmt::format("stablehlo.convolution({}, {}) dim_numbers = [b, f, {}]x[o, i, {}]->[b, f, {}], window = {{stride = "
                           "[{}], pad = [{}], rhs_dilate = [{}]}} {{batch_group_count = 1 : i64, feature_group_count = {} : i64, "
                           "precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]}} : ({}, {}) -> {}",
                           w.name(x), w.name(weight), spatial, spatial, spatial, stride, padding, dilation, attr.groups,
                           type_text(x), type_text(weight), type_text(x.dtype(), node.shape)),
               x.dtype(), node.shape);
}

Term emit_window(const Node& node, const Term& x) {
  const WindowAttr& attr = node.as<WindowAttr>();
  Writer& w = x.writer();
  const DType dtype = x.dtype();
  const bool in_f64 = !attr.max && dtype == DType::f32 && w.target().wide;
  const Term y = in_f64 ? convert(x, DType::f64) : dtype == DType::boolean ? convert(x, DType::u8) : x;
  if (node.shape.elements() == 0) return w.splat(0, dtype, node.shape);
  const int axes = node.shape.rank() - 2;
  const Term start = w.splat(attr.max ? -std::numeric_limits<double>::infinity() : 0, y.dtype(), {});
  const std::string scalar = type_text(y.dtype(), {});
  const auto list = [&](const Spatial& values) {
    return "1, 1, " + spatial_list(axes, [&](std::size_t i) { return number(values[i]); });
  };
  const std::string padding = "[0, 0], [0, 0], " + spatial_list(axes, [&](std::size_t i) {
                                return fmt::format("[{}, {}]", attr.pad_low[i], attr.pad_high[i]);
                              });
  const Term result =
      w.add(fmt::format(
                "\"stablehlo.reduce_window\"({0}, {1}) ({{\n"
                "    ^bb0(%a: {2}, %b: {2}):\n"
                "      %c = stablehlo.{3} %a, %b : {2}\n"
                "      \"stablehlo.return\"(%c) : ({2}) -> ()\n"
                "    }}) {{window_dimensions = array<i64: {4}>, window_strides = array<i64: {5}>, window_dilations = array<i64: "
                "{6}>, padding = dense<[{7}]> : tensor<{8}x2xi64>}} : ({9}, {2}) -> {10}",
                w.name(y), w.name(start), scalar, attr.max ? "maximum" : "add", list(attr.size), list(attr.stride),
                list(attr.dilation), padding, node.shape.rank(), type_text(y), type_text(y.dtype(), node.shape)),
            y.dtype(), node.shape);
  return dtype == DType::boolean ? result != 0.0 : convert(result, dtype);
}

}  // namespace tenon::stablehlo
