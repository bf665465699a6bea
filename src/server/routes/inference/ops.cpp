// Every op of the catalogue as a model op.<name>.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/json_writer.h"
#include "graph/growth.h"
#include "ops/names.h"
#include "server/compute/estimates.h"
#include "server/http/problem.h"
#include "server/routes/inference/inference.h"
#include "server/routes/inference/protocol.h"
#include "server/services.h"
#include "tenon/ops.h"

namespace tenon::server {
namespace {

namespace json = boost::json;

constexpr std::string_view kPrefix = "op.";

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

struct Inference {
  InferenceRequest request;
  Graph graph;
  std::vector<HostArray> arrays;
  RunOptions run;
  MemoryGate::Share graph_memory;
};

void add_inputs(Inference& inference, const OpInfo& op, std::vector<NodeId>& nodes) {
  std::vector<NamedArray>& inputs = inference.request.inputs;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::string wanted = input_name(op, i);
    const auto found = std::find_if(inputs.begin(), inputs.end(), [&](const NamedArray& input) { return input.first == wanted; });
    if (found == inputs.end())
      throw Error(ErrorCode::invalid_argument, fmt::format("{} has no input '{}'", op.name, inputs[i].first.substr(0, 64)),
                  fmt::format("input {} is named '{}'", i, wanted));
    nodes.push_back(inference.graph.input(wanted, found->second.dtype(), found->second.shape()));
    inference.arrays.push_back(found->second);
  }
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

Inference read_inference(const OpInfo& op, const Call& call, const ProgramReader& reader) {
  Inference inference;
  inference.request = read_inference_request(call, reader);
  MemoryTally graph_memory(reader.memory);
  const GraphWatch watch([&](NodeId count) { graph_memory.grow_to(static_cast<std::uint64_t>(count) * kNodeBytes); });
  std::vector<NodeId> nodes;
  add_inputs(inference, op, nodes);
  std::vector<NodeId> results = apply(inference.graph, op, nodes, op_parameters(inference.request.parameters, op));
  for (NodeId& result : results) result = inference.graph.strong(result);
  inference.graph.set_outputs(std::move(results));
  inference.graph_memory = graph_memory.take_share();
  inference.run.device = inference.request.device;
  inference.run.cancel = call.cancel;
  inference.run.program = fmt::format("op.{}", op.name);
  inference.run.timeout = std::chrono::seconds(60);
  return inference;
}

std::string output_name(std::size_t index, std::size_t count) {
  return count == 1 ? std::string("output") : fmt::format("output{}", index);
}

// What running and answering will take besides the inputs. Throws Problem 413 for more than a request may have.
std::uint64_t needed_bytes(const Inference& inference, const ProgramLimits& limits) {
  const Graph& graph = inference.graph;
  std::uint64_t bytes = check_limits(graph, limits), given = 0;
  for (const NodeId input : graph.inputs()) given += storage_bytes(graph[input].dtype, graph[input].shape);
  for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
    const Node& node = graph[graph.outputs()[i]];
    bytes += answer_bytes(inference.request, output_name(i, graph.outputs().size()), node.dtype, node.shape);
  }
  check_memory(bytes, limits);
  return bytes - given + static_cast<std::uint64_t>(graph.size()) * kCompiledNodeBytes;
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

void OpModels::count(const std::string& op, bool is_success, double seconds) {
  const std::lock_guard lock(mutex_);
  Count& entry = counts_[op];
  ++(is_success ? entry.successes : entry.failures);
  entry.nanoseconds += static_cast<std::uint64_t>(seconds * 1e9);
}

Response OpModels::statistics(const Call& call) const {
  const OpInfo& op = op_of_model(call.arguments[0]);
  const std::lock_guard lock(mutex_);
  const auto found = counts_.find(op.name);
  const Count entry = found == counts_.end() ? Count{} : found->second;
  Response response;
  response.body = fmt::format(R"({{"model_stats":[{{"name":"{0}{1}","version":"1","inference_count":{2},"execution_count":{2},)"
                              R"("inference_stats":{{"success":{{"count":{2},"ns":{4}}},"fail":{{"count":{3},"ns":0}}}}}}]}})",
                              kPrefix, op.name, entry.successes, entry.failures, entry.nanoseconds);
  return response;
}

Response OpModels::infer(Services& services, const Call& call) {
  check(call);
  const OpInfo& op = op_of_model(call.arguments[0]);
  const auto begin = Clock::now();
  Inference inference = read_inference(op, call, services.reader(call));
  MemoryGate::Share memory = services.memory_of(call).take(needed_bytes(inference, services.limits));
  RunResult run;
  inference.run.limit = services.options.max_run_time;
  try {
    run = services.manager.run(inference.graph, inference.arrays, inference.run);
  } catch (const Error& error) {
    count(op.name, false, 0);
    throw Problem::of(error, Stage::running);
  }
  count(op.name, true, std::chrono::duration<double>(Clock::now() - begin).count());
  InferenceAnswer answer{.model = fmt::format("{}{}", kPrefix, op.name), .version = "1", .device = run.device.id};
  for (std::size_t i = 0; i < run.outputs.size(); ++i)
    answer.outputs.emplace_back(output_name(i, run.outputs.size()), run.outputs[i]);
  Response response = write_inference_answer(inference.request, answer);
  if (memory) memory.shrink_to(response.bytes());
  response.memory = std::move(memory);
  return response;
}

}  // namespace tenon::server
