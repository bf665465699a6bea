#include "mesh/member.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "manager/evaluate.h"
#include "tenon/error.h"

namespace tenon::mesh {
namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

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

Prepared::Prepared(const Graph& the_graph, std::span<const HostArray> the_inputs, const Mesh& the_mesh,
                   const MeshOptions& options)
    : graph(the_graph),
      inputs(the_inputs),
      mesh(the_mesh) {
  check_inputs(graph, inputs);
  partition = mesh::partition(graph, mesh, options);
  stages = stages_of(graph, mesh, partition);
}

Member::Member(DeviceManager& manager, const Prepared& prepared, int rank, std::string device_id, RunOptions options,
               std::unique_ptr<Exchange> exchange)
    : manager_(manager),
      prepared_(prepared),
      rank_(rank),
      device_id_(std::move(device_id)),
      options_(std::move(options)),
      exchange_(std::move(exchange)) {}

Lease Member::lease() const {
  LeaseOptions wanted{
      .device = device_id_, .timeout = options_.timeout, .priority = options_.priority, .cancel = options_.cancel};
  if (options_.on_progress)
    wanted.on_wait = [&](const QueuePlace& place) { options_.on_progress({"queued", device_id_, place}); };
  return manager_.lease(wanted);
}

void Member::run() {
  if (options_.limit) end_ = std::chrono::steady_clock::now() + *options_.limit;
  place_inputs();
  for (const Stage& stage : prepared_.stages) run_stage(stage);
  for (const int v : prepared_.partition.outputs) {
    const DType dtype = prepared_.graph[value(v).origin].dtype;
    outputs.push_back(host_value(v, is_block(dtype) ? DType::f32 : dtype));
  }
}

void Member::place_inputs() {
  for (int v = 0; v < static_cast<int>(prepared_.partition.values.size()); ++v) {
    const Node& node = prepared_.graph[value(v).origin];
    if (value(v).kind != Value::Kind::node || node.prim != Prim::input) continue;
    const HostArray& whole = prepared_.inputs[index(node.as<InputAttr>().index)];
    const Box all = box_of(Layout::replicated(node.shape.rank(), prepared_.mesh), node.shape, prepared_.mesh, rank_);
    const Box mine = box_of(value(v).layout, node.shape, prepared_.mesh, rank_);
    HostArray part = mine == all            ? whole
                     : is_block(node.dtype) ? cut(whole.cast(DType::f32), all, mine).cast(node.dtype)
                                            : cut(whole, all, mine);
    values_[{v, node.dtype}] = Storage::from_host(std::move(part));
  }
}

void Member::run_stage(const Stage& stage) {
  if (!stage.graphs.empty()) {
    std::vector<std::shared_ptr<Storage>> inputs;
    for (const Crossing& input : stage.inputs) inputs.push_back(values_.at(input));
    RunOptions options = options_;
    options.device = device_id_;
    options.repeat = 1;
    if (end_) options.limit = std::max(*end_ - std::chrono::steady_clock::now(), std::chrono::steady_clock::duration::zero());
    options.on_decision = {};
    EvaluateResult result = evaluate(manager_, stage.graphs[index(rank_)], inputs, options);
    for (std::size_t i = 0; i < stage.outputs.size(); ++i) values_[stage.outputs[i]] = std::move(result.outputs[i]);
    add(result.timeline);
  }
  for (const int v : stage.exchanges) exchange_value(v);
}

void Member::exchange_value(int v) {
  const auto begin = std::chrono::steady_clock::now();
  const Value& target = value(v);
  const DType dtype = exchanged_type(prepared_.graph, target);
  const int source = target.inputs[0];
  const HostArray mine = host_value(source, dtype);
  const Layout& from = value(source).layout;
  HostArray part = target.kind == Value::Kind::reduce ? exchange_->reduce(mine, from, target.layout, shape(v))
                                                      : exchange_->move(mine, from, target.layout, shape(v));
  values_[{v, dtype}] = Storage::from_host(std::move(part));
  bytes.push_back(exchange_->take_bytes());
  add({{"exchanging", std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(), 0}});
}

// A value in host memory, whatever type it crossed in.
HostArray Member::host_value(int v, DType dtype) const {
  if (const auto found = values_.find({v, dtype}); found != values_.end()) return found->second->to_host();
  return values_.lower_bound({v, DType{}})->second->to_host().cast(dtype);
}

// Stages follow each other on the device's timeline.
void Member::add(const Timeline& spans) {
  double start = 0;
  for (const Span& span : timeline) start = std::max(start, span.start_seconds + span.seconds);
  for (const Span& span : spans) timeline.push_back({span.stage, span.seconds, start + span.start_seconds});
}

std::vector<Collective> collectives_of(const Prepared& prepared, std::span<const std::unique_ptr<Member>> members) {
  std::vector<Collective> result;
  for (const Stage& stage : prepared.stages)
    for (const int v : stage.exchanges) {
      Collective collective = describe(prepared.graph, prepared.mesh, prepared.partition, prepared.partition.values[index(v)]);
      collective.bytes = 0;
      for (const auto& member : members) collective.bytes += member->bytes[result.size()];
      result.push_back(std::move(collective));
    }
  return result;
}

}  // namespace tenon::mesh
