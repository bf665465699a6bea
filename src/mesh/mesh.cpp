#include "tenon/mesh.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <numeric>
#include <set>

#include "mesh/exchange/device_exchange.h"
#include "mesh/plan/partition.h"
#include "tenon/error.h"

namespace tenon {
namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(' ');
  return begin == std::string_view::npos ? "" : text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

std::vector<std::string_view> pieces(std::string_view text, char separator) {
  std::vector<std::string_view> result;
  for (std::size_t begin = 0;;) {
    const std::size_t end = text.find(separator, begin);
    result.push_back(trimmed(text.substr(begin, end - begin)));
    if (end == std::string_view::npos) return result;
    begin = end + 1;
  }
}

std::int64_t places(const std::vector<MeshAxis>& axes) {
  std::int64_t product = 1;
  for (const MeshAxis& axis : axes) product = std::min<std::int64_t>(product * axis.size, 1 << 20);
  return product;
}

}  // namespace

Sharding Sharding::parse(std::string_view text) {
  Sharding result;
  if (trimmed(text).empty()) return result;
  for (const std::string_view axis : pieces(text, ',')) {
    auto& names = result.axes.emplace_back();
    if (axis == "-") continue;
    for (const std::string_view name : pieces(axis, '+')) {
      if (name.empty())
        throw Error(ErrorCode::invalid_argument, fmt::format("\"{}\" is not a sharding", text),
                    "write a mesh axis or - for each axis of the tensor, separated by commas: data,-");
      names.emplace_back(name);
    }
  }
  return result;
}

std::string Sharding::text() const {
  std::vector<std::string> parts;
  for (const auto& names : axes) parts.push_back(names.empty() ? "-" : fmt::format("{}", fmt::join(names, "+")));
  return fmt::format("{}", fmt::join(parts, ","));
}

Mesh::Mesh(std::vector<MeshAxis> axes, std::vector<std::string> devices) : axes_(std::move(axes)), devices_(std::move(devices)) {
  std::set<std::string> names;
  for (const MeshAxis& axis : axes_) {
    if (axis.name.empty() || axis.name == "-" || axis.name.find_first_of(",+= ") != std::string::npos)
      throw Error(ErrorCode::invalid_argument, fmt::format("\"{}\" cannot be the name of a mesh axis", axis.name));
    if (axis.size < 1)
      throw Error(ErrorCode::invalid_argument, fmt::format("the mesh axis {} has size {}", axis.name, axis.size));
    if (!names.insert(axis.name).second)
      throw Error(ErrorCode::invalid_argument, fmt::format("the mesh has two axes called {}", axis.name));
  }
  if (places(axes_) != static_cast<std::int64_t>(devices_.size()))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the mesh {} has {} places, but {} devices are named", text(), places(axes_), devices_.size()),
                "name one device for each place, separated by commas");
  std::set<std::string> ids;
  for (const std::string& device : devices_)
    if (!ids.insert(device).second)
      throw Error(ErrorCode::invalid_argument, fmt::format("the device {} occurs twice in the mesh", device),
                  "each place of a mesh needs a device of its own");
}

std::vector<MeshAxis> Mesh::parse_axes(std::string_view text) {
  std::vector<MeshAxis> axes;
  for (const std::string_view piece : pieces(text, ',')) {
    const std::size_t equals = piece.find('=');
    const std::string_view size = equals == std::string_view::npos ? "" : trimmed(piece.substr(equals + 1));
    int value = 0;
    const auto [end, error] = std::from_chars(size.data(), size.data() + size.size(), value);
    if (error != std::errc() || end != size.data() + size.size() || value < 1)
      throw Error(ErrorCode::invalid_argument, fmt::format("\"{}\" is not an axis of a mesh", piece),
                  "write NAME=SIZE for each axis, separated by commas: data=2,model=2");
    axes.push_back({std::string(trimmed(piece.substr(0, equals))), value});
  }
  return axes;
}

Mesh Mesh::parse(std::string_view text, std::span<const DeviceInfo> devices) {
  std::vector<MeshAxis> axes = parse_axes(text);
  std::vector<std::string> ids;
  for (const bool cpus : {false, true})
    for (const DeviceInfo& device : devices)
      // A device that another driver shows a second time is still one.
      if (device.available && device.same_as.empty() && (device.kind == DeviceKind::cpu) == cpus) ids.push_back(device.id);
  if (static_cast<std::int64_t>(ids.size()) < places(axes))
    throw Error(ErrorCode::failed_precondition,
                fmt::format("the mesh {} needs {} devices, this machine has {}: {}", text, places(axes), ids.size(),
                            fmt::join(ids, ", ")),
                "make the mesh smaller, or add simulated devices to try it: TENON_SIM='gpu;gpu'");
  ids.resize(static_cast<std::size_t>(places(axes)));
  return Mesh(std::move(axes), std::move(ids));
}

Mesh Mesh::parse(std::string_view text, std::vector<std::string> ids) { return Mesh(parse_axes(text), std::move(ids)); }

Mesh mesh_over(const DeviceManager& manager, std::string_view axes, std::string_view devices) {
  if (trimmed(devices) == "auto") return Mesh::parse(axes, manager.devices());
  std::vector<std::string> ids;
  for (const std::string_view request : pieces(devices, ',')) ids.push_back(manager.find(std::string(request)).id);
  return Mesh::parse(axes, std::move(ids));
}

int Mesh::axis(std::string_view name) const {
  for (std::size_t i = 0; i < axes_.size(); ++i)
    if (axes_[i].name == name) return static_cast<int>(i);
  throw Error(ErrorCode::not_found, fmt::format("the mesh {} has no axis {}", text(), name));
}

int Mesh::coordinate(int rank, int axis) const {
  int inner = 1;
  for (std::size_t i = static_cast<std::size_t>(axis) + 1; i < axes_.size(); ++i) inner *= axes_[i].size;
  return rank / inner % axes_[static_cast<std::size_t>(axis)].size;
}

std::string Mesh::text() const {
  std::vector<std::string> parts;
  for (const MeshAxis& axis : axes_) parts.push_back(fmt::format("{}={}", axis.name, axis.size));
  return fmt::format("{}", fmt::join(parts, ","));
}

std::string_view name(Collective::Kind kind) noexcept {
  constexpr std::string_view names[] = {"all-reduce", "reduce-scatter", "all-gather", "all-to-all", "move"};
  return names[static_cast<int>(kind)];
}

std::uint64_t MeshPlan::bytes() const noexcept {
  std::uint64_t total = 0;
  for (const Collective& collective : collectives) total += collective.bytes;
  return total;
}

std::string MeshPlan::text() const {
  std::string result;
  for (const Value& value : values) result += fmt::format("%{:<4} {:<24} {}\n", value.node, value.sharding, value.description);
  for (const Collective& c : collectives)
    result +=
        fmt::format("{} of {} {}{} over {}: {} -> {}, {} bytes{}{}\n", name(c.kind), c.value, name(c.dtype), to_string(c.shape),
                    fmt::join(c.axes, "+"), c.from, c.to, c.bytes, c.through.empty() ? "" : " through ", c.through);
  if (collectives.empty()) result += "nothing is exchanged between devices\n";
  if (!shares.empty()) result += fmt::format("shares of the devices: {:.3g}\n", fmt::join(shares, ", "));
  for (const std::string& note : notes) result += fmt::format("note: {}\n", note);
  return result;
}

MeshPlan explain_mesh(const Graph& graph, const Mesh& mesh, const MeshOptions& options) {
  const mesh::Partition partition = mesh::partition(graph, mesh, options);
  MeshPlan plan;
  for (const mesh::Value& value : partition.values) {
    if (value.is_exchange()) plan.collectives.push_back(mesh::describe(graph, mesh, partition, value));
    if (value.kind == mesh::Value::Kind::node)
      plan.values.push_back({value.origin, node_text(graph[value.origin]), mesh::text_of(value.layout, mesh)});
  }
  for (const int output : partition.outputs)
    plan.outputs.push_back(mesh::text_of(partition.values[static_cast<std::size_t>(output)].layout, mesh));
  plan.notes = partition.notes;
  const double total = std::accumulate(options.speeds.begin(), options.speeds.end(), 0.0);
  for (const double speed : options.speeds) plan.shares.push_back(speed / total);
  if (std::adjacent_find(plan.shares.begin(), plan.shares.end(), std::not_equal_to()) == plan.shares.end()) plan.shares.clear();
  plan.stages = partition.stages;
  return plan;
}

MeshPlan explain_mesh(DeviceManager& manager, const Graph& graph, const Mesh& mesh, const MeshOptions& options) {
  MeshPlan plan = explain_mesh(graph, mesh, options);
  if (plan.collectives.empty()) return plan;
  const mesh::Partition partition = mesh::partition(graph, mesh, options);
  std::string library;
  if (const std::shared_ptr<const CollectiveBackend> backend = mesh::backend_between(manager, mesh)) {
    library = backend->collective_library();
    std::string problem;
    if (mesh::bytes_for_devices(graph, mesh, partition) < mesh::kLeastDeviceBytes)
      problem = fmt::format("less than {} bytes are exchanged", mesh::kLeastDeviceBytes);
    else
      try {
        plan.notes.push_back(fmt::format("{} {} exchanges values between the devices", library, backend->collective_version()));
      } catch (const Error& error) {
        problem = fmt::format("{}; {}", error.what(), error.hint());
      }
    if (!problem.empty()) plan.notes.push_back(fmt::format("{} is not used: {}", std::exchange(library, ""), problem));
  }
  auto collective = plan.collectives.begin();
  for (const mesh::Value& value : partition.values)
    if (value.is_exchange())
      (collective++)->through = !library.empty() && mesh::is_for_devices(graph, partition, value) ? library : "host memory";
  return plan;
}

}  // namespace tenon
