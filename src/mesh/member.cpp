#include "mesh/member.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
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
      exchange_(std::move(exchange)),
      queue_([this] { stop_.request_stop(); }),
      landing_([this] { stop_.request_stop(); }) {}

Lease Member::lease() const {
  LeaseOptions wanted{
      .device = device_id_, .timeout = options_.timeout, .priority = options_.priority, .cancel = options_.cancel};
  if (options_.on_progress)
    wanted.on_wait = [&](const QueuePlace& place) { options_.on_progress({"queued", device_id_, place}); };
  return manager_.lease(wanted);
}

void Member::run() {
  begin_ = Clock::now();
  if (options_.limit) end_ = begin_ + *options_.limit;
  const std::stop_callback forward(options_.cancel, [&] { stop_.request_stop(); });
  try {
    run_stages();
  } catch (...) {
    // An exchange that failed stopped the program; it has the reason.
    std::exception_ptr error = queue_.error() ? queue_.error() : landing_.error();
    if (!error) error = std::current_exception();
    exchange_->stop();
    std::rethrow_exception(error);
  }
}

void Member::run_stages() {
  place_inputs();
  for (std::size_t number = 0; number < prepared_.stages.size(); ++number) run_stage(number);
  for (const int v : prepared_.partition.outputs) {
    const DType dtype = prepared_.graph[value(v).origin].dtype;
    if (value(v).is_exchange()) wait_for({v, exchanged_type(prepared_.graph, value(v))});
    outputs.push_back(host_value(v, is_block(dtype) ? DType::f32 : dtype));
  }
  // Values that nobody needs are exchanged, too: the other devices take part.
  for (const Stage& stage : prepared_.stages)
    for (const int v : stage.exchanges)
      for (const ExchangeQueue* queue : {&queue_, &landing_})
        if (const ExchangeQueue::Received* received = queue->find(v)) received->get();
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

void Member::run_stage(std::size_t number) {
  const Stage& stage = prepared_.stages[number];
  if (!stage.graphs.empty()) compute(stage);
  for (const int v : stage.exchanges) begin_exchange(v, is_needed_next(v, number));
}

void Member::compute(const Stage& stage) {
  std::vector<std::shared_ptr<Storage>> inputs;
  for (const Crossing& input : stage.inputs) {
    wait_for(input);
    inputs.push_back(values_.at(input));
  }
  std::vector<std::shared_ptr<Storage>> results = compute(stage.graphs[index(rank_)], inputs);
  for (std::size_t i = 0; i < stage.outputs.size(); ++i) values_[stage.outputs[i]] = std::move(results[i]);
}

std::vector<std::shared_ptr<Storage>> Member::compute(const Graph& graph, const std::vector<std::shared_ptr<Storage>>& inputs) {
  const Clock::time_point begin = Clock::now();
  RunOptions options = options_;
  options.device = device_id_;
  options.repeat = 1;
  options.cancel = stop_.get_token();
  if (end_) options.limit = std::max(*end_ - begin, Clock::duration::zero());
  options.on_decision = {};
  EvaluateResult result = evaluate(manager_, graph, inputs, options);
  add(result.timeline, begin);
  return std::move(result.outputs);
}

bool Member::is_needed_next(int v, std::size_t stage) const {
  if (stage + 1 == prepared_.stages.size()) return true;
  const Stage& next = prepared_.stages[stage + 1];
  return next.graphs.empty() ||
         std::any_of(next.inputs.begin(), next.inputs.end(), [&](const Crossing& input) { return input.value == v; });
}

// Exchanges happen in the same order on all devices: here and now only if none is under way.
void Member::begin_exchange(int v, bool is_needed_next) {
  if (devices_ && begin_between_devices(v, is_needed_next)) return;
  const DType dtype = exchanged_type(prepared_.graph, value(v));
  const int source = value(v).inputs[0];
  // What devices exchange is here when the next program has it.
  if (landing_.find(source)) wait_for({source, exchanged_type(prepared_.graph, value(source))});
  if (is_needed_next && queue_.is_idle()) {
    if (value(source).is_exchange()) wait_for({source, exchanged_type(prepared_.graph, value(source))});
    values_[{v, dtype}] = exchange_value(v, host_value(source, dtype))[0];
    return;
  }
  if (const ExchangeQueue::Received* received = queue_.find(source))
    return queue_.add(
        v, [this, v, dtype, received = *received] { return exchange_value(v, received.get()[0]->to_host().cast(dtype)); });
  // The device belongs to this thread.
  queue_.add(v, [this, v, mine = host_value(source, dtype)] { return exchange_value(v, mine); });
}

// False if the value has to go through host memory. Earlier exchanges come first, as on all devices.
bool Member::begin_between_devices(int v, bool is_needed_next) {
  const Value& target = value(v);
  if (!is_for_devices(prepared_.graph, prepared_.partition, target)) return false;
  queue_.wait();
  landing_.wait();
  const DType dtype = exchanged_type(prepared_.graph, target);
  const int source = target.inputs[0];
  if (value(source).is_exchange()) wait_for({source, exchanged_type(prepared_.graph, value(source))});
  const std::shared_ptr<Storage> mine = stored_value(source, dtype);
  DevicePlan plan = device_plan(prepared_.graph, prepared_.mesh, prepared_.partition, target, rank_, mine->type().dtype);
  const std::vector<std::shared_ptr<Storage>> sent = plan.pack ? compute(*plan.pack, {mine}) : std::vector{mine};
  const Clock::time_point begin = Clock::now();
  const std::shared_ptr<Flight> flight = devices_->start(plan, sent);
  if (!flight) return false;
  bytes.emplace_back();
  if (plan.join) joins_[v] = *std::move(plan.join);
  landing_.add(v, [this, flight, begin] {
    ExchangeQueue::Values values = flight->land(stop_.get_token());
    add({{"exchanging", std::chrono::duration<double>(Clock::now() - begin).count(), 0}}, begin);
    return values;
  });
  if (is_needed_next) wait_for({v, dtype});
  return true;
}

ExchangeQueue::Values Member::exchange_value(int v, const HostArray& mine) {
  const Clock::time_point begin = Clock::now();
  const Value& target = value(v);
  const Layout& from = value(target.inputs[0]).layout;
  HostArray part = target.kind == Value::Kind::reduce ? exchange_->reduce(mine, from, target.layout, shape(v))
                                                      : exchange_->move(mine, from, target.layout, shape(v));
  bytes.emplace_back(exchange_->take_bytes());
  add({{"exchanging", std::chrono::duration<double>(Clock::now() - begin).count(), 0}}, begin);
  return {Storage::from_host(std::move(part))};
}

// Puts a value that is being exchanged among the others.
void Member::wait_for(Crossing crossing) {
  if (values_.contains(crossing)) return;
  if (const ExchangeQueue::Received* received = queue_.find(crossing.value)) values_[crossing] = received->get()[0];
  if (const ExchangeQueue::Received* received = landing_.find(crossing.value)) {
    const auto join = joins_.find(crossing.value);
    values_[crossing] = join == joins_.end() ? received->get()[0] : compute(join->second, received->get())[0];
  }
}

// A value in this type if it crossed in it, else as it crossed.
std::shared_ptr<Storage> Member::stored_value(int v, DType dtype) const {
  const auto found = values_.find({v, dtype});
  return found != values_.end() ? found->second : values_.lower_bound({v, DType{}})->second;
}

HostArray Member::host_value(int v, DType dtype) const { return stored_value(v, dtype)->to_host().cast(dtype); }

void Member::add(const Timeline& spans, Clock::time_point begin) {
  const std::lock_guard lock(timeline_mutex_);
  const double offset = std::chrono::duration<double>(begin - begin_).count();
  for (const Span& span : spans) timeline.push_back({span.stage, span.seconds, offset + span.start_seconds});
}

std::vector<Collective> collectives_of(const Prepared& prepared, std::span<const std::unique_ptr<Member>> members,
                                       const std::string& through, const std::string& library) {
  std::vector<Collective> result;
  for (const Stage& stage : prepared.stages)
    for (const int v : stage.exchanges) {
      Collective collective = describe(prepared.graph, prepared.mesh, prepared.partition, prepared.partition.values[index(v)]);
      collective.through = through;
      if (members[0]->bytes[result.size()]) {
        collective.bytes = 0;
        for (const auto& member : members) collective.bytes += *member->bytes[result.size()];
      } else {
        collective.through = library;
      }
      result.push_back(std::move(collective));
    }
  return result;
}

}  // namespace tenon::mesh
