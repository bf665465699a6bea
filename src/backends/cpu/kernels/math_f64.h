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
  TENON_INLINE Wide name(Wide x, Wide y) { return Wide((DoubleV)name##_of_vectors((TENON_NATIVE_V)x.v, (TENON_NATIVE_V)y.v)); }
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

TENON_INLINE Wide fmod(Wide x, Wide y) {
  return per_lane(x, y, [](double a, double b) { return __builtin_fmod(a, b); });
}
TENON_INLINE Wide lgamma(Wide x) { return per_lane(x, lgamma_of); }
TENON_INLINE Wide erfinv(Wide x) { return per_lane(x, erfinv_of); }
TENON_INLINE Wide i0(Wide x) { return per_lane(x, i0_of); }

}  // namespace
}  // namespace tenon::cpu

#undef TENON_NATIVE_V
#undef TENON_NAME_1
#undef TENON_NAME_2
#undef TENON_CALLED_VECTOR_FUNCTIONS
