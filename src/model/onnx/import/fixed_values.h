// What a program computes of the model's weights alone: a standardised kernel, the gates of a recurrent net in another order. It
// is the same in every call, so it is a program of its own that runs once; the rest reads its results like weights.
#pragma once

#include <optional>
#include <vector>

#include "tenon/graph.h"

namespace tenon::onnx {

struct SeparatedGraph {
  Graph fixed;               // inputs: weights, outputs: what |rest| reads
  std::vector<int> weights;  // by input of |fixed|: the input of the whole graph that it was
  Graph rest;
  std::vector<int> inputs;  // by input of |rest|: the input of the whole graph, or -1 - i for output i of |fixed|
};

// |is_weight|: by input of the graph. Nullopt if there is nothing to separate. Weights of integers are left where they are:
// products of bytes begin with them. So are results that are larger than all weights together.
std::optional<SeparatedGraph> separate_fixed(const Graph& graph, const std::vector<bool>& is_weight);

}  // namespace tenon::onnx
