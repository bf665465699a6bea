// The value of a node that is known while the graph is built, so that a parameter can be written like an input: `elu(x, 2 / 3)`.
#pragma once

#include <optional>

#include "tenon/ops.h"

namespace tenon {

// A number for a scalar (integer nodes as int64, bool as bool, floats as double), a list for a vector of integers; nullopt if
// the node is a tensor, depends on an input, or takes more than a few operations to compute.
std::optional<ParameterValue> constant_value(const Graph& graph, NodeId id);

}  // namespace tenon
