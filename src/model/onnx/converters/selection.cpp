#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "model/onnx/converters/families.h"
#include "model/onnx/kept_boxes.h"

namespace tenon::onnx {
namespace {

using namespace build;

HostArray integers(const Shape& shape, const Dims& values) { return HostArray::from<std::int64_t>(shape, values); }

Results top_k(const NodeContext& node) {
  const Expr x = node.in(0);
  const std::int64_t k = node.version() < 10 ? node.integer("k") : node.host_integers(1).at(0);
  const int axis = node.axis("axis", -1, x.rank());
  if (k < 0 || k > x.extent(axis)) node.fail(fmt::format("k is {}, but the axis has {} elements", k, x.extent(axis)));
  const bool largest = node.integer("largest", 1) != 0;
  const Expr order(node.graph(), node.graph().arg_sort(x.id(), axis, largest));
  const Expr best = narrow(order, axis, 0, k);
  if (k < x.extent(axis) && best.shape().elements() > 0) node.graph().mark({{x.id()}, best.id(), TopKAttr{axis, 0, k, largest}});
  return {gather(x, best, axis), best};
}

// Results whose extents depend on the data are made from data on the host.
Results compress(const NodeContext& node) {
  const HostArray condition = node.host(0 + 1);
  Expr x = node.in(0);
  int axis = 0;
  if (node.given("axis"))
    axis = node.axis("axis", 0, x.rank());
  else
    x = reshape(x, Shape{x.shape().elements()});
  Dims places;
  for (std::int64_t i = 0; i < std::min(condition.elements(), x.extent(axis)); ++i)
    if (condition.value(i) != 0) places.push_back(i);
  return {moved(node, 0, take(x, node.constant(places), axis))};
}

Results non_zero(const NodeContext& node) {
  const HostArray x = node.host(0);
  const Shape& shape = x.shape();
  const Strides strides = contiguous_strides(shape);
  Dims found;
  for (std::int64_t i = 0; i < x.elements(); ++i)
    if (x.value(i) != 0) found.push_back(i);
  const auto count = static_cast<std::int64_t>(found.size());
  Dims places;
  for (int axis = 0; axis < shape.rank(); ++axis)
    for (const std::int64_t i : found) places.push_back(i / strides[static_cast<std::size_t>(axis)] % shape[axis]);
  return {integers(Shape{shape.rank(), count}, places)};
}

Results unique(const NodeContext& node) {
  const HostArray x = node.host(0);
  const bool flat = !node.given("axis");
  const int axis = flat ? 0 : node.axis("axis", 0, x.shape().rank());
  // Slices along the axis, compared element by element.
  const std::int64_t count = flat ? x.elements() : x.shape()[axis], outer = [&] {
    std::int64_t product = 1;
    for (int i = 0; i < (flat ? 0 : axis); ++i) product *= x.shape()[i];
    return product;
  }();
  const std::int64_t inner = count * outer == 0 ? 0 : x.elements() / (count * outer);
  const auto element = [&](std::int64_t slice, std::int64_t i) {
    return x.value((i / std::max<std::int64_t>(inner, 1) * count + slice) * inner + i % std::max<std::int64_t>(inner, 1));
  };
  const auto compare = [&](std::int64_t a, std::int64_t b) {
    for (std::int64_t i = 0; i < outer * inner; ++i) {
      const double left = element(a, i), right = element(b, i);
      if (left < right || (left == left && right != right)) return -1;
      if (right < left || (right == right && left != left)) return 1;
    }
    return 0;
  };
  Dims order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    const int difference = compare(a, b);
    return difference != 0 ? difference < 0 : a < b;
  });
  Dims firsts, counts, group(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || compare(order[i - 1], order[i]) != 0) {
      firsts.push_back(order[i]);
      counts.push_back(0);
    }
    ++counts.back();
    group[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(firsts.size()) - 1;
  }
  if (node.integer("sorted", 1) == 0) {
    Dims by_place(firsts.size());
    std::iota(by_place.begin(), by_place.end(), 0);
    std::sort(by_place.begin(), by_place.end(), [&](std::int64_t a, std::int64_t b) {
      return firsts[static_cast<std::size_t>(a)] < firsts[static_cast<std::size_t>(b)];
    });
    Dims new_firsts, new_counts, rank(firsts.size());
    for (std::size_t i = 0; i < by_place.size(); ++i) {
      const auto old = static_cast<std::size_t>(by_place[i]);
      new_firsts.push_back(firsts[old]);
      new_counts.push_back(counts[old]);
      rank[old] = static_cast<std::int64_t>(i);
    }
    for (std::int64_t& each : group) each = rank[static_cast<std::size_t>(each)];
    firsts = new_firsts;
    counts = new_counts;
  }
  const Shape size{static_cast<std::int64_t>(firsts.size())};
  const Expr from = flat ? reshape(node.in(0), Shape{x.elements()}) : node.in(0);
  return {moved(node, 0, take(from, node.constant(firsts), axis)), integers(size, firsts), integers(Shape{count}, group),
          integers(size, counts)};
}

Box box_at(const HostArray& boxes, std::int64_t index, bool centred) {
  const double a = boxes.value(index * 4), b = boxes.value(index * 4 + 1), c = boxes.value(index * 4 + 2),
               d = boxes.value(index * 4 + 3);
  if (centred) return {b - d / 2, a - c / 2, b + d / 2, a + c / 2};
  return {std::min(a, c), std::min(b, d), std::max(a, c), std::max(b, d)};
}

Results non_max_suppression(const NodeContext& node) {
  const HostArray boxes = node.host(0), scores = node.host(1);
  if (boxes.shape().rank() != 3 || scores.shape().rank() != 3 || boxes.shape()[2] != 4 || boxes.shape()[1] != scores.shape()[2])
    node.fail("expected boxes [batch, boxes, 4] and scores [batch, classes, boxes]");
  const std::int64_t limit = node.has(2) && node.shape(2).elements() > 0 ? node.host_integers(2).at(0) : 0;
  const double iou = node.has(3) && node.shape(3).elements() > 0 ? node.host_numbers(3).at(0) : 0;
  const bool has_threshold = node.has(4) && node.shape(4).elements() > 0;
  const double threshold = has_threshold ? node.host_numbers(4).at(0) : 0;
  const bool centred = node.integer("center_point_box", 0) != 0;
  const std::int64_t classes = scores.shape()[1], count = scores.shape()[2];
  Dims chosen;
  for (std::int64_t pair = 0; pair < scores.shape()[0] * classes; ++pair) {
    const std::int64_t batch = pair / classes;
    Dims order;
    for (std::int64_t i = 0; i < count; ++i)
      if (!has_threshold || scores.value(pair * count + i) > threshold) order.push_back(i);
    std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      const double left = scores.value(pair * count + a), right = scores.value(pair * count + b);
      return left != right ? left > right : a < b;
    });
    KeptBoxes kept(iou);
    for (const std::int64_t i : order) {
      if (static_cast<std::int64_t>(kept.count()) >= limit) break;
      const Box box = box_at(boxes, batch * count + i, centred);
      if (kept.overlap(box)) continue;
      kept.add(box);
      chosen.insert(chosen.end(), {batch, pair % classes, i});
    }
  }
  return {integers(Shape{static_cast<std::int64_t>(chosen.size()) / 3, 3}, chosen)};
}

}  // namespace

void add_selection(ConverterTable& table) {
  table.add("TopK", top_k);
  table.add("Compress", compress);
  table.add("NonZero", non_zero);
  table.add("Unique", unique);
  table.add("NonMaxSuppression", non_max_suppression);
}

}  // namespace tenon::onnx
