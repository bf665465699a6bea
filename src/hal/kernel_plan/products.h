// PlanProducts: plans matrix products and convolutions as library steps if the library supports them, otherwise as kernels.
//
// Operands are read in place if the product allows it, and copied otherwise. A large convolution without a library runs on
// the matrix units, or as a product with an im2col copy of its input.
// Thread safety: none; belongs to one planner. Its constructor arguments must outlive it.
#pragma once

#include <optional>
#include <span>

#include "hal/kernel_plan/absorbed.h"
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

  // Writes to |out|, which the caller delivers.
  void add_matmul(const Node& node, const emit::Dense& out);
  void add_conv(const Node& node, const emit::Dense& out);
  void add_conv_transpose(const Node& node, const ConvTransposeAttr& attr, const emit::Dense& out);
  static bool can_conv_transpose(const KernelTarget& target, DType dtype, const Shape& weight, const ConvTransposeAttr& attr);
  // Plans the product and its epilogue in one step and delivers the result. Returns false if the library does not support it.
  bool add_with_epilogue(const Epilogue& epilogue);
  // Plans the product of few rows with what it absorbs, in one kernel, and delivers the result, which is the tail's if there is
  // one. Returns false, with nothing planned, if it is not such a product.
  bool add_absorbing(NodeId product, const ProductHead* head, const ProductTail* tail);

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
  // |slots|: of a, b, the result, and the bias if there is one. False: it is not worth it.
  bool add_few_rows(const MatMulStep& step, std::span<const int> slots, emit::ProductEnd end = {});
  emit::Dense in_declared_dtype(NodeId id);
  // |channels_last| as for emit_matrix_conv().
  void add_conv_of(DType dtype, const ConvAttr& attr, const emit::Dense& x, const emit::Dense& weight, const emit::Dense& out,
                   int& channels_last);
  // The results of a transposed convolution at every stride-th place.
  struct ConvTransposePart {
    ConvAttr conv;
    emit::Access window;  // the part of the window, as |window_shape|
    Shape window_shape;   // [groups, outs, channels, window...]
    Shape result;
    emit::Access places;  // of the result
  };
  // Nothing if the result has no such place.
  static std::optional<ConvTransposePart> conv_transpose_part(const ConvTransposeAttr& attr, std::int64_t number, const Shape& x,
                                                              const emit::Dense& weight, const emit::Dense& out);
  emit::Dense conv_transpose_weights(const ConvTransposePart& part, const emit::Dense& weight);
  // All parts as one convolution, if that is possible and has little more to compute.
  bool add_conv_transpose_at_once(DType dtype, const ConvTransposeAttr& attr, const emit::Dense& x, const emit::Dense& weight,
                                  const emit::Dense& out);
  bool is_worth_a_product(const ConvStep& step) const;
  static bool is_product(const ConvStep& step);
  static bool is_library_product(const ConvStep& step);
  bool add_conv_on_matrix_units(const ConvStep& step, const emit::Dense& x, const emit::Dense& weight, const emit::Dense& out,
                                int& channels_last);
  void add_conv_as_product(const ConvStep& step, const emit::Dense& x, emit::Dense weight, const emit::Dense& out);

  const Graph& graph_;
  const Plan& fused_;
  const KernelTarget& target_;
  const PlanOptions& options_;
  PlanValues& values_;
  PlanSteps& steps_;
};

}  // namespace tenon
