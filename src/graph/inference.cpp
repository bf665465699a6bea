#include "graph/inference.h"

#include <algorithm>

#include "graph/elementwise.h"

namespace tenon {
namespace {

std::optional<DType> body_dtype(ElementwiseOp op, DType common) {
  const ValueKinds kinds = traits(op).kinds;
  if (is_float(common)) return kinds & kFloats ? std::optional(common) : std::nullopt;
  if (common == DType::boolean && (kinds & kBools)) return common;
  if (kinds & kIntegers) return common == DType::boolean ? DType::i32 : common;
  return kinds & kFloats ? std::optional(DType::f32) : std::nullopt;
}

}  // namespace

std::optional<InferredType> elementwise_type(ElementwiseOp op, std::span<const OperandType> operands) {
  const ElementwiseTraits& t = traits(op);
  if (static_cast<int>(operands.size()) != t.inputs || t.params != 0) return std::nullopt;
  InferredType type{DType::boolean, true, *operands[0].shape};
  bool weak_float = false, weak_integer = false;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const OperandType& operand = operands[i];
    if (!(*operand.shape == type.shape)) {
      if (broadcastable(*operand.shape, type.shape)) {
        // It is stretched.
      } else if (broadcastable(type.shape, *operand.shape)) {
        type.shape = *operand.shape;
      } else {
        return std::nullopt;
      }
    }
    if (t.condition && i == 0) continue;
    if (operand.weak) {
      (is_float(operand.dtype) ? weak_float : weak_integer) = true;
    } else {
      type.dtype = type.weak ? operand.dtype : promote(type.dtype, operand.dtype);
      type.weak = false;
    }
  }
  if (type.weak)
    type.dtype = weak_float ? DType::f64 : DType::i64;
  else if (weak_float && !is_float(type.dtype))
    type.dtype = DType::f32;
  else if (weak_integer && type.dtype == DType::boolean)
    type.dtype = DType::i64;
  const std::optional<DType> body = body_dtype(op, type.dtype);
  if (!body) return std::nullopt;
  type.dtype = type.weak && *body == DType::f32 ? DType::f64 : *body;
  if (t.returns_bool) {
    type.dtype = DType::boolean;
    type.weak = false;
  }
  return type;
}

}  // namespace tenon
