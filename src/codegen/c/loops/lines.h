// Ops along lines whose elements are neighbours, on GPUs (lines.cpp): |count| lines of |extent| elements each. primitives.h has
// the same for every target and axis, and calls these.
#pragma once

#include "codegen/c/primitives/primitives.h"

namespace tenon::emit {

std::vector<Launch> emit_arg_reduce_lines(const KernelTarget& target, const Dense& x, const ArgReduceAttr& attr, const Dense& out,
                                          std::int64_t count, std::int64_t extent, const Scratch& scratch);
std::vector<Launch> emit_cumulative_lines(const KernelTarget& target, const Dense& x, const CumulativeAttr& attr,
                                          const Dense& out, std::int64_t count, std::int64_t extent, const Scratch& scratch);

}  // namespace tenon::emit
