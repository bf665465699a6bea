// Models quantised to 8 bits round a float to bytes and make floats of them again before the next op in floats. The bytes are
// whole numbers that a float holds exactly, so the float itself is passed on: what follows becomes part of the same loop or
// epilogue.
#pragma once

#include "tenon/graph.h"

namespace tenon::cpu {

// Casts to f32 of casts to 8 bits of values that are whole numbers within the range of the 8 bits already. Nodes keep their ids;
// those that are no longer read remain.
Graph keep_floats(const Graph& graph);

}  // namespace tenon::cpu
