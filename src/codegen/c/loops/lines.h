// Ops along one axis on GPUs. primitives.h has the same for every target and calls these.
#pragma once

#include "codegen/c/primitives/primitives.h"

namespace tenon::emit {

// Lines whose elements are neighbours (lines.cpp): |count| lines of |extent| elements each.
std::vector<Launch> emit_arg_reduce_lines(const KernelTarget& target, const Dense& x, const ArgReduceAttr& attr, const Dense& out,
                                          std::int64_t count, std::int64_t extent, const Scratch& scratch);
std::vector<Launch> emit_cumulative_lines(const KernelTarget& target, const Dense& x, const CumulativeAttr& attr,
                                          const Dense& out, std::int64_t count, std::int64_t extent, const Scratch& scratch);

// Lines whose elements are |inner| apart (columns.cpp): x is [outer, extent, inner].
struct Columns {
  std::int64_t outer = 1, extent = 1, inner = 1;
};
std::vector<Launch> emit_arg_reduce_columns(const KernelTarget& target, const Dense& x, const ArgReduceAttr& attr,
                                            const Dense& out, const Columns& columns, const Scratch& scratch);

// Statements that replace best and place by a candidate if it is better: NaN before numbers, the first of equals. The candidate
// is other at other_place, or |value| at |place| if it comes later in the line.
std::string take_better_text(const ArgReduceAttr& attr);
std::string take_later_text(const ArgReduceAttr& attr, const std::string& value, const std::string& place);

}  // namespace tenon::emit
