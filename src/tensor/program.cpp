#include "tenon/tensor/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/text/printable.h"
#include "graph/encode/serialize.h"
#include "manager/evaluate.h"
#include "tenon/array/io.h"
#include "tenon/error.h"
#include "tensor/run_plan.h"

namespace tenon {

struct Program::Recording {
  Graph graph;  // its outputs are computed ones, each once
  std::size_t arguments = 0;
  std::vector<Tensor> captured;
  std::vector<std::shared_ptr<Storage>> captured_values;
  std::string device = "auto";

  // One for each output of the program.
  struct Output {
    std::size_t place = 0;  // among the graph's outputs, or its inputs
    bool is_input = false;
  };
  std::vector<Output> outputs;
};

namespace {

constexpr const char* kGraphName = "graph";
constexpr const char* kFormatName = "tenon.program";
constexpr const char* kFormatVersion = "1";  // of the file; the graph in it has a version of its own

std::string captured_name(std::size_t i) { return fmt::format("captured.{}", i); }

// Adds planned nodes to the graph of a recording.
class Recorder {
 public:
  Recorder(Graph& graph, std::vector<Tensor>& captured, std::string& device)
      : graph_(graph),
        captured_(captured),
        device_(device) {}

  void add_argument(const std::shared_ptr<TensorNode>& node, std::string name) {
    const NodeId id = graph_.input(std::move(name), node->graph_dtype, node->shape);
    // A number goes on without a type of its own.
    ids_[node.get()] = node->weak ? graph_.append({Prim::cast, node->graph_dtype, true, node->shape, {id}, {}}) : id;
  }

  // The captured values come after all arguments, so they are collected first.
  void add_captured(const TensorPlan& planned) {
    for (const PlannedNode& one : planned.nodes) {
      if (!one.storage || one.node->is_literal()) continue;
      const auto [known, is_new] = values_.try_emplace(one.storage.get(), -1);
      if (is_new) {
        known->second = graph_.input(fmt::format("c{}", captured_.size()), one.storage->type().dtype, one.storage->type().shape);
        captured_.push_back(tensor_of(one.node->shared_from_this()));
      }
      ids_[one.node] = known->second;
    }
  }

  NodeId add(const TensorPlan& planned, std::size_t i) {
    const TensorNode& node = *planned.nodes[i].node;
    if (const auto known = ids_.find(&node); known != ids_.end()) return known->second;
    if (const auto* whole = std::get_if<std::int64_t>(&node.literal)) return ids_[&node] = graph_.literal(*whole);
    if (const auto* real = std::get_if<double>(&node.literal)) return ids_[&node] = graph_.literal(*real);
    if (node.is_program_input)
      throw Error(ErrorCode::failed_precondition, "the outputs use an input of another program",
                  "pass it as an argument; a value must not leave the function in which it is recorded");
    if (!node.requested.empty() && device_ == "auto") device_ = node.requested;
    std::vector<NodeId>& results = results_[planned.nodes[i].expression.get()];
    if (results.empty()) {
      std::vector<NodeId> inputs;
      for (const std::uint32_t input : planned.inputs(planned.nodes[i])) inputs.push_back(add(planned, input));
      results = planned.nodes[i].expression->build(graph_, inputs);
    }
    return ids_[&node] = results.at(node.result);
  }

 private:
  Graph& graph_;
  std::vector<Tensor>& captured_;
  std::string& device_;
  std::unordered_map<const TensorNode*, NodeId> ids_;
  std::unordered_map<const Storage*, NodeId> values_;
  std::unordered_map<const TensorExpression*, std::vector<NodeId>> results_;
};

std::shared_ptr<TensorNode> input_node(DType dtype, const Shape& shape) {
  auto node = std::make_shared<TensorNode>();
  node->graph_dtype = dtype;
  node->shape = shape;
  node->is_program_input = true;
  return node;
}

void check_argument(const Graph& graph, std::size_t i, const Tensor& given) {
  const Node& wanted = graph[graph.inputs()[i]];
  if (given.shape() == wanted.shape && node_of(given)->graph_dtype == wanted.dtype) return;
  if (node_of(given)->weak && given.shape() == wanted.shape) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("argument {} is {} {}, but the program was recorded for {} {}", i, name(given.dtype()),
                          to_string(given.shape()), name(wanted.dtype), to_string(wanted.shape)),
              "record the function again for these types");
}

std::shared_ptr<Storage> value_of(const Tensor& tensor, DType dtype) {
  const std::shared_ptr<TensorNode>& node = node_of(tensor);
  if (std::shared_ptr<Storage> storage = node->storage(); storage && storage->type().dtype == dtype) return storage;
  // A number: its storage has the type it has on its own.
  if (const auto* real = std::get_if<double>(&node->literal))
    return Storage::from_host(HostArray::from<double>({}, {*real}).cast(dtype));
  if (const auto* whole = std::get_if<std::int64_t>(&node->literal))
    return Storage::from_host(HostArray::from<std::int64_t>({}, {*whole}).cast(dtype));
  return Storage::from_host(tensor.to_host().cast(dtype));
}

// Those of arguments that are values of the types that the program was recorded for. None unless all are.
std::vector<std::shared_ptr<Storage>> values_at_hand(const Graph& graph, std::span<const Tensor> given) {
  std::vector<std::shared_ptr<Storage>> values;
  values.reserve(graph.inputs().size());
  for (std::size_t i = 0; i < given.size(); ++i) {
    const Node& wanted = graph[graph.inputs()[i]];
    const TensorNode& node = *node_of(given[i]);
    std::shared_ptr<Storage> storage = node.storage();
    if (!storage || storage->type().dtype != wanted.dtype || node.graph_dtype != wanted.dtype || node.shape != wanted.shape)
      return {};
    values.push_back(std::move(storage));
  }
  return values;
}

}  // namespace

Tensor program_input(DType dtype, const Shape& shape) { return tensor_of(input_node(dtype, shape)); }

Tensor program_number(DType dtype) {
  if (dtype != DType::i64 && dtype != DType::f64)
    throw Error(ErrorCode::internal, "a number without a type of its own is int64 or float64");
  std::shared_ptr<TensorNode> node = input_node(dtype, {});
  node->weak = true;
  return tensor_of(std::move(node));
}

bool has_value(const Tensor& tensor) {
  const TensorPlan planned = plan(std::array{node_of(tensor)});
  return std::none_of(planned.nodes.begin(), planned.nodes.end(),
                      [](const PlannedNode& one) { return one.node->is_program_input; });
}

Program Program::record(std::span<const Tensor> inputs, std::span<const Tensor> outputs, std::span<const std::string> names) {
  if (!names.empty() && names.size() != inputs.size())
    throw Error(ErrorCode::invalid_argument, fmt::format("{} names for {} inputs", names.size(), inputs.size()));
  auto recording = std::make_shared<Recording>();
  Graph& graph = recording->graph;
  Recorder recorder(graph, recording->captured, recording->device);
  recording->arguments = inputs.size();
  for (std::size_t i = 0; i < inputs.size(); ++i)
    recorder.add_argument(node_of(inputs[i]), names.empty() ? fmt::format("x{}", i) : names[i]);

  Nodes targets;
  for (const Tensor& output : outputs) targets.push_back(node_of(output));
  const TensorPlan planned = plan(targets);
  recorder.add_captured(planned);
  std::unordered_map<const TensorNode*, NodeId> ids;
  for (std::size_t i = 0; i < planned.nodes.size(); ++i) ids[planned.nodes[i].node] = recorder.add(planned, i);

  std::unordered_map<NodeId, Recording::Output> known;
  for (std::size_t i = 0; i < graph.inputs().size(); ++i) known[graph.inputs()[i]] = {i, true};
  std::vector<NodeId> computed;
  for (const auto& target : targets) {
    const NodeId id = graph.strong(ids.at(target.get()));
    const auto [place, is_new] = known.try_emplace(id, Recording::Output{computed.size(), false});
    if (is_new) computed.push_back(id);
    recording->outputs.push_back(place->second);
  }
  graph.set_outputs(computed);
  for (std::size_t i = 0; i < recording->captured.size(); ++i)
    recording->captured_values.push_back(node_of(recording->captured[i])->state().storage);
  Program program;
  program.recording_ = std::move(recording);
  return program;
}

Program Program::of_graph(Graph graph) {
  auto recording = std::make_shared<Recording>();
  recording->arguments = graph.inputs().size();
  for (std::size_t i = 0; i < graph.outputs().size(); ++i) recording->outputs.push_back({i, false});
  recording->graph = std::move(graph);
  Program program;
  program.recording_ = std::move(recording);
  return program;
}

Graph Program::complete_graph() const {
  Graph graph = recording_->graph;
  std::vector<NodeId> outputs;
  for (const Recording::Output& output : recording_->outputs)
    outputs.push_back(output.is_input ? graph.inputs()[output.place] : recording_->graph.outputs()[output.place]);
  graph.set_outputs(std::move(outputs));
  return graph;
}

// A safetensors file: "graph" has the bytes of serialize(), "captured.0", "captured.1", ... the values.
void Program::save(const std::filesystem::path& file) const {
  const Recording& recording = *recording_;
  const std::vector<std::byte> bytes = serialize(complete_graph());
  ArrayFile contents;
  contents.arrays[kGraphName] = HostArray::from_bytes(DType::u8, {static_cast<std::int64_t>(bytes.size())}, bytes);
  for (std::size_t i = 0; i < recording.captured.size(); ++i) contents.arrays[captured_name(i)] = recording.captured[i].to_host();
  contents.metadata[kFormatName] = kFormatVersion;
  contents.metadata["device"] = recording.device;
  save_safetensors(file, contents);
}

Program Program::load(const std::filesystem::path& file) {
  ArrayFile contents = load_safetensors(file);
  const auto refuse = [&](const std::string& message, const std::string& hint = {}) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: {}", printable(file.string()), message), hint);
  };
  const auto graph_bytes = contents.arrays.find(kGraphName);
  const auto format = contents.metadata.find(kFormatName);
  if (format == contents.metadata.end() || graph_bytes == contents.arrays.end() || graph_bytes->second.dtype() != DType::u8)
    refuse("not a program", "Program::save and Program.save of the Python package write programs");
  if (format->second != kFormatVersion) refuse("written by another version of Tenon", "record and save the program again");
  Program program;
  try {
    program = of_graph(deserialize({graph_bytes->second.data(), graph_bytes->second.bytes()}));
  } catch (const Error& error) {
    refuse(error.what(), "record and save the program again");
  }
  auto recording = std::make_shared<Recording>(*program.recording_);
  const std::size_t captured = contents.arrays.size() - 1;
  if (captured > recording->arguments) refuse("it has more captured values than inputs");
  recording->arguments -= captured;
  for (std::size_t i = 0; i < captured; ++i) {
    const Node& input = recording->graph[recording->graph.inputs()[recording->arguments + i]];
    const auto value = contents.arrays.find(captured_name(i));
    if (value == contents.arrays.end() || value->second.dtype() != input.dtype || value->second.shape() != input.shape)
      refuse(fmt::format("the value of {} is missing or has another type", captured_name(i)));
    recording->captured.emplace_back(std::move(value->second));
    recording->captured_values.push_back(node_of(recording->captured.back())->state().storage);
  }
  if (const auto device = contents.metadata.find("device"); device != contents.metadata.end()) recording->device = device->second;
  program.recording_ = std::move(recording);
  return program;
}

const Graph& Program::graph() const noexcept { return recording_->graph; }
std::span<const Tensor> Program::captured() const noexcept { return recording_->captured; }
const std::string& Program::device() const noexcept { return recording_->device; }

std::vector<Tensor> Program::run(std::span<const Tensor> inputs, const RunOptions& options, Evaluation* report) const {
  const Recording& recording = *recording_;
  if (inputs.size() != recording.arguments)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the program has {} inputs, got {}", recording.arguments, inputs.size()));
  std::vector<std::shared_ptr<Storage>> values = values_at_hand(recording.graph, inputs);
  if (values.empty() && !inputs.empty()) {
    for (std::size_t i = 0; i < inputs.size(); ++i) check_argument(recording.graph, i, inputs[i]);
    if (!std::ranges::all_of(inputs, [](const Tensor& input) { return input.is_evaluated(); })) eval(inputs, options);
    for (std::size_t i = 0; i < inputs.size(); ++i)
      values.push_back(value_of(inputs[i], recording.graph[recording.graph.inputs()[i]].dtype));
  }
  values.insert(values.end(), recording.captured_values.begin(), recording.captured_values.end());

  EvaluateResult result;
  if (!recording.graph.outputs().empty()) {
    std::optional<RunOptions> here;  // copying the options would be a good part of a small run
    if (options.device == "auto") {
      const std::string& requested = recording.device == "auto" ? default_request() : recording.device;
      if (requested != "auto") {
        here = options;
        here->device = requested;
      }
    }
    const RunOptions& used = here ? *here : options;
    if (!report)
      if (auto computed = evaluate_at_once(current_manager(), recording.graph, values, used))
        result.outputs = *std::move(computed);
    if (result.outputs.empty()) result = evaluate(current_manager(), recording.graph, values, used);
  }
  std::vector<Tensor> outputs;
  outputs.reserve(recording.outputs.size());
  for (const Recording::Output& output : recording.outputs) {
    const std::shared_ptr<Storage>& storage = output.is_input ? values[output.place] : result.outputs[output.place];
    outputs.push_back(tensor_of(std::make_shared<TensorNode>(storage)));
  }
  if (report) {
    *report = {{}, std::move(result.timeline), recording.graph.outputs().empty() ? 0 : 1};
    if (result.owner) report->device = result.owner->device();
  }
  return outputs;
}

}  // namespace tenon
