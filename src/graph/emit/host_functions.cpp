#include "graph/emit/host_functions.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "graph/ops/value.h"

#define TENON_OF_ONE(X)                                                                                                   \
  X(exp)                                                                                                                  \
  X(exp2)                                                                                                                 \
  X(expm1) X(log) X(log2) X(log10) X(log1p) X(sin) X(cos) X(tan) X(asin) X(acos) X(atan) X(sinh) X(cosh) X(tanh) X(asinh) \
      X(acosh) X(atanh) X(cbrt) X(erf) X(erfc)
#define TENON_OF_TWO(X) X(pow) X(atan2)

#ifdef TENON_HAS_VECTOR_FUNCTIONS
extern "C" {
#define TENON_X(name) void _ZGVeN8v_##name();
TENON_OF_ONE(TENON_X)
#undef TENON_X
#define TENON_X(name) void _ZGVeN8vv_##name();
TENON_OF_TWO(TENON_X)
#undef TENON_X
}
#define TENON_OF_VECTORS(name) address(_ZGVeN8##name)
#else
#define TENON_OF_VECTORS(name) 0
#endif

namespace tenon::emit {
namespace {

using OfOne = double (*)(double);
using OfTwo = double (*)(double, double);

template <class Function>
std::intptr_t address(Function* function) {
  return reinterpret_cast<std::intptr_t>(function);
}
std::intptr_t address_of_one(OfOne function) { return address(function); }
std::intptr_t address_of_two(OfTwo function) { return address(function); }

// std::lgamma writes a global: a race between threads.
double host_lgamma(double x) { return lgamma(value::Scalar<double>(x)).v; }
double host_erfinv(double x) { return erfinv(value::Scalar<double>(x)).v; }
double host_i0(double x) { return i0(value::Scalar<double>(x)).v; }

const HostFunction kFunctions[] = {{"lgamma", address_of_one(host_lgamma)},
                                   {"erfinv", address_of_one(host_erfinv)},
                                   {"i0", address_of_one(host_i0)},
                                   {"fmod", address_of_two(std::fmod)},
#define TENON_X(name) {#name, address_of_one(std::name), TENON_OF_VECTORS(v_##name)},
                                   TENON_OF_ONE(TENON_X)
#undef TENON_X
#define TENON_X(name) {#name, address_of_two(std::name), TENON_OF_VECTORS(vv_##name)},
                                       TENON_OF_TWO(TENON_X)
#undef TENON_X
};

}  // namespace

const HostFunction* find_host_function(std::string_view name) {
  const auto* const found = std::ranges::find(kFunctions, name, &HostFunction::name);
  return found == std::end(kFunctions) ? nullptr : found;
}

}  // namespace tenon::emit
