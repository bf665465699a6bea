#include "codegen/c/host_functions.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "math/double_functions.h"

#ifdef TENON_HAS_VECTOR_FUNCTIONS
extern "C" {
#define TENON_X(name) void _ZGVeN8v_##name();
TENON_LIBRARY_VECTOR_FUNCTIONS(TENON_X)
TENON_X(exp2)
#undef TENON_X
#define TENON_X(name) void _ZGVeN8vv_##name();
TENON_VECTOR_FUNCTIONS_OF_TWO(TENON_X)
#undef TENON_X
}
#define TENON_OF_VECTORS(name) address(_ZGVeN8##name)
#else
#define TENON_OF_VECTORS(name) 0
#endif

namespace tenon::emit {
namespace {

template <class Function>
std::intptr_t address(Function* function) {
  return reinterpret_cast<std::intptr_t>(function);
}
HostFunction of_one(std::string_view name, double (*function)(double), std::intptr_t of_vectors = 0) {
  return {name, address(function), of_vectors};
}
HostFunction of_two(std::string_view name, double (*function)(double, double), std::intptr_t of_vectors = 0) {
  return {name, address(function), of_vectors};
}

const HostFunction kFunctions[] = {of_one("exp", std::exp),
                                   of_one("exp2", std::exp2, TENON_OF_VECTORS(v_exp2)),
                                   of_one("lgamma", lgamma_of),
                                   of_one("erfinv", erfinv_of),
                                   of_one("i0", i0_of),
                                   of_two("fmod", std::fmod),
#define TENON_X(name) of_one(#name, std::name, TENON_OF_VECTORS(v_##name)),
                                   TENON_LIBRARY_VECTOR_FUNCTIONS(TENON_X)
#undef TENON_X
#define TENON_X(name) of_one(#name, std::name),
                                       TENON_OWN_VECTOR_FUNCTIONS(TENON_X) TENON_OWN_LOOKUP_FUNCTIONS(TENON_X)
#undef TENON_X
#define TENON_X(name) of_two(#name, std::name, TENON_OF_VECTORS(vv_##name)),
                                           TENON_VECTOR_FUNCTIONS_OF_TWO(TENON_X)
#undef TENON_X
};

}  // namespace

const HostFunction* find_host_function(std::string_view name) {
  const auto* const found = std::ranges::find(kFunctions, name, &HostFunction::name);
  return found == std::end(kFunctions) ? nullptr : found;
}

}  // namespace tenon::emit
