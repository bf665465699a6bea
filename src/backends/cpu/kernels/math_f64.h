// The elementary functions of f64 lanes: our own (math/double.h in full precision), those of the C library for vectors (libmvec),
// within four units in the last place, or the C library's own for one lane after the other.
//
// Compiled once per instruction set, like lanes.h; not together with math_wide.h, which gives the same names to the faster and
// less exact ones.
#pragma once

#include <dlfcn.h>

#include "backends/cpu/kernels/lanes.h"
#include "math/double.h"
#include "math/double_functions.h"
#include "math/double_special.h"
#include "math/special.h"

#if TENON_CPU_LEVEL == 4
#define TENON_NATIVE_V __m512d
#define TENON_NAME_1(name) "_ZGVeN8v_" #name
#define TENON_NAME_2(name) "_ZGVeN8vv_" #name
#elif TENON_CPU_LEVEL == 3
#define TENON_NATIVE_V __m256d
#define TENON_NAME_1(name) "_ZGVdN4v_" #name
#define TENON_NAME_2(name) "_ZGVdN4vv_" #name
#else
#define TENON_NATIVE_V __m128d
#define TENON_NAME_1(name) "_ZGVbN2v_" #name
#define TENON_NAME_2(name) "_ZGVbN2vv_" #name
#endif

// X(name) for the functions of one vector that this instruction set takes from the C library.
#if TENON_CPU_LEVEL >= 4
#define TENON_CALLED_VECTOR_FUNCTIONS(X) TENON_LIBRARY_VECTOR_FUNCTIONS(X)
#elif TENON_CPU_LEVEL == 3
#define TENON_CALLED_VECTOR_FUNCTIONS(X) TENON_LIBRARY_VECTOR_FUNCTIONS(X) TENON_OWN_LOOKUP_FUNCTIONS(X)
#else
#define TENON_CALLED_VECTOR_FUNCTIONS(X) \
  TENON_LIBRARY_VECTOR_FUNCTIONS(X) TENON_OWN_LOOKUP_FUNCTIONS(X) TENON_OWN_VECTOR_FUNCTIONS(X)
#endif

namespace tenon::cpu {
namespace {

// Pointers, because libmvec is looked up when the program runs: most of its functions are new in glibc 2.35, and a library linked
// with them would not load with an older one. Until it is found, and where it lacks one, they compute one lane after the other.
using FunctionOfVector = TENON_NATIVE_V (*)(TENON_NATIVE_V) noexcept;
using FunctionOfTwoVectors = TENON_NATIVE_V (*)(TENON_NATIVE_V, TENON_NATIVE_V) noexcept;

#define TENON_X(name)                                                                                        \
  TENON_NATIVE_V name##_by_lanes(TENON_NATIVE_V x) noexcept {                                                \
    return (TENON_NATIVE_V)per_lane(Wide((DoubleV)x), [](double lane) { return __builtin_##name(lane); }).v; \
  }                                                                                                          \
  FunctionOfVector name##_of_vector = name##_by_lanes;                                                       \
  TENON_INLINE Wide name(Wide x) { return Wide((DoubleV)name##_of_vector((TENON_NATIVE_V)x.v)); }
TENON_CALLED_VECTOR_FUNCTIONS(TENON_X)
#undef TENON_X
#define TENON_X(name)                                                                                        \
  TENON_NATIVE_V name##_by_lanes(TENON_NATIVE_V x, TENON_NATIVE_V y) noexcept {                              \
    return (TENON_NATIVE_V)per_lane(Wide((DoubleV)x), Wide((DoubleV)y),                                      \
                                    [](double lane, double other) { return __builtin_##name(lane, other); }) \
        .v;                                                                                                  \
  }                                                                                                          \
  FunctionOfTwoVectors name##_of_vectors = name##_by_lanes;                                                  \
  TENON_INLINE Wide library_##name(Wide x, Wide y) {                                                         \
    return Wide((DoubleV)name##_of_vectors((TENON_NATIVE_V)x.v, (TENON_NATIVE_V)y.v));                       \
  }
TENON_VECTOR_FUNCTIONS_OF_TWO(TENON_X)
#undef TENON_X

// Called once, before any kernel of this file.
void find_vector_functions() {
  void* const library = dlopen("libmvec.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) return;
#define TENON_X(name) \
  if (void* const found = dlsym(library, TENON_NAME_1(name))) name##_of_vector = reinterpret_cast<FunctionOfVector>(found);
  TENON_CALLED_VECTOR_FUNCTIONS(TENON_X)
#undef TENON_X
#define TENON_X(name) \
  if (void* const found = dlsym(library, TENON_NAME_2(name))) name##_of_vectors = reinterpret_cast<FunctionOfTwoVectors>(found);
  TENON_VECTOR_FUNCTIONS_OF_TWO(TENON_X)
#undef TENON_X
}

// Our own.
#define TENON_X(name) \
  TENON_INLINE Wide name(Wide x) { return math::name<math::Precision::full>(x); }
TENON_X(exp)
TENON_X(exp2)
#if TENON_CPU_LEVEL >= 3
TENON_OWN_VECTOR_FUNCTIONS(TENON_X)
#endif
#if TENON_CPU_LEVEL >= 4
TENON_OWN_LOOKUP_FUNCTIONS(TENON_X)
#endif
#undef TENON_X

TENON_INLINE Wide atan2(Wide y, Wide x) { return library_atan2(y, x); }
TENON_INLINE Wide pow(Wide x, Wide y) {
  return math::pow_by(x, y, [](Wide base, Wide exponent) { return library_pow(base, exponent); });
}
// Exact: the product with the quotient's integer part is in one operation with the difference, which a double holds. The integer
// part may be one too large. Quotients that are no such number go to the C library.
TENON_INLINE Wide fmod(Wide x, Wide y) {
  const auto of_lanes = [](double a, double b) { return __builtin_fmod(a, b); };
  if constexpr (!kLevelHasFma) return per_lane(x, y, of_lanes);
  const Wide a = abs(x), b = abs(y), zero(0.0), quotient = a / b;
  const Wide rest = select(quotient < Wide(1.0), a, fma(-trunc(quotient), b, a));  // not 0 * infinity
  const Wide at_least_zero = select(rest < zero, rest + b, rest);
  const Wide result = copysign(select(at_least_zero >= b, at_least_zero - b, at_least_zero), x);
  const LaneMask<double> large = !(quotient < Wide(0x1p52));
  return any(large) ? select(large, per_lane(x, y, of_lanes), result) : result;
}
// The integer part of a quotient, rounded away from 0 where |upwards|: with one division. Other quotients go to |otherwise|.
template <class F>
TENON_INLINE Wide whole_quotient(Wide x, Wide y, LaneMask<double> upwards, F otherwise) {
  const Wide a = abs(x), b = abs(y), zero(0.0), one(1.0), quotient = a / b, t = trunc(quotient);
  const Wide rest = fma(-t, b, a);  // below 0 if the quotient was rounded up to an integer
  const LaneMask<double> is_above = rest < zero, is_between = (select(is_above, rest + b, rest) != zero) & upwards;
  const Wide size = t + select(is_between, one, zero) - select(is_above, one, zero);
  const LaneMask<double> other = !(quotient < Wide(0x1p52)) | is_inf(y);
  const Wide result = from_bits<double>(bits(size) ^ ((bits(x) ^ bits(y)) & LaneTypes<double>::kSign));
  return any(other) ? select(other, otherwise(x, y), result) : result;
}
TENON_INLINE Wide lgamma(Wide x) { return per_lane(x, lgamma_of); }
TENON_INLINE Wide erfinv(Wide x) { return math::erfinv_of_platform(x); }
TENON_INLINE Wide i0(Wide x) { return math::i0_of_platform(x); }

}  // namespace
}  // namespace tenon::cpu

#undef TENON_NATIVE_V
#undef TENON_NAME_1
#undef TENON_NAME_2
#undef TENON_CALLED_VECTOR_FUNCTIONS
