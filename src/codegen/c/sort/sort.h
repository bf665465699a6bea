// Radix sorting and selection on NVIDIA GPUs.
//
// A key is an element as an unsigned number in the wanted order: NaN last, -0 equal to 0, equal keys in the order of their
// indices. Lines of up to kBlockLine elements are sorted by one work-group in local memory; longer ones by passes of eight bits
// over tiles, each a count, a running sum and a stable distribution. A few elements of a long line are found by counting the keys
// eleven bits at a time; where there are few lines, the first ones of their parts are found so and then sorted.
#pragma once

#include <optional>
#include <vector>

#include "codegen/c/primitives/primitives.h"

namespace tenon::emit {

// Where the result goes: the i64 indices, the elements themselves in their order, or both.
struct SortResult {
  std::optional<Dense> indices, values;
};

// Elements |first| to |first| + |count| of x in sorted order along |axis|; |count| -1: all of them.
struct SortRange {
  int axis = 0;
  bool descending = false;
  std::int64_t first = 0, count = -1;
  std::int64_t limit = 0;  // unsigned elements in ascending order are below it; 0: any value
  int numbers = -1;        // the slot of the i64 that are stored for the indices of the elements; or none
};

// False for lines that are too short or too long, and for targets without the instructions.
bool can_radix_sort(const KernelTarget& target, const Shape& x, const SortRange& range);
// Nothing where it is not possible.
std::optional<std::vector<Launch>> emit_radix_sort(const KernelTarget& target, const Dense& x, const SortRange& range,
                                                   const SortResult& to, const Scratch& scratch);

}  // namespace tenon::emit
