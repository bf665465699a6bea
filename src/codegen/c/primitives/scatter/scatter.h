// What the ways to scatter share (scatter.cpp, scatter_rows.cpp).
#pragma once

#include <string>

#include "codegen/c/primitives/primitives.h"

namespace tenon::emit {

// The sum of two values computed for |stored|: integers wrap, bools are joined by or.
std::string sum_text(DType stored, const std::string& a, const std::string& b);
// Statements that define "place" in the result, and "a", its number in its line, of update j.
std::string place_of_update(Body& body, const Dense& indices, const ScatterAttr& attr, const Dense& out, int status);

// Sums in the order of the indices, by sorting.
bool can_add_in_order(const KernelTarget& target, const Dense& indices, const Dense& out);
std::vector<Launch> emit_add_in_order(const KernelTarget& target, const Dense& indices, const Dense& updates,
                                      const ScatterAttr& attr, const Dense& out, int status, const Scratch& scratch);

}  // namespace tenon::emit
