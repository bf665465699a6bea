// PlanProducts: matrix products and convolutions as steps of the backend's library where it takes them, as kernels otherwise.
//
// Operands are read where they lie if a product can, and are copied if not. A large convolution without a library runs on
// the matrix units, or is a product with an unfolded copy of its input.
// Thread safety: none; one planner's. Everything it is made of must outlive it.
#pragma once

#include <optional>

#include "hal/kernel_plan/epilogues.h"
#include "hal/kernel_plan/values.h"

namespace tenon {

class PlanProducts {
 public:
  PlanProducts(const Graph& graph, const Plan& fused, const KernelTarget& target, const PlanOptions& options, PlanValues& values,
               PlanSteps& steps)
      : graph_(graph),
        fused_(fused),
        target_(target),
        options_(options),
        values_(values),
        steps_(steps) {}

  // Into |out|, which the caller delivers.
  void add_matmul(const Node& node, const emit::Dense& out);
  void add_conv(const Node& node, const emit::Dense& out);
  // The product and its epilogue in one step, its result delivered. False, and no step, where the library does not take it.
  bool add_with_epilogue(const Epilogue& epilogue);

 private:
  struct Operand {
    MatrixOperand layout;  // its location is still empty
    int slot = -1;
  };
  struct Product {
    MatMulStep step;
    int a = -1, b = -1, result = -1;  // slots
  };

  std::optional<Operand> operand_in_place(NodeId id, bool transposed) const;
  Operand operand(NodeId id, bool transposed);
  Operand operand_with_columns_together(NodeId id, bool transposed);
  Product product_of(const Node& node, const emit::Dense& out);
  void add_product(const Product& product);
  bool is_worth_a_product(const ConvStep& step) const;
  static bool is_product(const ConvStep& step);
  bool add_conv_on_matrix_units(const ConvStep& step, const emit::Dense& x, const emit::Dense& weight, const emit::Dense& out);
  void add_conv_as_product(const ConvStep& step, const emit::Dense& x, emit::Dense weight, const emit::Dense& out);

  const Graph& graph_;
  const Plan& fused_;
  const KernelTarget& target_;
  const PlanOptions& options_;
  PlanValues& values_;
  PlanSteps& steps_;
};

}  // namespace tenon
