// The helper functions that generated kernels call, as text: elementary functions of f32 and f64, conversions, wrapping integer
// arithmetic, random numbers, block formats.
//
// f32 functions are branch-free polynomials within 3 ULP where a dialect's own are slower or less accurate. Names end in the type
// they compute in: exp_f32, pow_i64.
#pragma once

#include <set>
#include <string>

#include "codegen/c/target.h"

namespace tenon {

// The text of |names| and of everything they call, each after what it calls. Throws internal for a name there is not.
std::string helper_text(const KernelTarget& target, const std::set<std::string>& names);

}  // namespace tenon
