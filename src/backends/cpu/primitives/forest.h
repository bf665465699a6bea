// Decision trees (ForestAttr in graph.h): each row is led through each tree, several rows at a time, and the weights of the
// leaves are added in double. Thread safety as primitives.h.
#pragma once

#include "backends/cpu/primitives/primitives.h"
#include "tenon/graph.h"

namespace tenon::cpu {

// A node as the traversal reads it, checked: places and features exist.
struct ForestNode {
  float value;  // what the feature is compared with
  std::int32_t child, feature;
  std::int32_t stays;  // 1: NaN goes to the first child; 2: a leaf, which is its own child
};

// |nodes|: [count, 4] as in the region.
void pack_forest(const std::int32_t* nodes, std::int64_t count, std::int64_t features, ForestNode* packed);

struct ForestOperands {
  View x;  // dense
  const ForestNode* nodes;
  std::int64_t node_count;
  View roots, weights;  // dense
};

void forest(ThreadPool& pool, const ForestOperands& operands, const ForestAttr& attr, const Target& out);

}  // namespace tenon::cpu
