// tenon run --mesh: a program on several devices of this machine, or on those of the processes that MPI started.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/commands/commands.h"
#include "present/mesh.h"
#include "tenon/mesh.h"

namespace tenon::cli {

struct MeshArguments {
  std::string axes;                 // "data=2,model=2"; "": no mesh
  std::vector<std::string> shards;  // "x=data,-"
  std::string speeds;               // "4,1", "measured"; "": equal
  double deadline_seconds = 30;
};
void add_mesh_options(Command& command, MeshArguments& arguments);

struct MeshAnswer {
  present::MeshRun run;
  bool is_printed = true;  // by this process: of those that MPI started, the first
};
// |device| is "auto", or ids separated by commas, one per place. Shows the plan first if |explain|.
MeshAnswer run_on_mesh(const MeshArguments& arguments, const Graph& graph, std::span<const HostArray> inputs,
                       const std::string& device, const RunOptions& options, bool explain, const Session& session);

}  // namespace tenon::cli
