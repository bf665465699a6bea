// PlanValues: where the values of a fused graph lie in memory, while its plan is being made.
//
// A value that is read has a source: an input, a constant, a temporary of a step before, or an output of the graph. A result goes
// straight into an output where it can. Whoever needs a value dense asks for it here, and a copy is planned if it is not.
// Thread safety: none; one planner's. The graph, the plan of its groups, the target and the steps must outlive it.
//
//   const Dense x = values.dense(node.inputs[0]), out = values.result_of(id);
//   steps.add(emit_window(target, x, attr, out));
//   values.deliver(id, out);
#pragma once

#include <map>
#include <vector>

#include "codegen/c/loops/loop.h"
#include "codegen/c/primitives/primitives.h"
#include "graph/fusion.h"
#include "hal/kernel_plan/steps.h"

namespace tenon {

class PlanValues final : public emit::GroupPlacement {
 public:
  // Plans steps that decode inputs in block formats. Copies change |fused|: later readers of a copied view read the copy.
  PlanValues(const Graph& graph, Plan& fused, const KernelTarget& target, PlanSteps& steps);

  // --- Reading ---
  // The memory of a node that is no view. Constants are placed when first asked for.
  emit::StoredValue source(NodeId base) const override;
  // The value of |id| as it lies in memory.
  emit::Access stored(NodeId id) const;
  // The same, dense and from its first byte on.
  emit::Dense dense(NodeId id);
  // Plans a dense copy, which is what later readers of |id| see.
  emit::Dense copied(NodeId id);
  // Whether one step reads the computed value |base|, and nobody outside the program.
  bool is_read_once(NodeId base) const;

  // --- Writing ---
  // Gives a computed value that is read inside the program memory, in its compute type.
  void place(NodeId id);
  // Where a primitive writes: the memory others read, or the graph's output, which it rounds to.
  emit::Dense result_of(NodeId id);
  // The same in the compute type, for what is written more than once.
  emit::Dense unrounded_result_of(NodeId id);
  std::vector<emit::StoredValue> targets(NodeId output) const override;
  int scratch(std::uint64_t bytes) override { return steps_.temporary(bytes); }

  // --- Outputs of the graph ---
  // Plans copies into the outputs that are the value |id|, which was computed |from|; none where it already lies.
  void deliver(NodeId id, const emit::Dense& from);
  // After all steps: outputs that no step computes, being inputs, constants, views of something, or in a block format.
  void deliver_others();

 private:
  NodeId base_of(NodeId id) const;
  bool is_renamed(NodeId output) const;
  void count_readers();
  void place_inputs();
  void place_outputs();

  const Graph& graph_;
  Plan& fused_;
  const KernelTarget& target_;
  PlanSteps& steps_;
  std::map<NodeId, int> readers_;                              // how often a base is read inside the program
  mutable std::map<NodeId, emit::StoredValue> sources_;        // by base
  std::map<NodeId, std::vector<std::size_t>> direct_outputs_;  // computed node -> outputs it is
  std::vector<bool> is_direct_;                                // by output: some step writes it as its result
};

}  // namespace tenon
