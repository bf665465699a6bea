// Programs that compute every row of their inputs for itself, so that the rows of several requests can run as one.
//
// A program is such if axis 0 of every input and output is the same axis of rows and no node mixes rows: elementwise ops, casts,
// reductions and sorts along other axes. Products are not taken: their order of summation may follow from all extents.
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>

#include "tenon/graph.h"

namespace tenon::server {

// The rows of |graph|, if it computes every row for itself.
std::optional<std::int64_t> rows_of(const Graph& graph);

// Whether |larger|, built by the same op for more rows, computes for each row what |graph| computes: the same nodes, attributes
// and constants, and no extents but those of the rows differ.
bool is_same_for_more_rows(const Graph& graph, const Graph& larger);

}  // namespace tenon::server
