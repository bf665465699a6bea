// The type of an elementwise result, without a graph: for tensors that are recorded now and put into a program later.
#pragma once

#include <optional>
#include <span>

#include "tenon/graph.h"

namespace tenon {

struct OperandType {
  DType dtype = DType::f32;
  bool weak = false;
  const Shape* shape = nullptr;
};
struct InferredType {
  DType dtype = DType::f32;
  bool weak = false;
  Shape shape;
};

// As Graph::elementwise(op, operands) infers it; nullopt where that throws.
std::optional<InferredType> elementwise_type(ElementwiseOp op, std::span<const OperandType> operands);

}  // namespace tenon
