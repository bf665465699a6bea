#include "cli/mesh_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "cli/option_checks.h"
#include "present/run.h"
#include "tenon/error.h"

namespace tenon::cli {
namespace {

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
  return options;
}

std::vector<std::string> listed(const std::string& devices) {
  std::vector<std::string> ids;
  for (std::size_t begin = 0;;) {
    const std::size_t end = devices.find(',', begin);
    ids.push_back(process_manager().find(devices.substr(begin, end - begin)).id);
    if (end == std::string::npos) return ids;
    begin = end + 1;
  }
}

double total(const Timeline& timeline) {
  return std::accumulate(timeline.begin(), timeline.end(), 0.0, [](double sum, const Span& span) { return sum + span.seconds; });
}

MeshRun from(MeshResult&& result) {
  MeshRun run;
  run.result.outputs = std::move(result.outputs);
  run.result.device = result.devices.at(0);
  run.result.timeline = *std::max_element(result.timelines.begin(), result.timelines.end(),
                                          [](const Timeline& a, const Timeline& b) { return total(a) < total(b); });
  run.timelines = std::move(result.timelines);
  run.collectives = std::move(result.collectives);
  return run;
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
  command.add_option("--deadline", arguments.deadline_seconds, "Seconds that an exchange with another MPI process may take")
      ->check(in_range(0.001, 1e9))
      ->type_name("SECONDS")
      ->needs(mesh);
}

MeshRun run_on_mesh(const MeshArguments& arguments, const Graph& graph, std::span<const HostArray> inputs,
                    const std::string& device, const RunOptions& options, bool explain, const Session& session) {
  if (options.repeat != 1)
    throw Error(ErrorCode::invalid_argument, "--repeat does not work with --mesh", "run the command again to see how times vary");
  const MeshOptions mesh_options = options_of(arguments, options);
  std::optional<MeshPlan> plan;
  const auto show = [&](const Mesh& mesh) {
    if (explain) plan = explain_mesh(graph, mesh, mesh_options);
    if (plan && !session.json) session.console.out << plan->text() << '\n' << std::flush;
  };
  if (started_by_mpi()) {
    MpiResult result = run_over_mpi(process_manager(), graph, inputs, Mesh::parse_axes(arguments.axes),
                                    {.mesh = mesh_options, .device = device, .deadline_seconds = arguments.deadline_seconds});
    if (result.rank == 0) {
      // Processes may share a device; a mesh names each place.
      std::vector<std::string> places = result.places;
      for (std::size_t i = 0; i < places.size(); ++i) places[i] += fmt::format("#{}", i);
      show(Mesh::parse(arguments.axes, places));
    }
    MeshRun run = from(std::move(result.result));
    run.devices = std::move(result.places);
    run.is_printed = result.rank == 0;
    run.plan = std::move(plan);
    return run;
  }
  const Mesh mesh =
      device == "auto" ? Mesh::parse(arguments.axes, process_manager().devices()) : Mesh::parse(arguments.axes, listed(device));
  show(mesh);
  MeshRun run = from(tenon::run_on_mesh(process_manager(), graph, inputs, mesh, mesh_options));
  run.devices = mesh.devices();
  run.plan = std::move(plan);
  return run;
}

void write_mesh(JsonWriter& json, const MeshArguments& arguments, const MeshRun& run) {
  json.key("mesh").begin_object();
  json.member("axes", arguments.axes);
  json.key("devices").begin_array();
  for (const std::string& device : run.devices) json.value(device);
  json.end_array();
  json.key("collectives").begin_array();
  for (const Collective& collective : run.collectives) {
    json.begin_object();
    json.member("kind", name(collective.kind));
    json.member("value", collective.value);
    json.member("from", collective.from);
    json.member("to", collective.to);
    json.key("axes").begin_array();
    for (const std::string& axis : collective.axes) json.value(axis);
    json.end_array();
    json.member("bytes", collective.bytes);
    json.end_object();
  }
  json.end_array();
  json.key("timelines").begin_array();
  for (const Timeline& timeline : run.timelines) present::write_timeline(json, timeline);
  json.end_array();
  if (run.plan) {
    json.key("shardings").begin_array();
    for (const MeshPlan::Value& value : run.plan->values) {
      json.begin_object();
      json.member("node", std::int64_t{value.node});
      json.member("sharding", value.sharding);
      json.member("text", value.description);
      json.end_object();
    }
    json.end_array();
  }
  json.end_object();
}

std::string mesh_text(const MeshRun& run) {
  std::uint64_t bytes = 0;
  for (const Collective& collective : run.collectives) bytes += collective.bytes;
  const std::string exchanged =
      run.collectives.empty()
          ? "nothing exchanged"
          : fmt::format("{} {}, {} bytes", run.collectives.size(), run.collectives.size() == 1 ? "exchange" : "exchanges", bytes);
  return fmt::format("on {}; {}", fmt::join(run.devices, ", "), exchanged);
}

}  // namespace tenon::cli
