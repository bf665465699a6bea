// Loop: one fused group (graph/optimize/fusion.h), compiled to block instructions (program.h).
//
// Lifetime: built once per executable; refers only to the process-wide kernel table.
// Thread safety: run() is const and may be called concurrently with different scratch memory.
#pragma once

#include <cstddef>
#include <set>
#include <vector>

#include "backends/cpu/loop/program.h"
#include "base/threads/thread_pool.h"
#include "graph/optimize/fusion.h"

namespace tenon::cpu {

// What a Loop needs to know about the surrounding program.
class ValuePlacement {
 public:
  virtual ~ValuePlacement() = default;
  // The location of the dense memory of a node outside the group.
  virtual Place source(NodeId base) const = 0;
  // All locations to which the results of an output of the group must be written.
  virtual std::vector<Place> targets(NodeId output) const = 0;
};

// False if |operand| of |group| must be copied to dense memory before a Loop can read it (efficiently).
bool loop_can_read(const Graph& graph, const Plan& plan, const Group& group, NodeId operand);

// The axes of the domain along which |operand|, one of |operands|, should be copied as it is broadcast before the loop runs, so
// that rows are long; none if that would take too much, or if rows are long anyway.
AxisSet axes_to_expand(const Graph& graph, const Plan& plan, const Group& group, const std::set<NodeId>& operands,
                       NodeId operand);

class Loop {
 public:
  Loop(const Graph& graph, const Plan& plan, int group, const ValuePlacement& placement, int threads);

  std::size_t scratch_bytes() const { return program_.scratch_bytes; }
  // |scratch| of scratch_bytes(), 64-byte aligned.
  void run(ThreadPool& pool, std::byte* const* locations, std::byte* scratch) const;

 private:
  void run_reduction(ThreadPool& pool, std::byte* const* locations, std::byte* scratch, bool parallel) const;

  LoopProgram program_;
};

}  // namespace tenon::cpu
