// Checks that a node is well-formed, which Graph's own methods ensure when they add one.
#pragma once

#include "tenon/graph.h"

namespace tenon {

// Throws invalid_argument naming the primitive and the problem. The node's inputs must be ids of |graph|.
void check_node(const Graph& graph, const Node& node);

}  // namespace tenon
