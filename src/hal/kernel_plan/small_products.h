// Products of few results and many terms, such as the dot product of two vectors, as sums.
//
// The kernel of a product gives tiles of results to work-groups, each of which walks through all terms: where there are few
// results, one work-group has all the work. A sum of products is a reduction, whose terms are shared by the whole device.
//
// Thread safety: pure function.
#pragma once

#include "tenon/graph.h"

namespace tenon {

// The same program, with floating-point products that are better computed so replaced by multiplications and a sum.
Graph with_small_products_as_sums(const Graph& graph);

}  // namespace tenon
