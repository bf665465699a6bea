// RowsShape: the rows of a group, and on GPUs how work-items share them.
#pragma once

#include <vector>

#include "codegen/c/loops/group.h"

namespace tenon::emit {

struct RowsShape {
  std::int64_t rows = 1, columns = 1;
  // Element (row, column) of external k lies at offsets[k] + what axes make of the row + column * column_strides[k].
  Axes axes;
  std::vector<std::int64_t> offsets, column_strides;
  bool wide_index = false;  // places need more than 31 bits

  // GPUs: a work-group takes |lines| rows, |lanes| work-items each; a lane takes |per_lane| elements, |width| of them with one
  // load or store.
  int lanes = 1, lines = 1, per_lane = 1, width = 1;
  // CUDA: rows so long that a lane's elements fill its registers.
  bool is_long = false;

  // Whether external k's elements of a row are neighbours.
  bool is_together(std::size_t k) const { return column_strides[k] == 1; }
};

RowsShape rows_shape(const KernelTarget& target, const GroupReader& reader, const GroupPlacement& placement);

}  // namespace tenon::emit
