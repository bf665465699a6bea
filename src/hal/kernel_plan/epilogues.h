// Epilogues: operations that a library applies to a matrix product while it stores the result.
//
// A group that only adds a bias to a product without other readers, or applies an activation, or both, needs no separate kernel.
// The product is then postponed until the group is planned, when its bias is available.
#pragma once

#include <map>

#include "hal/kernel_plan/values.h"

namespace tenon {

struct Epilogue {
  NodeId product = -1, result = -1;
  NodeId bias = -1;  // an operand of the group, or none
  MatMulStep::Activation activation = MatMulStep::Activation::none;
};

// By group. Whether the library supports one is checked when the group is planned (kernel_plan/products.h).
std::map<int, Epilogue> find_epilogues(const Graph& graph, const Plan& fused, const PlanValues& values);

}  // namespace tenon
