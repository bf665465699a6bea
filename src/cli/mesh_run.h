// tenon run --mesh: a program on several devices of this machine, or on those of the processes that MPI started.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json_writer.h"
#include "cli/commands/commands.h"
#include "tenon/mesh.h"

namespace tenon::cli {

struct MeshArguments {
  std::string axes;                 // "data=2,model=2"; "": no mesh
  std::vector<std::string> shards;  // "x=data,-"
  double deadline_seconds = 30;
};
void add_mesh_options(Command& command, MeshArguments& arguments);

struct MeshRun {
  RunResult result;  // the device is the first one, the timeline that of the slowest
  std::vector<std::string> devices;
  std::vector<Collective> collectives;
  std::vector<Timeline> timelines;
  std::optional<MeshPlan> plan;  // if it was asked for
  bool is_printed = true;        // by this process: of those that MPI started, the first
};
// |device| is "auto", or ids separated by commas, one per place. Shows the plan first if |explain|.
MeshRun run_on_mesh(const MeshArguments& arguments, const Graph& graph, std::span<const HostArray> inputs,
                    const std::string& device, const RunOptions& options, bool explain, const Session& session);

// "mesh": {"axes", "devices", "collectives": [{"kind", "value", "from", "to", "axes", "bytes"}], "timelines"}, and if the plan
// was asked for "shardings": [{"node", "sharding", "text"}]
void write_mesh(JsonWriter& json, const MeshArguments& arguments, const MeshRun& run);
std::string mesh_text(const MeshRun& run);  // "on sim:0, sim:1; 1 exchange, 384 bytes"

}  // namespace tenon::cli
