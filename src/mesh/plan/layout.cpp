#include "mesh/plan/layout.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tenon::mesh {
namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

// The bytes of a reduction over |axes|: with |scattered| each device keeps its own part of the sum, otherwise all get the whole.
std::uint64_t reduction_bytes(std::int64_t block_elements, std::uint64_t element_bytes, int group, bool scattered, int groups) {
  const auto whole = static_cast<std::uint64_t>(block_elements) * element_bytes * static_cast<std::uint64_t>(group - 1);
  return whole * static_cast<std::uint64_t>(groups) * (scattered ? 1U : 2U);
}

}  // namespace

Layout Layout::replicated(int rank, const Mesh& mesh) {
  return {std::vector<Split>(index(rank)), std::vector<std::optional<ReduceKind>>(mesh.axes().size())};
}

bool Layout::splits_over(int mesh_axis) const {
  return std::any_of(splits.begin(), splits.end(), [&](const Split& split) {
    return std::find(split.over.begin(), split.over.end(), mesh_axis) != split.over.end();
  });
}

bool Layout::is_partial() const {
  return std::any_of(partials.begin(), partials.end(), [](const auto& kind) { return kind.has_value(); });
}

Shape Box::shape() const {
  std::vector<std::int64_t> extents(begin.size());
  for (std::size_t i = 0; i < extents.size(); ++i) extents[i] = end[i] - begin[i];
  return Shape(extents);
}

std::int64_t Box::elements() const {
  std::int64_t count = 1;
  for (std::size_t i = 0; i < begin.size(); ++i) count *= end[i] - begin[i];
  return count;
}

int parts_of(const Split& split, const Mesh& mesh) {
  int parts = 1;
  for (const int axis : split.over) parts *= mesh.axes()[index(axis)].size;
  return parts;
}

int part_of(const Split& split, const Mesh& mesh, int rank) {
  int part = 0;
  for (const int axis : split.over) part = part * mesh.axes()[index(axis)].size + mesh.coordinate(rank, axis);
  return part;
}

Box box_of(const Layout& layout, const Shape& shape, const Mesh& mesh, int rank) {
  Box box;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const Split& split = layout.splits[index(axis)];
    const bool is_whole = split.over.empty();
    const auto part = is_whole ? 0 : index(part_of(split, mesh, rank));
    box.begin.push_back(is_whole ? 0 : split.cuts[part]);
    box.end.push_back(is_whole ? shape[axis] : split.cuts[part + 1]);
  }
  return box;
}

Box intersection(const Box& a, const Box& b) {
  Box common;
  for (std::size_t i = 0; i < a.begin.size(); ++i) {
    common.begin.push_back(std::max(a.begin[i], b.begin[i]));
    common.end.push_back(std::max(common.begin[i], std::min(a.end[i], b.end[i])));
  }
  return common;
}

std::vector<std::int64_t> cuts_for(std::int64_t extent, const std::vector<int>& over, const Mesh& mesh,
                                   const std::vector<double>& speeds) {
  const Split split{over, {}};
  const int parts = parts_of(split, mesh);
  std::vector<double> weight(index(parts), speeds.empty() ? 1.0 : 0.0);
  for (int rank = 0; rank < mesh.size() && !speeds.empty(); ++rank)
    weight[index(part_of(split, mesh, rank))] += speeds[index(rank)];
  const double total = std::accumulate(weight.begin(), weight.end(), 0.0);
  std::vector<std::int64_t> cuts(index(parts) + 1);
  double before = 0;
  for (int i = 1; i < parts; ++i) {
    before += weight[index(i) - 1];
    const auto ideal = static_cast<std::int64_t>(std::floor(static_cast<double>(extent) * before / total + 1e-9));
    // Every part has at least one element: reductions of nothing have no value.
    cuts[index(i)] = std::clamp(ideal, cuts[index(i) - 1] + 1, extent - (parts - i));
  }
  cuts.back() = extent;
  return cuts;
}

std::vector<int> group_of(const Mesh& mesh, int rank, const std::vector<int>& axes) {
  std::vector<int> group;
  for (int other = 0; other < mesh.size(); ++other) {
    bool is_member = true;
    for (int axis = 0; axis < static_cast<int>(mesh.axes().size()); ++axis)
      if (std::find(axes.begin(), axes.end(), axis) == axes.end())
        is_member = is_member && mesh.coordinate(other, axis) == mesh.coordinate(rank, axis);
    if (is_member) group.push_back(other);
  }
  return group;
}

std::vector<int> sources_of(const Layout& from, const Mesh& mesh, int rank) {
  std::vector<int> split_axes;
  for (int axis = 0; axis < static_cast<int>(mesh.axes().size()); ++axis)
    if (from.splits_over(axis)) split_axes.push_back(axis);
  return group_of(mesh, rank, split_axes);
}

std::string text_of(const Layout& layout, const Mesh& mesh) {
  std::vector<std::string> axes;
  for (const Split& split : layout.splits) {
    std::vector<std::string> names;
    for (const int axis : split.over) names.push_back(mesh.axes()[index(axis)].name);
    axes.push_back(names.empty() ? "-" : fmt::format("{}", fmt::join(names, "+")));
  }
  std::string text = fmt::format("[{}]", fmt::join(axes, ", "));
  for (std::size_t i = 0; i < layout.partials.size(); ++i)
    if (layout.partials[i]) text += fmt::format(" {} over {}", name(*layout.partials[i]), mesh.axes()[i].name);
  return text;
}

Layout reduced(const Layout& from, const Layout& to) {
  Layout result = from;
  for (std::size_t m = 0; m < from.partials.size(); ++m) {
    if (!from.partials[m] || to.partials[m]) continue;
    result.partials[m].reset();
    for (std::size_t axis = 0; axis < to.splits.size(); ++axis)
      if (to.splits[axis].over == std::vector<int>{static_cast<int>(m)} && from.splits[axis].over.empty())
        result.splits[axis] = to.splits[axis];
  }
  return result;
}

bool is_local(const Layout& from, const Layout& to, const Shape& shape, const Mesh& mesh) {
  if (from.partials != to.partials) return false;
  for (int rank = 0; rank < mesh.size(); ++rank) {
    const Box wanted = box_of(to, shape, mesh, rank);
    if (!(intersection(box_of(from, shape, mesh, rank), wanted) == wanted)) return false;
  }
  return true;
}

std::uint64_t moved_bytes(const Layout& from, const Layout& to, const Shape& shape, std::uint64_t element_bytes,
                          const Mesh& mesh) {
  if (from == to) return 0;
  std::uint64_t bytes = 0;
  const Layout middle = reduced(from, to);
  std::vector<int> gathered, scattered;
  for (std::size_t m = 0; m < from.partials.size(); ++m)
    if (from.partials[m] && !middle.partials[m])
      (middle.splits_over(static_cast<int>(m)) ? scattered : gathered).push_back(static_cast<int>(m));
  for (const auto* axes : {&scattered, &gathered}) {
    const auto group = static_cast<int>(group_of(mesh, 0, *axes).size());
    if (group == 1) continue;
    // Blocks may differ in size between groups: count the average one.
    std::int64_t elements = 0;
    for (int rank = 0; rank < mesh.size(); ++rank) elements += box_of(from, shape, mesh, rank).elements();
    bytes += reduction_bytes(elements / mesh.size(), element_bytes, group, axes == &scattered, mesh.size() / group);
  }
  if (middle == to) return bytes;
  for (int rank = 0; rank < mesh.size(); ++rank) {
    const Box wanted = box_of(to, shape, mesh, rank);
    const Box own = intersection(box_of(middle, shape, mesh, rank), wanted);
    bytes += static_cast<std::uint64_t>(wanted.elements() - own.elements()) * element_bytes;
  }
  return bytes;
}

}  // namespace tenon::mesh
