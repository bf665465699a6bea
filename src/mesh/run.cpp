// The run of a program on the devices of one machine: one thread per device, which holds that device's lease.
#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <numeric>
#include <thread>

#include "base/log.h"
#include "mesh/member.h"
#include "tenon/error.h"
#include "tenon/mesh.h"

namespace tenon {
namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

// Lets devices be leased one after the other, in the order of their ids, and waits until all are.
class LeaseOrder {
 public:
  explicit LeaseOrder(const Mesh& mesh) : turn_(index(mesh.size())) {
    std::vector<int> order(turn_.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int a, int b) { return mesh.devices()[index(a)] < mesh.devices()[index(b)]; });
    for (std::size_t i = 0; i < order.size(); ++i) turn_[index(order[i])] = i;
  }
  void wait_for_turn(int rank) {
    wait([&] { return leased_ == turn_[index(rank)]; });
  }
  void leased() {
    {
      const std::lock_guard lock(mutex_);
      ++leased_;
    }
    changed_.notify_all();
    wait([&] { return leased_ == turn_.size(); });
  }
  void fail() {
    {
      const std::lock_guard lock(mutex_);
      has_failed_ = true;
    }
    changed_.notify_all();
  }

 private:
  template <class Condition>
  void wait(const Condition& is_due) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return is_due() || has_failed_; });
    if (has_failed_) throw Error(ErrorCode::cancelled, "another device of the mesh failed");
  }

  std::vector<std::size_t> turn_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t leased_ = 0;
  bool has_failed_ = false;
};

// What the threads of one run share.
class Session {
 public:
  Session(const Mesh& mesh, const std::function<void(const Progress&)>& on_progress)
      : order(mesh),
        meeting(mesh),
        on_progress_(on_progress) {}

  void fail(std::exception_ptr what) {
    {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::move(what);
    }
    order.fail();
    meeting.abort();
    stop.request_stop();
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }
  void tell(const Progress& progress) {
    const std::lock_guard lock(mutex_);
    on_progress_(progress);
  }

  void drive(mesh::Member& member, int rank, DeviceInfo& device) {
    try {
      order.wait_for_turn(rank);
      const Lease lease = member.lease();
      device = lease.device();
      order.leased();
      member.run();
    } catch (const Error& error) {
      fail(std::make_exception_ptr(Error(error.code(), fmt::format("{}: {}", member.device_id(), error.what()), error.hint())));
    } catch (...) {
      fail(std::current_exception());
    }
  }

  LeaseOrder order;
  mesh::Meeting meeting;
  std::stop_source stop;

 private:
  const std::function<void(const Progress&)>& on_progress_;
  std::mutex mutex_;
  std::exception_ptr error_;  // the first
};

// The right of one run of this process to exchange between devices. Two at once on the same devices could each wait for the
// other; the second one exchanges through host memory.
class DeviceTurn {
 public:
  explicit DeviceTurn(bool is_wanted) : lock_(mutex(), std::defer_lock) {
    if (is_wanted && !lock_.try_lock()) logging::info("values of a mesh go through host memory: another mesh is at work");
  }
  bool is_ours() const noexcept { return lock_.owns_lock(); }

 private:
  static std::mutex& mutex() {
    static std::mutex one;
    return one;
  }
  std::unique_lock<std::mutex> lock_;
};

HostArray assembled(const mesh::Prepared& prepared, const std::vector<std::unique_ptr<mesh::Member>>& members,
                    std::size_t output) {
  const mesh::Value& value = prepared.partition.values[index(prepared.partition.outputs[output])];
  const Node& node = prepared.graph[value.origin];
  const HostArray& first = members[0]->outputs[output];
  const std::vector<int> sources = mesh::sources_of(value.layout, prepared.mesh, 0);
  if (sources.size() == 1) return first.cast(node.dtype);
  const mesh::Box all = mesh::box_of(mesh::Layout::replicated(node.shape.rank(), prepared.mesh), node.shape, prepared.mesh, 0);
  HostArray whole = HostArray::empty(first.dtype(), node.shape);
  std::byte* target = whole.mutable_data();
  for (const int rank : sources)
    mesh::copy_common(members[index(rank)]->outputs[output], mesh::box_of(value.layout, node.shape, prepared.mesh, rank), target,
                      all);
  return whole.cast(node.dtype);
}

// A mesh of one device is that device.
MeshResult run_alone(DeviceManager& manager, const Graph& graph, std::span<const HostArray> inputs, const Mesh& mesh,
                     const MeshOptions& options) {
  mesh::check_options(graph, mesh, options);
  RunOptions run = options.run;
  run.device = mesh.devices()[0];
  run.repeat = 1;
  run.explain = false;
  run.on_decision = {};
  RunResult alone = manager.run(graph, inputs, run);
  MeshResult result;
  result.outputs = std::move(alone.outputs);
  result.devices.push_back(*alone.device);
  result.timelines.push_back(std::move(alone.timeline));
  return result;
}

}  // namespace

MeshResult run_on_mesh(DeviceManager& manager, const Graph& graph, std::span<const HostArray> inputs, const Mesh& mesh,
                       const MeshOptions& options) {
  if (mesh.size() == 1) return run_alone(manager, graph, inputs, mesh, options);
  const mesh::Prepared prepared(graph, inputs, mesh, options);
  Session session(mesh, options.run.on_progress);
  const std::stop_callback stop(options.run.cancel,
                                [&] { session.fail(std::make_exception_ptr(Error(ErrorCode::cancelled, "cancelled"))); });
  RunOptions each = options.run;
  each.cancel = session.stop.get_token();
  if (each.on_progress) each.on_progress = [&](const Progress& progress) { session.tell(progress); };
  std::vector<std::unique_ptr<mesh::Member>> members;
  for (int rank = 0; rank < mesh.size(); ++rank)
    members.push_back(std::make_unique<mesh::Member>(manager, prepared, rank, mesh.devices()[index(rank)], each,
                                                     session.meeting.exchange(rank)));
  const std::shared_ptr<const CollectiveBackend> backend = mesh::backend_between(manager, mesh);
  const DeviceTurn turn(backend && mesh::bytes_for_devices(graph, mesh, prepared.partition) >= mesh::kLeastDeviceBytes);
  if (turn.is_ours())
    for (const auto& member : members) member->exchange_between_devices();
  MeshResult result;
  result.devices.resize(members.size());
  {
    std::vector<std::jthread> threads;
    for (int rank = 1; rank < mesh.size(); ++rank)
      threads.emplace_back([&, rank] { session.drive(*members[index(rank)], rank, result.devices[index(rank)]); });
    session.drive(*members[0], 0, result.devices[0]);
  }
  session.rethrow();
  for (std::size_t i = 0; i < graph.outputs().size(); ++i) result.outputs.push_back(assembled(prepared, members, i));
  for (const auto& member : members) result.timelines.push_back(member->timeline);
  result.collectives =
      mesh::collectives_of(prepared, members, "host memory", backend ? std::string(backend->collective_library()) : "");
  return result;
}

MeshResult run_data_parallel(DeviceManager& manager, const Graph& graph, std::span<const HostArray> inputs,
                             std::span<const DeviceInfo> targets, std::span<const std::string> batched, MeshOptions options) {
  if (targets.empty()) throw Error(ErrorCode::failed_precondition, "No devices are visible", "check the drivers of the devices");
  const MeshAxis axis{"data", static_cast<int>(targets.size())};
  std::vector<std::string> ids;
  for (const DeviceInfo& device : targets) ids.push_back(device.id);
  for (const std::string& name : batched) options.inputs[name] = Sharding{{{axis.name}}};
  return run_on_mesh(manager, graph, inputs, Mesh({axis}, std::move(ids)), options);
}

}  // namespace tenon
