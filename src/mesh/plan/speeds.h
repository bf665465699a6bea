// How fast devices are for a program, from what was measured on them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mesh/plan/stages.h"
#include "tenon/manager.h"

namespace tenon::mesh {

// Seconds that one device computes: the whole program, and its part of it where all shares are equal. None if it never has.
struct MeasuredSeconds {
  std::optional<double> whole, part;
};
// |stages| are those of equal shares.
MeasuredSeconds measured_seconds(const DeviceManager& manager, const Graph& graph, const std::vector<Stage>& stages, int rank,
                                 const std::string& device);
// The stages of |graph| with equal shares.
std::vector<Stage> equal_stages(const Graph& graph, const Mesh& mesh, const MeshOptions& options);
// By the whole program if all devices have run it, else by the parts if all have, else equal.
std::vector<double> speeds_from(std::span<const MeasuredSeconds> devices);

}  // namespace tenon::mesh
