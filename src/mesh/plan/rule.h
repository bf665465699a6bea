// The sharding rule of each primitive: which axes of its operands and result are the same loop, and which loops may be split.
//
// The rest of this room knows no primitive: it splits loops, and asks here which parts of which operands belong to a part.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tenon/graph.h"

namespace tenon::mesh {

// The loop of one axis of an operand. Position p of the axis is position p * grain of the loop: grains other than 1 come from
// reshapes, where [6] and [2, 3] share a loop of 6 whose step along the first axis of the latter is 3.
struct LoopAxis {
  int loop = -1;  // -1: the axis has to be whole
  std::int64_t grain = 1;
};

struct Rule {
  struct Loop {
    std::int64_t extent = 0;
    std::optional<ReduceKind> reduces;  // a split over a mesh axis leaves the result partial along it
    bool is_whole = false;              // it may not be split
  };
  std::vector<Loop> loops;
  std::vector<std::vector<LoopAxis>> inputs;  // per operand, per axis
  std::vector<LoopAxis> output;
};
Rule rule_of(const Graph& graph, const Node& node);

// Whether the node commutes with the reduction |kind| along one axis of the mesh: computed from partial operands (those with
// |is_partial|, the others replicated), the result is partial in the same way.
bool keeps_partial(const Graph& graph, const Node& node, std::span<const bool> is_partial, ReduceKind kind);

}  // namespace tenon::mesh
