// Where helper functions are listed: name, what it calls, text. See math.h.
#pragma once

#include <span>
#include <string>
#include <string_view>

// X(Op, name) for the ops of f32 that CUDA's own function computes within the op's limit (docs/conformance.md), by the largest
// errors that NVIDIA publishes: 4 ULP of tan, acosh and pow, 3 or fewer of the others. Elsewhere they are computed in f64.
#define TENON_CUDA_OPS_OF_ONE(X) \
  X(Rsqrt, rsqrt)                \
  X(Cbrt, cbrt)                  \
  X(Exp10, exp10)                \
  X(Tan, tan)                    \
  X(Asin, asin)                  \
  X(Acos, acos) X(Atan, atan) X(Sinh, sinh) X(Cosh, cosh) X(Asinh, asinh) X(Acosh, acosh) X(Atanh, atanh) X(Erfinv, erfinv)
#define TENON_CUDA_OPS_OF_TWO(X) X(Pow, pow) X(Atan2, atan2) X(Hypot, hypot)

namespace tenon::emit {

struct Helper {
  std::string_view name;
  std::string_view calls;  // names, separated by spaces
  std::string_view text;
};

// In order: a helper calls only ones before it in its own list or in lists named before it here.
std::span<const Helper> common_helpers();    // bit work, conversions, random numbers, block formats
std::span<const Helper> function_helpers();  // the formulas of src/math
std::span<const Helper> cuda_helpers();      // in the place of others of the same name; matrix units
std::span<const Helper> tensix_helpers();    // likewise
std::span<const Helper> f64_helpers();
// For the integer type T with the unsigned type U at least as wide as 32 bits, and B bits.
std::span<const Helper> integer_helpers();  // names without their type: "pow", "gcd"

}  // namespace tenon::emit
