// Parameters of ops over spatial axes (convolution, pooling): one number for all axes, or one per axis.
#pragma once

#include <string>
#include <utility>

#include "ops/parameters.h"
#include "tenon/ops.h"

namespace tenon {

// The first |n| entries come from the parameter, the rest are |fallback|.
Spatial spatial(const OpCall& call, std::string_view parameter, int n, std::int64_t fallback);
// Padding before and after each axis: one number, one per axis, or two per axis (before, after).
std::pair<Spatial, Spatial> spatial_padding(const OpCall& call, std::string_view parameter, int n);

inline Parameter at_least(Parameter parameter, double min) {
  parameter.min = min;
  parameter.max = 2147483647.0;
  return parameter;
}
inline Parameter stride_parameter(const std::string& fallback) {
  if (fallback == "1")
    return at_least(integers_parameter("stride", {1}, "step between windows, one for all axes or one per axis"), 1);
  return at_least(optional_integers_parameter("stride", "step between windows; default: " + fallback), 1);
}
inline Parameter padding_parameter() {
  return at_least(integers_parameter("padding", {0}, "border: one number, one per axis, or before and after for each axis"), 0);
}
inline Parameter dilation_parameter() {
  return at_least(integers_parameter("dilation", {1}, "distance between adjacent elements of a window"), 1);
}

}  // namespace tenon
