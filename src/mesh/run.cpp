// The run of a program on a mesh: one thread per device, which holds that device's lease, runs its programs and exchanges values
// with the others.
#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>

#include "manager/evaluate.h"
#include "mesh/exchange.h"
#include "mesh/partition.h"
#include "mesh/stages.h"
#include "tenon/error.h"
#include "tenon/mesh.h"

namespace tenon {
namespace {

using mesh::Crossing;

std::size_t index(int i) { return static_cast<std::size_t>(i); }

// Lets devices be leased one after the other, in the order of their ids.
class LeaseOrder {
 public:
  explicit LeaseOrder(const Mesh& mesh) : turn_(index(mesh.size())) {
    std::vector<int> order(turn_.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int a, int b) { return mesh.devices()[index(a)] < mesh.devices()[index(b)]; });
    for (std::size_t i = 0; i < order.size(); ++i) turn_[index(order[i])] = i;
  }
  void wait_for_turn(int rank) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return leased_ == turn_[index(rank)] || has_failed_; });
    if (has_failed_) throw Error(ErrorCode::cancelled, "another device of the mesh failed");
  }
  void leased() {
    const std::lock_guard lock(mutex_);
    ++leased_;
    changed_.notify_all();
  }
  void wait_for_all() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return leased_ == turn_.size() || has_failed_; });
    if (has_failed_) throw Error(ErrorCode::cancelled, "another device of the mesh failed");
  }
  void fail() {
    const std::lock_guard lock(mutex_);
    has_failed_ = true;
    changed_.notify_all();
  }

 private:
  std::vector<std::size_t> turn_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t leased_ = 0;
  bool has_failed_ = false;
};

// What all devices share.
struct Session {
  DeviceManager& manager;
  const Graph& graph;
  std::span<const HostArray> inputs;
  const Mesh& mesh;
  const MeshOptions& options;
  mesh::Partition partition;
  std::vector<mesh::Stage> stages;
  LeaseOrder order;
  mesh::Meeting meeting;
  std::stop_source stop;
  std::mutex mutex;
  std::exception_ptr error;  // the first

  void fail(std::exception_ptr what) {
    {
      const std::lock_guard lock(mutex);
      if (!error) error = std::move(what);
    }
    order.fail();
    meeting.abort();
    stop.request_stop();
  }
};

// One device of the session.
class Member {
 public:
  Member(Session& session, int rank) : session_(session), rank_(rank), exchange_(session.meeting.exchange(rank)) {}

  void run() {
    try {
      session_.order.wait_for_turn(rank_);
      LeaseOptions wanted{.device = id(),
                          .timeout = session_.options.run.timeout,
                          .priority = session_.options.run.priority,
                          .cancel = session_.stop.get_token()};
      if (session_.options.run.on_progress) wanted.on_wait = [&](const QueuePlace& place) { tell("queued", place); };
      const Lease lease = session_.manager.lease(wanted);
      device = lease.device();
      session_.order.leased();
      session_.order.wait_for_all();
      place_inputs();
      for (const mesh::Stage& stage : session_.stages) run_stage(stage);
      take_outputs();
    } catch (const Error& error) {
      session_.fail(std::make_exception_ptr(Error(error.code(), fmt::format("{}: {}", id(), error.what()), error.hint())));
    } catch (...) {
      session_.fail(std::current_exception());
    }
  }

  DeviceInfo device;
  Timeline timeline;
  std::vector<HostArray> outputs;    // parts
  std::vector<std::uint64_t> bytes;  // received in each exchange, in order

 private:
  const std::string& id() const { return session_.mesh.devices()[index(rank_)]; }
  const mesh::Value& value(int v) const { return session_.partition.values[index(v)]; }
  const Shape& shape(int v) const { return session_.graph[value(v).origin].shape; }
  mesh::Box box(int v) const { return mesh::box_of(value(v).layout, shape(v), session_.mesh, rank_); }

  void tell(const char* stage, const QueuePlace& place) const {
    const std::lock_guard lock(session_.mutex);
    session_.options.run.on_progress({stage, id(), place});
  }

  void place_inputs() {
    for (std::size_t v = 0; v < session_.partition.values.size(); ++v) {
      const mesh::Value& input = session_.partition.values[v];
      const Node& node = session_.graph[input.origin];
      if (input.kind != mesh::Value::Kind::node || node.prim != Prim::input) continue;
      const HostArray& whole = session_.inputs[index(node.as<InputAttr>().index)];
      // Block formats share an exponent along their last axis: parts are cut from the values.
      const mesh::Box mine = box(static_cast<int>(v)),
                      all = mesh::box_of(mesh::Layout::replicated(node.shape.rank(), session_.mesh), node.shape, session_.mesh,
                                         rank_);
      const HostArray part = mine == all            ? whole
                             : is_block(node.dtype) ? mesh::cut(whole.cast(DType::f32), all, mine).cast(node.dtype)
                                                    : mesh::cut(whole, all, mine);
      values_[{static_cast<int>(v), node.dtype}] = Storage::from_host(part);
    }
  }

  void run_stage(const mesh::Stage& stage) {
    if (!stage.graphs.empty()) {
      std::vector<std::shared_ptr<Storage>> inputs;
      for (const Crossing& input : stage.inputs) inputs.push_back(values_.at(input));
      RunOptions options = session_.options.run;
      options.device = id();
      options.repeat = 1;
      options.cancel = session_.stop.get_token();
      options.on_decision = {};
      options.on_progress = {};
      if (session_.options.run.on_progress)
        options.on_progress = [&](const Progress& progress) { tell(progress.stage.c_str(), progress.place); };
      EvaluateResult result = evaluate(session_.manager, stage.graphs[index(rank_)], inputs, options);
      for (std::size_t i = 0; i < stage.outputs.size(); ++i) values_[stage.outputs[i]] = std::move(result.outputs[i]);
      add(result.timeline);
    }
    for (const int v : stage.exchanges) exchange(v);
  }

  void exchange(int v) {
    const auto begin = std::chrono::steady_clock::now();
    const mesh::Value& target = value(v);
    const DType dtype = mesh::exchanged_type(session_.graph, target);
    const int source = target.inputs[0];
    const HostArray mine = host_value(source, dtype);
    const mesh::Layout& from = value(source).layout;
    HostArray part = target.kind == mesh::Value::Kind::reduce ? exchange_->reduce(mine, from, target.layout, shape(v))
                                                              : exchange_->move(mine, from, target.layout, shape(v));
    values_[{v, dtype}] = Storage::from_host(std::move(part));
    bytes.push_back(exchange_->take_bytes());
    add({{"exchanging", std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(), 0}});
  }

  // A value in host memory, whatever type it crossed in.
  HostArray host_value(int v, DType dtype) {
    if (const auto found = values_.find({v, dtype}); found != values_.end()) return found->second->to_host();
    const auto other = values_.lower_bound({v, DType{}});
    return other->second->to_host().cast(dtype);
  }

  void take_outputs() {
    for (const int v : session_.partition.outputs) {
      const DType dtype = session_.graph[value(v).origin].dtype;
      outputs.push_back(host_value(v, is_block(dtype) ? DType::f32 : dtype));
    }
  }

  // Stages follow each other on the device's timeline.
  void add(const Timeline& spans) {
    double start = 0;
    for (const Span& span : timeline) start = std::max(start, span.start_seconds + span.seconds);
    for (const Span& span : spans) timeline.push_back({span.stage, span.seconds, start + span.start_seconds});
  }

  Session& session_;
  const int rank_;
  std::unique_ptr<mesh::Exchange> exchange_;
  std::map<Crossing, std::shared_ptr<Storage>> values_;
};

HostArray assembled(const Session& session, const std::vector<std::unique_ptr<Member>>& members, std::size_t output) {
  const mesh::Value& value = session.partition.values[index(session.partition.outputs[output])];
  const Node& node = session.graph[value.origin];
  const mesh::Box all = mesh::box_of(mesh::Layout::replicated(node.shape.rank(), session.mesh), node.shape, session.mesh, 0);
  const std::vector<int> sources = mesh::sources_of(value.layout, session.mesh, 0);
  const HostArray& first = members[0]->outputs[output];
  if (sources.size() == 1) return first.cast(node.dtype);
  HostArray whole = HostArray::empty(first.dtype(), node.shape);
  std::byte* target = whole.mutable_data();
  for (const int rank : sources)
    mesh::copy_common(members[index(rank)]->outputs[output], mesh::box_of(value.layout, node.shape, session.mesh, rank), target,
                      all);
  return whole.cast(node.dtype);
}

void check_inputs(const Graph& graph, std::span<const HostArray> inputs) {
  if (inputs.size() != graph.inputs().size())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the program has {} inputs, got {}", graph.inputs().size(), inputs.size()));
  for (const NodeId id : graph.inputs()) {
    const Node& node = graph[id];
    const HostArray& array = inputs[index(node.as<InputAttr>().index)];
    if (array.dtype() != node.dtype || !(array.shape() == node.shape))
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("input {} is {}{}, got {}{}", node.as<InputAttr>().name, name(node.dtype), to_string(node.shape),
                              name(array.dtype()), to_string(array.shape())));
  }
}

}  // namespace

MeshResult run(DeviceManager& manager, const Graph& graph, std::span<const HostArray> inputs, const Mesh& mesh,
               const MeshOptions& options) {
  check_inputs(graph, inputs);
  mesh::Partition partition = mesh::partition(graph, mesh, options);
  std::vector<mesh::Stage> stages = mesh::stages_of(graph, mesh, partition);
  Session session{
      manager, graph, inputs, mesh, options, std::move(partition), std::move(stages), LeaseOrder(mesh), mesh::Meeting(mesh),
      {},      {},    {}};
  const std::stop_callback stop(options.run.cancel,
                                [&] { session.fail(std::make_exception_ptr(Error(ErrorCode::cancelled, "cancelled"))); });
  std::vector<std::unique_ptr<Member>> members;
  for (int rank = 0; rank < mesh.size(); ++rank) members.push_back(std::make_unique<Member>(session, rank));
  {
    std::vector<std::jthread> threads;
    for (int rank = 1; rank < mesh.size(); ++rank) threads.emplace_back([&member = *members[index(rank)]] { member.run(); });
    members[0]->run();
  }
  if (session.error) std::rethrow_exception(session.error);

  MeshResult result;
  for (std::size_t i = 0; i < graph.outputs().size(); ++i) result.outputs.push_back(assembled(session, members, i));
  for (const auto& member : members) {
    result.devices.push_back(member->device);
    result.timelines.push_back(member->timeline);
  }
  std::size_t number = 0;
  for (const mesh::Stage& stage : session.stages)
    for (const int v : stage.exchanges) {
      Collective collective = mesh::describe(graph, mesh, session.partition, session.partition.values[index(v)]);
      collective.bytes = 0;
      for (const auto& member : members) collective.bytes += member->bytes[number];
      ++number;
      result.collectives.push_back(std::move(collective));
    }
  return result;
}

}  // namespace tenon
