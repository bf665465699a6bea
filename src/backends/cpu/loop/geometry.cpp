#include "backends/cpu/loop/geometry.h"

#include <algorithm>

#include "backends/cpu/loop/loop.h"
#include "tenon/error.h"

namespace tenon::cpu {
namespace {

// A transposed operand larger than this is worth a tiled copy; a smaller one is gathered element by element.
constexpr std::int64_t kGatherLimit = 4096;
// The extent of one part of a large reduction. Fixed, so that results do not depend on the number of threads.
constexpr std::int64_t kPartElements = 32768;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// Axes [first, last) of |shape| are addressed by one stride.
bool collapses(const Shape& shape, const Strides& strides, int first, int last) {
  if (shape.elements() == 0) return true;
  std::int64_t expected = -1;
  bool started = false;
  for (int axis = last - 1; axis >= first; --axis) {
    if (shape[axis] == 1) continue;
    if (started && strides[at(axis)] != expected) return false;
    started = true;
    expected = strides[at(axis)] * shape[axis];
  }
  return true;
}

struct AxisRange {
  int first = 0, last = 0;
};
// The reduced axes, extents of 1 between them included.
AxisRange reduced_axes(const Group& group) {
  const int rank = group.domain.rank();
  AxisRange range{rank, 0};
  for (int axis = 0; axis < rank; ++axis)
    if ((group.reduced & (1u << axis)) && group.domain[axis] != 1) {
      range.first = std::min(range.first, axis);
      range.last = axis + 1;
    }
  if (range.first >= range.last) return {rank, rank};
  return range;
}

std::int64_t extent(const Shape& shape, int first, int last) {
  std::int64_t count = 1;
  for (int axis = first; axis < last; ++axis) count *= shape[axis];
  return count;
}

// Neighbouring axes stepped through as one.
struct Run {
  std::int64_t extent = 1;
  int axis = 0;  // innermost axis of the run: its stride is the run's
};

class Shaper {
 public:
  Shaper(const Graph& graph, const Plan& plan, const Group& group, const std::set<NodeId>& operands)
      : graph_(graph),
        group_(group) {
    for (NodeId operand : operands) strides_.push_back(domain_strides(graph, plan, group, operand));
  }

  LoopGeometry shape() {
    std::vector<Run> outer, columns;
    if (group_.kind == Group::Kind::elementwise) {
      outer = runs(0, group_.domain.rank());
      if (!outer.empty()) {
        columns.push_back(outer.back());
        outer.pop_back();
      }
    } else {
      shape_reduction(outer, columns);
    }
    for (const Run& run : outer) {
      geometry_.outer.push_back(run.extent);
      geometry_.outer_axes.push_back(run.axis);
      geometry_.rows *= run.extent;
    }
    if (!columns.empty()) {
      geometry_.cols = columns[0].extent;
      geometry_.column_axis = columns[0].axis;
    }
    if (group_.domain.elements() == 0 && group_.kind == Group::Kind::elementwise) geometry_.rows = 0;
    choose_tiles();
    if (group_.kind == Group::Kind::reduction) split_reduction();
    return geometry_;
  }

 private:
  // Joins axes [first, last) into as few runs as all operands allow.
  std::vector<Run> runs(int first, int last) const {
    std::vector<Run> found;
    for (int axis = last - 1; axis >= first; --axis) {
      const std::int64_t size = group_.domain[axis];
      if (size == 1) continue;
      const auto steps_on = [&](const Strides& s) { return s[at(axis)] == s[at(found.back().axis)] * found.back().extent; };
      // An empty domain is never addressed, so any stride is fine.
      const bool joins =
          !found.empty() && (group_.domain.elements() == 0 || std::all_of(strides_.begin(), strides_.end(), steps_on));
      if (joins)
        found.back().extent *= size;
      else
        found.push_back({size, axis});
    }
    std::reverse(found.begin(), found.end());
    return found;
  }

  void shape_reduction(std::vector<Run>& outer, std::vector<Run>& columns) {
    const int rank = group_.domain.rank();
    const AxisRange range = reduced_axes(group_);
    const std::vector<Run> reduced = runs(range.first, range.last), after = runs(range.last, rank);
    outer = runs(0, range.first);
    geometry_.reduce_outer = extent(group_.domain, 0, range.first);
    geometry_.reduce_extent = extent(group_.domain, range.first, range.last);
    if (group_.kind == Group::Kind::rows || after.empty()) {
      if (reduced.size() > 1) throw Error(ErrorCode::internal, "a row of a loop is not addressable by one stride");
      columns = reduced;
      return;
    }
    geometry_.keeps_columns = true;
    outer.insert(outer.end(), reduced.begin(), reduced.end());
    outer.insert(outer.end(), after.begin(), after.end() - 1);
    columns.push_back(after.back());
    geometry_.between = extent(group_.domain, range.last, rank) / std::max<std::int64_t>(columns[0].extent, 1);
  }

  void choose_tiles() {
    // Few nodes need few registers, so that larger blocks still fit into the L1 cache; a reduction alone needs none.
    const bool reduces_columns = group_.kind == Group::Kind::reduction && !geometry_.keeps_columns;
    geometry_.block = group_.nodes.size() <= 6 ? 2048 : 1024;
    if (reduces_columns && group_.nodes.size() == 1) geometry_.block = kPartElements;
    if (group_.kind == Group::Kind::rows) geometry_.block = gives_only_row_values() ? 8192 : segment_of_row();
    geometry_.has_short_rows =
        group_.kind != Group::Kind::reduction && !geometry_.keeps_columns && geometry_.cols > 0 && geometry_.cols <= kShortRow;
    // Also one alone is a tile of rows.
    if (geometry_.has_short_rows && group_.kind == Group::Kind::rows) geometry_.tile_rows = 2;
    if (geometry_.rows <= 1 || geometry_.between != 1 || reduces_columns) return;
    // Rows that fit into a tile together share the work on one value per row. Where rows only have such results, no tile of
    // elements has to stay in the cache. Without reductions segments of one row are better, which are read where they are, also
    // if all rows share them.
    const std::int64_t least = group_.kind == Group::Kind::elementwise ? 8 : 2;
    const std::int64_t limit = group_.kind == Group::Kind::rows ? std::max<std::int64_t>(geometry_.block, 2048) : geometry_.block;
    if (geometry_.cols * least <= limit)
      geometry_.tile_rows = std::min(geometry_.rows, limit / std::max<std::int64_t>(geometry_.cols, 1));
  }

  // A whole row if it fits into the L1 cache with the other values, so that what all rows share is loaded once; else segments of
  // equal size, none of which is short.
  std::int64_t segment_of_row() const {
    constexpr std::int64_t kWholeRow = 2048, kVector = 64;
    if (geometry_.cols <= kWholeRow) return std::max(geometry_.block, geometry_.cols);
    const std::int64_t segments = (geometry_.cols + geometry_.block - 1) / geometry_.block;
    return (geometry_.cols + segments * kVector - 1) / (segments * kVector) * kVector;
  }

  bool gives_only_row_values() const {
    return std::ranges::all_of(
        group_.outputs, [&](NodeId id) { return graph_[id].prim == Prim::reduce || !(graph_[id].shape == group_.domain); });
  }

  void split_reduction() {
    LoopGeometry& g = geometry_;
    const std::int64_t per_step = g.keeps_columns ? std::max<std::int64_t>(1, g.between * g.cols) : 1;
    const std::int64_t units = g.keeps_columns ? g.reduce_outer * g.between * ((g.cols + g.block - 1) / g.block) : 1;
    g.part_extent = std::max<std::int64_t>(g.reduce_extent, 1);
    // With enough independent columns there is no need to split, and no partial results to store.
    if (!g.keeps_columns || units < 16)
      g.part_extent = std::clamp<std::int64_t>(kPartElements / per_step, 64, std::max<std::int64_t>(g.part_extent, 64));
    g.parts = std::max<std::int64_t>(1, (g.reduce_extent + g.part_extent - 1) / g.part_extent);
  }

  const Graph& graph_;
  const Group& group_;
  std::vector<Strides> strides_;
  LoopGeometry geometry_;
};

}  // namespace

bool loop_can_read(const Graph& graph, const Plan& plan, const Group& group, NodeId operand) {
  const ValueView& view = plan.views[at(operand)];
  if (!(graph[operand].shape == group.domain)) return true;
  int last = group.domain.rank() - 1;
  while (last >= 0 && group.domain[last] == 1) --last;
  const std::int64_t step = last >= 0 ? view.strides[at(last)] : 0;
  if (step != 0 && step != 1 && view.shape.elements() > kGatherLimit) return false;
  if (group.kind == Group::Kind::elementwise) return true;
  const AxisRange range = reduced_axes(group);
  if (group.kind == Group::Kind::reduction && extent(group.domain, range.last, group.domain.rank()) != 1) return true;
  return collapses(group.domain, view.strides, range.first, range.last);
}

AxisSet axes_to_expand(const Graph& graph, const Plan& plan, const Group& group, const std::set<NodeId>& operands,
                       NodeId operand) {
  constexpr std::int64_t kShort = 128, kLongEnough = 256, kFewer = 4;
  if (group.kind != Group::Kind::elementwise || group.domain.elements() == 0) return 0;
  std::vector<Strides> strides;
  for (NodeId o : operands) strides.push_back(domain_strides(graph, plan, group, o));
  const auto joins = [&](const Strides& s, int outer, int inner) { return s[at(outer)] == s[at(inner)] * group.domain[inner]; };
  // The last axes that all operands step through as one, and those before them until together they are long.
  AxisSet axes = 0;
  std::int64_t joined = 1;
  int inner = -1;
  bool is_apart = false;
  for (int axis = group.domain.rank() - 1; axis >= 0 && joined < kLongEnough; --axis) {
    if (group.domain[axis] == 1) continue;
    if (inner >= 0 && !std::ranges::all_of(strides, [&](const Strides& s) { return joins(s, axis, inner); })) {
      if (!is_apart && joined >= kShort) return 0;
      is_apart = true;
    }
    axes = static_cast<AxisSet>(axes | 1 << axis);
    joined *= group.domain[axis];
    inner = axis;
  }
  if (!is_apart) return 0;
  const auto expanded = [&](const Strides& s) {
    std::int64_t elements = 1;
    for (int axis = 0; axis < group.domain.rank(); ++axis)
      if (s[at(axis)] != 0 || (axes >> axis & 1)) elements *= group.domain[axis];
    return elements;
  };
  const auto is_joined = [&](const Strides& s) {
    int last = -1;
    for (int axis = group.domain.rank() - 1; axis >= 0; --axis) {
      if (!(axes >> axis & 1)) continue;
      if (last >= 0 && !joins(s, axis, last)) return false;
      last = axis;
    }
    return true;
  };
  // All that are in the way, or none.
  for (const Strides& s : strides)
    if (!is_joined(s) && expanded(s) > group.domain.elements() / kFewer) return 0;
  return is_joined(domain_strides(graph, plan, group, operand)) ? 0 : axes;
}

Strides domain_strides(const Graph& graph, const Plan& plan, const Group& group, NodeId operand) {
  Strides strides = plan.views[at(operand)].strides;
  for (int axis = 0; axis < group.domain.rank(); ++axis)
    if (graph[operand].shape[axis] == 1) strides[at(axis)] = 0;
  return strides;
}

LoopGeometry shape_loop(const Graph& graph, const Plan& plan, const Group& group, const std::set<NodeId>& operands) {
  return Shaper(graph, plan, group, operands).shape();
}

External address(const Graph& graph, const Plan& plan, const Group& group, const LoopGeometry& geometry, NodeId operand,
                 const Place& place) {
  const Strides strides = domain_strides(graph, plan, group, operand);
  External external;
  external.place = place;
  external.offset = plan.views[at(operand)].offset;
  external.col_stride = geometry.cols > 1 ? strides[at(geometry.column_axis)] : 1;
  external.dense = external.col_stride == 1;
  std::int64_t dense = geometry.cols;
  for (std::size_t i = geometry.outer.size(); i-- > 0;) {
    external.row_strides[i] = strides[at(geometry.outer_axes[i])];
    external.dense = external.dense && external.row_strides[i] == dense;
    dense *= geometry.outer[i];
  }
  return external;
}

}  // namespace tenon::cpu
