// ProgramCache: programs by the structure of the plan they were built from; LRU.
//
// Recording the same expression again finds the graph it gave before, without inference and without a new graph. When it comes
// again with other numbers, those that are operands of simple ops become inputs of the program (ScalarUse): from then on a new
// number is not a new program. Until then they are constants, which need no transfer to the device.
// Thread safety: all calls may run concurrently.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/threads/fork_mutex.h"
#include "tensor/run_plan.h"

namespace tenon {

// A literal as an operand of a node whose other operand decides its dtype.
struct ScalarUse {
  DType dtype = DType::f32;
};
// How literal |operand| of |node| enters the program as an input; nullopt: it is a constant.
std::optional<ScalarUse> scalar_use(const TensorPlan& plan, const PlannedNode& node, std::size_t operand);

// What decides the graph of a plan: ops, parameters, types, which values are equal, and numbers that are constants. nullopt for
// plans with expressions that have no structure to compare, or too large to keep.
std::optional<GraphKey> structure_of(const TensorPlan& plan);

// The values that the program of a plan takes, in the order of its inputs.
std::vector<std::shared_ptr<Storage>> arguments_of(const TensorPlan& plan);

class ProgramCache {
 public:
  static constexpr std::size_t kMaxPrograms = 256;
  static ProgramCache& instance();
  // The program whose outputs are the targets in order; null if there is none.
  std::shared_ptr<const Graph> find(const GraphKey& structure);
  void keep(const GraphKey& structure, std::shared_ptr<const Graph> program);
  // Whether |structure| was met before; it is from now on.
  bool meet(const GraphKey& structure);

 private:
  struct Entry {
    GraphKey structure;
    std::shared_ptr<const Graph> program;  // null if it was only met
  };
  void add(const GraphKey& structure, std::shared_ptr<const Graph> program);

  ForkMutex mutex_;
  std::list<Entry> recent_;  // most recently used first
  std::unordered_map<GraphKey, std::list<Entry>::iterator> entries_;
};

}  // namespace tenon
