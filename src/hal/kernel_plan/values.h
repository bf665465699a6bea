// PlanValues: the locations of the values of a fused graph while its plan is made.
//
// A value that is read has a source: an input, a constant, a temporary of an earlier step, or an output of the graph. A result is
// written directly to an output if possible. dense() plans a copy of a value that is not dense.
// Thread safety: none; belongs to one planner. The graph, the plan of its groups, the target and the steps must outlive it.
//
//   const Dense x = values.dense(node.inputs[0]), out = values.result_of(id);
//   steps.add(emit_window(target, x, attr, out));
//   values.deliver(id, out);
#pragma once

#include <map>
#include <set>
#include <span>
#include <vector>

#include "codegen/c/loops/loop.h"
#include "codegen/c/primitives/primitives.h"
#include "graph/optimize/fusion.h"
#include "hal/kernel_plan/steps.h"

namespace tenon {

class PlanValues final : public emit::GroupPlacement {
 public:
  // Plans steps that decode inputs in block formats. Copies change |fused|: later readers of a copied view read the copy.
  PlanValues(const Graph& graph, Plan& fused, const KernelTarget& target, PlanSteps& steps);

  // --- Reading ---
  // The memory of a node that is not a view. Constants are placed on first use.
  emit::StoredValue source(NodeId base) const override;
  // The value of |id| as it is stored in memory.
  emit::Access stored(NodeId id) const;
  // The same, dense and starting at its first byte.
  emit::Dense dense(NodeId id);
  // Plans a dense copy, which later readers of |id| use.
  emit::Dense copied(NodeId id);
  // Whether exactly one step reads the computed value |base|, and it is not an output of the program.
  bool is_read_once(NodeId base) const;
  // Whether |id| is an iota that only maps read, which compute its elements themselves: it needs no memory.
  bool is_computed_by_readers(NodeId id) const { return computed_by_readers_.contains(id); }

  // --- Writing ---
  // The products |ids| are stored in their own 16 bits, whatever reads them. Call it before anything is placed.
  void store_rounded(std::span<const NodeId> ids);
  // Allocates memory (memory_dtype) for a computed value that is read inside the program.
  void place(NodeId id);
  // The destination of a primitive: the memory that others read, or the graph's output, to whose dtype it rounds.
  // Returns true if |id| is a cast of a value that is stored as its result would be (a product of 16-bit numbers is, if nothing
  // rounds it): the value is then used for both.
  bool is_stored_already(NodeId id);
  emit::Dense result_of(NodeId id);
  // The same in the compute type, for values that are written more than once.
  emit::Dense unrounded_result_of(NodeId id);
  std::vector<emit::StoredValue> targets(NodeId output) const override;
  // The elementwise group that computes |id|, which only a concatenation reads, stores it there and nowhere else.
  void put_into(NodeId id, const emit::Access& part) { parts_[id] = part; }
  const emit::Access* part(NodeId output) const override;
  int scratch(std::uint64_t bytes) override { return steps_.temporary(bytes); }

  // --- Outputs of the graph ---
  // Plans copies of the value |id|, which was computed |from|, into the outputs that it is; none if it is already there.
  void deliver(NodeId id, const emit::Dense& from);
  // After all steps: plans outputs that no step computes (inputs, constants, views, values in a block format).
  void deliver_others();

 private:
  NodeId base_of(NodeId id) const;
  bool is_renamed(NodeId output) const;
  void find_exact();
  // What a computed value is stored as (memory_dtype), or moved values that were.
  DType memory_dtype_of(NodeId id) const;
  void count_readers();
  void find_computed_by_readers();
  void place_inputs();
  void place_outputs();
  void place_direct_outputs();

  const Graph& graph_;
  Plan& fused_;
  const KernelTarget& target_;
  PlanSteps& steps_;
  std::vector<bool> is_exact_;  // by node: its elements are numbers of its dtype
  std::set<NodeId> computed_by_readers_;
  std::map<NodeId, emit::Access> parts_;                       // of concatenations, by what is stored there
  std::map<NodeId, int> readers_;                              // how often a base is read inside the program
  mutable std::map<NodeId, emit::StoredValue> sources_;        // by base
  std::map<NodeId, std::vector<std::size_t>> direct_outputs_;  // computed node -> outputs it is
  std::vector<bool> is_direct_;                                // by output: whether a step writes it as its result
};

}  // namespace tenon
