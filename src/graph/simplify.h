// simplify: the same program with less in it.
//
// Drops nodes no output needs, joins nodes that compute the same thing, folds chains of views, and brings nodes into the
// form backends like: an iota is a vector that is broadcast, a reduction covers neighbouring axes only (others are split).
// Inputs keep their number and order, also unused ones.
#pragma once

#include "tenon/graph.h"

namespace tenon {

Graph simplify(const Graph& graph);

}  // namespace tenon
