#include "walk.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "steps.h"

using namespace tenon;

namespace {

const DeviceInfo kDevice{.id = "walk:0",
                         .kind = DeviceKind::other,
                         .name = "A walk over the graph",
                         .vendor = "Tenon's examples",
                         .backends = {"walk"}};

// Memory of the device, for any dtype. Here it is host memory; a card would keep its address instead. The share of the budget is
// given back when the buffer goes, so that the manager knows what is in use.
struct WalkBuffer final : Buffer {
  WalkBuffer(HostArray memory, MemoryBudget::Share taken)
      : Buffer({memory.dtype(), memory.shape()}),
        array(std::move(memory)),
        share(std::move(taken)) {}
  HostArray array;
  MemoryBudget::Share share;
};

// A graph, compiled: the steps in order, and memory for the value of every node, so that running allocates nothing large.
class WalkExecutable final : public Executable {
 public:
  explicit WalkExecutable(const Graph& graph) : outputs_(graph.outputs().begin(), graph.outputs().end()) {
    for (NodeId id = 0; id < graph.size(); ++id) {
      const Node& node = graph[id];
      check_node(node);
      values_.emplace_back(static_cast<std::size_t>(node.shape.elements()));
      if (node.prim == Prim::input) continue;
      if (node.prim == Prim::constant)
        std::ranges::copy(node.as<ConstantAttr>().value.cast(DType::f32).view<float>(), values_.back().begin());
      else
        steps_.push_back({id, node.inputs, make_step(graph, node)});
    }
    inputs_.assign(graph.inputs().begin(), graph.inputs().end());
    for (const NodeId id : inputs_) input_types_.push_back({graph[id].dtype, graph[id].shape});
    for (const NodeId id : outputs_) output_types_.push_back({graph[id].dtype, graph[id].shape});
  }

  std::span<const TensorType> input_types() const noexcept override { return input_types_; }
  std::span<const TensorType> output_types() const noexcept override { return output_types_; }

  using Executable::run;
  void run(std::span<const Buffer* const> inputs, std::span<Buffer* const> outputs) override {
    const std::lock_guard one_run_at_a_time(mutex_);  // an Executable may be run by several threads; these share values_
    for (std::size_t i = 0; i < inputs.size(); ++i)
      std::ranges::copy(dynamic_cast<const WalkBuffer&>(*inputs[i]).array.view<float>(), value(inputs_[i]).begin());
    std::vector<std::span<const float>> arguments;
    for (const NodeStep& step : steps_) {
      arguments.clear();
      for (const NodeId input : step.inputs) arguments.emplace_back(value(input));
      step.compute(arguments, value(step.node));
    }
    for (std::size_t i = 0; i < outputs.size(); ++i)
      std::ranges::copy(value(outputs_[i]), dynamic_cast<WalkBuffer&>(*outputs[i]).array.mutable_view<float>().begin());
  }

 private:
  struct NodeStep {
    NodeId node;
    std::vector<NodeId> inputs;
    Step compute;
  };
  std::vector<float>& value(NodeId id) { return values_[static_cast<std::size_t>(id)]; }

  std::mutex mutex_;
  std::vector<NodeId> inputs_, outputs_;
  std::vector<TensorType> input_types_, output_types_;
  std::vector<NodeStep> steps_;
  std::vector<std::vector<float>> values_;  // by NodeId
};

class WalkDevice final : public OpenDevice {
 public:
  explicit WalkDevice(std::shared_ptr<MemoryBudget> budget) : budget_(std::move(budget)) {}

  const DeviceInfo& info() const noexcept override { return kDevice; }
  std::unique_ptr<Executable> compile(const Graph& graph) override { return std::make_unique<WalkExecutable>(graph); }

  std::unique_ptr<Buffer> allocate(const TensorType& type) override { return keep(HostArray::empty(type.dtype, type.shape)); }
  // Copies, as a card would: what the caller does with its array later must not reach the device.
  std::unique_ptr<Buffer> upload(const HostArray& array) override { return keep(copy_of(array)); }
  HostArray download(const Buffer& buffer) override { return copy_of(dynamic_cast<const WalkBuffer&>(buffer).array); }

 private:
  static HostArray copy_of(const HostArray& array) {
    return HostArray::from_bytes(array.dtype(), array.shape(), {array.data(), array.bytes()});
  }
  std::unique_ptr<Buffer> keep(HostArray memory) const {
    MemoryBudget::Share share = budget_ ? budget_->reserve(memory.bytes()) : MemoryBudget::Share{};
    return std::make_unique<WalkBuffer>(std::move(memory), std::move(share));
  }

  std::shared_ptr<MemoryBudget> budget_;
};

class WalkBackend final : public Backend {
 public:
  std::string_view name() const noexcept override { return "walk"; }
  std::vector<DeviceInfo> devices() override { return {kDevice}; }
  using Backend::open;
  std::unique_ptr<OpenDevice> open(const DeviceInfo&, const OpenOptions& options) override {
    return std::make_unique<WalkDevice>(options.budget);
  }
  void check(const DeviceInfo&, const Graph& graph) const override {
    for (NodeId id = 0; id < graph.size(); ++id) check_node(graph[id]);
  }
};

}  // namespace

std::unique_ptr<Backend> make_walk_backend() { return std::make_unique<WalkBackend>(); }
