#include <fmt/format.h>

#include <algorithm>

#include "ops/build.h"
#include "ops/composed/spatial.h"
#include "ops/register.h"

namespace tenon {

Spatial spatial(const OpCall& call, std::string_view parameter, int n, std::int64_t fallback) {
  Spatial values{fallback, fallback, fallback};
  const std::vector<std::int64_t> given = call.integers(parameter);
  if (given.size() != 1 && static_cast<int>(given.size()) != n)
    call.fail(fmt::format("{} needs 1 or {} numbers, got {}", parameter, n, given.size()));
  for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) values[i] = given.size() == 1 ? given[0] : given[i];
  return values;
}

std::pair<Spatial, Spatial> spatial_padding(const OpCall& call, std::string_view parameter, int n) {
  const std::vector<std::int64_t> given = call.integers(parameter);
  if (n > 1 && static_cast<int>(given.size()) == 2 * n) {
    Spatial low{}, high{};
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
      low[i] = given[2 * i];
      high[i] = given[2 * i + 1];
    }
    return {low, high};
  }
  if (n == 1 && given.size() == 2) return {{given[0], 0, 0}, {given[1], 0, 0}};
  const Spatial both = spatial(call, parameter, n, 0);
  return {both, both};
}

namespace {

using namespace build;
using Results = std::vector<NodeId>;

struct Pool {
  Expr x;  // [n, c, spatial...]
  bool added;
  Results result(Expr y) const { return {added ? squeeze(y, one_axis(0)).id() : y.id()}; }
};

Pool pooled(const OpCall& call, int n) {
  const Expr x = input(call, 0);
  if (x.rank() == n + 2) return {x, false};
  if (x.rank() == n + 1) return {unsqueeze(x, 0), true};
  call.fail(fmt::format("x must be [batch, channels, {} spatial {}]", n, n == 1 ? "axis" : "axes"));
}

WindowAttr window(const OpCall& call, int n) {
  WindowAttr attr;
  attr.size = spatial(call, "kernel", n, 1);
  attr.stride = call.given("stride") ? spatial(call, "stride", n, 1) : attr.size;
  attr.dilation = spatial(call, "dilation", n, 1);
  const auto [low, high] = spatial_padding(call, "padding", n);
  attr.pad_low = low;
  attr.pad_high = high;
  return attr;
}

Expr apply_window(Expr x, const WindowAttr& attr) { return {x.graph(), x.graph().window(x.id(), attr)}; }

template <int n>
Results max_pool(const OpCall& call) {
  const Pool pool = pooled(call, n);
  WindowAttr attr = window(call, n);
  attr.max = true;
  return pool.result(apply_window(pool.x, attr));
}

// How many elements of the input each window holds along one axis, by where it starts: k of start + k dilation inside.
Expr counts_along(Graph& graph, const WindowAttr& attr, std::size_t s, std::int64_t extent, std::int64_t places) {
  const double dilation = static_cast<double>(attr.dilation[s]);
  const Expr start = iota(graph, Shape{places}, 0) * static_cast<double>(attr.stride[s]) - static_cast<double>(attr.pad_low[s]);
  const Expr first = maximum(-floor_div(start, dilation), 0.0);
  const Expr last = minimum(floor_div(static_cast<double>(extent - 1) - start, dilation), static_cast<double>(attr.size[s] - 1));
  return last - first + 1.0;
}

template <int n>
Results avg_pool(const OpCall& call) {
  Pool pool = pooled(call, n);
  pool.x = floating(pool.x);
  WindowAttr attr = window(call, n);
  attr.max = false;
  Expr y = apply_window(pool.x, attr);
  const bool padded = std::any_of(attr.pad_low.begin(), attr.pad_low.end(), [](std::int64_t p) { return p > 0; }) ||
                      std::any_of(attr.pad_high.begin(), attr.pad_high.end(), [](std::int64_t p) { return p > 0; });
  if (!padded || call.boolean("count_include_pad"))
    return pool.result(
        y / (static_cast<double>(attr.size[0]) * static_cast<double>(attr.size[1]) * static_cast<double>(attr.size[2])));
  // The number of elements in a window is the product of its numbers along the axes.
  for (int i = 0; i < n; ++i) {
    const Expr count = counts_along(call.graph(), attr, static_cast<std::size_t>(i), pool.x.extent(i + 2), y.extent(i + 2));
    y = y / along(cast(count, compute_dtype(y.dtype())), i + 2, y.rank());
  }
  return pool.result(cast(y, pool.x.dtype()));
}

// Window i of |out| over an axis of |in|: from floor(i in / out) up to ceil((i + 1) in / out). Shorter windows than the longest
// repeat their last element: a maximum does not change, and a sum leaves it out.
struct AdaptiveWindows {
  Expr places;     // [out, longest], i64
  Expr is_inside;  // [out, longest], bool
  Expr counts;     // [out], of |dtype|
};
AdaptiveWindows computed_windows(Graph& graph, std::int64_t in, std::int64_t out, std::int64_t longest, DType dtype) {
  const double inputs = static_cast<double>(in), outputs = static_cast<double>(out);
  const Shape table{out, longest};
  const Expr i = iota(graph, table, 0);
  const Expr first = floor_div(i * inputs, outputs), end = floor_div((i + 1.0) * inputs + (outputs - 1), outputs);
  const Expr place = first + iota(graph, table, 1);
  return {minimum(place, end - 1.0), place < end, cast(squeeze(narrow(end - first, 1, 0, 1), one_axis(1)), dtype)};
}
// Elements that come after the first |late| of every in / out, which a window surely holds.
struct Core {
  std::int64_t late = 0, count = 0;
};
// The same as constants, without |core|: |longest| counts what remains.
AdaptiveWindows known_windows(Graph& graph, std::int64_t in, std::int64_t out, std::int64_t longest, Core core, DType dtype) {
  HostArray places = HostArray::empty(DType::i64, Shape{out, longest}),
            is_inside = HostArray::empty(DType::boolean, Shape{out, longest}), counts = HostArray::empty(DType::f64, Shape{out});
  std::int64_t* place = places.mutable_view<std::int64_t>().data();
  std::uint8_t* inside = is_inside.mutable_view<std::uint8_t>().data();
  for (std::int64_t i = 0; i < out; ++i) {
    const std::int64_t first = i * in / out, end = ((i + 1) * in + out - 1) / out;
    counts.mutable_view<double>()[static_cast<std::size_t>(i)] = static_cast<double>(end - first);
    for (std::int64_t k = 0; k < longest; ++k) {
      const std::int64_t at = first + k < i * (in / out) + core.late ? first + k : first + k + core.count;
      *place++ = std::min(at, end - 1);
      *inside++ = at < end;
    }
  }
  return {{graph, graph.constant(places)}, {graph, graph.constant(is_inside)}, {graph, graph.constant(counts.cast(dtype))}};
}

template <bool max>
Expr adaptive_axis(Expr x, int axis, std::int64_t out) {
  constexpr std::int64_t kFewPlaces = 4096;  // whose kernels would take longer than the pooling itself
  constexpr std::int64_t kLongCore = 64;     // so much longer than what is looked up that another kernel pays
  const std::int64_t in = x.extent(axis);
  const AxisSet window = one_axis(axis + 1);
  if (in % out == 0) {
    Dims split = dims(x.shape());
    split[static_cast<std::size_t>(axis)] = out;
    split.insert(split.begin() + axis + 1, in / out);
    const Expr windows = reshape(x, Shape(split));
    return squeeze(max ? max_keep(windows, window) : mean_keep(windows, window), window);
  }
  std::int64_t longest = 0;
  for (std::int64_t i = 0; i < out; ++i) longest = std::max(longest, ((i + 1) * in + out - 1) / out - i * in / out);
  // Window i begins at most |late| elements after i * step and ends after the next step: what is between is read where it is, and
  // only the rest is looked up.
  const std::int64_t step = in / out, late = (out - 1) * (in % out) / out;
  Core core;
  if (step - late >= kLongCore && in < (std::int64_t{1} << 31) && out * (longest - (step - late)) <= kFewPlaces)
    core = {late, step - late};
  longest -= core.count;
  const DType counted = compute_dtype(x.dtype());
  const AdaptiveWindows table = out * longest <= kFewPlaces ? known_windows(x.graph(), in, out, longest, core, counted)
                                                            : computed_windows(x.graph(), in, out, longest, counted);
  const auto in_core = [&] {
    Dims split = dims(x.shape());
    split[static_cast<std::size_t>(axis)] = out;
    split.insert(split.begin() + axis + 1, step);
    return narrow(reshape(narrow(x, axis, 0, out * step), Shape(split)), axis + 1, core.late, core.count);
  };
  const Expr windows = take(x, table.places, axis);
  if constexpr (max) {
    const Expr largest = max_keep(windows, window);
    return squeeze(core.count > 0 ? maximum(largest, max_keep(in_core(), window)) : largest, window);
  }
  Dims around(static_cast<std::size_t>(windows.rank()), 1);
  around[static_cast<std::size_t>(axis)] = out;
  around[static_cast<std::size_t>(axis) + 1] = longest;
  Expr sums = sum_keep(where(reshape(table.is_inside, Shape(around)), windows, 0.0), window);
  if (core.count > 0) sums = sums + sum_keep(in_core(), window);
  return squeeze(cast(sums / along(table.counts, axis, sums.rank()), x.dtype()), window);
}

template <int n, bool max>
Results adaptive_pool(const OpCall& call) {
  Pool pool = pooled(call, n);
  if constexpr (!max) pool.x = floating(pool.x);
  const Spatial out = spatial(call, "output_size", n, 1);
  const bool is_global = std::all_of(out.begin(), out.begin() + n, [](std::int64_t places) { return places == 1; });
  for (int i = 0; i < n; ++i)
    if (pool.x.extent(i + 2) == 0) call.fail("a spatial axis is empty, so there is nothing to pool");
  if (is_global) {
    const auto axes = static_cast<AxisSet>(all_axes(n + 2) & ~3u);
    return pool.result(max ? max_keep(pool.x, axes) : mean_keep(pool.x, axes));
  }
  // Means of means are rounded once.
  const DType dtype = pool.x.dtype();
  Expr y = max ? pool.x : cast(pool.x, compute_dtype(dtype));
  for (int i = 0; i < n; ++i) y = adaptive_axis<max>(y, i + 2, out[static_cast<std::size_t>(i)]);
  y = cast(y, dtype);
  constexpr std::int64_t kLongest = std::int64_t{1} << 31;
  const bool fits = std::ranges::all_of(dims(pool.x.shape()), [](std::int64_t extent) { return extent <= kLongest; });
  if (is_float(dtype) && fits) call.graph().mark({{pool.x.id()}, y.id(), AdaptivePoolAttr{max}});
  return pool.result(y);
}

template <bool max>
Results global_pool(const OpCall& call) {
  const Expr x = input(call, 0);
  if (x.rank() < 3) call.fail("expected [n, channels, spatial...]");
  const AxisSet axes = static_cast<AxisSet>(all_axes(x.rank()) & ~3u);
  if (max && extent_of(x.shape(), axes) == 0) call.fail("a spatial axis is empty, so there is nothing to pool");
  return {(max ? max_keep(x, axes) : mean_keep(x, axes)).id()};
}

Family pooling_family() { return {.category = "pooling", .dtypes = number_dtypes()}; }

void add_pools(OpList& ops, int n, const std::string& x, Results (*max)(const OpCall&), Results (*avg)(const OpCall&),
               Results (*adaptive_max)(const OpCall&), Results (*adaptive_avg)(const OpCall&)) {
  const std::string axes = n == 1 ? "1 spatial axis" : fmt::format("{} spatial axes", n);
  const Parameter kernel =
      at_least(required_integers_parameter("kernel", "extent of the window, one for all axes or one per axis"), 1);
  std::vector<Parameter> parameters{kernel, stride_parameter("the kernel"), padding_parameter(), dilation_parameter()};
  Entry(ops, pooling_family(), fmt::format("max_pool{}d", n), max)
      .parameters(parameters)
      .formula("y = max over a window")
      .doc(fmt::format("Largest element of each window over {}.", axes))
      .example(fmt::format("max_pool{}d({}, kernel=2)", n, x));
  parameters.push_back(boolean_parameter("count_include_pad", true, "include the zeros of the border in the mean"));
  Entry(ops, pooling_family(), fmt::format("avg_pool{}d", n), avg)
      .parameters(parameters)
      .formula("y = mean over a window")
      .doc(fmt::format("Mean of each window over {}.", axes))
      .example(fmt::format("avg_pool{}d({}, kernel=2)", n, x));
  Parameter size = required_integers_parameter("output_size", "extents of the result, one for all axes or one per axis");
  size.min = 1.0;
  size.max = 65536.0;
  Entry(ops, pooling_family(), fmt::format("adaptive_max_pool{}d", n), adaptive_max)
      .parameters({size})
      .formula("y_i = max x[floor(i n / m) : ceil((i + 1) n / m)]")
      .doc(fmt::format("Maximum of each window over {}, with the windows chosen to give the requested output size.", axes))
      .example(fmt::format("adaptive_max_pool{}d({}, output_size=1)", n, x));
  Entry(ops, pooling_family(), fmt::format("adaptive_avg_pool{}d", n), adaptive_avg)
      .parameters({size})
      .formula("y_i = mean x[floor(i n / m) : ceil((i + 1) n / m)]")
      .doc(fmt::format("Mean of each window over {}, with the windows chosen to give the requested output size.", axes))
      .example(fmt::format("adaptive_avg_pool{}d({}, output_size=1)", n, x));
}

}  // namespace

void register_pooling_ops(OpList& ops) {
  add_pools(ops, 1, "[[[1.0, 2.0, 3.0, 4.0]]]", max_pool<1>, avg_pool<1>, adaptive_pool<1, true>, adaptive_pool<1, false>);
  add_pools(ops, 2, "[[[[1.0, 2.0], [3.0, 4.0]]]]", max_pool<2>, avg_pool<2>, adaptive_pool<2, true>, adaptive_pool<2, false>);
  add_pools(ops, 3, "[[[[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]]]]", max_pool<3>, avg_pool<3>, adaptive_pool<3, true>,
            adaptive_pool<3, false>);
  Entry(ops, pooling_family(), "global_avg_pool", global_pool<false>)
      .formula("mean over the spatial axes")
      .doc("Mean of each channel of [n, channels, ...].")
      .example("global_avg_pool([[[[1.0, 2.0], [3.0, 4.0]]]])");
  Entry(ops, pooling_family(), "global_max_pool", global_pool<true>)
      .formula("max over the spatial axes")
      .doc("Largest element of each channel of [n, channels, ...].")
      .example("global_max_pool([[[[1.0, 2.0], [3.0, 4.0]]]])");
}

}  // namespace tenon
