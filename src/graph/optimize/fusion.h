// Fusion: divides a graph into steps and merges elementwise nodes into groups.
//
// A group is a set of elementwise nodes, casts and reductions over one domain (the shape they iterate over) that runs as one
// loop nest and stores only its results. Kinds:
//   elementwise  no reductions
//   rows         reductions over the same trailing axes, whose results later nodes of the group may use: softmax, layer_norm.
//                A row (the trailing axes) is small enough to stay in a cache. Nodes have the domain's shape, or the row shape
//                (reduced axes of extent 1); a broadcast from the latter to the former happens inside the group.
//   reduction    elementwise nodes with final reductions over one run of axes; no node of the group uses their results
// Every other node is a separate step. Views (view.h) are not steps: values are read through them. Neither is the rounding of a
// matmul or conv that nothing else reads (Plan::rounded): the step that computes the product rounds it.
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
  AxisSet reduced = 0;          // rows: trailing axes (ignoring extents of 1); reduction: adjacent axes
  std::vector<NodeId> nodes;    // in topological order
  std::vector<NodeId> outputs;  // members that are read outside the group or are outputs of the graph

  // The domain with the reduced axes set to 1.
  Shape row_shape() const;
};

struct Step {
  int group = -1;    // index into Plan::groups, or
  NodeId node = -1;  // a separate primitive; a view here means that it is copied to dense memory
};

struct Plan {
  std::vector<Group> groups;
  std::vector<Step> steps;       // in an order that respects dependencies
  std::vector<ValueView> views;  // by node: how it is read. A computed or copied node is its own dense base
  std::vector<int> group_of;     // by node: its group, or -1
  std::vector<bool> rounded;     // by node: a product that is only read in its own dtype (16 bits)
};

struct FusionLimits {
  int max_nodes = 48;            // of one group; 1 disables fusion
  std::int64_t max_row = 16384;  // elements of a row in a rows group
  // The same where there are at least |many_rows|, so that rows that are not divided keep a device busy.
  std::int64_t max_row_of_many = 16384, many_rows = 64;
};

Plan fuse(const Graph& graph, const FusionLimits& limits = {});

// The dtype in which the computed value |id| is stored: its own where that loses nothing, otherwise the one it is computed in.
DType memory_dtype(const Graph& graph, const Plan& plan, NodeId id);

// The member of |group| that |operand| is, or from which it is broadcast inside the group; nullopt if it is read from outside.
std::optional<NodeId> member_behind(const Graph& graph, const Plan& plan, int group, NodeId operand);

}  // namespace tenon
