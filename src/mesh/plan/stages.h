// The programs that each device runs: a partitioned program cut where values are exchanged.
#pragma once

#include <compare>
#include <vector>

#include "mesh/plan/partition.h"

namespace tenon::mesh {

// A value as it passes from one stage to the next: sums of 16-bit formats pass as f32.
struct Crossing {
  int value = 0;
  DType dtype = DType::f32;
  friend auto operator<=>(const Crossing&, const Crossing&) = default;
};

struct Stage {
  std::vector<Crossing> inputs, outputs;  // in the order of the graphs' inputs and outputs
  std::vector<Graph> graphs;              // one per device
  std::vector<int> exchanges;             // values, to be exchanged when the graphs have run
};

// A stage without outputs has empty graphs: its exchanges are of values from earlier stages.
std::vector<Stage> stages_of(const Graph& graph, const Mesh& mesh, const Partition& partition);

}  // namespace tenon::mesh
