// Elementwise ops in StableHLO, built from the primitives of their bodies (ops/elementwise/symbolic.h).
#pragma once

#include <span>

#include "codegen/stablehlo/writer.h"
#include "tenon/graph.h"

namespace tenon::stablehlo {

// Applies the op of |node| to its operands, which have the node's shape.
Term elementwise(const Node& node, std::span<const Term> operands);

}  // namespace tenon::stablehlo
