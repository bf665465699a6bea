// Epilogues: what a library does to a matrix product while it stores it.
//
// A group that only adds a bias to a product nobody else reads, or applies an activation, or both, needs no kernel of its own.
// The product then waits for the group's turn, when its bias is there.
#pragma once

#include <map>

#include "hal/kernel_plan/values.h"

namespace tenon {

struct Epilogue {
  NodeId product = -1, result = -1;
  NodeId bias = -1;  // an operand of the group, or none
  MatMulStep::Activation activation = MatMulStep::Activation::none;
};

// By group. Whether the library takes one is asked when its turn comes (kernel_plan/products.h).
std::map<int, Epilogue> find_epilogues(const Graph& graph, const Plan& fused, const PlanValues& values);

}  // namespace tenon
