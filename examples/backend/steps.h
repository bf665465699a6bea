// What the backend "walk" can compute: each node of a graph as a function over arrays of floats.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "tenon/graph.h"

// Throws unimplemented, naming what it is, for a node that no step computes.
void check_node(const tenon::Node& node);

// One node, ready to run: |inputs| are the values of the node's inputs, |output| is written completely. Holds no values itself,
// so it may run in several threads.
using Step = std::function<void(std::span<const std::span<const float>> inputs, std::span<float> output)>;
Step make_step(const tenon::Graph& graph, const tenon::Node& node);
