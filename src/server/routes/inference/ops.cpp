// Every op of the catalogue as a model op.<name>.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <span>

#include "base/text/json_writer.h"
#include "graph/growth.h"
#include "ops/names.h"
#include "server/compute/program/estimates.h"
#include "server/http/problem.h"
#include "server/routes/inference/inference.h"
#include "server/routes/inference/protocol.h"
#include "server/services.h"
#include "tenon/ops.h"

namespace tenon::server {
struct InputType {
  DType dtype = DType::f32;
  Shape shape;
};

// A request for an op, read.
struct OpInference {
  InferenceRequest request;
  std::vector<NamedValue> parameters;
  std::vector<InputType> types;
  Graph graph;
  std::vector<HostArray> arrays;
  RunOptions run;
  MemoryGate::Share graph_memory, memory;
};

namespace {

namespace json = boost::json;

constexpr std::string_view kPrefix = "op.";
constexpr std::chrono::seconds kTimeout{60};

const OpInfo& op_of_model(const std::string& model) { return find_op(std::string_view(model).substr(kPrefix.size())); }

// --- Describing ---

void write_tensor_list(JsonWriter& out, const char* key, const std::vector<std::string>& names, const OpInfo& op) {
  out.key(key).begin_array();
  const bool takes_f32 = op.dtypes.empty() || std::find(op.dtypes.begin(), op.dtypes.end(), DType::f32) != op.dtypes.end();
  for (const std::string& name : names) {
    out.begin_object();
    out.member("name", name);
    out.member("datatype", datatype_of(takes_f32 ? DType::f32 : op.dtypes.front()));
    out.key("shape").raw("[-1]");
    out.end_object();
  }
  out.end_array();
}

// --- Inferring ---

std::vector<HostArray> ordered_inputs(const std::vector<NamedArray>& inputs, const OpInfo& op) {
  std::vector<HostArray> arrays;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::string wanted = input_name(op, i);
    const auto found = std::find_if(inputs.begin(), inputs.end(), [&](const NamedArray& input) { return input.first == wanted; });
    if (found == inputs.end())
      throw Error(ErrorCode::invalid_argument, fmt::format("{} has no input '{}'", op.name, inputs[i].first.substr(0, 64)),
                  fmt::format("input {} is named '{}'", i, wanted));
    arrays.push_back(found->second);
  }
  return arrays;
}

Graph build(const OpInfo& op, std::span<const InputType> inputs, const std::vector<NamedValue>& parameters) {
  Graph graph;
  std::vector<NodeId> nodes;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    nodes.push_back(graph.input(input_name(op, i), inputs[i].dtype, inputs[i].shape));
  std::vector<NodeId> results = apply(graph, op, nodes, parameters);
  for (NodeId& result : results) result = graph.strong(result);
  graph.set_outputs(std::move(results));
  return graph;
}

std::vector<NamedValue> op_parameters(const json::object& parameters, const OpInfo& op) {
  std::vector<NamedValue> values;
  for (const auto& member : parameters) {
    const std::string key(member.key());
    const json::value& value = member.value();
    if (value.is_string()) {
      values.emplace_back(key, std::string(value.get_string()));
    } else if (value.is_bool()) {
      values.emplace_back(key, value.get_bool());
    } else if (value.is_int64()) {
      values.emplace_back(key, value.get_int64());
    } else if (value.is_double()) {
      values.emplace_back(key, value.get_double());
    } else if (value.is_array()) {
      std::vector<std::int64_t> list;
      for (const json::value& item : value.get_array()) {
        if (!item.is_int64())
          throw Error(ErrorCode::invalid_argument,
                      fmt::format("parameter '{}' of {} must contain integers", key.substr(0, 64), op.name));
        list.push_back(item.get_int64());
      }
      values.emplace_back(key, std::move(list));
    } else {
      throw Error(ErrorCode::invalid_argument, fmt::format("parameter '{}' has an invalid value", key.substr(0, 64)));
    }
  }
  return values;
}

OpInference read_inference(const OpInfo& op, const Call& call, const ProgramReader& reader) {
  OpInference inference;
  inference.request = read_inference_request(call, reader);
  MemoryTally graph_memory(reader.memory);
  const GraphWatch watch([&](NodeId count) { graph_memory.grow_to(static_cast<std::uint64_t>(count) * kNodeBytes); });
  inference.arrays = ordered_inputs(inference.request.inputs, op);
  inference.parameters = op_parameters(inference.request.parameters, op);
  for (const HostArray& array : inference.arrays) inference.types.push_back({array.dtype(), array.shape()});
  inference.graph = build(op, inference.types, inference.parameters);
  inference.graph_memory = graph_memory.take_share();
  inference.run.device = inference.request.device;
  inference.run.cancel = call.cancel;
  inference.run.program = fmt::format("op.{}", op.name);
  inference.run.timeout = kTimeout;
  inference.run.client = call.client.quota;
  return inference;
}

std::string output_name(std::size_t index, std::size_t count) {
  return count == 1 ? std::string("output") : fmt::format("output{}", index);
}

// What running and answering will take besides the inputs. Throws Problem 413 for more than a request may have.
std::uint64_t needed_bytes(const OpInference& inference, const ProgramLimits& limits) {
  const Graph& graph = inference.graph;
  std::uint64_t bytes = check_limits(graph, limits), given = 0;
  for (const NodeId input : graph.inputs()) given += storage_bytes(graph[input].dtype, graph[input].shape);
  for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
    const Node& node = graph[graph.outputs()[i]];
    bytes += answer_bytes(inference.request, output_name(i, graph.outputs().size()), node.dtype, node.shape);
  }
  if (OpBatches::takes(graph)) bytes += 2 * given;  // below those of others, and cut apart again
  check_memory(bytes, limits);
  return bytes - given + static_cast<std::uint64_t>(graph.size()) * kCompiledNodeBytes;
}

std::vector<InputType> stacked(std::vector<InputType> types, std::int64_t requests) {
  for (InputType& type : types) {
    std::vector<std::int64_t> extents(type.shape.begin(), type.shape.end());
    extents[0] *= requests;
    type.shape = Shape(extents);
  }
  return types;
}

// The same for requests that run one program: the graph has the op, its parameters, types and shapes.
std::string key_of(const OpInference& inference) {
  const GraphKey key = inference.graph.key();
  return fmt::format("op {:016x}{:016x} {}", key.high, key.low, inference.request.device);
}

Response answer(OpInference& inference, const OpInfo& op, const std::string& device, const std::vector<HostArray>& outputs) {
  InferenceAnswer answer{.model = fmt::format("{}{}", kPrefix, op.name), .version = "1", .device = device};
  for (std::size_t i = 0; i < outputs.size(); ++i) answer.outputs.emplace_back(output_name(i, outputs.size()), outputs[i]);
  Response response = write_inference_answer(inference.request, answer);
  if (inference.memory) inference.memory.shrink_to(response.bytes());
  response.memory = std::move(inference.memory);
  return response;
}

}  // namespace

void OpModels::check(const Call& call) {
  op_of_model(call.arguments[0]);
  if (call.arguments.size() > 1 && call.arguments[1] != "1")
    throw Error(ErrorCode::not_found, fmt::format("model {} has only version 1", call.arguments[0]));
}

Response OpModels::metadata(const Call& call) {
  check(call);
  const OpInfo& op = op_of_model(call.arguments[0]);
  std::vector<std::string> inputs;
  const int count = op.max_inputs >= 0 ? op.max_inputs : std::max(op.min_inputs, 1);
  for (int i = 0; i < count; ++i) inputs.push_back(input_name(op, static_cast<std::size_t>(i)));
  Response response;
  JsonWriter out(response.body);
  out.begin_object();
  out.member("name", fmt::format("{}{}", kPrefix, op.name));
  out.key("versions").raw(R"(["1"])");
  out.member("platform", "tenon_op");
  write_tensor_list(out, "inputs", inputs, op);
  write_tensor_list(out, "outputs", {"output"}, op);
  out.end_object();
  return response;
}

Response OpModels::config(const Call& call) {
  const OpInfo& op = op_of_model(call.arguments[0]);
  Response response;
  JsonWriter out(response.body);
  out.begin_object();
  out.member("name", fmt::format("{}{}", kPrefix, op.name));
  out.member("platform", "tenon_op");
  out.member("backend", "tenon");
  out.member("max_batch_size", 0);
  const auto tensors = [&](const char* key, std::size_t count, bool is_input) {
    out.key(key).begin_array();
    for (std::size_t i = 0; i < count; ++i) {
      out.begin_object();
      out.member("name", is_input ? input_name(op, i) : std::string("output"));
      out.member("data_type", "TYPE_FP32");
      out.key("dims").raw("[-1]");
      out.end_object();
    }
    out.end_array();
  };
  tensors("input", static_cast<std::size_t>(std::max(op.max_inputs, op.min_inputs)), true);
  tensors("output", 1, false);
  out.key("parameters").begin_object();
  for (const Parameter& parameter : op.parameters) {
    out.key(parameter.name).begin_object();
    out.member("string_value", parameter.doc);
    out.end_object();
  }
  out.end_object();
  out.end_object();
  return response;
}

void OpModels::write_index(JsonWriter& out) {
  for (const OpInfo& op : all_ops()) {
    out.begin_object();
    out.member("name", fmt::format("{}{}", kPrefix, op.name));
    out.member("version", "1");
    out.member("state", "READY");
    out.member("reason", "");
    out.end_object();
  }
}

void OpModels::add_answer(const std::string& op, bool is_success, double seconds) {
  const std::lock_guard lock(mutex_);
  BatchStatistics& entry = statistics_[op];
  (is_success ? entry.success : entry.fail).add(seconds);
  if (is_success) ++entry.inferences;
}

void OpModels::add_execution(const std::string& op, std::size_t requests, double seconds) {
  const std::lock_guard lock(mutex_);
  BatchStatistics& entry = statistics_[op];
  ++entry.executions;
  entry.compute.add(seconds);
  entry.batches[static_cast<std::int64_t>(requests)].add(seconds);
}

Response OpModels::statistics(const Call& call) const {
  const OpInfo& op = op_of_model(call.arguments[0]);
  BatchStatistics entry;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = statistics_.find(op.name); found != statistics_.end()) entry = found->second;
  }
  Response response;
  JsonWriter out(response.body);
  out.begin_object();
  out.key("model_stats").begin_array();
  out.begin_object();
  write_inference_statistics(out, fmt::format("{}{}", kPrefix, op.name), "1", entry);
  out.end_object();
  out.end_array();
  out.end_object();
  return response;
}

void OpModels::infer(Services& services, const Call& call, const Finish& finish) {
  check(call);
  const OpInfo& op = op_of_model(call.arguments[0]);
  auto inference = std::make_shared<OpInference>(read_inference(op, call, services.reader(call)));
  inference->run.limit = services.options.max_run_time;
  inference->memory = services.memory_of(call).take(needed_bytes(*inference, services.limits));
  if (OpBatches::takes(inference->graph)) return infer_in_company(op, call, inference, finish);
  finish([&] { return infer_alone(services, op, *inference); });
}

Response OpModels::infer_alone(Services& services, const OpInfo& op, OpInference& inference) {
  const auto begin = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  try {
    const RunResult run = services.manager.run(inference.graph, inference.arrays, inference.run);
    add_execution(op.name, 1, seconds());
    add_answer(op.name, true, seconds());
    return answer(inference, op, run.device->id, run.outputs);
  } catch (const Error& error) {
    add_answer(op.name, false, seconds());
    throw Problem::of(error, Stage::running);
  }
}

void OpModels::infer_in_company(const OpInfo& op, const Call& call, const std::shared_ptr<OpInference>& inference,
                                const Finish& finish) {
  const std::weak_ptr<OpModels> weak = weak_from_this();
  OpProgram program{.name = inference->run.program,
                    .graph = inference->graph,
                    .build = [&op, types = inference->types, parameters = inference->parameters](
                                 std::int64_t requests) { return build(op, stacked(types, requests), parameters); },
                    .run = inference->run,
                    .on_execution =
                        [weak, &op](std::size_t requests, double seconds) {
                          if (const auto self = weak.lock()) self->add_execution(op.name, requests, seconds);
                        }};
  BatchItem item;
  NamedArrays arrays;
  for (std::size_t i = 0; i < inference->arrays.size(); ++i) arrays.emplace(OpBatches::place(i), inference->arrays[i]);
  item.input = std::move(arrays);
  item.priority = priority_of(inference->request.priority);
  const auto timeout = inference->request.timeout.count() > 0 ? inference->request.timeout : std::chrono::microseconds(kTimeout);
  item.deadline = BatchItem::Clock::now() + timeout;
  item.client = call.client.quota;
  item.cancel = call.cancel;
  item.done = [weak, &op, inference, finish](BatchOutcome outcome) {
    const double seconds = outcome.queue_seconds + outcome.compute_seconds;
    if (const auto self = weak.lock()) self->add_answer(op.name, !outcome.error, seconds);
    auto held = std::make_shared<BatchOutcome>(std::move(outcome));
    finish([&op, inference, held] {
      if (held->error) rethrow_from_run(held->error);
      std::vector<HostArray> outputs;
      for (const auto& [place, array] : held->outputs) outputs.push_back(array);
      return answer(*inference, op, held->device, outputs);
    });
  };
  batches_.run(key_of(*inference), std::move(program), std::move(item));
}

}  // namespace tenon::server
