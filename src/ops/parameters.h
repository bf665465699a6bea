// Parameters shared by many ops, so that they have the same name and description everywhere.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tenon/ops.h"

namespace tenon {

inline Parameter axis_parameter(std::int64_t fallback, std::string doc) {
  return {.name = "axis",
          .type = ParameterType::integer,
          .fallback = fallback,
          .min = -kMaxRank,
          .max = kMaxRank - 1,
          .doc = std::move(doc)};
}
inline Parameter optional_axis_parameter(std::string doc) {
  return {.name = "axis", .type = ParameterType::integer, .min = -kMaxRank, .max = kMaxRank - 1, .doc = std::move(doc)};
}
// None: all axes.
inline Parameter axes_parameter(std::string doc = "axes to reduce, e.g. 0 or [0, 1]; default: all") {
  return {.name = "axis", .type = ParameterType::integers, .min = -kMaxRank, .max = kMaxRank - 1, .doc = std::move(doc)};
}
inline Parameter keepdims_parameter() {
  return {.name = "keepdims", .type = ParameterType::boolean, .fallback = false, .doc = "keep the reduced axes with extent 1"};
}
inline Parameter number_parameter(std::string name, double fallback, std::string doc) {
  return {.name = std::move(name), .type = ParameterType::number, .fallback = fallback, .doc = std::move(doc)};
}
// A small number that avoids division by zero.
inline Parameter eps_parameter(double fallback) {
  return {.name = "eps",
          .type = ParameterType::number,
          .fallback = fallback,
          .min = 0.0,
          .doc = "small number that avoids division by 0"};
}
inline Parameter integer_parameter(std::string name, std::int64_t fallback, std::string doc) {
  return {.name = std::move(name), .type = ParameterType::integer, .fallback = fallback, .doc = std::move(doc)};
}
inline Parameter count_parameter(std::string name, std::string doc) {  // required, >= 0
  return {.name = std::move(name), .type = ParameterType::integer, .required = true, .min = 0.0, .doc = std::move(doc)};
}
inline Parameter boolean_parameter(std::string name, bool fallback, std::string doc) {
  return {.name = std::move(name), .type = ParameterType::boolean, .fallback = fallback, .doc = std::move(doc)};
}
inline Parameter integers_parameter(std::string name, std::vector<std::int64_t> fallback, std::string doc) {
  return {.name = std::move(name), .type = ParameterType::integers, .fallback = std::move(fallback), .doc = std::move(doc)};
}
inline Parameter required_integers_parameter(std::string name, std::string doc) {
  return {.name = std::move(name), .type = ParameterType::integers, .required = true, .doc = std::move(doc)};
}
inline Parameter optional_integers_parameter(std::string name, std::string doc) {
  return {.name = std::move(name), .type = ParameterType::integers, .doc = std::move(doc)};
}
inline Parameter shape_parameter() { return required_integers_parameter("shape", "extents of the result"); }
inline Parameter dtype_parameter(std::string fallback, std::string doc = "element type of the result") {
  return {.name = "dtype", .type = ParameterType::dtype, .fallback = std::move(fallback), .doc = std::move(doc)};
}
inline Parameter choice_parameter(std::string name, std::vector<std::string> choices, std::string doc) {  // default: the first
  return {.name = std::move(name),
          .type = ParameterType::text,
          .fallback = choices.front(),
          .choices = choices,
          .doc = std::move(doc)};
}

}  // namespace tenon
