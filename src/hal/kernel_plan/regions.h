// Ops that run as a whole (Prim::region): selections of a sorted order, attention, transposed convolutions, products
// with small integers and pooling to a number of windows.
#pragma once

#include "codegen/c/primitives/primitives.h"
#include "codegen/c/sort/sort.h"
#include "hal/kernel_plan/absorbed.h"
#include "hal/kernel_plan/products.h"
#include "hal/kernel_plan/steps.h"
#include "hal/kernel_plan/values.h"

namespace tenon {

// Whether the target has kernels for the op. Other regions are planned as the nodes that they consist of.
bool takes_region(const KernelTarget& target, const Graph& graph, const Region& region);
// Whether the step of |node|, an attention, reads the two parts of its keys and values where they are; nothing else reads them
// put together.
bool has_two_parts(const KernelTarget& target, const Graph& graph, const Node& node, const PlanValues& values);
// Groups that attention computes itself; null: it does not.
struct AttentionGroups {
  emit::GroupReader* queries = nullptr;
  emit::GroupReader* renewed = nullptr;  // what |keys| names, stored in |to|
  RenewedKeys keys;
  emit::Dense to;
};
// The part of the sorted order that a selection wants; the planner adds its kernels, with those of the elements themselves.
emit::SortRange range_of(const TopKAttr& attr);
// Adds the steps of |node|, any other region that was taken.
void add_region(const KernelTarget& target, const Graph& graph, const Node& node, const emit::Dense& out, PlanValues& values,
                PlanSteps& steps, PlanProducts& products, const AttentionGroups& groups);

}  // namespace tenon
