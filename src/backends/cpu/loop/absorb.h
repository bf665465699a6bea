// Nodes that become part of another one's instruction, so that fewer passes are made over a tile.
#pragma once

#include <array>
#include <map>
#include <utility>

#include "backends/cpu/loop/group_view.h"
#include "backends/cpu/loop/program.h"

namespace tenon::cpu {

// A comparison of numbers that count columns with one number per row: all columns of one side.
struct ColumnRange {
  NodeId comparison;
  ElementwiseOp op;
  std::int64_t first_number;  // of the first column
  NodeId row;
};

// A cast to bytes of floats that are divided in double, rounded, shifted and limited: what is rounded, and the parameters of
// Kernels::quantize.
struct Quantization {
  NodeId source;
  std::array<double, 4> params;
};

struct Absorbed {
  std::map<NodeId, NodeId> into;                         // node -> one whose instruction computes it, too
  std::map<NodeId, NodeId> product_of;                   // a sum -> the product in it: a * b + c
  std::map<NodeId, NodeId> multiply_add_of;              // an activation -> the sum it is applied to
  std::map<NodeId, NodeId> product_sums;                 // a reduction -> the product it sums
  std::map<NodeId, NodeId> distances;                    // a reduction -> the difference whose size or square it reduces
  std::map<NodeId, NodeId> magnitudes;                   // a maximum -> the absolute values it is of
  std::map<NodeId, NodeId> quotients;                    // a product sum -> the quotient x / row that it sums the squares of
  std::map<NodeId, NodeId> squares_with;                 // a maximum of magnitudes -> the sum of squares of quotients x / row
  std::map<NodeId, std::pair<NodeId, NodeId>> exp_sums;  // an exponential -> the difference it is of, the reduction that sums it
  std::map<NodeId, NodeId> reduced_by;                   // an op of two arrays -> the reduction over it
  std::map<NodeId, NodeId> deviation_of;                 // an op or a product sum -> the difference x - row it works on
  std::map<NodeId, NodeId> normalized;                   // a sum, its product absorbed -> the quotient of a difference in that
  std::map<NodeId, Quantization> quantizations;          // a cast to bytes -> what it rounds
  std::map<NodeId, ColumnRange> ranges;                  // a choice, or a cast of a bool -> the comparison it is of
};

// Kernels that do several at once; nullptr where there is none.
ProductSumKernel difference_kernel(ReduceKind kind, ElementwiseOp measure, DType type);
StoreAndReduceKernel store_and_reduce_kernel(ReduceKind kind, ElementwiseOp op, DType type);

Absorbed find_absorbed(const Graph& graph, const Plan& plan, const GroupView& view, const LoopGeometry& geometry);

}  // namespace tenon::cpu
