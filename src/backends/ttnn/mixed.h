// MixedPlan: a program as parts in two tiers, each of which passes tensors on to later ones.
//
// What TTNN's functions compute as Tenon promises is in fast parts, the rest in exact ones. Parts run in order. Between them a
// tensor is a number of its dtype in every element, so that it does not matter who made it.
// Thread safety: pure functions.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "backends/ttnn/exact.h"
#include "backends/ttnn/fast.h"

namespace tenon::ttnn {

struct PlanPart {
  bool is_fast = false;
  FastPlan fast = {};
  ExactPlan exact = {};
  std::vector<int> inputs = {}, outputs = {};  // values of the plan
};

struct MixedPlan {
  std::vector<TensorType> values;  // the program's inputs first
  std::vector<TensorType> input_types, output_types;
  std::vector<int> outputs;  // values
  std::vector<PlanPart> parts;
  std::map<std::string, std::vector<std::string>> ops_by_tier;

  std::string tier() const;  // "fast", "exact", "mixed"
};

// nullopt if nothing is worth a fast part; |why|, if given, then says what TTNN lacks or gets wrong.
std::optional<MixedPlan> plan_mixed(const Graph& graph, const FastRules& rules, std::string* why = nullptr);
// All of it in the exact tier.
MixedPlan plan_all_exact(const Graph& graph);

}  // namespace tenon::ttnn
