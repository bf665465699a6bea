// What Graph::key() and Graph::fingerprint() are made of.
#pragma once

#include "base/siphash.h"
#include "tenon/graph.h"

namespace tenon {

// Everything that gives |node| its meaning, inputs by id, constants byte for byte. Nodes end themselves: one sequence of words is
// one sequence of nodes.
void add_node(SipHash& hash, const Node& node);

// Identifies a node among those of one graph, within this process.
GraphKey node_key(const Node& node);

}  // namespace tenon
