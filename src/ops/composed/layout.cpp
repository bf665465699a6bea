#include <fmt/format.h>

#include <algorithm>

#include "ops/build.h"
#include "ops/parameters.h"
#include "ops/register.h"
#include "ops/whole_number.h"

namespace tenon {
namespace {

using namespace build;
using Results = std::vector<NodeId>;

// Every element of one axis |count| times: the whole axis over and over, or each element by itself.
Expr repeated(Expr x, int axis, std::int64_t count, bool each) {
  if (count == 1) return x;
  const Shape shape = x.shape();
  const int place = each ? axis + 1 : axis;
  Dims stretched = dims(shape);
  stretched.insert(stretched.begin() + place, count);
  return build::reshape(build::broadcast(build::unsqueeze(x, place), Shape(stretched)), shape.with(axis, shape[axis] * count));
}

void check_rank_for_repeat(const OpCall& call, Expr x) {
  if (x.rank() >= kMaxRank) call.fail(fmt::format("the input may have at most {} axes", kMaxRank - 1));
}

Results tile(const OpCall& call) {
  Expr x = input(call, 0);
  std::vector<std::int64_t> reps = call.integers("reps");
  while (x.rank() < static_cast<int>(reps.size())) x = build::unsqueeze(x, 0);
  while (static_cast<int>(reps.size()) < x.rank()) reps.insert(reps.begin(), 1);
  check_rank_for_repeat(call, x);
  for (int axis = 0; axis < x.rank(); ++axis) x = repeated(x, axis, reps[static_cast<std::size_t>(axis)], false);
  return {x.id()};
}

Results repeat(const OpCall& call) {
  Expr x = input(call, 0);
  if (!call.given("axis")) x = build::reshape(x, Shape{x.shape().elements()});
  check_rank_for_repeat(call, x);
  const int axis = call.given("axis") ? call.axis("axis", x.rank()) : 0;
  return {repeated(x, axis, call.integer("repeats"), true).id()};
}

Results flip(const OpCall& call) {
  Expr x = input(call, 0);
  const AxisSet axes = call.axes("axis", x.rank());
  for (int i = 0; i < x.rank(); ++i)
    if (axes & one_axis(i)) x = reverse(x, i);
  return {x.id()};
}

Expr rolled(Expr x, int axis, std::int64_t shift) {
  const std::int64_t n = x.extent(axis);
  if (n == 0) return x;
  const std::int64_t by = ((shift % n) + n) % n;
  if (by == 0) return x;
  const Expr parts[] = {narrow(x, axis, n - by, by), narrow(x, axis, 0, n - by)};
  return build::concat(parts, axis);
}

Results roll(const OpCall& call) {
  Expr x = input(call, 0);
  const std::vector<std::int64_t> shifts = call.integers("shift");
  if (!call.given("axis")) {
    if (shifts.size() != 1) call.fail("several shifts need the same number of axes");
    const Expr flat = build::reshape(x, Shape{x.shape().elements()});
    return {build::reshape(rolled(flat, 0, shifts[0]), x.shape()).id()};
  }
  const std::vector<std::int64_t> axes = call.integers("axis");
  if (axes.size() != shifts.size() && shifts.size() != 1)
    call.fail(fmt::format("{} shifts, but {} axes", shifts.size(), axes.size()));
  for (std::size_t i = 0; i < axes.size(); ++i)
    x = rolled(x, normalize_axis(axes[i], x.rank()), shifts.size() == 1 ? shifts[0] : shifts[i]);
  return {x.id()};
}

Results concat_op(const OpCall& call) {
  const int axis = call.axis("axis", call.node(0).shape.rank());
  return {call.graph().concat(call.inputs(), axis)};
}

Results stack(const OpCall& call) {
  std::vector<Expr> parts;
  const Shape first = call.node(0).shape;
  if (first.rank() >= kMaxRank) call.fail(fmt::format("the input may have at most {} axes", kMaxRank - 1));
  const int axis = call.axis("axis", first.rank() + 1);
  for (std::size_t i = 0; i < call.inputs().size(); ++i) {
    if (!(call.node(i).shape == first)) call.fail("all tensors must have the same shape");
    parts.push_back(build::unsqueeze(input(call, i), axis));
  }
  return {build::concat(parts, axis).id()};
}

Results in_parts(Expr x, int axis, const std::vector<std::int64_t>& sizes) {
  Results parts;
  std::int64_t at = 0;
  for (std::int64_t size : sizes) {
    parts.push_back(narrow(x, axis, size > 0 ? at : 0, size).id());
    at += size;
  }
  return parts;
}

constexpr std::int64_t kMaxParts = 4096;

Results split(const OpCall& call) {
  const Expr x = input(call, 0);
  const int axis = call.axis("axis", x.rank());
  const std::int64_t n = x.extent(axis);
  std::vector<std::int64_t> sizes = call.integers("sections");
  if (sizes.size() == 1) {
    const std::int64_t parts = sizes[0];
    if (parts < 1 || parts > kMaxParts || n % parts != 0)
      call.fail(fmt::format("{} elements cannot be split into {} equal parts", n, parts),
                "pass the sizes as a list, or use chunk");
    sizes.assign(static_cast<std::size_t>(parts), n / parts);
  }
  std::int64_t total = 0;
  for (std::int64_t size : sizes) {
    if (size < 0 || size > n) call.fail(fmt::format("a part has {} elements, but the axis has {}", size, n));
    total += size;
  }
  if (total != n) call.fail(fmt::format("the parts add up to {} elements, but the axis has {}", total, n));
  return in_parts(x, axis, sizes);
}

Results chunk(const OpCall& call) {
  const Expr x = input(call, 0);
  const int axis = call.axis("axis", x.rank());
  const std::int64_t n = x.extent(axis), chunks = call.integer("chunks"),
                     size = std::max<std::int64_t>(1, (n + chunks - 1) / chunks);
  std::vector<std::int64_t> sizes;
  for (std::int64_t at = 0; at < n; at += size) sizes.push_back(std::min(size, n - at));
  if (sizes.empty()) sizes.push_back(0);
  return in_parts(x, axis, sizes);
}

// Python's slice of an axis of n elements: where it starts and how many it takes.
std::pair<std::int64_t, std::int64_t> resolve(std::int64_t n, std::int64_t start, std::optional<std::int64_t> stop,
                                              std::int64_t step) {
  const std::int64_t lowest = step > 0 ? 0 : -1, highest = step > 0 ? n : n - 1;
  const auto place = [&](std::int64_t i) { return std::clamp(i < 0 ? i + n : i, lowest, highest); };
  const std::int64_t first = place(start), end = stop ? place(*stop) : (step > 0 ? n : -1);
  const std::int64_t distance = step > 0 ? end - first : first - end, stride = step > 0 ? step : -step;
  const std::int64_t count = distance > 0 ? (distance - 1) / stride + 1 : 0;
  return {count > 0 ? first : 0, count};
}

Results slice(const OpCall& call) {
  const Expr x = input(call, 0);
  const std::vector<std::int64_t> start = call.integers("start");
  const auto optional = [&](const char* name) {
    std::vector<std::int64_t> values = call.given(name) ? call.integers(name) : std::vector<std::int64_t>{};
    if (!values.empty() && values.size() != start.size())
      call.fail(fmt::format("{} has {} entries, but start has {}", name, values.size(), start.size()));
    return values;
  };
  const std::vector<std::int64_t> stop = optional("stop"), step = optional("step"), axes = optional("axis");
  Expr y = x;
  for (std::size_t i = 0; i < start.size(); ++i) {
    const int axis = normalize_axis(axes.empty() ? static_cast<std::int64_t>(i) : axes[i], x.rank());
    const std::int64_t by = step.empty() ? 1 : step[i];
    if (by == 0) call.fail("step must not be 0");
    const auto [first, count] = resolve(y.extent(axis), start[i], stop.empty() ? std::nullopt : std::optional(stop[i]), by);
    y = narrow(y, axis, first, count, count > 1 ? by : 1);
  }
  return {y.id()};
}

// What stands at place i - low of an axis that goes on beyond its ends.
Expr border_index(Graph& graph, std::int64_t n, std::int64_t low, std::int64_t high, const std::string& mode) {
  const Expr place = iota(graph, Shape{n + low + high}, 0) - static_cast<double>(low);
  const double last = static_cast<double>(n - 1);
  if (mode == "edge" || n == 1) return minimum(maximum(place, 0.0), last);
  const double period = mode == "wrap" ? static_cast<double>(n) : 2 * last;
  const Expr within = place - floor_div(place, period) * period;
  return mode == "wrap" ? within : minimum(within, period - within);
}

// An axis with the borders of |mode|, which are not wider than the axis allows: parts of it, in the other order where they are
// reflected.
Expr with_borders(Expr x, int axis, std::int64_t low, std::int64_t high, const std::string& mode) {
  const std::int64_t n = x.extent(axis);
  std::vector<Expr> parts;
  const auto add = [&](std::int64_t first, std::int64_t count) {
    if (count == 0) return;
    const Expr part = narrow(x, axis, first, mode == "edge" ? 1 : count);
    if (mode == "edge")
      parts.push_back(build::broadcast(part, x.shape().with(axis, count)));
    else
      parts.push_back(mode == "reflect" ? reverse(part, axis) : part);
  };
  add(mode == "wrap" ? n - low : mode == "reflect" ? 1 : 0, low);
  parts.push_back(x);
  add(mode == "wrap" ? 0 : mode == "reflect" ? n - 1 - high : n - 1, high);
  return build::concat(parts, axis);
}

Results pad(const OpCall& call) {
  Expr x = input(call, 0);
  const std::vector<std::int64_t> given = call.integers("padding");
  const std::size_t rank = static_cast<std::size_t>(x.rank());
  Dims low(rank, 0), high(rank, 0);
  if (given.size() != 1 && given.size() != 2 && given.size() != 2 * rank)
    call.fail(fmt::format("padding needs 1, 2 or {} numbers, got {}", 2 * rank, given.size()));
  for (std::size_t i = 0; i < rank; ++i) {
    const bool each = given.size() == 2 * rank && given.size() > 2;
    low[i] = each ? given[2 * i] : given[0];
    high[i] = each ? given[2 * i + 1] : given.back();
  }
  const std::string& mode = call.text("mode");
  if (mode == "constant") {
    const std::optional<std::int64_t> whole = is_integer(x.dtype()) ? whole_number(call, "value") : std::nullopt;
    if (!whole || is_exact_double(*whole)) return {call.graph().pad(x.id(), low, high, call.number("value"))};
    // The node has a double; sums of integers wrap, so a border of zeros can be shifted to any number.
    const Expr value(call.graph(), call.graph().literal(*whole)), shifted = x - value;
    return {(Expr(call.graph(), call.graph().pad(shifted.id(), low, high, 0)) + value).id()};
  }
  for (std::size_t i = 0; i < rank; ++i) {
    const int axis = static_cast<int>(i);
    if (low[i] == 0 && high[i] == 0) continue;
    if (x.extent(axis) == 0) call.fail(fmt::format("axis {} is empty, so its border cannot be filled", axis));
    const std::int64_t widest = mode == "edge" ? kMaxElements : mode == "wrap" ? x.extent(axis) : x.extent(axis) - 1;
    if (low[i] <= widest && high[i] <= widest) {
      x = with_borders(x, axis, low[i], high[i], mode);
      continue;
    }
    x = build::take(x, border_index(call.graph(), x.extent(axis), low[i], high[i], mode), axis);
  }
  return {x.id()};
}

Family shape_family() { return {.category = "shape"}; }

Parameter bounded(Parameter p, double min, double max) {
  p.min = min;
  p.max = max;
  return p;
}

constexpr double kMaxCount = static_cast<double>(std::int64_t{1} << 20);
constexpr double kMaxPadding = 2147483647.0;
constexpr double kMaxStep = static_cast<double>(kMaxElements);

}  // namespace

void register_layout_ops(OpList& ops) {
  Entry(ops, shape_family(), "tile", tile)
      .parameters({bounded(required_integers_parameter("reps", "number of repetitions along each axis"), 0, kMaxCount)})
      .formula("x x x ...")
      .doc("Repeats the whole tensor along its axes.")
      .example("tile([1, 2], reps=[2, 2])");
  Entry(ops, shape_family(), "repeat", repeat)
      .parameters({bounded(count_parameter("repeats", "number of repetitions of each element"), 0, kMaxCount),
                   optional_axis_parameter("axis to repeat along; default: the flattened tensor")})
      .aliases({"repeat_interleave"})
      .formula("x1 x1 x2 x2 ...")
      .doc("Repeats each element.")
      .example("repeat([1, 2, 3], repeats=2)");
  Entry(ops, shape_family(), "flip", flip)
      .parameters({axes_parameter("axes to reverse; default: all")})
      .formula("y_i = x_(n - 1 - i)")
      .doc("Reverses the order of elements along axes.")
      .example("flip([1, 2, 3])");
  Entry(ops, shape_family(), "roll", roll)
      .parameters({required_integers_parameter("shift", "number of positions to shift by, one for all axes or one per axis"),
                   optional_integers_parameter("axis", "axes to shift along; default: the flattened tensor")})
      .formula("y_i = x_((i - shift) mod n)")
      .doc("Shifts elements; those shifted past the end reappear at the start.")
      .example("roll([1, 2, 3, 4], shift=1)");
  Entry(ops, shape_family(), "concat", concat_op)
      .any_number_of("tensors")
      .parameters({axis_parameter(0, "axis to join along")})
      .aliases({"cat", "concatenate"})
      .formula("x1 x2 ...")
      .doc("Concatenates tensors along an existing axis.")
      .example("concat([1, 2], [3], axis=0)");
  Entry(ops, shape_family(), "stack", stack)
      .any_number_of("tensors")
      .parameters({axis_parameter(0, "position of the new axis")})
      .formula("[x1, x2, ...]")
      .doc("Joins tensors of the same shape along a new axis.")
      .example("stack([1, 2], [3, 4], axis=0)");
  Entry(ops, shape_family(), "split", split)
      .parameters({required_integers_parameter("sections", "number of equal parts, or a list of their extents"),
                   axis_parameter(0, "axis to split")})
      .formula("x -> x1, x2, ...")
      .doc("Splits a tensor along an axis; one result per part.")
      .example("split([1, 2, 3, 4], sections=2)");
  Entry(ops, shape_family(), "chunk", chunk)
      .parameters({{.name = "chunks",
                    .type = ParameterType::integer,
                    .required = true,
                    .min = 1.0,
                    .max = kMaxParts,
                    .doc = "maximum number of parts"},
                   axis_parameter(0, "axis to split")})
      .formula("x -> x1, x2, ...")
      .doc("Splits a tensor into parts of equal extent, the last of which may be smaller; one result per part.")
      .example("chunk([1, 2, 3, 4, 5], chunks=2)");
  Entry(ops, shape_family(), "slice", slice)
      .parameters({required_integers_parameter("start", "start index for each axis"),
                   optional_integers_parameter("stop", "end index (exclusive) for each axis; default: the whole axis"),
                   bounded(optional_integers_parameter("step", "step for each axis; default 1"), -kMaxStep, kMaxStep),
                   optional_integers_parameter("axis", "axes to slice; default: the first ones")})
      .formula("x[start:stop:step]")
      .doc("Slices a tensor by Python's rules. Also x[1:3, ::2].")
      .example("slice([1, 2, 3, 4, 5], start=1, stop=4, step=2)");
  Entry(ops, shape_family(), "pad", pad)
      .parameters({bounded(required_integers_parameter(
                               "padding", "width of the border: one number, one before and one after, or both for each axis"),
                           0, kMaxPadding),
                   choice_parameter("mode", {"constant", "edge", "reflect", "wrap"}, "how the border is filled"),
                   number_parameter("value", 0, "value of a constant border")})
      .formula("v v x1 x2 ... v v")
      .doc("Adds a border to a tensor: a constant, the edge, a reflection, or the opposite end.")
      .example("pad([1, 2, 3], padding=[1, 2], mode=\"edge\")");
}

}  // namespace tenon
