#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/onnx/converters/neural/spatial.h"

namespace tenon::onnx {
namespace {

using namespace build;

// Samples of x [n, c, spatial...] at coordinates that are not whole.
struct Sampler {
  const NodeContext& node;
  std::string mode;     // nearest, linear, cubic
  std::string padding;  // zeros, border, reflection
  bool align_corners;
};

// Coordinates mirrored at the edges of [low, high] until they lie within.
Expr mirrored(const NodeContext& node, Expr x, double low, double high) {
  const double range = high - low;
  if (range <= 0) return x * 0.0 + low;
  const Expr distance = node.apply("remainder", {abs(x - low), same(x, 2 * range)});
  return minimum(distance, same(distance, 2 * range) - distance) + low;
}

struct Tap {
  Expr place;                  // whole numbers within the axis, i64
  std::optional<Expr> weight;  // none: 1
};

Expr cubic_weight(Expr distance, double a) {
  const Expr d = abs(distance);
  const Expr inner = (d * (a + 2) - (a + 3)) * d * d + 1.0, outer = ((d * a - 5 * a) * d + 8 * a) * d - 4 * a;
  return where(d <= 1.0, inner, outer);
}

// The elements of one axis that make a sample at |x|.
std::vector<Tap> taps(const Sampler& s, Expr x, std::int64_t extent) {
  const double last = static_cast<double>(extent - 1);
  const double low = s.align_corners ? 0 : -0.5, high = s.align_corners ? last : last + 0.5;
  if (s.padding == "reflection") x = mirrored(s.node, x, low, high);
  if (s.padding == "border") x = minimum(maximum(x, 0.0), last);
  const Expr base = s.mode == "nearest" ? rint(x) : floor(x);
  const int first = s.mode == "cubic" ? -1 : 0, count = s.mode == "nearest" ? 1 : s.mode == "linear" ? 2 : 4;
  std::vector<Tap> result;
  for (int k = first; k < first + count; ++k) {
    const Expr at = base + static_cast<double>(k);
    std::optional<Expr> weight;
    if (s.mode == "linear") weight = k == 0 ? (base + 1.0) - x : x - base;
    if (s.mode == "cubic") weight = cubic_weight(x - at, -0.75);
    Expr place = at;
    if (s.padding == "reflection") place = mirrored(s.node, place, low, high);
    if (s.padding == "zeros") {
      const Expr inside = cast((same(at, 0) <= at) && (at <= last), at.dtype());
      weight = weight ? *weight * inside : inside;
    }
    result.push_back({cast(minimum(maximum(place, 0.0), last), DType::i64), weight});
  }
  return result;
}

// |coordinates|: per spatial axis [n, points]. The result is [n, c, points].
Expr sample(const Sampler& s, Expr x, const std::vector<Expr>& coordinates) {
  const std::int64_t n = x.extent(0), c = x.extent(1), points = coordinates[0].extent(1);
  const Dims extents = spatial_extents(x.shape()), strides = strides_of(extents);
  std::int64_t size = 1;
  for (const std::int64_t each : extents) size *= each;
  if (size == 0) s.node.fail("an axis is empty");
  const Expr flat = reshape(x, Shape{n, c, size});
  std::vector<Tap> joint{{build::iota(s.node.graph(), Shape{n, points}, 0) * 0.0, std::nullopt}};
  for (std::size_t i = 0; i < extents.size(); ++i) {
    std::vector<Tap> next;
    for (const Tap& each : taps(s, coordinates[i], extents[i]))
      for (const Tap& before : joint) {
        std::optional<Expr> weight = each.weight;
        if (before.weight) weight = weight ? *weight * *before.weight : *before.weight;
        next.push_back({before.place + each.place * static_cast<double>(strides[i]), weight});
      }
    joint = next;
  }
  std::optional<Expr> sum;
  for (const Tap& tap : joint) {
    Expr part = gather(flat, expand_to(unsqueeze(tap.place, 1), Shape{n, c, points}), 2);
    if (tap.weight) part = part * unsqueeze(*tap.weight, 1);
    sum = sum ? *sum + part : part;
  }
  return *sum;
}

Results grid_sample(const NodeContext& node) {
  const Expr x = node.in(0), grid = node.in(1);
  std::string mode = node.text("mode", node.version() < 20 ? "bilinear" : "linear");
  if (mode == "bilinear") mode = "linear";
  if (mode == "bicubic") mode = "cubic";
  const Sampler s{node, mode, node.text("padding_mode", "zeros"), node.integer("align_corners", 0) != 0};
  const Dims extents = spatial_extents(x.shape());
  const auto axes = static_cast<std::int64_t>(extents.size());
  if (grid.rank() != x.rank() || grid.extent(grid.rank() - 1) != axes)
    node.fail(fmt::format("the grid {} does not fit {}", to_string(grid.shape()), to_string(x.shape())));
  const std::int64_t n = x.extent(0), points = n == 0 || axes == 0 ? 0 : grid.shape().elements() / (n * axes);
  const Expr rows = reshape(cast(grid, compute_dtype(x.dtype())), Shape{n, points, axes});
  std::vector<Expr> coordinates;
  for (std::int64_t i = 0; i < axes; ++i) {
    // The last column of the grid is the first axis.
    const Expr g = squeeze(narrow(rows, 2, axes - 1 - i, 1), one_axis(2));
    const double extent = static_cast<double>(extents[static_cast<std::size_t>(i)]);
    coordinates.push_back(s.align_corners ? (g + 1.0) * ((extent - 1) / 2) : ((g + 1.0) * extent - 1.0) / 2.0);
  }
  Dims out{n, x.extent(1)};
  for (int i = 1; i < grid.rank() - 1; ++i) out.push_back(grid.extent(i));
  return {cast(reshape(sample(s, x, coordinates), Shape(out)), x.dtype())};
}

Results affine_grid(const NodeContext& node) {
  const Expr theta = node.in(0);
  const Dims size = node.host_integers(1);
  const bool align = node.integer("align_corners", 0) != 0;
  const std::size_t n = size.size() - 2;
  if (theta.rank() != 3 || size.size() < 4 || theta.extent(1) != static_cast<std::int64_t>(n) ||
      theta.extent(2) != static_cast<std::int64_t>(n) + 1)
    node.fail("theta and size do not fit");
  std::int64_t points = 1;
  const Dims extents(size.begin() + 2, size.end()), strides = strides_of(extents);
  for (const std::int64_t each : extents) points *= each;
  if (points > (std::int64_t{1} << 26)) node.refuse("a grid of this size");
  std::vector<double> base;
  for (std::int64_t p = 0; p < points; ++p) {
    for (std::size_t i = n; i-- > 0;) {  // x first
      const double extent = static_cast<double>(extents[i]), at = static_cast<double>(p / strides[i] % extents[i]);
      base.push_back(align ? (extent == 1 ? -1 : -1 + 2 * at / (extent - 1)) : (2 * at + 1) / extent - 1);
    }
    base.push_back(1);
  }
  const Expr grid = node.constant(
      HostArray::from<double>(Shape{1, points, static_cast<std::int64_t>(n) + 1}, base).cast(compute_dtype(theta.dtype())));
  Dims out{theta.extent(0)};
  out.insert(out.end(), extents.begin(), extents.end());
  out.push_back(static_cast<std::int64_t>(n));
  return {cast(reshape(matmul(grid, theta, {.transpose_b = true}), Shape(out)), theta.dtype())};
}

// The sampling points follow from the regions, which are known here.
Results roi_align(const NodeContext& node) {
  const Expr x = node.in(0);
  const std::vector<double> rois = node.host_numbers(1);
  const Dims batches = node.host_integers(2);
  const std::string mode = node.text("mode", "avg");
  const bool half =
      node.text("coordinate_transformation_mode", node.version() < 16 ? "output_half_pixel" : "half_pixel") == "half_pixel";
  const std::int64_t out_h = node.integer("output_height", 1), out_w = node.integer("output_width", 1),
                     ratio = node.integer("sampling_ratio", 0);
  const double scale = node.number("spatial_scale", 1), offset = half ? 0.5 : 0;
  const std::int64_t height = x.extent(2), width = x.extent(3), c = x.extent(1), bins = out_h * out_w;
  std::vector<Expr> results;
  for (std::size_t r = 0; r < batches.size(); ++r) {
    const double x1 = rois[4 * r] * scale - offset, y1 = rois[4 * r + 1] * scale - offset, x2 = rois[4 * r + 2] * scale - offset,
                 y2 = rois[4 * r + 3] * scale - offset;
    const double w = half ? x2 - x1 : std::max(x2 - x1, 1.0), h = half ? y2 - y1 : std::max(y2 - y1, 1.0);
    const double bin_h = h / static_cast<double>(out_h), bin_w = w / static_cast<double>(out_w);
    const std::int64_t grid_h = ratio > 0 ? ratio : static_cast<std::int64_t>(std::ceil(bin_h)),
                       grid_w = ratio > 0 ? ratio : static_cast<std::int64_t>(std::ceil(bin_w));
    const std::int64_t samples = std::max<std::int64_t>(grid_h * grid_w, 1);
    // Four neighbours of each sample: [bins, samples, 4].
    Dims places;
    std::vector<double> weights;
    for (std::int64_t bin = 0; bin < bins; ++bin)
      for (std::int64_t i = 0; i < samples; ++i) {
        double sy = y1 + static_cast<double>(bin / out_w) * bin_h +
                    (static_cast<double>(i / std::max<std::int64_t>(grid_w, 1)) + 0.5) * bin_h /
                        static_cast<double>(std::max<std::int64_t>(grid_h, 1));
        double sx = x1 + static_cast<double>(bin % out_w) * bin_w +
                    (static_cast<double>(i % std::max<std::int64_t>(grid_w, 1)) + 0.5) * bin_w /
                        static_cast<double>(std::max<std::int64_t>(grid_w, 1));
        const bool is_outside = sy < -1 || sy > static_cast<double>(height) || sx < -1 || sx > static_cast<double>(width);
        sy = std::clamp(sy, 0.0, static_cast<double>(height - 1));
        sx = std::clamp(sx, 0.0, static_cast<double>(width - 1));
        const std::int64_t top = static_cast<std::int64_t>(sy), left = static_cast<std::int64_t>(sx),
                           bottom = std::min(top + 1, height - 1), right = std::min(left + 1, width - 1);
        const double dy = sy - static_cast<double>(top), dx = sx - static_cast<double>(left), on = is_outside ? 0 : 1;
        places.insert(places.end(), {top * width + left, top * width + right, bottom * width + left, bottom * width + right});
        weights.insert(weights.end(), {on * (1 - dy) * (1 - dx), on * (1 - dy) * dx, on * dy * (1 - dx), on * dy * dx});
      }
    if (batches[r] < 0 || batches[r] >= x.extent(0)) node.fail(fmt::format("batch {} does not exist", batches[r]));
    const Expr image = reshape(narrow(x, 0, batches[r], 1), Shape{c, height * width});
    const Shape table{bins, samples, 4};
    const Expr each = take(image, node.constant(HostArray::from<std::int64_t>(table, places)), 1) *
                      node.constant(HostArray::from<double>(table, weights).cast(compute_dtype(x.dtype())));
    // The maximum is taken over the weighted neighbours, the mean over whole samples.
    const Expr pooled = mode == "max"
                            ? max_keep(reshape(each, Shape{c, bins, samples * 4}), one_axis(2))
                            : sum_keep(reshape(each, Shape{c, bins, samples * 4}), one_axis(2)) / static_cast<double>(samples);
    results.push_back(reshape(pooled, Shape{1, c, out_h, out_w}));
  }
  if (results.empty()) return {HostArray::zeros(x.dtype(), Shape{0, c, out_h, out_w})};
  return {cast(concat(results, 0), x.dtype())};
}

Results deform_conv(const NodeContext& node) {
  const Expr x = node.in(0), w = node.in(1);
  if (x.rank() != 4) node.refuse("anything but images");
  const std::int64_t groups = node.integer("group", 1), offset_groups = node.integer("offset_group", 1);
  const Window window = window_of(node, spatial_extents(w.shape()), spatial_extents(x.shape()));
  const std::int64_t n = x.extent(0), c = x.extent(1), oh = window.out[0], ow = window.out[1],
                     kernel = window.kernel[0] * window.kernel[1], points = kernel * oh * ow;
  if (groups < 1 || offset_groups < 1 || c % offset_groups != 0 || c % groups != 0 || w.extent(0) % groups != 0 ||
      node.shape(2) != Shape{n, offset_groups * kernel * 2, oh, ow})
    node.fail("weights, offsets and groups do not fit");
  const Expr offsets = reshape(cast(node.in(2), compute_dtype(x.dtype())), Shape{n, offset_groups, kernel, 2, oh * ow});
  std::vector<double> base[2];
  for (std::int64_t k = 0; k < kernel; ++k)
    for (std::int64_t p = 0; p < oh * ow; ++p) {
      base[0].push_back(
          static_cast<double>(p / ow * window.stride[0] - window.low[0] + k / window.kernel[1] * window.dilation[0]));
      base[1].push_back(
          static_cast<double>(p % ow * window.stride[1] - window.low[1] + k % window.kernel[1] * window.dilation[1]));
    }
  const Sampler s{node, "linear", "zeros", true};
  std::vector<Expr> columns;
  for (std::int64_t g = 0; g < offset_groups; ++g) {
    std::vector<Expr> coordinates;
    for (std::int64_t axis = 0; axis < 2; ++axis) {
      const Expr shift = reshape(narrow(narrow(offsets, 1, g, 1), 3, axis, 1), Shape{n, points});
      coordinates.push_back(shift + node.constant(HostArray::from<double>(Shape{1, points}, base[axis]).cast(shift.dtype())));
    }
    Expr part = sample(s, narrow(x, 1, g * (c / offset_groups), c / offset_groups), coordinates);
    if (node.has(4))
      part = part * reshape(narrow(reshape(node.in(4), Shape{n, offset_groups, points}), 1, g, 1), Shape{n, 1, points});
    columns.push_back(part);
  }
  const Expr all = reshape(columns.size() == 1 ? columns[0] : concat(columns, 1), Shape{n, groups, c / groups * kernel, oh * ow});
  const Expr weights = reshape(w, Shape{1, groups, w.extent(0) / groups, c / groups * kernel});
  Expr y = reshape(matmul(weights, all), Shape{n, w.extent(0), oh, ow});
  if (node.has(3)) y = y + along(node.in(3), 1, 4);
  return {cast(y, x.dtype())};
}

}  // namespace

void add_vision(ConverterTable& table) {
  table.add("GridSample", grid_sample);
  table.add("AffineGrid", affine_grid);
  table.add("RoiAlign", roi_align);
  table.add("DeformConv", deform_conv);
}

}  // namespace tenon::onnx
