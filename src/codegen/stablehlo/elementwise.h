// Elementwise ops as StableHLO, from the primitives their bodies expand to (ops/elementwise/symbolic.h).
#pragma once

#include <span>

#include "codegen/stablehlo/writer.h"
#include "tenon/graph.h"

namespace tenon::stablehlo {

// The op of |node| on its operands, which have the node's shape.
Term elementwise(const Node& node, std::span<const Term> operands);

}  // namespace tenon::stablehlo
