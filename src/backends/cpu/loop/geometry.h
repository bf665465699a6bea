// Maps the domain of a fused group to rows and columns, and addresses operands in them.
#pragma once

#include <set>

#include "backends/cpu/loop/program.h"

namespace tenon::cpu {

// Strides of an operand over the domain's axes; 0 along axes of extent 1.
Strides domain_strides(const Graph& graph, const Plan& plan, const Group& group, NodeId operand);

// Merges axes that all |operands| (read from outside the group) traverse alike, and chooses tiles.
LoopGeometry shape_loop(const Graph& graph, const Plan& plan, const Group& group, const std::set<NodeId>& operands);

// The addressing of |operand|, stored at |place|, by row and column.
External address(const Graph& graph, const Plan& plan, const Group& group, const LoopGeometry& geometry, NodeId operand,
                 const Place& place);

}  // namespace tenon::cpu
