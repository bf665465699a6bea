// with_attention: finds attention that is written as matmul, scale, mask, softmax and matmul, as exporters of models and people
// write it, and marks it as a region (AttentionAttr), which many backends run as one step.
//
// Queries, keys and scores may be multiplied or divided by a number, then a tensor may be added to the scores; casts between
// floats and reshapes around the softmax do not matter, nor does a zero for each NaN after it, with which PyTorch's exporter
// writes that a row without a key is zeros. The meaning is that of the nodes, but for rows in which the added tensor hides every
// key: with -inf everywhere they are zeros where a backend takes the region, NaN where it does not and the nodes do not say
// otherwise; with numbers near the least float, zeros or the mean of all values. A NaN among the scores stays one in a region.
#pragma once

#include <optional>

#include "tenon/graph.h"

namespace tenon {

// The graph with those regions, and transposes of what their keys and values are; nothing if there is none.
std::optional<Graph> with_attention(const Graph& graph);

}  // namespace tenon
