// Selection: the indices of a few elements of the sorted order, without sorting the rest (TopKAttr).
//
// A few of the first elements are kept while the lane is scanned; most elements are dismissed by one comparison. A part from the
// middle (a median) is found by counting the leading bits of all keys and sorting the few with the right ones.
// Thread safety: touches only its arguments.
#pragma once

#include "backends/cpu/primitives/primitives.h"

namespace tenon::cpu {

std::size_t select_scratch_bytes(const ThreadPool& pool, const View& x, const TopKAttr& attr);
void select(ThreadPool& pool, const View& x, const TopKAttr& attr, const Target& out, std::span<std::byte> scratch);

}  // namespace tenon::cpu
