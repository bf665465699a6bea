// Open Inference Protocol v2: every op of the catalogue as a model op.<name>, tensors as JSON or as raw bytes behind it.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>

#include "base/json_writer.h"
#include "graph/growth.h"
#include "ops/names.h"
#include "present/tensor.h"
#include "server/compute/estimates.h"
#include "server/compute/input_value.h"
#include "server/http/json_reader.h"
#include "server/http/problem.h"
#include "server/services.h"
#include "tenon/ops.h"

namespace tenon::server {
namespace {

namespace json = boost::json;

constexpr std::string_view kPrefix = "op.";
constexpr std::size_t kMaxOutputs = 1000;

struct Datatype {
  std::string_view name;
  DType dtype;
};
constexpr Datatype kDatatypes[] = {{"BOOL", DType::boolean}, {"UINT8", DType::u8}, {"UINT16", DType::u16}, {"UINT32", DType::u32},
                                   {"UINT64", DType::u64},   {"INT8", DType::i8},  {"INT16", DType::i16},  {"INT32", DType::i32},
                                   {"INT64", DType::i64},    {"FP16", DType::f16}, {"BF16", DType::bf16},  {"FP32", DType::f32},
                                   {"FP64", DType::f64}};

DType dtype_of_datatype(std::string_view name) {
  for (const Datatype& d : kDatatypes)
    if (d.name == name) return d.dtype;
  throw Error(ErrorCode::invalid_argument, fmt::format("unknown datatype '{}'", name.substr(0, 32)),
              "use BOOL, INT32, FP32, BF16 ...");
}

// Block formats have no name in the protocol: they go out as FP32.
std::string_view datatype_of(DType dtype) {
  for (const Datatype& d : kDatatypes)
    if (d.dtype == dtype) return d.name;
  return "FP32";
}

const OpInfo& op_of_model(const std::string& model) {
  if (!model.starts_with(kPrefix))
    throw Error(ErrorCode::not_found, fmt::format("unknown model '{}'", model), "models are named op.<name>, e.g. op.softmax");
  return find_op(std::string_view(model).substr(kPrefix.size()));
}

void check_version(const Call& call) {
  if (call.arguments.size() > 1 && call.arguments[1] != "1")
    throw Error(ErrorCode::not_found, fmt::format("model {} has only version 1", call.arguments[0]));
}

// --- Describing ---

Response server_metadata() {
  Response response;
  JsonWriter out(response.body);
  out.begin_object();
  out.member("name", "tenon");
  out.member("version", TENON_VERSION);
  out.key("extensions").raw(R"(["binary_tensor_data","model_repository","model_configuration","statistics"])");
  out.end_object();
  return response;
}

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

Response model_metadata(const Call& call) {
  check_version(call);
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

Response model_config(const Call& call) {
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

Response repository_index() {
  Response response;
  JsonWriter out(response.body);
  out.begin_array();
  for (const OpInfo& op : all_ops()) {
    out.begin_object();
    out.member("name", fmt::format("{}{}", kPrefix, op.name));
    out.member("version", "1");
    out.member("state", "READY");
    out.member("reason", "");
    out.end_object();
  }
  out.end_array();
  return response;
}

// Inferences of each model, since the start.
class InferenceCounts {
 public:
  void count(const std::string& op, bool is_success, double seconds) {
    const std::lock_guard lock(mutex_);
    Count& entry = counts_[op];
    ++(is_success ? entry.successes : entry.failures);
    entry.nanoseconds += static_cast<std::uint64_t>(seconds * 1e9);
  }
  Response statistics(const Call& call) const {
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

 private:
  struct Count {
    std::uint64_t successes = 0, failures = 0, nanoseconds = 0;
  };
  mutable std::mutex mutex_;
  std::map<std::string, Count> counts_;
};

// --- Inferring ---

struct WantedOutput {
  std::string name;
  bool is_binary = false;
};

struct Inference {
  std::string id;
  Graph graph;
  std::vector<HostArray> arrays;
  std::vector<WantedOutput> outputs;  // empty: all of them
  bool all_binary = false;
  RunOptions run;
  MemoryGate::Share inputs_memory, graph_memory;
};

std::size_t header_length(const Request& request) {
  const std::string_view text = request.field("Inference-Header-Content-Length");
  if (text.empty()) return request.text().size();
  std::size_t length = 0;
  for (const char c : text) {
    if (c < '0' || c > '9' || length > (std::size_t{1} << 40))
      throw Error(ErrorCode::invalid_argument, "Inference-Header-Content-Length is not a number");
    length = length * 10 + static_cast<std::size_t>(c - '0');
  }
  if (length > request.text().size())
    throw Error(ErrorCode::invalid_argument, "Inference-Header-Content-Length is larger than the body");
  return length;
}

// Tensors that lie aligned in the body are used where they are.
HostArray binary_tensor(const Request& request, std::size_t offset, DType dtype, const Shape& shape) {
  const std::string_view all = request.text();
  const std::size_t bytes = storage_bytes(dtype, shape);
  const char* const data = all.data() + offset;
  if (reinterpret_cast<std::uintptr_t>(data) % std::max<std::size_t>(element_bytes(dtype), 1) == 0 && bytes >= (64u << 10))
    return HostArray::borrow(dtype, shape, data, request.body);
  return HostArray::from_bytes(dtype, shape, std::as_bytes(std::span(data, bytes)));
}

// The values of a list, nested or flat: the protocol allows both.
HostArray listed_tensor(const json::value& data, const std::string& where, DType dtype, const Shape& shape,
                        const ProgramReader& reader, MemoryTally& memory) {
  json::array dims;
  for (const std::int64_t extent : shape) dims.push_back(extent);
  const json::object input{
      {"value", data.is_array() ? data : json::value(json::array{data})}, {"dtype", name(dtype)}, {"shape", dims}};
  return read_input(input, where, dtype, reader, memory).array;
}

bool binary_flag(Members& members) {
  const json::value* parameters = members.find("parameters");
  if (parameters == nullptr) return false;
  if (!parameters->is_object()) members.fail("'parameters' must be an object");
  const json::value* flag = parameters->get_object().if_contains("binary_data");
  return flag != nullptr && flag->is_bool() && flag->get_bool();
}

void read_inputs(Inference& inference, Members& request, const OpInfo& op, const Call& call, const ProgramReader& reader,
                 MemoryTally& memory, std::vector<NodeId>& nodes) {
  const json::value* inputs = request.find("inputs");
  if (inputs == nullptr || !inputs->is_array()) request.fail("'inputs' must be a list");
  std::map<std::string, HostArray> named;
  std::vector<std::string> order;
  std::size_t binary_at = header_length(call.request);
  for (const json::value& item : inputs->get_array()) {
    if (!item.is_object()) request.fail("an input must be an object");
    const json::value* given_name = item.get_object().if_contains("name");
    const std::string name =
        given_name != nullptr && given_name->is_string() ? std::string(given_name->get_string()) : std::string();
    const std::string where = fmt::format("input '{}'", name.substr(0, 64));
    Members members(item.get_object(), where);
    members.text("name");
    const DType dtype = dtype_of_datatype(members.text("datatype").value_or(""));
    const std::optional<Shape> shape = members.shape("shape");
    if (!shape) members.fail("'shape' is required");
    if (shape->elements() > reader.limits.elements)
      throw Problem(413, "too_large", fmt::format("{}: more than the limit of {} elements", where, reader.limits.elements));
    const json::value* parameters = members.find("parameters");
    const json::value* size =
        parameters != nullptr && parameters->is_object() ? parameters->get_object().if_contains("binary_data_size") : nullptr;
    const json::value* data = members.find("data");
    members.done();
    if (named.contains(name)) request.fail(fmt::format("input '{}' is given twice", name.substr(0, 64)));
    order.push_back(name);
    if (size != nullptr) {
      const std::size_t bytes = storage_bytes(dtype, *shape);
      if (!size->is_int64() || size->get_int64() < 0 || static_cast<std::size_t>(size->get_int64()) != bytes)
        members.fail(fmt::format("{} of {} has {} bytes, which differs from 'binary_data_size'", to_string(*shape),
                                 tenon::name(dtype), bytes));
      if (bytes > call.request.text().size() - binary_at) members.fail("the body ends before the end of the tensor");
      if (bytes < MemoryGate::kCounted) memory.add(bytes + 512);  // copied; a larger one is used where it is
      named[name] = binary_tensor(call.request, binary_at, dtype, *shape);
      binary_at += bytes;
    } else if (data != nullptr) {
      named[name] = listed_tensor(*data, where, dtype, *shape, reader, memory);
    } else {
      members.fail("'data' or 'binary_data_size' is required");
    }
  }
  if (binary_at != call.request.text().size()) request.fail("bytes follow the last tensor");
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::string wanted = input_name(op, i);
    const auto found = named.find(wanted);
    if (found == named.end())
      request.fail(fmt::format("{} has no input '{}'", op.name, order[i].substr(0, 64)),
                   fmt::format("input {} is named '{}'", i, wanted));
    nodes.push_back(inference.graph.input(wanted, found->second.dtype(), found->second.shape()));
    inference.arrays.push_back(std::move(found->second));
  }
}

void read_request_parameters(Inference& inference, Members& request, const OpInfo& op, std::vector<NamedValue>& values) {
  const json::value* parameters = request.find("parameters");
  if (parameters == nullptr) return;
  if (!parameters->is_object()) request.fail("'parameters' must be an object");
  for (const auto& member : parameters->get_object()) {
    const std::string key(member.key());
    const json::value& value = member.value();
    if (key == "binary_data_output") {
      inference.all_binary = value.is_bool() && value.get_bool();
    } else if (key == "device" && value.is_string()) {
      inference.run.device = std::string(value.get_string());
    } else if (key == "priority" || key == "timeout" || key.starts_with("sequence_")) {
      continue;  // of the protocol, without a meaning here
    } else if (value.is_string()) {
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
        if (!item.is_int64()) request.fail(fmt::format("parameter '{}' of {} must contain integers", key.substr(0, 64), op.name));
        list.push_back(item.get_int64());
      }
      values.emplace_back(key, std::move(list));
    } else {
      request.fail(fmt::format("parameter '{}' has an invalid value", key.substr(0, 64)));
    }
  }
}

Inference read_inference(const OpInfo& op, const Call& call, const ProgramReader& reader) {
  const std::size_t length = header_length(call.request);
  if (length > (std::size_t{8} << 20))
    throw Problem(413, "too_large", "the JSON part has more than 8 MiB", "send tensors as binary data");
  const MemoryGate::Share parsed = reader.parsing(length);
  MemoryTally inputs_memory(reader.memory), graph_memory(reader.memory);
  const GraphWatch watch([&](NodeId count) { graph_memory.grow_to(static_cast<std::uint64_t>(count) * kNodeBytes); });
  const json::object document = parse_object(call.request.text().substr(0, length));
  Members request(document, "");
  Inference inference;
  inference.id = request.text("id").value_or("");
  std::vector<NodeId> nodes;
  read_inputs(inference, request, op, call, reader, inputs_memory, nodes);
  std::vector<NamedValue> values;
  read_request_parameters(inference, request, op, values);
  if (const json::value* outputs = request.find("outputs")) {
    if (!outputs->is_array()) request.fail("'outputs' must be a list");
    for (const json::value& item : outputs->get_array()) {
      if (!item.is_object()) request.fail("an output must be an object");
      Members members(item.get_object(), "output");
      const std::string name = members.text("name").value_or("");
      const bool is_binary = binary_flag(members);
      members.done();
      const auto is_same = [&](const WantedOutput& other) { return other.name == name; };
      if (inference.outputs.size() >= kMaxOutputs) request.fail("'outputs' has too many members");
      if (std::any_of(inference.outputs.begin(), inference.outputs.end(), is_same))
        request.fail(fmt::format("output '{}' is named twice", name.substr(0, 64)));
      inference.outputs.push_back({name, is_binary});
    }
  }
  request.done();
  std::vector<NodeId> results = apply(inference.graph, op, nodes, values);
  for (NodeId& result : results) result = inference.graph.strong(result);
  inference.graph.set_outputs(std::move(results));
  inference.inputs_memory = inputs_memory.take_share();
  inference.graph_memory = graph_memory.take_share();
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
    const auto wanted = std::find_if(inference.outputs.begin(), inference.outputs.end(), [&](const WantedOutput& output) {
      return output.name == output_name(i, graph.outputs().size());
    });
    if (wanted == inference.outputs.end() && !inference.outputs.empty()) continue;
    const bool is_binary = inference.all_binary || (wanted != inference.outputs.end() && wanted->is_binary);
    bytes += 512;
    if (is_block(node.dtype)) bytes += static_cast<std::uint64_t>(node.shape.elements()) * sizeof(float);
    if (!is_binary) bytes += text_bytes(node.dtype, {node.shape.elements()});
  }
  check_memory(bytes, limits);
  return bytes - given + static_cast<std::uint64_t>(graph.size()) * kCompiledNodeBytes;
}

Response write_inference(const OpInfo& op, Inference& inference, const RunResult& run) {
  const auto name_of = [&](std::size_t i) { return output_name(i, run.outputs.size()); };
  Response response;
  JsonWriter out(response.body);
  out.begin_object();
  out.member("model_name", fmt::format("{}{}", kPrefix, op.name));
  out.member("model_version", "1");
  if (!inference.id.empty()) out.member("id", inference.id);
  out.key("parameters").begin_object();
  out.member("device", run.device.id);
  out.end_object();
  out.key("outputs").begin_array();
  if (inference.outputs.empty())
    for (std::size_t i = 0; i < run.outputs.size(); ++i) inference.outputs.push_back({name_of(i), inference.all_binary});
  for (const WantedOutput& wanted : inference.outputs) {
    std::size_t index = 0;
    while (index < run.outputs.size() && name_of(index) != wanted.name) ++index;
    if (index == run.outputs.size())
      throw Error(ErrorCode::not_found, fmt::format("{} has no output '{}'", op.name, wanted.name.substr(0, 64)),
                  fmt::format("its outputs: '{}'", name_of(0)));
    HostArray array = run.outputs[index];
    if (is_block(array.dtype())) array = array.cast(DType::f32);
    const bool is_binary = wanted.is_binary || inference.all_binary;
    out.begin_object();
    out.member("name", wanted.name);
    out.member("datatype", datatype_of(array.dtype()));
    out.list("shape", array.shape());
    if (is_binary) {
      out.key("parameters").begin_object();
      out.member("binary_data_size", array.bytes());
      out.end_object();
      response.tail.push_back(std::move(array));
    } else {
      if (array.elements() > ProgramLimits::kFullOutput)
        throw Problem(
            413, "too_large",
            fmt::format("outputs of more than {} elements are returned as binary data only", ProgramLimits::kFullOutput),
            "set binary_data");
      out.key("data");
      present::write_values(out, array.reshape({array.elements()}));
    }
    out.end_object();
  }
  out.end_array();
  out.end_object();
  if (!response.tail.empty()) {
    response.content_type = "application/octet-stream";
    response.fields.emplace_back("Inference-Header-Content-Length", std::to_string(response.body.size()));
  }
  return response;
}

Response infer(Services& services, InferenceCounts& counts, const Call& call) {
  check_version(call);
  const OpInfo& op = op_of_model(call.arguments[0]);
  const auto begin = Clock::now();
  Inference inference = read_inference(op, call, services.reader(call));
  MemoryGate::Share memory = services.memory_of(call).take(needed_bytes(inference, services.limits));
  RunResult run;
  inference.run.limit = services.options.max_run_time;
  try {
    run = services.manager.run(inference.graph, inference.arrays, inference.run);
  } catch (const Error& error) {
    counts.count(op.name, false, 0);
    throw Problem::of(error, Stage::running);
  }
  counts.count(op.name, true, std::chrono::duration<double>(Clock::now() - begin).count());
  Response response = write_inference(op, inference, run);
  if (memory) memory.shrink_to(response.bytes());
  response.memory = std::move(memory);
  return response;
}

Response healthy(bool is_ok) {
  if (!is_ok) throw Problem(503, "unavailable", "the server is shutting down").with_retry(5);
  Response response;
  response.body = "{}";
  return response;
}

}  // namespace

void add_inference_routes(RouteTable& routes, Services& services) {
  auto counts = std::make_shared<InferenceCounts>();
  const auto get = [&](std::string path, std::string summary, std::string schema, Handler handler,
                       Access access = Access::login) {
    routes.add({.method = Method::get,
                .path = std::move(path),
                .tag = "inference",
                .summary = std::move(summary),
                .access = access,
                .response_schema = std::move(schema),
                .handler = std::move(handler)});
  };
  const auto ready = [&services](const Call& call) {
    check_version(call);
    op_of_model(call.arguments[0]);
    return healthy(!services.is_draining);
  };
  get("/v2", "Describe the server (Open Inference Protocol)", "", [](const Call&) { return server_metadata(); });
  get("/v2/health/live", "Show whether the server responds", "", [](const Call&) { return healthy(true); }, Access::open);
  get(
      "/v2/health/ready", "Show whether the server accepts requests", "",
      [&services](const Call&) { return healthy(!services.is_draining); }, Access::open);
  get("/v2/models/{model}", "Describe an op as a model", "Model", model_metadata);
  get("/v2/models/{model}/versions/{version}", "Describe an op as a model", "Model", model_metadata);
  get("/v2/models/{model}/ready", "Show whether a model can be used", "", ready);
  get("/v2/models/{model}/versions/{version}/ready", "Show whether a model can be used", "", ready);
  get("/v2/models/{model}/config", "Show the inputs, outputs and parameters of a model", "", model_config);
  get("/v2/models/{model}/stats", "Show how often a model was used", "",
      [counts](const Call& call) { return counts->statistics(call); });
  routes.add({.method = Method::post,
              .path = "/v2/repository/index",
              .tag = "inference",
              .summary = "List all models",
              .response_schema = R"({"type":"array","items":{"type":"object","required":["name"]}})",
              .handler = [](const Call&) { return repository_index(); }});
  for (const char* path : {"/v2/models/{model}/infer", "/v2/models/{model}/versions/{version}/infer"})
    routes.add({.method = Method::post,
                .path = path,
                .tag = "inference",
                .summary = "Compute an op",
                .runs = Runs::computing,
                .body = BodyKind::inference,
                .request_schema = "InferenceRequest",
                .response_schema = "InferenceAnswer",
                .failures = {404, 409, 413, 501, 504},
                .handler = [&services, counts](const Call& call) { return infer(services, *counts, call); }});
}

}  // namespace tenon::server
