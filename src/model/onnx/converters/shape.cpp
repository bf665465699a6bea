#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "model/onnx/converters/families.h"
#include "model/onnx/import/importer.h"
#include "model/onnx/tensor_data.h"

namespace tenon::onnx {
namespace {

using namespace build;

HostArray list(const Dims& values) {
  return HostArray::from<std::int64_t>(Shape{static_cast<std::int64_t>(values.size())}, values);
}

// An attribute in old opsets, an input in new ones.
std::optional<Dims> attribute_or_input(const NodeContext& node, std::string_view attribute, std::size_t input) {
  if (node.has(input)) return node.host_integers(input);
  if (node.given(attribute)) return node.integers(attribute);
  return std::nullopt;
}

// Elements of strings have no graph: their order is worked out with their indices.
Result rearranged(const NodeContext& node, std::size_t input, const std::function<Expr(Expr)>& rearrange) {
  if (!node.value(input)->is_string()) return moved(node, input, rearrange(node.in(input)));
  node.refuse("strings cannot be rearranged");
}

Results shape_op(const NodeContext& node) {
  const Dims all = dims(node.shape(0));
  const std::int64_t rank = static_cast<std::int64_t>(all.size());
  const auto bound = [&](std::int64_t value) { return std::clamp<std::int64_t>(value < 0 ? value + rank : value, 0, rank); };
  const std::int64_t start = bound(node.integer("start", 0)), end = std::max(start, bound(node.integer("end", rank)));
  return {list(Dims(all.begin() + start, all.begin() + end))};
}

Results size_op(const NodeContext& node) { return {HostArray::from<std::int64_t>({}, {node.shape(0).elements()})}; }

Results reshape_op(const NodeContext& node) {
  Dims wanted = node.version() < 5 ? node.integers("shape") : node.host_integers(1);
  const Shape& from = node.shape(0);
  const bool copies = node.integer("allowzero", 0) == 0;
  std::int64_t known = 1, unknown = -1;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] == 0 && copies) {
      if (static_cast<int>(i) >= from.rank())
        node.fail(fmt::format("extent {} is to be copied, but the input has the shape {}", i, to_string(from)));
      wanted[i] = from[static_cast<int>(i)];
    }
    if (wanted[i] == -1) {
      if (unknown >= 0) node.fail("two extents are -1");
      unknown = static_cast<std::int64_t>(i);
    } else {
      known *= wanted[i];
    }
  }
  if (unknown >= 0) {
    if (known == 0 || from.elements() % known != 0)
      node.fail(fmt::format("{} elements cannot be divided by {}", from.elements(), known));
    wanted[static_cast<std::size_t>(unknown)] = from.elements() / known;
  }
  return {rearranged(node, 0, [&](Expr x) { return reshape(x, Shape(wanted)); })};
}

Results flatten(const NodeContext& node) {
  const Shape& shape = node.shape(0);
  std::int64_t axis = node.integer("axis", 1);
  if (axis < 0) axis += shape.rank();
  if (axis < 0 || axis > shape.rank()) node.fail(fmt::format("axis {} is out of range", axis));
  std::int64_t rows = 1;
  for (int i = 0; i < axis; ++i) rows *= shape[i];
  const std::int64_t columns = std::accumulate(shape.begin() + axis, shape.end(), std::int64_t{1}, std::multiplies<>());
  return {moved(node, 0, reshape(node.in(0), Shape{rows, columns}))};
}

Results squeeze_op(const NodeContext& node) {
  const Shape& shape = node.shape(0);
  const std::optional<Dims> given = attribute_or_input(node, "axes", 1);
  Dims left;
  const AxisSet removed = given ? axis_set(node.axes_of(*given, shape.rank())) : 0;
  for (int i = 0; i < shape.rank(); ++i) {
    const bool is_removed = given ? (removed >> i & 1) != 0 : shape[i] == 1;
    if (is_removed && shape[i] != 1) node.fail(fmt::format("axis {} of {} cannot be removed", i, to_string(shape)));
    if (!is_removed) left.push_back(shape[i]);
  }
  return {moved(node, 0, reshape(node.in(0), Shape(left)))};
}

Results unsqueeze_op(const NodeContext& node) {
  const Shape& shape = node.shape(0);
  const std::optional<Dims> given = attribute_or_input(node, "axes", 1);
  if (!given) node.fail("the axes are missing");
  const int rank = shape.rank() + static_cast<int>(given->size());
  if (rank > kMaxRank) node.refuse(fmt::format("{} axes; at most {} are supported", rank, kMaxRank));
  const AxisSet added = axis_set(node.axes_of(*given, rank));
  Dims result;
  for (int i = 0, from = 0; i < rank; ++i) result.push_back(added >> i & 1 ? 1 : shape[from++]);
  return {rearranged(node, 0, [&](Expr x) { return reshape(x, Shape(result)); })};
}

Results transpose_op(const NodeContext& node) {
  const int rank = node.rank(0);
  std::vector<int> order;
  if (node.given("perm"))
    for (const std::int64_t axis : node.integers("perm")) order.push_back(normalize_axis(axis, rank));
  else
    for (int i = rank; i-- > 0;) order.push_back(i);
  if (static_cast<int>(order.size()) != rank) node.fail(fmt::format("perm has {} axes, the input {}", order.size(), rank));
  return {moved(node, 0, transpose(node.in(0), order))};
}

Results expand(const NodeContext& node) {
  const Dims wanted = node.host_integers(1);
  const Shape to = broadcast(node.shape(0), Shape(wanted));
  return {moved(node, 0, expand_to(node.in(0), to))};
}

Results tile(const NodeContext& node) {
  Expr x = node.in(0);
  Dims repeats;
  if (node.version() < 6) {
    repeats.assign(static_cast<std::size_t>(x.rank()), 1);
    repeats[static_cast<std::size_t>(normalize_axis(node.host_integers(2).at(0), x.rank()))] = node.host_integers(1).at(0);
  } else {
    repeats = node.host_integers(1);
  }
  if (static_cast<int>(repeats.size()) != x.rank()) node.fail(fmt::format("{} repeats for {} axes", repeats.size(), x.rank()));
  for (int axis = 0; axis < x.rank(); ++axis) {
    const std::int64_t count = repeats[static_cast<std::size_t>(axis)];
    if (count == 1) continue;
    if (count < 0) node.fail("repeats must not be negative");
    // One axis at a time, so that the rank grows by no more than one.
    const Shape shape = x.shape();
    if (x.rank() < kMaxRank) {
      Dims stretched = dims(shape);
      stretched.insert(stretched.begin() + axis, count);
      x = reshape(broadcast(unsqueeze(x, axis), Shape(stretched)), shape.with(axis, shape[axis] * count));
    } else {
      const std::vector<Expr> parts(static_cast<std::size_t>(count), x);
      x = concat(parts, axis);
    }
  }
  return {moved(node, 0, x)};
}

Results concat_op(const NodeContext& node) {
  const int axis = node.axis("axis", 1, node.rank(0));
  if (node.value(0)->is_string()) {
    if (node.rank(0) != 1) node.refuse("strings are joined along one axis only");
    std::vector<std::string> all;
    for (std::size_t i = 0; i < node.inputs(); ++i)
      all.insert(all.end(), node.value(i)->strings->begin(), node.value(i)->strings->end());
    const Shape shape{static_cast<std::int64_t>(all.size())};
    return {text(shape, std::move(all))};
  }
  std::vector<Expr> parts;
  for (std::size_t i = 0; i < node.inputs(); ++i) parts.push_back(node.in(i));
  return {moved(node, 0, concat(parts, axis))};
}

Results split(const NodeContext& node) {
  const Expr x = node.in(0);
  const int axis = node.axis("axis", 0, x.rank());
  std::optional<Dims> parts = attribute_or_input(node, "split", 1);
  if (!parts) {
    const std::int64_t count = node.integer("num_outputs", static_cast<std::int64_t>(node.node().outputs.size()));
    if (count <= 0) node.fail("num_outputs must be positive");
    const std::int64_t size = (x.extent(axis) + count - 1) / count;
    parts.emplace();
    for (std::int64_t i = 0; i < count; ++i) parts->push_back(std::clamp<std::int64_t>(x.extent(axis) - i * size, 0, size));
  }
  Results results;
  std::int64_t start = 0;
  for (const std::int64_t size : *parts) {
    if (size < 0 || start + size > x.extent(axis)) node.fail(fmt::format("the parts do not add up to {}", x.extent(axis)));
    results.push_back(moved(node, 0, narrow(x, axis, start, size)));
    start += size;
  }
  if (start != x.extent(axis)) node.fail(fmt::format("the parts add up to {}, not to {}", start, x.extent(axis)));
  return results;
}

Results slice(const NodeContext& node) {
  const Shape& shape = node.shape(0);
  Dims starts, ends, axes, steps;
  if (node.version() < 10) {
    starts = node.integers("starts");
    ends = node.integers("ends");
    axes = node.integers("axes");
  } else {
    starts = node.host_integers(1);
    ends = node.host_integers(2);
    if (node.has(3)) axes = node.host_integers(3);
    if (node.has(4)) steps = node.host_integers(4);
  }
  if (axes.empty())
    for (std::size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  if (steps.empty()) steps.assign(starts.size(), 1);
  if (starts.size() != ends.size() || axes.size() != starts.size() || steps.size() != starts.size())
    node.fail("starts, ends, axes and steps differ in length");
  Dims start(static_cast<std::size_t>(shape.rank()), 0), count = dims(shape), step(static_cast<std::size_t>(shape.rank()), 1);
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const int axis = normalize_axis(axes[i], shape.rank());
    const std::int64_t extent = shape[axis], by = steps[i];
    if (by == 0) node.fail("a step is 0");
    const auto bound = [&](std::int64_t value, std::int64_t low, std::int64_t high) {
      if (value < 0) value = value < -extent ? -1 : value + extent;
      return std::clamp(value, low, high);
    };
    // -1 stands for "before the first" where the step is negative.
    const std::int64_t from = by > 0 ? bound(starts[i], 0, extent) : bound(starts[i], -1, extent - 1);
    const std::int64_t to = by > 0 ? bound(ends[i], 0, extent) : bound(ends[i], -1, extent - 1);
    const std::int64_t length = by > 0 ? to - from : from - to,
                       size = by > 0 ? by : (by == std::numeric_limits<std::int64_t>::min() ? extent + 1 : -by);
    const auto a = static_cast<std::size_t>(axis);
    count[a] = length <= 0 ? 0 : (length + size - 1) / size;
    start[a] = count[a] == 0 ? 0 : from;
    step[a] = count[a] <= 1 ? 1 : by;
  }
  const Expr x = node.in(0);
  return {moved(node, 0, Expr(node.graph(), node.graph().slice(x.id(), start, count, step)))};
}

// Where each element of a padded axis comes from; -1 for the constant.
Dims padded_places(const NodeContext& node, const std::string& mode, std::int64_t extent, std::int64_t low, std::int64_t high) {
  Dims places;
  for (std::int64_t i = -low; i < extent + high; ++i) {
    std::int64_t place = i;
    if (place < 0 || place >= extent) {
      if (extent == 0) node.fail("an empty axis cannot be padded with its own elements");
      if (mode == "edge") place = std::clamp<std::int64_t>(place, 0, extent - 1);
      if (mode == "wrap") place = (place % extent + extent) % extent;
      if (mode == "reflect") {
        const std::int64_t period = std::max<std::int64_t>(2 * (extent - 1), 1);
        place = (place % period + period) % period;
        if (place >= extent) place = period - place;
      }
    }
    places.push_back(place);
  }
  return places;
}

Results pad(const NodeContext& node) {
  const std::string mode = node.text("mode", "constant");
  if (mode != "constant" && mode != "edge" && mode != "reflect" && mode != "wrap")
    node.refuse(fmt::format("the mode '{}'", mode));
  Expr x = node.in(0);
  const Dims pads = node.version() < 2    ? node.integers("paddings")
                    : node.version() < 11 ? node.integers("pads")
                                          : node.host_integers(1);
  Dims axes;
  if (node.has(3))
    axes = node.host_integers(3);
  else
    for (int i = 0; i < x.rank(); ++i) axes.push_back(i);
  if (pads.size() != 2 * axes.size()) node.fail(fmt::format("{} pads for {} axes", pads.size(), axes.size()));
  const bool has_value = node.version() >= 11 && node.has(2) && node.shape(2).elements() > 0;
  const double value = has_value && mode == "constant" ? node.host_number(2) : node.number("value", 0);
  const DType dtype = x.dtype();
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const int axis = normalize_axis(axes[i], x.rank());
    std::int64_t low = pads[i], high = pads[i + axes.size()];
    const std::int64_t cut_low = std::max<std::int64_t>(-low, 0), cut_high = std::max<std::int64_t>(-high, 0);
    if (cut_low + cut_high > x.extent(axis)) node.fail("negative pads remove more than there is");
    x = narrow(x, axis, cut_low, x.extent(axis) - cut_low - cut_high);
    low = std::max<std::int64_t>(low, 0);
    high = std::max<std::int64_t>(high, 0);
    if (low + high > kMaxElements) node.fail("a pad is too large");
    if (low + high == 0) continue;
    if (mode == "constant")
      x = pad_axis(x, axis, low, high, value);
    else
      x = take(x, node.constant(padded_places(node, mode, x.extent(axis), low, high)), axis);
  }
  return {moved(node, 0, cast(x, dtype))};
}

Results depth_to_space(const NodeContext& node) {
  const Expr x = node.in(0);
  const std::int64_t b = node.integer("blocksize");
  if (x.rank() != 4 || b < 1 || x.extent(1) % (b * b) != 0)
    node.fail("expected [n, channels, h, w] with channels a multiple of blocksize squared");
  const std::int64_t n = x.extent(0), c = x.extent(1) / (b * b), h = x.extent(2), w = x.extent(3);
  const Expr split = node.text("mode", "DCR") == "CRD" ? transpose(reshape(x, Shape{n, c, b, b, h, w}), {0, 1, 4, 2, 5, 3})
                                                       : transpose(reshape(x, Shape{n, b, b, c, h, w}), {0, 3, 4, 1, 5, 2});
  return {moved(node, 0, reshape(split, Shape{n, c, h * b, w * b}))};
}

Results space_to_depth(const NodeContext& node) {
  const Expr x = node.in(0);
  const std::int64_t b = node.integer("blocksize");
  if (x.rank() != 4 || b < 1 || x.extent(2) % b != 0 || x.extent(3) % b != 0)
    node.fail("expected [n, channels, h, w] with h and w multiples of blocksize");
  const std::int64_t n = x.extent(0), c = x.extent(1), h = x.extent(2) / b, w = x.extent(3) / b;
  const bool crd = node.text("mode", "DCR") == "CRD";
  const Expr split = transpose(reshape(x, Shape{n, c, h, b, w, b}),
                               crd ? std::vector<int>{0, 1, 3, 5, 2, 4} : std::vector<int>{0, 3, 5, 1, 2, 4});
  return {moved(node, 0, reshape(split, Shape{n, c * b * b, h, w}))};
}

Results constant_of_shape(const NodeContext& node) {
  const Shape shape{std::span<const std::int64_t>(node.host_integers(0))};
  const AttributeProto* value = node.find("value");
  if (!value || !value->tensor) return {expand_to(node.constant(HostArray::zeros(DType::f32, {})), shape)};
  const HostArray element = array_of(*value->tensor, {}).reshape({});
  return {Result(expand_to(node.constant(element), shape), value->tensor->type)};
}

Results eye_like(const NodeContext& node) {
  const Shape& shape = node.shape(0);
  if (shape.rank() != 2) node.fail("expected a matrix");
  const ElementType type = node.given("dtype") ? static_cast<ElementType>(node.integer("dtype")) : node.type(0);
  const Expr rows = iota(node.graph(), shape, 0), columns = iota(node.graph(), shape, 1);
  return {cast(columns == rows + static_cast<double>(node.integer("k", 0)), held_as(type))};
}

Results range(const NodeContext& node) {
  const HostArray first = node.host(0), last = node.host(1), by = node.host(2);
  const DType dtype = first.dtype();
  const double start = first.value(0), limit = last.value(0), delta = by.value(0);
  if (delta == 0) node.fail("the step is 0");
  const double count = std::max(std::ceil((limit - start) / delta), 0.0);
  if (count > static_cast<double>(std::int64_t{1} << 31)) node.fail(fmt::format("{} elements are too many", count));
  const Expr i = iota(node.graph(), Shape{static_cast<std::int64_t>(count)}, 0);
  if (is_integer(dtype))
    return {
        convert(node.constant(first.cast(DType::i64).reshape({})) + i * node.constant(by.cast(DType::i64).reshape({})), dtype)};
  return {cast(cast(i, DType::f64) * node.constant(HostArray::full(DType::f64, {}, delta)) +
                   node.constant(HostArray::full(DType::f64, {}, start)),
               dtype)};
}

Results trilu(const NodeContext& node) {
  const std::int64_t k = node.has(1) ? node.host_integers(1).at(0) : 0;
  const Expr x = node.in(0);
  if (x.rank() < 2) node.fail("expected at least two axes");
  const Expr rows = iota(node.graph(), x.shape(), x.rank() - 2), columns = iota(node.graph(), x.shape(), x.rank() - 1);
  const Expr limit = rows + static_cast<double>(k);
  return {where(node.integer("upper", 1) != 0 ? columns >= limit : columns <= limit, x, same(x, 0))};
}

Results center_crop_pad(const NodeContext& node) {
  Expr x = node.in(0);
  const Dims wanted = node.host_integers(1);
  Dims axes = node.integers("axes");
  if (!node.given("axes"))
    for (int i = 0; i < x.rank(); ++i) axes.push_back(i);
  if (axes.size() != wanted.size()) node.fail("shape and axes differ in length");
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const int axis = normalize_axis(axes[i], x.rank());
    const std::int64_t extent = x.extent(axis), difference = wanted[i] - extent;
    if (difference < 0) x = narrow(x, axis, -difference / 2, wanted[i]);
    if (difference > 0) x = pad_axis(x, axis, difference / 2, difference - difference / 2);
  }
  return {cast(x, node.dtype(0))};
}

Results reverse_sequence(const NodeContext& node) {
  const Expr x = node.in(0);
  const int batch = normalize_axis(node.integer("batch_axis", 1), x.rank()),
            time = normalize_axis(node.integer("time_axis", 0), x.rank());
  const Expr lengths = along(cast(node.in(1), DType::i64), batch, x.rank());
  const Expr place = iota(node.graph(), x.shape(), time);
  return {moved(node, 0, gather(x, where(place < lengths, lengths - place - 1.0, place), time))};
}

}  // namespace

void add_shape(ConverterTable& table) {
  table.add("Shape", shape_op);
  table.add("Size", size_op);
  table.add("Reshape", reshape_op);
  table.add("Flatten", flatten);
  table.add("Squeeze", squeeze_op);
  table.add("Unsqueeze", unsqueeze_op);
  table.add("Transpose", transpose_op);
  table.add("Expand", expand);
  table.add("Tile", tile);
  table.add("Concat", concat_op);
  table.add("Split", split);
  table.add("Slice", slice);
  table.add("Pad", pad);
  table.add("DepthToSpace", depth_to_space);
  table.add("SpaceToDepth", space_to_depth);
  table.add("ConstantOfShape", constant_of_shape);
  table.add("EyeLike", eye_like);
  table.add("Range", range);
  table.add("Trilu", trilu);
  table.add("CenterCropPad", center_crop_pad);
  table.add("ReverseSequence", reverse_sequence);
}

}  // namespace tenon::onnx
