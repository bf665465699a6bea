// How a fused group's domain becomes rows and columns, and how operands are addressed in them.
#pragma once

#include <set>

#include "backends/cpu/loop/program.h"

namespace tenon::cpu {

// Strides of an operand over the domain's axes; 0 along axes where it has extent 1.
Strides domain_strides(const Graph& graph, const Plan& plan, const Group& group, NodeId operand);

// Joins axes that all |operands| (read from outside the group) step through alike, and picks tiles.
LoopGeometry shape_loop(const Graph& graph, const Plan& plan, const Group& group, const std::set<NodeId>& operands);

// |operand|, stored at |place|, by row and column.
External address(const Graph& graph, const Plan& plan, const Group& group, const LoopGeometry& geometry, NodeId operand,
                 const Place& place);

}  // namespace tenon::cpu
