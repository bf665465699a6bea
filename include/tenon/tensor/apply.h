// apply(): any op of the catalogue on tensors, by its description instead of its C++ name; for bindings and interpreters.
//
// functions.h has one function per op with its parameters as arguments. Here the op is data, so that a front end can offer the
// whole catalogue without a list of its own. Like those functions, apply() computes nothing and may be called from any thread.
//
//   const OpInfo& op = find_op("softmax");
//   Tensor y = apply(op, std::array{x}, {{"axis", std::int64_t{-1}}})[0];
#pragma once

#include <span>
#include <vector>

#include "tenon/ops.h"
#include "tenon/tensor.h"

namespace tenon {

// The results of |op|, usually one. Optional inputs at the end may be none. Throws invalid_argument and out_of_range, naming the
// op, the dtypes and the shapes.
std::vector<Tensor> apply(const OpInfo& op, std::span<const Tensor> inputs, std::vector<NamedValue> parameters = {});

// Whether the op returns a list of tensors (split, chunk, top_k), even if that list has one element.
bool has_several_results(const OpInfo& op) noexcept;

}  // namespace tenon
