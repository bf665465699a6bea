// Where helper functions are listed: name, what it calls, text. See math.h.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tenon::emit {

struct Helper {
  std::string_view name;
  std::string_view calls;  // names, separated by spaces
  std::string_view text;
};

// In order: a helper calls only ones before it in its own list or in lists named before it here.
std::span<const Helper> common_helpers();  // bit work, conversions, random numbers, block formats
std::span<const Helper> f32_helpers();     // polynomials
std::span<const Helper> cuda_helpers();    // in the place of others of the same name; matrix units
std::span<const Helper> f64_helpers();
std::span<const Helper> lanes_helpers();       // of F32V, compiled where there are LANES (target.cpp)
std::span<const Helper> wide_lanes_helpers();  // of F64V, likewise
std::span<const Helper> f64_lanes_helpers();   // the same, as exact as f64 is
// For the integer type T with the unsigned type U at least as wide as 32 bits, and B bits.
std::span<const Helper> integer_helpers();  // names without their type: "pow", "gcd"

// The function |name|(x) of vectors of |type|, |fma| being their fused multiply-add. By Estrin's scheme, as the CPU backend's:
// fewer steps that wait for each other.
std::string polynomial_text(std::string_view type, std::string_view fma, std::string_view name,
                            std::span<const double> coefficients);

}  // namespace tenon::emit
