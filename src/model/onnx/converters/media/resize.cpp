#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/onnx/converters/families.h"

namespace tenon::onnx {
namespace {

using namespace build;

// How each element of a resized axis is made: a weighted sum of some elements of the input.
struct Taps {
  std::vector<Dims> places;                  // per tap, one per output element
  std::vector<std::vector<double>> weights;  // the same
  Dims is_outside;                           // 1 where tf_crop_and_resize gives its extrapolation value
};

struct Method {
  std::string mode, coordinates, nearest;
  double cubic = -0.75;
  bool exclude_outside = false, antialias = false;
};

double source_of(const NodeContext& node, const Method& m, double x, double scale, std::int64_t in, std::int64_t out,
                 double roi_start, double roi_end) {
  const double n = static_cast<double>(in), length = scale * n;
  if (m.coordinates == "asymmetric") return x / scale;
  if (m.coordinates == "half_pixel") return (x + 0.5) / scale - 0.5;
  if (m.coordinates == "pytorch_half_pixel") return length == 1 ? -0.5 : (x + 0.5) / scale - 0.5;
  if (m.coordinates == "align_corners") return length == 1 ? 0 : x * (n - 1) / (length - 1);
  if (m.coordinates == "half_pixel_symmetric") return n / 2 * (1 - static_cast<double>(out) / length) + (x + 0.5) / scale - 0.5;
  if (m.coordinates == "tf_half_pixel_for_nn") return (x + 0.5) / scale;
  if (m.coordinates == "tf_crop_and_resize")
    return roi_start * (n - 1) +
           (length == 1 ? (roi_end - roi_start) * (n - 1) / 2 : x * (roi_end - roi_start) * (n - 1) / (length - 1));
  node.refuse(fmt::format("the coordinate mode '{}'", m.coordinates));
}

double nearest_of(const NodeContext& node, const std::string& mode, double x) {
  if (mode == "round_prefer_floor") return std::ceil(x - 0.5);
  if (mode == "round_prefer_ceil") return std::floor(x + 0.5);
  if (mode == "floor") return std::floor(x);
  if (mode == "ceil") return std::ceil(x);
  node.refuse(fmt::format("the nearest mode '{}'", mode));
}

double kernel(const Method& m, double distance) {
  const double d = std::abs(distance), a = m.cubic;
  if (m.mode == "linear") return std::max(1 - d, 0.0);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

Taps taps_of(const NodeContext& node, const Method& m, std::int64_t in, std::int64_t out, double scale, double roi_start,
             double roi_end) {
  Taps taps;
  // Shrinking with antialiasing widens the kernel by the scale.
  const double width = m.antialias ? std::min(scale, 1.0) : 1.0, support = m.mode == "cubic" ? 2 : 1;
  const std::int64_t first = m.mode == "nearest" ? 0 : static_cast<std::int64_t>(std::floor(-support / width)) + 1;
  const std::int64_t count = m.mode == "nearest" ? 1 : 2 - 2 * first;
  if (count * out > (std::int64_t{1} << 24)) node.refuse("an axis of this size");
  taps.places.assign(static_cast<std::size_t>(count), Dims(static_cast<std::size_t>(out)));
  taps.weights.assign(static_cast<std::size_t>(count), std::vector<double>(static_cast<std::size_t>(out), 1));
  taps.is_outside.assign(static_cast<std::size_t>(out), 0);
  for (std::size_t o = 0; o < static_cast<std::size_t>(out); ++o) {
    const double x = source_of(node, m, static_cast<double>(o), scale, in, out, roi_start, roi_end);
    taps.is_outside[o] = m.coordinates == "tf_crop_and_resize" && (x < 0 || x > static_cast<double>(in - 1));
    if (m.mode == "nearest") {
      taps.places[0][o] = std::clamp<std::int64_t>(static_cast<std::int64_t>(nearest_of(node, m.nearest, x)), 0, in - 1);
      continue;
    }
    const double base = std::ceil(x) - 1;
    double sum = 0;
    for (std::int64_t k = 0; k < count; ++k) {
      const auto t = static_cast<std::size_t>(k);
      const std::int64_t place = static_cast<std::int64_t>(base) + first + k;
      double weight = kernel(m, (static_cast<double>(place) - x) * width);
      if (m.exclude_outside && (place < 0 || place >= in)) weight = 0;
      taps.places[t][o] = std::clamp<std::int64_t>(place, 0, in - 1);
      taps.weights[t][o] = weight;
      sum += weight;
    }
    if (m.exclude_outside || m.antialias)
      for (auto& each : taps.weights) each[o] /= sum;
  }
  return taps;
}

Expr resize_axis(const NodeContext& node, Expr x, int axis, const Taps& taps) {
  std::optional<Expr> sum;
  for (std::size_t t = 0; t < taps.places.size(); ++t) {
    Expr part = take(x, node.constant(taps.places[t]), axis);
    if (taps.places.size() > 1) {
      const std::vector<double>& weights = taps.weights[t];
      const HostArray array =
          HostArray::from<double>(Shape{static_cast<std::int64_t>(weights.size())}, weights).cast(compute_dtype(x.dtype()));
      part = part * along(node.constant(array), axis, x.rank());
    }
    sum = sum ? *sum + part : part;
  }
  return *sum;
}

struct Target {
  std::vector<double> scales;
  Dims sizes;
};

// An extent that a scale or the model's sizes ask for, within bounds: weights for each element are made while importing.
std::int64_t checked_extent(const NodeContext& node, double extent) {
  constexpr double kLargest = 1 << 24;
  if (!(extent >= 0 && extent <= kLargest)) node.fail(fmt::format("an extent of {} is not supported", extent));
  return static_cast<std::int64_t>(extent);
}

// The extents and scales of each axis in |axes|, from the scales or the sizes of the model.
Target target_of(const NodeContext& node, const Shape& shape, const std::vector<int>& axes, const std::vector<double>& scales,
                 const Dims& sizes) {
  Target out;
  if (!scales.empty()) {
    if (scales.size() != axes.size()) node.fail(fmt::format("{} scales for {} axes", scales.size(), axes.size()));
    for (std::size_t i = 0; i < axes.size(); ++i) {
      if (!(scales[i] > 0)) node.fail("scales must be positive");
      out.scales.push_back(scales[i]);
      out.sizes.push_back(checked_extent(node, std::floor(static_cast<double>(shape[axes[i]]) * scales[i])));
    }
    return out;
  }
  if (sizes.size() != axes.size()) node.fail(fmt::format("{} sizes for {} axes", sizes.size(), axes.size()));
  for (const std::int64_t size : sizes) checked_extent(node, static_cast<double>(size));
  const std::string policy = node.text("keep_aspect_ratio_policy", "stretch");
  std::vector<double> each;
  for (std::size_t i = 0; i < axes.size(); ++i)
    each.push_back(static_cast<double>(sizes[i]) / static_cast<double>(std::max<std::int64_t>(shape[axes[i]], 1)));
  if (policy == "stretch") return {each, sizes};
  const double scale =
      policy == "not_larger" ? *std::min_element(each.begin(), each.end()) : *std::max_element(each.begin(), each.end());
  for (const int axis : axes) {
    out.scales.push_back(scale);
    out.sizes.push_back(checked_extent(node, std::floor(scale * static_cast<double>(shape[axis]) + 0.5)));
  }
  return out;
}

Results resized(const NodeContext& node, const Method& m, const std::vector<int>& axes, const Target& target,
                const std::vector<double>& roi) {
  Expr x = node.in(0);
  const DType dtype = x.dtype();
  if (m.mode != "nearest" && !is_float(dtype)) x = cast(x, DType::f32);
  std::optional<Expr> outside;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const double start = roi.size() == 2 * axes.size() ? roi[i] : 0,
                 end = roi.size() == 2 * axes.size() ? roi[i + axes.size()] : 1;
    const std::int64_t in = x.extent(axes[i]);
    if (in == target.sizes[i] && target.scales[i] == 1 && m.coordinates != "tf_crop_and_resize") continue;
    const Taps taps = taps_of(node, m, in, target.sizes[i], target.scales[i], start, end);
    x = resize_axis(node, x, axes[i], taps);
    if (std::any_of(taps.is_outside.begin(), taps.is_outside.end(), [](std::int64_t each) { return each != 0; })) {
      const Expr here = along(node.constant(taps.is_outside), axes[i], x.rank()) == 1.0;
      outside = outside ? node.apply("logical_or", {*outside, here}) : here;
    }
  }
  if (outside) x = where(*outside, node.number("extrapolation_value", 0), x);
  return {cast(m.mode != "nearest" && !is_float(dtype) ? rint(x) : x, dtype)};
}

std::vector<int> resized_axes(const NodeContext& node) {
  std::vector<int> axes;
  if (node.given("axes"))
    for (const std::int64_t axis : node.integers("axes")) axes.push_back(normalize_axis(axis, node.rank(0)));
  else
    for (int i = 0; i < node.rank(0); ++i) axes.push_back(i);
  return axes;
}

Results resize(const NodeContext& node) {
  Method m{node.text("mode", "nearest"),
           node.text("coordinate_transformation_mode", "half_pixel"),
           node.text("nearest_mode", "round_prefer_floor"),
           node.number("cubic_coeff_a", -0.75),
           node.integer("exclude_outside", 0) != 0,
           node.integer("antialias", 0) != 0};
  const bool is_old = node.version() < 11;
  if (is_old) {
    m.coordinates = "asymmetric";
    m.nearest = "floor";
  }
  if (m.mode == "bilinear") m.mode = "linear";
  if (m.mode != "nearest" && m.mode != "linear" && m.mode != "cubic") node.refuse(fmt::format("the mode '{}'", m.mode));
  const std::size_t scales_at = is_old ? 1 : 2;
  std::vector<double> scales, roi;
  Dims sizes;
  if (node.has(scales_at)) scales = node.host_numbers(scales_at);
  if (!is_old && node.has(3)) sizes = node.host_integers(3);
  if (m.coordinates == "tf_crop_and_resize") roi = node.host_numbers(1);
  const std::vector<int> axes = resized_axes(node);
  return resized(node, m, axes, target_of(node, node.shape(0), axes, scales, sizes), roi);
}

Results upsample(const NodeContext& node) {
  Method m{node.text("mode", "nearest"), "asymmetric", "floor"};
  if (m.mode == "bilinear") m.mode = "linear";
  std::vector<double> scales;
  if (node.version() < 9)
    for (const float each : node.numbers("scales")) scales.push_back(static_cast<double>(each));
  else
    scales = node.host_numbers(1);
  const std::vector<int> axes = resized_axes(node);
  return resized(node, m, axes, target_of(node, node.shape(0), axes, scales, {}), {});
}

}  // namespace

void add_resize(ConverterTable& table) {
  table.add("Resize", resize);
  table.add("Upsample", upsample);
}

}  // namespace tenon::onnx
