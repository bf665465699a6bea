// The run of a program on the processes of an MPI job.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <numeric>
#include <sstream>

#include "mesh/exchange/mpi_exchange.h"
#include "mesh/exchange/watchdog.h"
#include "mesh/member.h"
#include "mesh/plan/partition.h"
#include "mesh/plan/speeds.h"
#include "tenon/error.h"
#include "tenon/mesh.h"

namespace tenon {
namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

std::chrono::nanoseconds nanoseconds_of(double seconds) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(seconds));
}

// Processes of a job may start at very different times.
std::chrono::nanoseconds start_deadline(double deadline_seconds) {
  constexpr double kLeastSeconds = 20;
  return nanoseconds_of(std::max(deadline_seconds, kLeastSeconds));
}

// MPI can be started and ended once in a process. It is never unloaded: after an error it may still be at work.
struct Mpi {
  std::mutex mutex;
  mesh::MpiLibrary* library = nullptr;
  bool has_ended = false;
};
Mpi& process_mpi() {
  static Mpi& mpi = *new Mpi;
  return mpi;
}

mesh::MpiLibrary& start_mpi(std::chrono::nanoseconds deadline) {
  Mpi& mpi = process_mpi();
  const std::lock_guard lock(mpi.mutex);
  if (mpi.has_ended)
    throw Error(ErrorCode::failed_precondition, "MPI has ended in this process and cannot be started again",
                "call finish_mpi when all runs are done");
  if (mpi.library == nullptr) mpi.library = mesh::MpiLibrary::load(deadline).release();
  return *mpi.library;
}

std::string host_name() {
  std::array<char, 128> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

// The number of this process among those of its host, as the launcher tells.
int place_on_host() {
  for (const char* variable : {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"})
    if (const char* text = std::getenv(variable)) return std::max(0, std::atoi(text));
  return 0;
}

// Accelerators are dealt out to the processes of a host; without any, all use the CPU.
std::string device_for(const DeviceManager& manager, const std::string& request) {
  if (request != "auto") return manager.find(request).id;
  std::vector<std::string> accelerators;
  for (const DeviceInfo& device : manager.devices())
    if (device.available && device.kind != DeviceKind::cpu) accelerators.push_back(device.id);
  if (accelerators.empty()) return manager.find("cpu").id;
  return accelerators[index(place_on_host()) % accelerators.size()];
}

void check_size(const std::vector<MeshAxis>& axes, int processes) {
  double places = 1;
  for (const MeshAxis& axis : axes) places *= axis.size;
  if (places != processes)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the mesh has {} places, but MPI started {} processes", places, processes),
                fmt::format("start mpirun -n {}", places));
}

// Collective: what each process knows about its own device.
std::vector<double> speeds_of_processes(mesh::MpiExchange& processes, const DeviceManager& manager, const Graph& graph,
                                        const Mesh& mesh, const MeshOptions& options, const std::string& device) {
  const mesh::MeasuredSeconds own =
      mesh::measured_seconds(manager, graph, mesh::equal_stages(graph, mesh, options), processes.rank(), device);
  std::vector<mesh::MeasuredSeconds> devices;
  for (const std::string& text : processes.gather(fmt::format("{} {}", own.whole.value_or(0), own.part.value_or(0)))) {
    double whole = 0, part = 0;
    std::istringstream(text) >> whole >> part;
    auto& each = devices.emplace_back();
    if (whole > 0) each.whole = whole;
    if (part > 0) each.part = part;
  }
  return mesh::speeds_from(devices);
}

std::vector<int> order_of(const std::vector<std::string>& places) {
  std::vector<int> order(places.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](int a, int b) { return std::pair(places[index(a)], a) < std::pair(places[index(b)], b); });
  return order;
}

}  // namespace

bool started_by_mpi() { return mesh::MpiLibrary::started_this_process(); }

MpiResult run_over_mpi(DeviceManager& manager, const Graph& graph, std::span<const HostArray> inputs,
                       const std::vector<MeshAxis>& axes, const MpiOptions& options) {
  const std::chrono::nanoseconds start = start_deadline(options.deadline_seconds);
  mesh::MpiLibrary& mpi = start_mpi(start);
  check_size(axes, mpi.size());
  std::vector<std::string> ranks;
  for (int rank = 0; rank < mpi.size(); ++rank) ranks.push_back(fmt::format("rank {}", rank));
  const Mesh mesh(axes, ranks);
  mesh::check_options(graph, mesh, options.mesh);
  const std::string device = device_for(manager, options.device);
  MpiResult result;
  result.rank = mpi.rank();
  auto exchange =
      std::make_unique<mesh::MpiExchange>(mpi, mesh, nanoseconds_of(options.deadline_seconds), start, options.mesh.run.cancel,
                                          fmt::format("rank {} on {}", mpi.rank(), host_name()));
  mesh::MpiExchange& processes = *exchange;
  result.places = processes.gather(fmt::format("{}/{}", host_name(), device));
  MeshOptions shares = options.mesh;
  if (options.has_measured_speeds) shares.speeds = speeds_of_processes(processes, manager, graph, mesh, options.mesh, device);
  result.speeds = shares.speeds;
  const mesh::Prepared prepared(graph, inputs, mesh, shares);
  std::vector<std::unique_ptr<mesh::Member>> members;
  members.push_back(std::make_unique<mesh::Member>(manager, prepared, mpi.rank(), device, options.mesh.run, std::move(exchange)));
  mesh::Member& member = *members[0];
  // Processes that share a device cannot all hold it at once where it is exclusive.
  for (std::size_t i = 0; i < result.places.size(); ++i)
    if (static_cast<int>(i) != mpi.rank() && result.places[i] == result.places[index(mpi.rank())] &&
        manager.find(device).exclusive)
      throw Error(ErrorCode::failed_precondition,
                  fmt::format("{} and {} would use the same device, {}", processes.names()[i],
                              processes.names()[index(mpi.rank())], device),
                  "start fewer processes per host, or give each a device with --device");
  Lease lease;
  processes.in_turn(order_of(result.places), [&] { lease = member.lease(); });
  member.run();
  for (std::size_t i = 0; i < member.outputs.size(); ++i) {
    const mesh::Value& value = prepared.partition.values[index(prepared.partition.outputs[i])];
    const Node& node = graph[value.origin];
    const mesh::Layout whole = mesh::Layout::replicated(node.shape.rank(), mesh);
    HostArray part = member.outputs[i];
    if (!(value.layout == whole)) part = processes.move(part, value.layout, whole, node.shape);
    result.result.outputs.push_back(part.cast(node.dtype));
  }
  processes.gather("done");
  result.result.devices.push_back(lease.device());
  result.result.timelines.push_back(member.timeline);
  result.result.collectives = mesh::collectives_of(prepared, members, "MPI");
  return result;
}

void finish_mpi(double deadline_seconds) {
  Mpi& mpi = process_mpi();
  const std::lock_guard lock(mpi.mutex);
  if (mpi.library == nullptr || mpi.has_ended) return;
  mpi.has_ended = true;
  const mesh::Watchdog watchdog("MPI did not end", nanoseconds_of(deadline_seconds));
  mpi.library->finish();
}

}  // namespace tenon
