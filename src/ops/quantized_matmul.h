// The product with a matrix of small integers, as nodes and as a region (QuantizedMatMulAttr in graph.h). Not in the catalogue:
// its operands have a layout that only the loaders of models write.
#pragma once

#include <span>

#include "tenon/graph.h"

namespace tenon {

// |matrix|: codes, scales and, if there are any, minima. The result is f32 [m, n].
NodeId quantized_matmul(Graph& graph, NodeId x, std::span<const NodeId> matrix, const QuantizedMatMulAttr& attr);

// Rows |ids| (i64 [m]) of the matrix as floats, f32 [m, columns].
NodeId quantized_rows(Graph& graph, NodeId ids, std::span<const NodeId> matrix, const QuantizedMatMulAttr& attr);

}  // namespace tenon
