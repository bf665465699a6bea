#include "mesh/plan/speeds.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "tenon/error.h"

namespace tenon {
namespace mesh {
namespace {

std::optional<double> seconds_on(const DeviceManager& manager, const Graph& graph, const std::string& device) {
  for (const Considered& considered : manager.explain(graph, device).considered)
    if (considered.candidate.device.id == device && considered.predicted.is_measured && considered.predicted.compute_seconds > 0)
      return considered.predicted.compute_seconds;
  return std::nullopt;
}

// 1 / seconds of each device, if all are known.
std::vector<double> inverse(std::span<const MeasuredSeconds> devices, std::optional<double> MeasuredSeconds::* which) {
  std::vector<double> speeds;
  for (const MeasuredSeconds& device : devices)
    if (const std::optional<double> seconds = device.*which) speeds.push_back(1 / *seconds);
  return speeds.size() == devices.size() ? speeds : std::vector<double>();
}

}  // namespace

MeasuredSeconds measured_seconds(const DeviceManager& manager, const Graph& graph, const std::vector<Stage>& stages, int rank,
                                 const std::string& device) {
  MeasuredSeconds result;
  result.whole = seconds_on(manager, graph, device);
  result.part = 0;
  for (const Stage& stage : stages) {
    if (stage.graphs.empty()) continue;
    const std::optional<double> seconds = seconds_on(manager, stage.graphs[static_cast<std::size_t>(rank)], device);
    if (!seconds) result.part.reset();
    if (result.part) *result.part += *seconds;
  }
  if (result.part == 0.0) result.part.reset();
  return result;
}

std::vector<Stage> equal_stages(const Graph& graph, const Mesh& mesh, const MeshOptions& options) {
  MeshOptions equal = options;
  equal.speeds.clear();
  return stages_of(graph, mesh, partition(graph, mesh, equal));
}

std::vector<double> speeds_from(std::span<const MeasuredSeconds> devices) {
  for (const auto which : {&MeasuredSeconds::whole, &MeasuredSeconds::part})
    if (std::vector<double> speeds = inverse(devices, which); !speeds.empty()) return speeds;
  return std::vector<double>(devices.size(), 1.0);
}

}  // namespace mesh

std::vector<double> measured_speeds(const DeviceManager& manager, const Graph& graph, const Mesh& mesh,
                                    const MeshOptions& options) {
  const std::vector<mesh::Stage> stages = mesh::equal_stages(graph, mesh, options);
  std::vector<mesh::MeasuredSeconds> devices;
  for (int rank = 0; rank < mesh.size(); ++rank)
    devices.push_back(mesh::measured_seconds(manager, graph, stages, rank, mesh.devices()[static_cast<std::size_t>(rank)]));
  return mesh::speeds_from(devices);
}

std::vector<double> parse_speeds(std::string_view text) {
  std::vector<double> speeds;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    double speed = 0;
    const auto [stop, error] = std::from_chars(text.data() + begin, text.data() + end, speed);
    if (error != std::errc() || stop != text.data() + end || !(speed > 0))
      throw Error(ErrorCode::invalid_argument, fmt::format("\"{}\" is not a list of speeds", text),
                  "write one positive number for each device, separated by commas: 4,1; or measured");
    speeds.push_back(speed);
    begin = end + 1;
  }
  return speeds;
}

}  // namespace tenon
