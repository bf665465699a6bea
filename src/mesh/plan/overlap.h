// overlap_exchanges(): lets devices compute while values are exchanged.
#pragma once

#include "mesh/plan/partition.h"

namespace tenon::mesh {

// Cuts stages into several where that gives the devices work during an exchange: first what the exchanged value needs, then what
// does not depend on it. A program that is cut runs as several, so the work that follows must be worth it.
void overlap_exchanges(const Graph& graph, const Mesh& mesh, Partition& partition);

}  // namespace tenon::mesh
