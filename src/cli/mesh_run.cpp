#include "cli/mesh_run.h"

#include <fmt/format.h>

#include "cli/option_checks.h"
#include "tenon/error.h"

namespace tenon::cli {
namespace {

constexpr std::string_view kMeasured = "measured";

MeshOptions options_of(const MeshArguments& arguments, const RunOptions& run) {
  MeshOptions options;
  options.run = run;
  for (const std::string& shard : arguments.shards) {
    const std::size_t equals = shard.find('=');
    if (equals == 0 || equals == std::string::npos)
      throw Error(ErrorCode::invalid_argument, fmt::format("--shard {} is not of the form NAME=AXES", shard),
                  "for example --shard x=data,- splits the first axis of x over the mesh axis data");
    options.inputs[shard.substr(0, equals)] = Sharding::parse(shard.substr(equals + 1));
  }
  if (!arguments.speeds.empty() && arguments.speeds != kMeasured) options.speeds = parse_speeds(arguments.speeds);
  return options;
}

}  // namespace

void add_mesh_options(Command& command, MeshArguments& arguments) {
  const Option* mesh =
      command.add_option("--mesh", arguments.axes, "Compute on several devices: axes of a mesh, as data=2,model=2")
          ->type_name("AXES");
  command
      .add_option("--shard", arguments.shards,
                  "Split an input over the mesh: x=data,- (rows over data, columns whole); repeatable")
      ->type_name("NAME=AXES")
      ->may_repeat()
      ->needs(mesh);
  command
      .add_option("--speeds", arguments.speeds,
                  "Share of each device: numbers as 4,1, or measured, from earlier runs; equal without it")
      ->type_name("SPEEDS")
      ->needs(mesh);
  command.add_option("--deadline", arguments.deadline_seconds, "Seconds that an exchange with another MPI process may take")
      ->check(in_range(0.001, 1e9))
      ->type_name("SECONDS")
      ->needs(mesh);
}

MeshAnswer run_on_mesh(const MeshArguments& arguments, const Graph& graph, std::span<const HostArray> inputs,
                       const std::string& device, const RunOptions& options, bool explain, const Session& session) {
  if (options.repeat != 1)
    throw Error(ErrorCode::invalid_argument, "--repeat does not work with --mesh", "run the command again to see how times vary");
  MeshOptions mesh_options = options_of(arguments, options);
  const bool is_measured = arguments.speeds == kMeasured;
  std::optional<MeshPlan> plan;
  const auto show = [&] {
    if (plan && !session.json) session.console.out << plan->text() << '\n' << std::flush;
  };
  if (started_by_mpi()) {
    MpiResult result = run_over_mpi(process_manager(), graph, inputs, Mesh::parse_axes(arguments.axes),
                                    {.mesh = mesh_options,
                                     .has_measured_speeds = is_measured,
                                     .device = device,
                                     .deadline_seconds = arguments.deadline_seconds});
    mesh_options.speeds = result.speeds;
    if (result.rank == 0) {
      // Processes may share a device; a mesh names each place.
      std::vector<std::string> places = result.places;
      for (std::size_t i = 0; i < places.size(); ++i) places[i] += fmt::format("#{}", i);
      if (explain) plan = explain_mesh(graph, Mesh::parse(arguments.axes, places), mesh_options);
      show();
    }
    return {.run = {arguments.axes, std::move(result.places), std::move(result.result), std::move(plan)},
            .is_printed = result.rank == 0};
  }
  const Mesh mesh = mesh_over(process_manager(), arguments.axes, device);
  if (is_measured) mesh_options.speeds = measured_speeds(process_manager(), graph, mesh, mesh_options);
  if (explain) plan = explain_mesh(process_manager(), graph, mesh, mesh_options);
  show();
  MeshResult result = tenon::run_on_mesh(process_manager(), graph, inputs, mesh, mesh_options);
  return {.run = {arguments.axes, mesh.devices(), std::move(result), std::move(plan)}};
}

}  // namespace tenon::cli
