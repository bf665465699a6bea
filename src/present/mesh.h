// A program on a mesh as JSON and as text: the sharding of every value, the exchanges with their bytes, the time of each device.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/text/json_writer.h"
#include "tenon/mesh.h"

namespace tenon::present {

struct MeshRun {
  std::string axes;                  // "data=2,model=2"
  std::vector<std::string> devices;  // ids, over MPI with their hosts
  MeshResult result;
  std::optional<MeshPlan> plan;  // if it was asked for
};

// The run as one of a single device: the first device, the timeline of the slowest.
RunResult as_run(const MeshResult& result);

// {"axes", "devices", "collectives": [{"kind", "value", "dtype", "shape", "from", "to", "axes", "bytes"}], "bytes", "timelines"},
// and with a plan "shardings": [{"node", "sharding", "text"}], "outputs", "notes".
void write_mesh(JsonWriter& json, const MeshRun& run);
// The same without timelines: what run_on_mesh() would do.
void write_mesh_plan(JsonWriter& json, const Mesh& mesh, const MeshPlan& plan);

// "on sim:0, sim:1; 1 exchange, 384 bytes"
std::string mesh_text(const MeshRun& run);

}  // namespace tenon::present
