// simplify: returns an equivalent, smaller program.
//
// Removes dead nodes, merges common subexpressions, folds chains of views, and brings nodes into a canonical form for
// backends: an iota is a broadcast vector, a reduction covers only adjacent axes (others are split). Inputs keep their
// number and order, even if they are unused. Roundings of values that are rounded already are removed, others are moved in
// front of views.
//
// Attention that is written as its parts is found and made a region (attention.h). A region that |takes| accepts becomes one node
// Prim::region with the region's inputs and attribute, which fusion makes a separate step; the nodes that it was made of remain
// only where something else reads them. The result has no other regions.
#pragma once

#include <functional>

#include "tenon/graph.h"

namespace tenon {

// Called with the graph as given and one of its regions whose output is needed.
using RegionFilter = std::function<bool(const Graph& graph, const Region& region)>;

Graph simplify(const Graph& graph, const RegionFilter& takes = {});

}  // namespace tenon
