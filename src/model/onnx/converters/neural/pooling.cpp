#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/onnx/converters/neural/spatial.h"

namespace tenon::onnx {
namespace {

using namespace build;

Expr slide(const NodeContext& node, Expr x, const Window& w, bool max) {
  // The primitive takes padding smaller than the window; any other is written out.
  Dims low = w.low, high = w.high;
  for (std::size_t i = 0; i < w.axes(); ++i) {
    if (low[i] < w.reach(i) && high[i] < w.reach(i)) continue;
    const int axis = static_cast<int>(i) + 2;
    if (max) {
      const Shape border = x.shape().with(axis, 1);
      std::vector<Expr> parts;
      if (low[i] > 0) parts.push_back(expand_to(lowest(x), border.with(axis, low[i])));
      parts.push_back(x);
      if (high[i] > 0) parts.push_back(expand_to(lowest(x), border.with(axis, high[i])));
      x = concat(parts, axis);
    } else {
      x = pad_axis(x, axis, low[i], high[i]);
    }
    low[i] = high[i] = 0;
  }
  WindowAttr attr;
  attr.max = max;
  attr.size = spatial(w.kernel, 1);
  attr.stride = spatial(w.stride, 1);
  attr.dilation = spatial(w.dilation, 1);
  attr.pad_low = spatial(low, 0);
  attr.pad_high = spatial(high, 0);
  Expr y(node.graph(), node.graph().window(x.id(), attr));
  for (std::size_t i = 0; i < w.axes(); ++i) y = narrow(y, static_cast<int>(i) + 2, 0, w.out[i]);
  return y;
}

// How many elements of the input, and of the padding if that counts, each window has along one axis.
Dims counts(const Window& w, std::size_t i, std::int64_t extent, bool with_padding) {
  const std::int64_t begin = with_padding ? -w.low[i] : 0, end = extent + (with_padding ? w.high[i] - w.overhang[i] : 0);
  Dims result;
  for (std::int64_t out = 0; out < w.out[i]; ++out) {
    std::int64_t count = 0;
    for (std::int64_t k = 0; k < w.kernel[i]; ++k) {
      const std::int64_t place = out * w.stride[i] - w.low[i] + k * w.dilation[i];
      if (place >= begin && place < end) ++count;
    }
    result.push_back(std::max<std::int64_t>(count, 1));
  }
  return result;
}

Results average_pool(const NodeContext& node) {
  const Expr x = node.in(0);
  const Dims extents = spatial_extents(x.shape());
  const Window w = window_of(node, {}, extents);
  Expr y = slide(node, x, w, false);
  const bool with_padding = node.integer("count_include_pad", 0) != 0;
  double all = 1;
  for (std::size_t i = 0; i < w.axes(); ++i) {
    const Dims each = counts(w, i, extents[i], with_padding);
    if (std::all_of(each.begin(), each.end(), [&](std::int64_t count) { return count == each[0]; })) {
      all *= static_cast<double>(each.empty() ? 1 : each[0]);
      continue;
    }
    y = y / along(cast(node.constant(each), compute_dtype(y.dtype())), static_cast<int>(i) + 2, y.rank());
  }
  return {cast(all == 1 ? y : y / all, x.dtype())};
}

// The place of each maximum in the whole tensor, as the row-major or column-major order of its axes counts it.
Expr max_places(const NodeContext& node, Expr x, const Window& w) {
  const Expr all = patches(node, x, w, lowest(x));
  const Expr best =
      squeeze(Expr(node.graph(), node.graph().arg_reduce(all.id(), all.rank() - 1, true)), one_axis(all.rank() - 1));
  const Dims extents = dims(x.shape());
  Dims strides = strides_of(extents);
  if (node.integer("storage_order", 0) != 0) {
    std::int64_t stride = 1;
    for (std::size_t i = 2; i < extents.size(); ++i) {
      strides[i] = stride;
      stride *= extents[i];
    }
  }
  Expr flat = build::iota(node.graph(), best.shape(), 0) * static_cast<double>(strides[0]) +
              build::iota(node.graph(), best.shape(), 1) * static_cast<double>(strides[1]);
  const Dims kernel_strides = strides_of(w.kernel);
  for (std::size_t i = 0; i < w.axes(); ++i) {
    const Expr k = node.apply(
        "remainder", {floor_div(best, static_cast<double>(kernel_strides[i])), same(best, static_cast<double>(w.kernel[i]))});
    const Expr place = build::iota(node.graph(), best.shape(), static_cast<int>(i) + 2) * static_cast<double>(w.stride[i]) +
                       k * static_cast<double>(w.dilation[i]) - static_cast<double>(w.low[i]);
    flat = flat + place * static_cast<double>(strides[i + 2]);
  }
  return flat;
}

Results max_pool(const NodeContext& node) {
  const Expr x = node.in(0);
  const Window w = window_of(node, {}, spatial_extents(x.shape()));
  Results results{cast(slide(node, x, w, true), x.dtype())};
  if (node.wants(1)) results.emplace_back(max_places(node, x, w));
  return results;
}

Results max_unpool(const NodeContext& node) {
  const Expr x = node.in(0), places = node.in(1);
  const Dims extents = spatial_extents(x.shape()), kernel = node.integers("kernel_shape");
  const std::size_t n = extents.size();
  const Dims stride = node.integers("strides", Dims(n, 1)), pads = node.integers("pads", Dims(2 * n, 0));
  if (kernel.size() != n || stride.size() != n || pads.size() != 2 * n)
    node.fail("kernel, strides and pads must fit the spatial axes");
  Dims inferred{x.extent(0), x.extent(1)};
  for (std::size_t i = 0; i < n; ++i) inferred.push_back((extents[i] - 1) * stride[i] + kernel[i] - pads[i] - pads[i + n]);
  const Shape small(inferred);
  const std::int64_t count = x.shape().elements();
  const auto fill = [&](const Shape& shape, Expr at) {
    const Expr zeros =
        expand_to(cast(node.constant(HostArray::zeros(compute_dtype(x.dtype()), {})), x.dtype()), Shape{shape.elements()});
    const Expr y(node.graph(), node.graph().scatter(zeros.id(), at.id(), reshape(x, Shape{count}).id(), 0, false));
    return reshape(y, shape);
  };
  const Expr flat = reshape(places, Shape{count});
  if (!node.has(2)) return {fill(small, flat)};
  // The places count in the tensor that the pool had read, which may be smaller than the one that is asked for.
  const Shape wanted{std::span<const std::int64_t>(node.host_integers(2))};
  Expr y = fill(small, flat);
  for (int i = 0; i < wanted.rank(); ++i) {
    if (wanted[i] < small[i])
      y = narrow(y, i, 0, wanted[i]);
    else
      y = pad_axis(y, i, 0, wanted[i] - small[i]);
  }
  return {y};
}

Results lp_pool(const NodeContext& node) {
  const Expr x = node.in(0);
  const Window w = window_of(node, {}, spatial_extents(x.shape()));
  const double p = node.version() < 2 ? node.number("p", 2) : static_cast<double>(node.integer("p", 2));
  return {build::pow(slide(node, build::pow(abs(x), p), w, false), 1 / p)};
}

Results global_pool(const NodeContext& node) {
  const Expr x = node.in(0);
  if (x.rank() < 3) node.fail("expected [n, channels, spatial...]");
  const AxisSet axes = static_cast<AxisSet>(all_axes(x.rank()) & ~3u);
  if (node.op() == "GlobalMaxPool") return {max_keep(x, axes)};
  if (node.op() == "GlobalAveragePool") return {mean_keep(x, axes)};
  const double p = static_cast<double>(node.integer("p", 2));
  return {norm_keep(x, axes, p)};
}

}  // namespace

void add_pooling(ConverterTable& table) {
  table.add("AveragePool", average_pool);
  table.add("MaxPool", max_pool);
  table.add("MaxUnpool", max_unpool);
  table.add("LpPool", lp_pool);
  table.add({"GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool"}, global_pool);
}

}  // namespace tenon::onnx
