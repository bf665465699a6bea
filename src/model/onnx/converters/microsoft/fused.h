// What the converters of the domain com.microsoft share. ONNX Runtime and its tools write these ops when they optimise or
// quantise a model: most are several ops of ONNX's own in one.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "model/onnx/converters/neural/heads.h"

namespace tenon::onnx {

// The results of ONNX's own |op| for other inputs, with the attributes of |node|, in the form that it has since |version|.
Results as_op(const NodeContext& node, std::string_view op, std::vector<ValuePtr> inputs, std::int64_t version = 21);
// Its first result.
Expr first(const NodeContext& node, const Results& results);

// |a| rounded to 8 bits by its own range, times |b| of 8 bits with a scale and, if not null, a zero point.
Expr dynamic_product(const NodeContext& node, Expr a, const ValuePtr& b, const ValuePtr& scale, const ValuePtr& zero);

// |x| normalised over its last axis, times |scale|.
Expr layer_norm(const NodeContext& node, Expr x, Expr scale, std::optional<Expr> bias, double epsilon);
Expr rms_norm(const NodeContext& node, Expr x, Expr scale, double epsilon);

}  // namespace tenon::onnx
