// simplify: returns an equivalent, smaller program.
//
// Removes dead nodes, merges common subexpressions, folds chains of views, and brings nodes into a canonical form for
// backends: an iota is a broadcast vector, a reduction covers only adjacent axes (others are split). Inputs keep their
// number and order, even if they are unused.
#pragma once

#include "tenon/graph.h"

namespace tenon {

Graph simplify(const Graph& graph);

}  // namespace tenon
