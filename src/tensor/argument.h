// The arguments of the functions in functions.h as the catalogue takes them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/array/integers.h"
#include "tenon/array/scalar.h"
#include "tenon/ops.h"
#include "tenon/tensor.h"

namespace tenon {

inline ParameterValue parameter(double value) { return value; }
inline ParameterValue parameter(const Scalar& value) {
  return std::visit([](auto number) { return ParameterValue(number); }, value.value());
}
inline ParameterValue parameter(std::int64_t value) { return value; }
inline ParameterValue parameter(bool value) { return value; }
inline ParameterValue parameter(DType value) { return std::string(name(value)); }
inline ParameterValue parameter(std::string_view value) { return std::string(value); }
inline ParameterValue parameter(const Integers& value) {
  return value.values() ? ParameterValue(*value.values()) : ParameterValue();
}
template <class T>
ParameterValue parameter(const std::optional<T>& value) {
  return value ? parameter(*value) : ParameterValue();
}

inline std::vector<const Tensor*> pointers(const std::vector<Tensor>& tensors) {
  std::vector<const Tensor*> all;
  for (const Tensor& tensor : tensors) all.push_back(&tensor);
  return all;
}

}  // namespace tenon
