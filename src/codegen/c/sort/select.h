// A few elements of long lines, in sorted order, without sorting the others (select.cpp).
#pragma once

#include "codegen/c/sort/keys.h"
#include "codegen/c/sort/sort.h"

namespace tenon::emit {

// Elements that a work-group can select.
inline constexpr std::int64_t kSelected = 1024;

// Ranks |first| to |first| + |wanted| of |count| lines; the elements of a line are |inner| apart. |parts| above 1: the same of
// each of so many parts of a line, equally long but for one element (|inner| 1, |first| 0); the result is [line][part][wanted].
struct SelectLines {
  std::int64_t count, extent, inner, first, wanted, parts = 1;
};
Launch emit_select_lines(const KernelTarget& target, const Dense& x, const Keys& keys, const SelectLines& lines,
                         const SortResult& to);

}  // namespace tenon::emit
