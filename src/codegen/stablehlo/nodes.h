// Emits one node of the graph, given its operands. Operands and results are in their compute dtypes.
#pragma once

#include <span>
#include <vector>

#include "codegen/stablehlo/writer.h"
#include "tenon/graph.h"

namespace tenon::stablehlo {

// Collects run-time errors (an index out of range), each a scalar i1.
using Checks = std::vector<Term>;

// structure.cpp
Term emit_view(const Node& node, const Term& x);  // broadcast, reshape, transpose, slice
Term emit_pad(const Node& node, const Term& x);
Term emit_concat(const Node& node, std::span<const Term> parts);
Term emit_take(const Node& node, const Term& x, const Term& indices, Checks& checks);
Term emit_gather(const Node& node, const Term& x, const Term& indices, Checks& checks);
Term emit_scatter(const Node& node, const Term& x, const Term& indices, const Term& updates, Checks& checks);

// reduction.cpp
Term emit_reduce(const Node& node, const Term& x);
Term emit_arg_reduce(const Node& node, const Term& x);
Term emit_arg_sort(const Node& node, const Term& x);
Term emit_cumulative(const Node& node, const Term& x);

// products.cpp
Term emit_matmul(const Node& node, const Term& a, const Term& b);
Term emit_conv(const Node& node, const Term& x, const Term& weight);
Term emit_window(const Node& node, const Term& x);

// random.cpp
Term emit_random(Writer& writer, const Node& node);

}  // namespace tenon::stablehlo
