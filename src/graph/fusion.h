// Fusion: a graph as a list of steps, elementwise nodes joined into groups.
//
// A group is a set of elementwise nodes, casts and reductions over one domain (the shape they iterate over), run as one loop
// nest with nothing but its results stored. Kinds:
//   elementwise  no reductions
//   rows         reductions over the same trailing axes, whose results later nodes of the group may use: softmax, layer_norm.
//                A row (the trailing axes) is small enough to stay in a cache. Nodes have the domain's shape, or the row shape
//                (reduced axes of extent 1); a broadcast from the latter to the former happens inside the group.
//   reduction    elementwise nodes with reductions over one run of axes at the end; nothing in the group uses their results
// Everything else is a step of its own. Views (view.h) are no steps: values are read through them.
//
// fuse() expects a simplified graph (simplify.h).
#pragma once

#include <optional>
#include <vector>

#include "graph/view.h"
#include "tenon/graph.h"

namespace tenon {

struct Group {
  enum class Kind { elementwise, rows, reduction };
  Kind kind = Kind::elementwise;
  Shape domain;
  AxisSet reduced = 0;          // rows: trailing axes (extents of 1 aside); reduction: neighbouring axes
  std::vector<NodeId> nodes;    // in topological order
  std::vector<NodeId> outputs;  // members that something outside reads, or that are outputs of the graph

  // The domain with the reduced axes set to 1.
  Shape row_shape() const;
};

struct Step {
  int group = -1;    // index into Plan::groups, or
  NodeId node = -1;  // a primitive of its own; a view here means: copy it into dense memory
};

struct Plan {
  std::vector<Group> groups;
  std::vector<Step> steps;       // in an order that respects dependencies
  std::vector<ValueView> views;  // by node: how it is read. A node that is computed or copied is its own dense base
  std::vector<int> group_of;     // by node: its group, or -1
};

struct FusionLimits {
  int max_nodes = 48;            // of one group; 1 turns fusion off
  std::int64_t max_row = 16384;  // elements of a row in a rows group
};

Plan fuse(const Graph& graph, const FusionLimits& limits = {});

// The member of |group| that |operand| is, or is broadcast from inside the group; nothing if it is read from outside.
std::optional<NodeId> member_behind(const Graph& graph, const Plan& plan, int group, NodeId operand);

}  // namespace tenon
