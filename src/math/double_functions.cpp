#include "math/double_functions.h"

#include <algorithm>
#include <iterator>

#include "math/value.h"

namespace tenon {

double lgamma_of(double x) { return lgamma(value::Scalar<double>(x)).v; }
double erfinv_of(double x) { return erfinv(value::Scalar<double>(x)).v; }
double i0_of(double x) { return i0(value::Scalar<double>(x)).v; }

bool has_own_vector_function(std::string_view name) {
  constexpr std::string_view names[] = {
#define TENON_X(name) #name,
      TENON_OWN_VECTOR_FUNCTIONS(TENON_X) TENON_OWN_LOOKUP_FUNCTIONS(TENON_X)
#undef TENON_X
  };
  return std::ranges::find(names, name) != std::end(names);
}

}  // namespace tenon
