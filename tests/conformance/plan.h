// Plan: collects the cases of one op and dtype; the tables of cases_*.cpp use it.
//
//   {"softmax", [](Plan& p) { p.add("last axis", {p.x({5, 17})}, {{"axis", -1}}); }}
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "conformance/cases/cases.h"

namespace tenon::conformance {

// Integers as they are written in the tables.
inline ParameterValue integer(std::int64_t value) { return value; }
inline ParameterValue integers(std::initializer_list<std::int64_t> values) { return std::vector<std::int64_t>(values); }

class Plan {
 public:
  Plan(const OpInfo& op, DType dtype, Extent extent) : op_(op), dtype_(dtype), extent_(extent) {}

  const OpInfo& op() const { return op_; }
  DType dtype() const { return dtype_; }
  bool is_full() const { return extent_ == Extent::full; }
  bool is_float() const { return tenon::is_float(dtype_); }

  // An input of the dtype under test, or of one given.
  CaseInput x(const Shape& shape, Values values = Values::small) const { return {shape, dtype_, Fill{values}}; }
  CaseInput of(DType dtype, const Shape& shape, Values values = Values::small) const { return {shape, dtype, Fill{values}}; }
  CaseInput indices(const Shape& shape, std::int64_t limit, DType dtype = DType::i64) const {
    return {shape, dtype, Fill{Values::index, limit}};
  }

  Case& add(std::string label, std::vector<CaseInput> inputs, std::vector<NamedValue> parameters = {});

  // Repeats each case so far with inputs of two or more axes passed through a transpose.
  void add_transposed();

  std::vector<Case> take() { return std::move(cases_); }

 private:
  const OpInfo& op_;
  DType dtype_;
  Extent extent_;
  std::vector<Case> cases_;
};

using PlanFunction = void (*)(Plan&);
using PlanTable = std::map<std::string, PlanFunction, std::less<>>;

void plan_elementwise(Plan& plan);  // any op of one elementwise node
const PlanTable& reduction_plans();
const PlanTable& linear_algebra_plans();
const PlanTable& shape_plans();
const PlanTable& indexing_plans();
const PlanTable& neural_plans();
const PlanTable& spatial_plans();
const PlanTable& creation_plans();

}  // namespace tenon::conformance
