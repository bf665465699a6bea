// Whether a node is well-formed: what Graph's own methods make sure of when they add one.
#pragma once

#include "tenon/graph.h"

namespace tenon {

// Throws invalid_argument naming the primitive and what is wrong. The node's inputs must be ids of |graph|.
void check_node(const Graph& graph, const Node& node);

}  // namespace tenon
