#include "codegen/c/rows/shape.h"

#include <algorithm>

namespace tenon::emit {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

constexpr std::int64_t kLongRow = 512, kVeryLongRow = 8192, kLongestKept = 16384;

RowsShape geometry(const GroupReader& reader) {
  RowsShape shape;
  const Group& group = reader.group();
  const GroupAxes axes = group_axes(group);
  std::vector<std::int64_t> outer_extents, reduced_extents;
  for (int axis : axes.outer) outer_extents.push_back(group.domain[axis]);
  for (int axis : axes.reduced) {
    reduced_extents.push_back(group.domain[axis]);
    shape.columns *= group.domain[axis];
  }
  std::vector<std::vector<std::int64_t>> outer_strides;
  for (const External& e : reader.externals()) {
    std::vector<std::int64_t> outer, reduced;
    for (int axis : axes.outer) outer.push_back(e.view.strides[at(axis)]);
    for (int axis : axes.reduced) reduced.push_back(e.is_row ? 0 : e.view.strides[at(axis)]);
    const Axes columns = joined(reduced_extents, {reduced});
    outer_strides.push_back(outer);
    shape.offsets.push_back(e.view.offset);
    shape.column_strides.push_back(columns.extents.empty() ? 0 : columns.strides[0].back());
  }
  shape.axes = joined(outer_extents, outer_strides);
  shape.rows = shape.axes.elements();
  return shape;
}

// The memory of the operands and of dense results.
bool fits_31_bits(const RowsShape& shape) {
  Axes whole = shape.axes;
  whole.extents.push_back(shape.columns);
  for (std::size_t k = 0; k < whole.strides.size(); ++k) whole.strides[k].push_back(shape.column_strides[k]);
  return fits_i32(whole, shape.offsets);
}

// Elements of a row that a lane takes at once, by loads and stores of up to 16 bytes.
int vector_width(const RowsShape& shape, const GroupReader& reader, const GroupPlacement& placement) {
  if (shape.columns < 32) return 1;
  std::size_t largest = 1;
  for (std::size_t k = 0; k < reader.externals().size(); ++k) {
    if (shape.column_strides[k] == 0) continue;
    if (!shape.is_together(k)) return 1;
    largest = std::max(largest, element_bytes(reader.externals()[k].from.stored));
  }
  for (NodeId id : reader.group().outputs)
    if (!reader.is_row(id))
      for (const StoredValue& to : placement.targets(id)) largest = std::max(largest, element_bytes(to.stored));
  const int width = static_cast<int>(std::clamp<std::size_t>(16 / largest, 1, 8));
  if (shape.columns % width != 0) return 1;
  for (std::size_t k = 0; k < reader.externals().size(); ++k) {
    if (!shape.is_together(k)) continue;
    if (shape.offsets[k] % width != 0) return 1;
    for (std::int64_t stride : shape.axes.strides[k])
      if (stride % width != 0) return 1;
  }
  return width;
}

// Long rows stay in registers, 16 elements a lane; or 32 where they are all that a lane keeps and a row would otherwise take a
// whole multiprocessor.
void share_long_rows(RowsShape& shape, const KernelTarget& target, const GroupReader& reader) {
  bool is_wide = false;
  for (NodeId id : reader.group().nodes) is_wide = is_wide || element_bytes(compute_dtype(reader.graph()[id].dtype)) == 8;
  for (const External& e : reader.externals()) is_wide = is_wide || element_bytes(compute_dtype(e.from.stored)) == 8;
  // A few rows leave the device idle: what counts is how soon one ends.
  const bool is_few = shape.rows * 4 <= target.compute_units;
  const int most = is_few ? 4 : is_wide || shape.columns <= kVeryLongRow || reader.externals().size() > 1 ? 16 : 32;
  shape.lanes =
      static_cast<int>(std::clamp<std::int64_t>(power_of_two_from(ceil_div(shape.columns, most)), 32, target.max_group_size));
  shape.lines = std::max(1, 128 / shape.lanes);
  shape.per_lane = static_cast<int>(ceil_div(shape.columns, std::int64_t{shape.lanes} * shape.width)) * shape.width;
}

// Four elements a lane, more where a row is long: up to 16, kept in registers.
void share_rows(RowsShape& shape, const KernelTarget& target) {
  const int threads = std::min(256, target.max_group_size);
  std::int64_t lanes = power_of_two_from(ceil_div(shape.columns, std::max(4, shape.width)));
  lanes = std::min<std::int64_t>(lanes, shape.columns > 4096 ? std::min(1024, target.max_group_size) : threads);
  shape.lanes = static_cast<int>(std::max<std::int64_t>(lanes, 1));
  shape.lines = std::max(1, threads / shape.lanes);
  shape.per_lane = std::max(shape.width, static_cast<int>(power_of_two_from(ceil_div(shape.columns, shape.lanes))));
}

}  // namespace

RowsShape rows_shape(const KernelTarget& target, const GroupReader& reader, const GroupPlacement& placement) {
  RowsShape shape = geometry(reader);
  shape.wide_index = target.is_cpu || !fits_31_bits(shape);
  if (target.is_cpu) return shape;
  // Rows that are only reduced are read fastest by as many lanes as there are, one element each: there is nothing to keep. The
  // longest have more elements than lanes even so. 16-bit rows that are reduced more than once are kept, and then a lane should
  // have more than two bytes on their way.
  const auto count = [](auto&& list, auto&& is) { return std::ranges::count_if(list, is); };
  const bool stores_rows = count(reader.group().outputs, [&](NodeId id) { return !reader.is_row(id); }) > 0;
  const bool is_narrow =
      shape.columns >= kLongRow &&
      count(reader.group().nodes, [&](NodeId id) { return reader.graph()[id].prim == Prim::reduce; }) > 1 &&
      count(reader.externals(), [](const External& e) { return !e.is_row && element_bytes(e.from.stored) == 2; }) > 0;
  if (stores_rows || is_narrow || shape.columns > kLongestKept) shape.width = vector_width(shape, reader, placement);
  shape.is_long = target.dialect == Dialect::cuda && shape.width > 1 && shape.columns >= kLongRow;
  if (shape.is_long)
    share_long_rows(shape, target, reader);
  else
    share_rows(shape, target);
  return shape;
}

}  // namespace tenon::emit
