// The conformance cases: for every op of the catalogue and every dtype it accepts, programs of that one op with inputs.
//
// All elementwise ops get the same cases (cases_elementwise.cpp), derived from their inputs and parameters in the catalogue. Each
// other op has an entry in a table (cases_*.cpp) with shapes and parameters. An op without an entry is an error, so no new op
// can stay untested.
//
//   for (const Case& c : cases_for(find_op("softmax"), DType::bf16, Extent::full)) { Program p = program_of(c, seed); ... }
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "conformance/cases/values.h"
#include "tenon/ops.h"

namespace tenon::conformance {

// The context of the op: alone, inside a fused chain, followed by a reduction of its result, or followed by gelu and two matrix
// products.
enum class Around : std::uint8_t { nothing, chain, sum_last, sum_first, sum_all, products };

struct CaseInput {
  Shape shape;
  DType dtype{};
  Fill fill;
  bool transposed = false;  // stored with its axes reversed, and transposed by a node of the program
};

struct Case {
  const OpInfo* op = nullptr;
  DType dtype{};
  int number = 0;     // among the cases of this op and dtype
  std::string label;  // "odd sizes", "axis=0"
  std::vector<CaseInput> inputs;
  std::vector<NamedValue> parameters;
  Around around = Around::nothing;
  bool random = false;  // counts for the share of correctly rounded results
};

// quick: small shapes and fewer values, for sanitizers.
enum class Extent : std::uint8_t { full, quick };

// Throws not_found if the op has no cases.
std::vector<Case> cases_for(const OpInfo& op, DType dtype, Extent extent);

struct Program {
  Graph graph;
  std::vector<HostArray> inputs;
};

// Throws what apply() throws.
Program program_of(const Case& c, std::uint64_t seed);

std::string parameters_text(std::span<const NamedValue> parameters);  // "axis=-1, keepdims=true"

}  // namespace tenon::conformance
