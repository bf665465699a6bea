// The expressions that a set of nodes needs, planned as one graph and run on one device; as several graphs where one would be too
// large.
//
// A program that was built before is found by the structure of the plan (program_cache.h), and no graph is built for it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tensor/node.h"

namespace tenon {

using Nodes = std::vector<std::shared_ptr<TensorNode>>;

// A node with its state at the time the program was made: another thread may evaluate it meanwhile.
struct PlannedNode {
  TensorNode* node = nullptr;                          // kept by the caller, or by the expression of a node that uses it
  std::shared_ptr<const TensorExpression> expression;  // null for a leaf
  std::shared_ptr<Storage> storage;                    // of a leaf that is not a literal
  std::uint32_t first_operand = 0, operands = 0;       // places of its inputs, in Plan::operands
  std::uint32_t uses = 0;                              // by nodes later in the plan
  bool is_target = false;
};

struct TensorPlan {
  std::vector<PlannedNode> nodes;
  std::vector<std::uint32_t> operands;
  bool numbers_are_inputs = false;  // of the program, where they can be (scalar_use); otherwise they are constants

  std::span<const std::uint32_t> inputs(const PlannedNode& node) const {
    return {operands.data() + node.first_operand, node.operands};
  }
};

// Everything |targets| need, inputs before what uses them. Iterative: an expression may be deeper than any stack. The targets
// must outlive the plan.
TensorPlan plan(std::span<const std::shared_ptr<TensorNode>> targets);

// Evaluates the targets of the plan on |options|.device and stores their values in their nodes. |evaluation|, if there is one,
// receives the report.
void run_plan(TensorPlan& planned, DeviceManager& manager, const RunOptions& options, Evaluation* evaluation);

}  // namespace tenon
