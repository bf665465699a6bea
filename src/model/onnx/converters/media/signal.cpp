#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "model/onnx/converters/families.h"

namespace tenon::onnx {
namespace {

using namespace build;

ElementType output_type(const NodeContext& node) { return static_cast<ElementType>(node.integer("output_datatype", 1)); }

Results window(const NodeContext& node) {
  const std::int64_t size = node.host_integers(0).at(0);
  if (size < 0 || size > (std::int64_t{1} << 28)) node.fail(fmt::format("a window of {} elements", size));
  const double length = static_cast<double>(node.integer("periodic", 1) != 0 ? size : size - 1);
  std::vector<double> values;
  for (std::int64_t i = 0; i < size; ++i) {
    const double t = 2 * std::numbers::pi * static_cast<double>(i) / length;
    if (node.op() == "HannWindow")
      values.push_back(0.5 - 0.5 * std::cos(t));
    else if (node.op() == "HammingWindow")
      values.push_back(25.0 / 46 - 21.0 / 46 * std::cos(t));
    else
      values.push_back(0.42 - 0.5 * std::cos(t) + 0.08 * std::cos(2 * t));
  }
  return {HostArray::from<double>(Shape{size}, values).cast(held_as(output_type(node)))};
}

Results mel_weight_matrix(const NodeContext& node) {
  const std::int64_t bins = node.host_integers(0).at(0), length = node.host_integers(1).at(0);
  const double rate = node.host_number(2), low = node.host_number(3), high = node.host_number(4);
  if (bins < 1 || length < 1 || bins > 4096 || length > (1 << 20)) node.fail("the matrix is too large");
  const std::int64_t rows = length / 2 + 1;
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double step = (mel(high) - mel(low)) / static_cast<double>(bins + 2);
  Dims edges;
  for (std::int64_t i = 0; i < bins + 2; ++i) {
    const double hertz = 700 * (std::pow(10, (mel(low) + static_cast<double>(i) * step) / 2595) - 1);
    edges.push_back(static_cast<std::int64_t>(std::floor(static_cast<double>(length + 1) * hertz / rate)));
  }
  HostArray out = HostArray::zeros(DType::f64, Shape{rows, bins});
  const std::span<double> values = out.mutable_view<double>();
  for (std::int64_t i = 0; i < bins; ++i) {
    const auto e = static_cast<std::size_t>(i);
    const std::int64_t left = edges[e], centre = edges[e + 1], right = edges[e + 2];
    const auto put = [&](std::int64_t row, double value) {
      if (row >= 0 && row < rows) values[static_cast<std::size_t>(row * bins + i)] = value;
    };
    if (centre == left)
      put(centre, 1);
    else
      for (std::int64_t j = left; j <= centre; ++j) put(j, static_cast<double>(j - left) / static_cast<double>(centre - left));
    if (right > centre)
      for (std::int64_t j = centre; j < right; ++j) put(j, static_cast<double>(right - j) / static_cast<double>(right - centre));
  }
  return {out.cast(held_as(output_type(node)))};
}

struct Complex {
  Expr re, im;
};

// cos and sin of 2 pi j k / n as [inputs, outputs], worked out from j k mod n so that large products keep their accuracy.
Complex rotation(const NodeContext& node, std::int64_t n, std::int64_t inputs, std::int64_t outputs, DType dtype) {
  if (inputs * outputs > (std::int64_t{1} << 26)) node.refuse(fmt::format("a transform of {} elements", n));
  std::vector<double> re, im;
  re.reserve(static_cast<std::size_t>(inputs * outputs));
  im.reserve(static_cast<std::size_t>(inputs * outputs));
  for (std::int64_t j = 0; j < inputs; ++j)
    for (std::int64_t k = 0; k < outputs; ++k) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(j * k % n) / static_cast<double>(n);
      re.push_back(std::cos(angle));
      im.push_back(std::sin(angle));
    }
  const Shape shape{inputs, outputs};
  return {node.constant(HostArray::from<double>(shape, re).cast(dtype)),
          node.constant(HostArray::from<double>(shape, im).cast(dtype))};
}

// The transform of the last axis of |x| (with its imaginary part, if it has one) to |bins| results.
Complex transform(const NodeContext& node, Expr re, std::optional<Expr> im, std::int64_t n, std::int64_t bins, bool inverse) {
  const Complex w = rotation(node, n, re.extent(re.rank() - 1), bins, compute_dtype(re.dtype()));
  const double sign = inverse ? 1 : -1;
  Expr real = matmul(re, w.re), imaginary = matmul(re, w.im) * sign;
  if (im) {
    real = real - matmul(*im, w.im) * sign;
    imaginary = imaginary + matmul(*im, w.re);
  }
  if (inverse) return {real / static_cast<double>(n), imaginary / static_cast<double>(n)};
  return {real, imaginary};
}

Expr fitted(Expr x, int axis, std::int64_t n) {
  return x.extent(axis) >= n ? narrow(x, axis, 0, n) : pad_axis(x, axis, 0, n - x.extent(axis));
}

Expr with_parts(Complex z) {
  const Expr parts[] = {unsqueeze(z.re, z.re.rank()), unsqueeze(z.im, z.im.rank())};
  return concat(parts, z.re.rank());
}

Expr part(Expr x, std::int64_t which) { return squeeze(narrow(x, x.rank() - 1, which, 1), one_axis(x.rank() - 1)); }

Results dft(const NodeContext& node) {
  const Expr x = node.in(0);
  std::int64_t number = node.integer("axis", 1);
  if (node.version() >= 20) number = node.has(2) ? node.host_integers(2).at(0) : -2;
  const int axis = normalize_axis(number, x.rank());
  const bool inverse = node.integer("inverse", 0) != 0, onesided = node.integer("onesided", 0) != 0,
             is_complex = x.extent(x.rank() - 1) == 2;
  std::int64_t n = x.extent(axis);
  if (node.has(1))
    n = node.host_integers(1).at(0);
  else if (inverse && onesided)
    n = 2 * (n - 1);
  if (n < 1) node.fail("the length must be positive");
  const auto last = [&](std::int64_t which) {
    const Expr p = part(x, which);
    return swap_axes(p, axis, p.rank() - 1);
  };
  Expr re = last(0);
  std::optional<Expr> im;
  if (is_complex) im = last(1);
  const int at = re.rank() - 1;
  const auto back = [&](Expr y) { return swap_axes(y, axis, at); };
  if (inverse && onesided) {
    // The other half is the mirror image, so the result is real: the bins between the ends count twice.
    const std::int64_t bins = n / 2 + 1;
    std::vector<double> weights(static_cast<std::size_t>(bins), 2);
    weights[0] = 1;
    if (n % 2 == 0) weights.back() = 1;
    const Expr weight = node.constant(HostArray::from<double>(Shape{bins}, weights).cast(compute_dtype(re.dtype())));
    re = fitted(re, at, bins) * weight;
    if (im) im = fitted(*im, at, bins) * weight;
    const Complex z = transform(node, re, im, n, n, true);
    return {cast(unsqueeze(back(z.re), z.re.rank()), x.dtype())};
  }
  re = fitted(re, at, n);
  if (im) im = fitted(*im, at, n);
  const Complex z = transform(node, re, im, n, onesided ? n / 2 + 1 : n, inverse);
  return {cast(with_parts({back(z.re), back(z.im)}), x.dtype())};
}

Results stft(const NodeContext& node) {
  const Expr signal = node.in(0);
  const std::int64_t step = node.host_integers(1).at(0);
  const std::int64_t length = node.has(3) ? node.host_integers(3).at(0) : node.shape(2)[0];
  if (step < 1 || length < 1 || length > signal.extent(1))
    node.fail(fmt::format("frames of {} every {} of {} samples", length, step, signal.extent(1)));
  const std::int64_t frames = (signal.extent(1) - length) / step + 1;
  Dims places;
  for (std::int64_t f = 0; f < frames; ++f)
    for (std::int64_t i = 0; i < length; ++i) places.push_back(f * step + i);
  const Expr table = node.constant(HostArray::from<std::int64_t>(Shape{frames, length}, places));
  const bool has_parts = signal.rank() == 3;
  const auto framed = [&](std::int64_t which) {
    Expr x = take(has_parts ? part(signal, which) : signal, table, 1);
    return node.has(2) ? x * fitted(node.in(2), 0, length) : x;
  };
  std::optional<Expr> im;
  if (has_parts && signal.extent(2) == 2) im = framed(1);
  const bool onesided = node.integer("onesided", 1) != 0;
  return {cast(with_parts(transform(node, framed(0), im, length, onesided ? length / 2 + 1 : length, false)), signal.dtype())};
}

}  // namespace

void add_signal(ConverterTable& table) {
  table.add({"HannWindow", "HammingWindow", "BlackmanWindow"}, window);
  table.add("MelWeightMatrix", mel_weight_matrix);
  table.add("DFT", dft);
  table.add("STFT", stft);
}

}  // namespace tenon::onnx
