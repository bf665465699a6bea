#include <fmt/format.h>

#include <algorithm>

#include "model/onnx/converters/neural/spatial.h"
#include "model/onnx/import/importer.h"

namespace tenon::onnx {

using namespace build;

Dims spatial_extents(const Shape& shape) { return Dims(shape.begin() + std::min(2, shape.rank()), shape.end()); }

Spatial spatial(const Dims& values, std::int64_t fallback) {
  Spatial out{fallback, fallback, fallback};
  std::copy(values.begin(), values.end(), out.begin());
  return out;
}

Window window_of(const NodeContext& node, Dims kernel, const Dims& extents) {
  Window w;
  const std::size_t n = extents.size();
  w.kernel = kernel.empty() ? node.integers("kernel_shape") : std::move(kernel);
  w.stride = node.integers("strides", Dims(n, 1));
  w.dilation = node.integers("dilations", Dims(n, 1));
  const Dims pads = node.integers("pads", Dims(2 * n, 0));
  if (n < 1 || n > 3) node.refuse(fmt::format("{} spatial axes; 1 to 3 are supported", n));
  if (w.kernel.size() != n || w.stride.size() != n || w.dilation.size() != n || pads.size() != 2 * n)
    node.fail(fmt::format("kernel, strides, dilations and pads must fit {} spatial axes", n));
  w.low.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(n));
  w.high.assign(pads.begin() + static_cast<std::ptrdiff_t>(n), pads.end());
  const std::string auto_pad = node.text("auto_pad", "NOTSET");
  const bool ceil_mode = node.integer("ceil_mode", 0) != 0;
  for (std::size_t i = 0; i < n; ++i) {
    constexpr std::int64_t limit = std::int64_t{1} << 31;
    if (w.kernel[i] < 1 || w.stride[i] < 1 || w.dilation[i] < 1 || w.kernel[i] > limit || w.stride[i] > limit ||
        w.dilation[i] > limit || w.low[i] < 0 || w.high[i] < 0 || w.low[i] > limit || w.high[i] > limit)
      node.fail("kernel, strides, dilations or pads are out of range");
    const std::int64_t reach = w.reach(i), in = extents[i];
    if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
      const std::int64_t out = (in + w.stride[i] - 1) / w.stride[i];
      const std::int64_t total = std::max<std::int64_t>((out - 1) * w.stride[i] + reach - in, 0);
      w.low[i] = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
      w.high[i] = total - w.low[i];
    } else if (auto_pad == "VALID") {
      w.low[i] = w.high[i] = 0;
    }
    const std::int64_t room = in + w.low[i] + w.high[i] - reach;
    if (room < 0) node.fail(fmt::format("the kernel of {} does not fit into {} elements", reach, in + w.low[i] + w.high[i]));
    std::int64_t out = (ceil_mode ? room + w.stride[i] - 1 : room) / w.stride[i] + 1;
    // A window that would begin in the padding after the end does not count.
    if (ceil_mode && (out - 1) * w.stride[i] >= in + w.low[i]) --out;
    w.out.push_back(out);
    const std::int64_t needed = (out - 1) * w.stride[i] + reach - in - w.low[i];
    w.overhang.push_back(std::max<std::int64_t>(needed - w.high[i], 0));
    w.high[i] = std::max(w.high[i], needed);
  }
  return w;
}

Expr patches(const NodeContext& node, Expr x, const Window& w, Expr value) {
  const int n = static_cast<int>(w.axes());
  if (2 + 2 * n > kMaxRank) node.refuse("too many spatial axes");
  const Shape from = x.shape();
  std::vector<int> order{0, 1};
  for (int i = 0; i < n; ++i) order.push_back(2 + 2 * i);
  for (int i = 0; i < n; ++i) order.push_back(3 + 2 * i);
  std::optional<Expr> inside;
  for (int i = n; i-- > 0;) {
    const auto s = static_cast<std::size_t>(i);
    Dims places, is_inside;
    for (std::int64_t out = 0; out < w.out[s]; ++out)
      for (std::int64_t k = 0; k < w.kernel[s]; ++k) {
        const std::int64_t place = out * w.stride[s] + k * w.dilation[s] - w.low[s];
        is_inside.push_back(place >= 0 && place < from[i + 2]);
        places.push_back(std::clamp<std::int64_t>(place, 0, from[i + 2] - 1));
      }
    const Shape table{w.out[s], w.kernel[s]};
    x = take(x, node.constant(HostArray::from<std::int64_t>(table, places)), i + 2);
    Dims around(static_cast<std::size_t>(2 + 2 * n), 1);
    around[static_cast<std::size_t>(2 + 2 * i)] = w.out[s];
    around[static_cast<std::size_t>(3 + 2 * i)] = w.kernel[s];
    const Expr here = node.constant(HostArray::from<std::int64_t>(Shape(around), is_inside)) == 1.0;
    inside = inside ? *inside && here : here;
  }
  // Axes were replaced from the last to the first, so each stands at its place.
  x = where(*inside, x, value);
  Dims joined{from[0], from[1]};
  std::int64_t elements = 1;
  for (std::size_t s = 0; s < w.axes(); ++s) {
    joined.push_back(w.out[s]);
    elements *= w.kernel[s];
  }
  joined.push_back(elements);
  return reshape(transpose(x, order), Shape(joined));
}

namespace {

void check_channels(const NodeContext& node, const Shape& x, const Shape& w, std::int64_t groups) {
  if (x.rank() != w.rank() || x.rank() < 3)
    node.fail(fmt::format("the input is {} and the weight {}", to_string(x), to_string(w)));
  if (groups < 1 || x[1] != w[1] * groups || w[0] % groups != 0)
    node.fail(fmt::format("the input has {} channels, but the weight expects {} in {} groups", x[1], w[1] * groups, groups));
}

Expr convolve(const NodeContext& node, Expr x, Expr w) {
  const std::int64_t groups = node.integer("group", 1);
  check_channels(node, x.shape(), w.shape(), groups);
  const Window window = window_of(node, spatial_extents(w.shape()), spatial_extents(x.shape()));
  ConvAttr attr;
  attr.stride = spatial(window.stride, 1);
  attr.dilation = spatial(window.dilation, 1);
  attr.pad_low = spatial(window.low, 0);
  attr.pad_high = spatial(window.high, 0);
  attr.groups = groups;
  return {node.graph(), node.graph().conv(x.id(), w.id(), attr)};
}

Results conv(const NodeContext& node) {
  Expr y = like(convolve(node, node.operand(0), node.operand(1)), node.dtype(0));
  if (node.has(2)) y = y + along(node.in(2), 1, y.rank());
  return {y};
}

// Integers as floats in which every sum of products is exact: |elements| products of at most |largest| each.
DType exact_type(double elements, double largest) { return elements * largest <= 0x1p24 ? DType::f32 : DType::f64; }

Expr zero_point(const NodeContext& node, std::size_t i, DType dtype, int axis, int rank) {
  const Expr zero = cast(node.in(i), dtype);
  return zero.shape().elements() == 1 ? reshape(zero, {}) : along(zero, axis, rank);
}

// Weights of the file less their zero points, as floats, in parts of the input channels in which every sum of products with
// values of 8 bits is exact in f32: convolving them is several times faster than convolving f64.
std::vector<ValuePtr> exact_parts(const NodeContext& node, std::size_t w_at, std::size_t w_zero, std::int64_t groups) {
  const Shape shape = node.shape(w_at);
  const std::int64_t inner = shape.elements() / (shape[0] * shape[1]);
  const auto centred = [&] {
    std::vector<double> values = node.host_numbers(w_at);
    const std::vector<double> zero = node.has(w_zero) ? node.host_numbers(w_zero) : std::vector<double>{0};
    if (zero.size() != 1 && static_cast<std::int64_t>(zero.size()) != shape[0])
      node.fail("the zero points do not fit the weights");
    const std::size_t row = values.size() / static_cast<std::size_t>(shape[0]);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] -= zero[zero.size() == 1 ? 0 : i / row];
    return values;
  };
  const auto ends = [&] {
    const std::vector<double> values = centred();
    std::vector<double> sums(static_cast<std::size_t>(shape[0]), 0);
    Dims out;
    for (std::int64_t c = 0; c < shape[1]; ++c) {
      bool fits = true;
      std::vector<double> here(sums.size(), 0);
      for (std::size_t o = 0; o < sums.size(); ++o) {
        const double* at = values.data() + (static_cast<std::int64_t>(o) * shape[1] + c) * inner;
        for (std::int64_t i = 0; i < inner; ++i) here[o] += 255 * std::abs(at[i]);
        fits = fits && sums[o] + here[o] <= 0x1p24;
        if (here[o] > 0x1p24) return HostArray::zeros(DType::i64, Shape{0});  // not even one channel fits
      }
      if (!fits && c > 0) {
        out.push_back(c);
        sums = here;
      } else {
        for (std::size_t o = 0; o < sums.size(); ++o) sums[o] += here[o];
      }
    }
    out.push_back(shape[1]);
    return HostArray::from<std::int64_t>(Shape{static_cast<std::int64_t>(out.size())}, out);
  };
  const ValuePtr cuts = node.weight({w_at, w_zero}, 0, ends);
  std::vector<ValuePtr> parts;
  const HostArray known = *cuts->host;
  if (groups > 1 && known.elements() > 1) return {};
  std::int64_t start = 0;
  for (const std::int64_t end : known.view<std::int64_t>()) {
    parts.push_back(node.weight({w_at, w_zero}, static_cast<int>(parts.size()) + 1, [&] {
      const std::vector<double> values = centred();
      Dims part = dims(shape);
      part[1] = end - start;
      HostArray out = HostArray::zeros(DType::f32, Shape(part));
      const std::span<float> to = out.mutable_view<float>();
      for (std::size_t i = 0; i < to.size(); ++i) {
        const std::int64_t row = (end - start) * inner, o = static_cast<std::int64_t>(i) / row;
        to[i] = static_cast<float>(
            values[static_cast<std::size_t>((o * shape[1] + start) * inner + static_cast<std::int64_t>(i) % row)]);
      }
      return out;
    }));
    start = end;
  }
  return parts;
}

// x - zero point, convolved with w - zero point, as i32.
Expr integer_convolution(const NodeContext& node, std::size_t x_at, std::size_t w_at, std::size_t x_zero, std::size_t w_zero) {
  const Shape& weight = node.shape(w_at);
  const double elements = static_cast<double>(weight.elements()) / static_cast<double>(std::max<std::int64_t>(weight[0], 1));
  const std::int64_t groups = node.integer("group", 1);
  const bool is_byte = element_bytes(node.dtype(x_at)) == 1 && element_bytes(node.dtype(w_at)) == 1;
  if (is_byte && node.is_constant(w_at) && (!node.has(w_zero) || node.is_constant(w_zero)) && weight.rank() >= 3 &&
      weight.elements() > kLargestConstant) {
    Expr x = cast(node.in(x_at), DType::f32);
    if (node.has(x_zero)) x = x - zero_point(node, x_zero, DType::f32, 1, x.rank());
    check_channels(node, x.shape(), weight, groups);
    std::optional<Expr> sum;
    std::int64_t start = 0;
    for (const ValuePtr& part : exact_parts(node, w_at, w_zero, groups)) {
      const std::int64_t count = part->shape[1];
      const Expr here = cast(convolve(node, count == weight[1] ? x : narrow(x, 1, start, count), node.in(part)), DType::i32);
      sum = sum ? *sum + here : here;
      start += count;
    }
    if (sum) return *sum;
  }
  const DType dtype = exact_type(elements, 255.0 * 255.0);
  Expr x = cast(node.in(x_at), dtype), w = cast(node.in(w_at), dtype);
  if (node.has(x_zero)) x = x - zero_point(node, x_zero, dtype, 1, x.rank());
  if (node.has(w_zero)) w = w - zero_point(node, w_zero, dtype, 0, w.rank());
  return cast(convolve(node, x, w), DType::i32);
}

Results conv_integer(const NodeContext& node) { return {integer_convolution(node, 0, 1, 2, 3)}; }

Results qlinear_conv(const NodeContext& node) {
  Expr sum = integer_convolution(node, 0, 3, 2, 5);
  if (node.has(8)) sum = sum + along(node.in(8), 1, sum.rank());
  Expr w_scale = node.in(4);
  w_scale = w_scale.shape().elements() == 1 ? reshape(w_scale, {}) : along(w_scale, 1, sum.rank());
  const Expr factor = reshape(node.in(1), {}) * w_scale / reshape(node.in(6), {});
  const DType to = node.has(7) ? node.dtype(7) : node.dtype(0);
  Expr y = rint(cast(sum, DType::f64) * cast(factor, DType::f64));
  if (node.has(7)) y = y + cast(reshape(node.in(7), {}), y.dtype());
  return {cast(y, to)};
}

Expr spread(Expr x, int axis, std::int64_t zeros) {
  const std::int64_t n = x.extent(axis);
  if (zeros == 0 || n <= 1) return x;
  const Expr padded = pad_axis(unsqueeze(x, axis + 1), axis + 1, 0, zeros);
  return narrow(reshape(padded, x.shape().with(axis, n * (zeros + 1))), axis, 0, n * (zeros + 1) - zeros);
}

// Pads of a transposed convolution: those of the model, or those that give its output_shape or keep SAME.
void transposed_pads(const NodeContext& node, const Dims& extents, Window& w, Dims& extra) {
  const std::string auto_pad = node.text("auto_pad", "NOTSET");
  Dims wanted = node.integers("output_shape");
  if (wanted.size() == extents.size() + 2) wanted.erase(wanted.begin(), wanted.begin() + 2);
  const bool same_size = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  if (wanted.empty() && !same_size) return;
  if (!wanted.empty() && wanted.size() != extents.size()) node.fail("output_shape does not fit the spatial axes");
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const std::int64_t full = w.stride[i] * (extents[i] - 1) + extra[i] + w.reach(i);
    const std::int64_t total = full - (wanted.empty() ? extents[i] * w.stride[i] : wanted[i]);
    if (total < 0) extra[i] -= total;  // more than there is: zeros at the end
    const std::int64_t pads = std::max<std::int64_t>(total, 0);
    w.low[i] = auto_pad == "SAME_LOWER" ? pads - pads / 2 : pads / 2;
    w.high[i] = pads - w.low[i];
  }
}

Results conv_transpose(const NodeContext& node) {
  Expr x = node.in(0), w = node.in(1);
  const std::int64_t groups = node.integer("group", 1), in = w.extent(0), out = w.extent(1);
  if (x.rank() != w.rank() || x.rank() < 3 || groups < 1 || x.extent(1) != in || in % groups != 0)
    node.fail(fmt::format("the input is {}, the weight {}, in {} groups", to_string(x.shape()), to_string(w.shape()), groups));
  const Dims extents = spatial_extents(x.shape());
  const std::size_t n = extents.size();
  Window window;
  window.kernel = spatial_extents(w.shape());
  window.stride = node.integers("strides", Dims(n, 1));
  window.dilation = node.integers("dilations", Dims(n, 1));
  const Dims pads = node.integers("pads", Dims(2 * n, 0));
  Dims extra = node.integers("output_padding", Dims(n, 0));
  if (window.stride.size() != n || window.dilation.size() != n || pads.size() != 2 * n || extra.size() != n)
    node.fail("strides, dilations and pads must fit the spatial axes");
  window.low.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(n));
  window.high.assign(pads.begin() + static_cast<std::ptrdiff_t>(n), pads.end());
  transposed_pads(node, extents, window, extra);
  // Both enter a product.
  const Expr whole = x = node.operand(x), flat = w = node.operand(w);
  Spatial cut_high{};
  for (std::size_t s = 0; s < n; ++s) {
    const int axis = static_cast<int>(s) + 2;
    cut_high[s] = window.high[s] - extra[s];
    x = spread(x, axis, window.stride[s] - 1);
    const std::int64_t reach = window.dilation[s] * (window.kernel[s] - 1);
    const std::int64_t before = reach - window.low[s], after = reach - window.high[s] + extra[s];
    x = pad_axis(x, axis, std::max<std::int64_t>(before, 0), std::max<std::int64_t>(after, 0));
    const std::int64_t cut_before = std::max<std::int64_t>(-before, 0), cut_after = std::max<std::int64_t>(-after, 0);
    if (cut_before + cut_after >= x.extent(axis)) node.fail("the padding removes the whole result");
    x = narrow(x, axis, cut_before, x.extent(axis) - cut_before - cut_after);
    w = reverse(w, axis);
  }
  Dims grouped = dims(w.shape()), joined = grouped;
  grouped[0] = in / groups;
  grouped.insert(grouped.begin(), groups);
  joined[0] = groups * out;
  joined[1] = in / groups;
  w = reshape(swap_axes(reshape(w, Shape(grouped)), 1, 2), Shape(joined));
  ConvAttr attr;
  attr.dilation = spatial(window.dilation, 1);
  attr.groups = groups;
  Expr y(node.graph(), node.graph().conv(x.id(), w.id(), attr));
  if (y.dtype() == whole.dtype() && y.dtype() == flat.dtype() && y.shape().elements() > 0)
    node.graph().mark({{whole.id(), flat.id()},
                       y.id(),
                       ConvTransposeAttr{spatial(window.stride, 1), attr.dilation, spatial(window.low, 0), cut_high, groups}});
  y = like(y, node.dtype(0));
  if (node.has(2)) y = y + along(node.in(2), 1, y.rank());
  return {y};
}

// A depthwise convolution over [n, c, time] that sees the past only; the last elements are the state for the next call.
Results causal_conv(const NodeContext& node) {
  Expr x = node.in(0);
  const Expr w = node.in(1);
  const std::int64_t c = x.extent(1), k = w.extent(w.rank() - 1);
  const Expr past = node.has(3) ? node.in(3)
                                : expand_to(cast(node.constant(HostArray::zeros(compute_dtype(x.dtype()), {})), x.dtype()),
                                            Shape{x.extent(0), c, k - 1});
  const Expr parts[] = {past, x};
  const Expr all = concat(parts, 2);
  ConvAttr attr;
  attr.groups = c;
  Expr y(node.graph(), node.graph().conv(all.id(), reshape(w, Shape{c, 1, k}).id(), attr));
  if (node.has(2)) y = y + along(node.in(2), 1, 3);
  const std::string activation = node.text("activation", "none");
  if (activation == "silu" || activation == "swish")
    y = silu(y);
  else if (activation != "none" && !activation.empty())
    node.refuse(fmt::format("the activation '{}'", activation));
  return {y, narrow(all, 2, all.extent(2) - (k - 1), k - 1)};
}

// Sums patches back into an image.
Results col2im(const NodeContext& node) {
  Expr x = node.in(0);
  const Dims image = node.host_integers(1), block = node.host_integers(2);
  const std::size_t n = image.size();
  const Dims stride = node.integers("strides", Dims(n, 1)), dilation = node.integers("dilations", Dims(n, 1)),
             pads = node.integers("pads", Dims(2 * n, 0));
  std::int64_t elements = 1, places = 1;
  for (const std::int64_t each : block) elements *= each;
  Dims counts;
  for (std::size_t i = 0; i < n; ++i) {
    counts.push_back((image[i] + pads[i] + pads[i + n] - dilation[i] * (block[i] - 1) - 1) / stride[i] + 1);
    places *= counts.back();
  }
  const std::int64_t batch = x.extent(0), c = x.extent(1) / elements;
  if (x.rank() != 3 || x.extent(1) % elements != 0 || x.extent(2) != places)
    node.fail(fmt::format("the input {} does not fit the image and block", to_string(x.shape())));
  // The place of every patch element in the padded image, flat.
  Dims padded, flat;
  std::int64_t size = 1;
  for (std::size_t i = 0; i < n; ++i) {
    padded.push_back(image[i] + pads[i] + pads[i + n]);
    size *= padded.back();
  }
  const Dims strides = strides_of(padded), block_strides = strides_of(block), count_strides = strides_of(counts);
  for (std::int64_t e = 0; e < elements; ++e)
    for (std::int64_t p = 0; p < places; ++p) {
      std::int64_t place = 0;
      for (std::size_t i = 0; i < n; ++i)
        place += (p / count_strides[i] % counts[i] * stride[i] + e / block_strides[i] % block[i] * dilation[i]) * strides[i];
      flat.push_back(place);
    }
  const Shape rows{batch * c, elements * places};
  const Expr zeros =
      expand_to(cast(node.constant(HostArray::zeros(compute_dtype(x.dtype()), {})), x.dtype()), Shape{batch * c, size});
  const Expr indices = expand_to(reshape(node.constant(flat), Shape{1, elements * places}), rows);
  Expr y(node.graph(), node.graph().scatter(zeros.id(), indices.id(), reshape(x, rows).id(), 1, true));
  Dims out{batch, c};
  out.insert(out.end(), padded.begin(), padded.end());
  y = reshape(y, Shape(out));
  for (std::size_t i = 0; i < n; ++i) y = narrow(y, static_cast<int>(i) + 2, pads[i], image[i]);
  return {y};
}

}  // namespace

void add_convolution(ConverterTable& table) {
  table.add("Conv", conv);
  table.add("ConvInteger", conv_integer);
  table.add("QLinearConv", qlinear_conv);
  table.add("ConvTranspose", conv_transpose);
  table.add("CausalConvWithState", causal_conv);
  table.add("Col2Im", col2im);
}

}  // namespace tenon::onnx
