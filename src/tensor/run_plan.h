// The expressions that a set of nodes needs, planned as one graph and run on one device; as several graphs where one would be too
// large.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tensor/node.h"

namespace tenon {

using Nodes = std::vector<std::shared_ptr<TensorNode>>;

// A node with its state at the time the program was made: another thread may evaluate it meanwhile.
struct PlannedNode {
  std::shared_ptr<TensorNode> node;
  std::shared_ptr<const TensorExpression> expression;  // null for a leaf
  std::shared_ptr<Storage> storage;                    // of a leaf that is not a literal
  std::vector<std::size_t> inputs;                     // places in the plan
  std::size_t uses = 0;                                // by nodes later in the plan
  bool is_target = false;
};

// Everything |targets| need, inputs before what uses them. Iterative: an expression may be deeper than any stack.
std::vector<PlannedNode> plan(std::span<const std::shared_ptr<TensorNode>> targets);

// Evaluates the targets of the plan on |options|.device and stores their values in their nodes.
void run_plan(std::vector<PlannedNode>& planned, DeviceManager& manager, const RunOptions& options, Evaluation& evaluation);

}  // namespace tenon
