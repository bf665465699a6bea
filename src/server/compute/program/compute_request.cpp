#include "server/compute/program/compute_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text/units.h"
#include "base/threads/stop_scope.h"
#include "expression/input_names.h"
#include "expression/result_names.h"
#include "graph/growth.h"
#include "graph/work.h"
#include "ops/names.h"
#include "server/compute/program/estimates.h"
#include "server/compute/program/input_value.h"
#include "server/http/body/json_reader.h"
#include "server/http/problem.h"
#include "tenon/expression.h"
#include "tenon/ops.h"

namespace tenon::server {
namespace {

namespace json = boost::json;

bool is_view(Prim prim) {
  return prim == Prim::broadcast || prim == Prim::reshape || prim == Prim::transpose || prim == Prim::slice ||
         prim == Prim::cast || prim == Prim::iota;
}

// --- Parameters ---

[[noreturn]] void bad_parameter(const OpInfo& op, const Parameter& parameter, const char* wanted) {
  throw Error(ErrorCode::invalid_argument, fmt::format("{}: parameter '{}' must be {}", op.name, parameter.name, wanted));
}

std::int64_t whole_number(const OpInfo& op, const Parameter& parameter, const json::value& value) {
  if (value.is_int64()) return value.get_int64();
  if (value.is_double() && value.get_double() == std::floor(value.get_double()) && std::fabs(value.get_double()) < 0x1p53)
    return static_cast<std::int64_t>(value.get_double());
  bad_parameter(op, parameter, "an integer");
}

ParameterValue parameter_value(const OpInfo& op, const Parameter& parameter, const json::value& value) {
  if (value.is_null()) return std::monostate();
  switch (parameter.type) {
    case ParameterType::number: {
      if (value.is_int64()) return value.get_int64();
      const std::optional<double> number = as_number(value);
      if (!number) bad_parameter(op, parameter, "a number");
      return *number;
    }
    case ParameterType::integer: return whole_number(op, parameter, value);
    case ParameterType::boolean:
      if (value.is_bool()) return value.get_bool();
      if (value.is_number()) return value.to_number<double>() != 0;
      bad_parameter(op, parameter, "true or false");
    case ParameterType::integers: {
      if (!value.is_array()) return std::vector{whole_number(op, parameter, value)};
      std::vector<std::int64_t> list;
      for (const json::value& item : value.get_array()) list.push_back(whole_number(op, parameter, item));
      return list;
    }
    case ParameterType::dtype:
    case ParameterType::text:
      if (value.is_string()) return std::string(value.get_string());
      bad_parameter(op, parameter, parameter.type == ParameterType::dtype ? "the name of a dtype" : "a text");
  }
  bad_parameter(op, parameter, "a value");
}

std::vector<NamedValue> read_parameters(Members& request, const OpInfo& op) {
  std::vector<NamedValue> values;
  const auto declared = [&](std::string_view wanted) -> const Parameter& {
    for (const Parameter& parameter : op.parameters)
      if (parameter.name == wanted) return parameter;
    std::vector<std::string> names;
    for (const Parameter& parameter : op.parameters) names.push_back(parameter.name);
    const std::string near = nearest(wanted, names);
    throw Error(ErrorCode::invalid_argument, fmt::format("{} has no parameter '{}'", op.name, wanted),
                near.empty() ? "GET /api/catalogue lists the parameters" : fmt::format("did you mean '{}'?", near));
  };
  if (const json::value* given = request.find("parameters")) {
    if (!given->is_object()) request.fail("'parameters' must be an object");
    for (const auto& member : given->get_object())
      values.emplace_back(member.key(), parameter_value(op, declared(member.key()), member.value()));
  }
  // As the calculator had them: the first and the second parameter, by position.
  const char* const positional[] = {"optional_param", "optional_param_2"};
  for (std::size_t i = 0; i < 2; ++i) {
    const json::value* given = request.find(positional[i]);
    if (given == nullptr) continue;
    if (i >= op.parameters.size())
      request.fail(fmt::format("'{}': {} has {} parameters", positional[i], op.name, op.parameters.size()));
    const Parameter& parameter = op.parameters[i];
    if (std::any_of(values.begin(), values.end(), [&](const NamedValue& v) { return v.first == parameter.name; }))
      request.fail(fmt::format("parameter '{}' is given twice", parameter.name));
    values.emplace_back(parameter.name, parameter_value(op, parameter, *given));
  }
  return values;
}

// --- Inputs ---

// What an op computes in when nobody says: float32, or the nearest it accepts (bitwise ops want integers).
DType default_dtype(const OpInfo& op) {
  for (const DType wanted : {DType::f32, DType::i32, DType::boolean})
    if (op.dtypes.empty() || std::find(op.dtypes.begin(), op.dtypes.end(), wanted) != op.dtypes.end()) return wanted;
  return op.dtypes.front();
}

std::vector<std::pair<std::string, const json::value*>> op_inputs(Members& request, const OpInfo& op) {
  std::vector<std::pair<std::string, const json::value*>> inputs;
  const json::value* given = request.find("inputs");
  if (given == nullptr) return inputs;
  if (given->is_array()) {
    for (const json::value& item : given->get_array()) inputs.emplace_back(input_name(op, inputs.size()), &item);
    return inputs;
  }
  if (!given->is_object()) request.fail("'inputs' must be a list or an object");
  const json::object& named = given->get_object();
  for (std::size_t i = 0; inputs.size() < named.size(); ++i) {
    const std::string wanted = input_name(op, i);
    const json::value* value = named.if_contains(wanted);
    if (value == nullptr || i > 1000) request.fail(fmt::format("{}: unknown input '{}'", op.name, wanted));
    inputs.emplace_back(wanted, value);
  }
  return inputs;
}

void add_input(ComputeRequest& program, const std::string& name, InputValue value) {
  if (value.upload_memory) program.upload_memory.push_back(std::move(value.upload_memory));
  program.is_repeatable = program.is_repeatable && value.is_repeatable;
  program.inputs.push_back({name, std::move(value.array), value.given});
}

void build_operation(ComputeRequest& program, Members& request, std::optional<DType> dtype, const ProgramReader& reader,
                     MemoryTally& memory) {
  const OpInfo& op = find_op(program.operation);
  program.operation = op.name;
  const DType fallback = dtype ? *dtype : default_dtype(op);
  std::vector<NodeId> nodes;
  for (const auto& [name, value] : op_inputs(request, op)) {
    InputValue input = read_input(*value, fmt::format("input '{}'", name), fallback, reader, memory);
    if (input.is_literal) {
      nodes.push_back(input.is_integer_literal ? program.graph.literal(input.array.view<std::int64_t>()[0])
                                               : program.graph.literal(input.array.view<double>()[0]));
    } else {
      nodes.push_back(program.graph.input(name, input.array.dtype(), input.array.shape()));
      program.arrays.push_back(input.array);
    }
    add_input(program, name, std::move(input));
  }
  const std::vector<NamedValue> parameters = read_parameters(request, op);
  std::vector<NodeId> results = apply(program.graph, op, nodes, parameters);
  for (NodeId& result : results) result = program.graph.strong(result);
  program.graph.set_outputs(std::move(results));
}

void read_expression_inputs(ComputeRequest& program, Members& request, DType fallback, std::span<const std::string> read,
                            const ProgramReader& reader, MemoryTally& memory) {
  const json::value* given = request.find("inputs");
  if (given == nullptr) return;
  if (given->is_array() && given->get_array().empty()) return;
  if (!given->is_object()) request.fail("'inputs' of an expression must be an object by name");
  for (const auto& member : given->get_object()) {
    const std::string name(member.key());
    if (!is_identifier(name)) request.fail(fmt::format("'{}' is not a valid name of an input", name.substr(0, 64)));
    require_used(name, read);
    InputValue input = read_input(member.value(), fmt::format("input '{}'", name), fallback, reader, memory);
    program.arrays.push_back(input.array);
    add_input(program, name, std::move(input));
  }
}

void build_expression(ComputeRequest& program, Members& request, std::optional<DType> dtype, const ProgramReader& reader,
                      MemoryTally& memory, ProgramReader::Check& check) {
  check.free_names = free_names(program.expression);
  read_expression_inputs(program, request, dtype.value_or(DType::f32), check.free_names, reader, memory);
  for (const std::string& name : check.free_names)
    if (std::none_of(program.inputs.begin(), program.inputs.end(), [&](const ProgramInput& i) { return i.name == name; }))
      check.missing.push_back(name);
  std::vector<NamedType> types;
  for (const ProgramInput& input : program.inputs) types.push_back({input.name, input.array.dtype(), input.array.shape()});
  ExpressionOptions options;
  options.max_elements = reader.limits.elements;
  if (dtype && is_float(*dtype)) options.default_float = *dtype;
  // A name without a value is the parser's to complain about: it knows the column.
  program.graph = parse_expression(program.expression, types, options);
}

OutputForm output_form(Members& request) {
  const std::string text = request.text("output").value_or("sample");
  if (text == "sample") return OutputForm::sample;
  if (text == "full") return OutputForm::full;
  if (text == "npy") return OutputForm::npy;
  for (const OutputForm form : {OutputForm::npz, OutputForm::safetensors, OutputForm::csv})
    if (text == file_format(form)) return form;
  request.fail("'output' must be sample, full, npy, npz, safetensors or csv");
}

std::optional<RoutingMode> routing_mode(Members& request) {
  const std::optional<std::string> text = request.text("routing");
  if (!text) return std::nullopt;
  for (const RoutingMode mode : {RoutingMode::prefer, RoutingMode::fastest, RoutingMode::cheapest, RoutingMode::pinned})
    if (*text == name(mode)) return mode;
  request.fail("'routing' must be prefer, fastest, cheapest or pinned");
}

void read_speeds(ComputeRequest& program, const json::value& speeds, Members& request) {
  constexpr std::size_t kMost = 10000;
  const auto fail = [&] { request.fail("'speeds' must be \"measured\" or an array with a positive number for each device"); };
  if (speeds.is_string() && speeds.get_string() == "measured") {
    program.has_measured_speeds = true;
    return;
  }
  if (!speeds.is_array() || speeds.get_array().size() > kMost) fail();
  for (const json::value& speed : speeds.get_array()) {
    if (!speed.is_number()) fail();
    program.speeds.push_back(speed.to_number<double>());
  }
}

void read_mesh(ComputeRequest& program, Members& request) {
  program.mesh = request.text("mesh").value_or("");
  const json::value *shard = request.find("shard"), *speeds = request.find("speeds");
  if (program.mesh.empty()) {
    for (const auto& [name, member] : {std::pair("shard", shard), std::pair("speeds", speeds)})
      if (member != nullptr) request.fail(fmt::format("'{}' needs a 'mesh'", name), "for example \"mesh\": \"data=2\"");
    return;
  }
  if (speeds != nullptr) read_speeds(program, *speeds, request);
  if (program.mesh.size() > 1000) request.fail("'mesh' must have at most 1000 characters");
  Mesh::parse_axes(program.mesh);
  if (program.repeat != 1) request.fail("'repeat' does not work with 'mesh'");
  if (program.routing || !program.prefer.empty()) request.fail("'routing' and 'prefer' are for one device, not for a mesh");
  if (shard == nullptr) return;
  if (!shard->is_object()) request.fail("'shard' must be an object of shardings by input", R"(for example {"x": "data,-"})");
  for (const auto& member : shard->get_object()) {
    if (!member.value().is_string())
      request.fail(fmt::format("the sharding of '{}' must be a string", std::string_view(member.key()).substr(0, 64)),
                   "write a mesh axis or - for each axis of the tensor: \"data,-\"");
    program.shard[std::string(member.key())] = Sharding::parse(member.value().get_string());
  }
}

void read_options(ComputeRequest& program, Members& request) {
  program.device = request.text("device").value_or("auto");
  const std::size_t longest = request.has("mesh") ? 10000 : 100;  // ids of all devices
  if (program.device.empty() || program.device.size() > longest) request.fail("'device' must be auto, a kind or an id");
  program.prefer = request.text("prefer").value_or("");
  if (program.prefer.size() > 100) request.fail("'prefer' must be a kind or an id");
  program.routing = routing_mode(request);
  if (program.device != "auto" && (program.routing || !program.prefer.empty()))
    request.fail("'routing' and 'prefer' are for the device auto; this request names a device");
  program.output = output_form(request);
  program.compare = request.boolean("compare").value_or(true);
  program.details = request.boolean("details").value_or(true);
  program.keep = request.boolean("keep").value_or(false);
  program.repeat = static_cast<int>(request.integer("repeat", 1, 1000).value_or(1));
  program.priority = static_cast<int>(request.integer("priority", -10, 10).value_or(0));
  program.timeout_seconds = request.number("timeout_seconds").value_or(60);
  if (!(program.timeout_seconds >= 0 && program.timeout_seconds <= 86400))
    request.fail("'timeout_seconds' must be a number from 0 to 86400");
  read_mesh(program, request);
}

// Devices that may each have a copy of everything.
std::uint64_t copies(const ComputeRequest& program) {
  std::uint64_t product = 1;
  if (!program.mesh.empty())
    for (const MeshAxis& axis : Mesh::parse_axes(program.mesh))
      product = std::min<std::uint64_t>(product * static_cast<std::uint64_t>(axis.size), 1 << 20);
  return product;
}

// What the program has, and what a run of it will.
void set_memory(ComputeRequest& program, MemoryTally& inputs, MemoryTally& graph, const ProgramLimits& limits) {
  program.memory_bytes = check_limits(program.graph, limits, program.repeat) * copies(program);
  const std::uint64_t answer = answer_bytes(program);
  check_memory(program.memory_bytes + answer, limits);
  graph.grow_to(graph_bytes(program.graph) + program.expression.size());
  program.held_bytes = inputs.bytes() + graph.bytes();
  std::uint64_t given = 0;
  for (const NodeId input : program.graph.inputs())
    given += storage_bytes(program.graph[input].dtype, program.graph[input].shape);
  program.run_bytes =
      program.memory_bytes - given + answer + static_cast<std::uint64_t>(program.graph.size()) * kCompiledNodeBytes;
  for (MemoryTally* tally : {&inputs, &graph})
    if (MemoryGate::Share share = tally->take_share()) program.memory.push_back(std::move(share));
}

}  // namespace

std::string_view file_format(OutputForm form) noexcept {
  switch (form) {
    case OutputForm::npy: return "npy";
    case OutputForm::npz: return "npz";
    case OutputForm::safetensors: return "safetensors";
    case OutputForm::csv: return "csv";
    case OutputForm::sample:
    case OutputForm::full: break;
  }
  return "";
}

RunOptions ComputeRequest::run_options() const {
  RunOptions options;
  options.device = device;
  options.routing = routing;
  options.prefer = prefer;
  return options;
}

MeshOptions ComputeRequest::mesh_options(const DeviceManager& manager, const Mesh& over) const {
  MeshOptions options;
  options.inputs = shard;
  options.speeds = has_measured_speeds ? measured_speeds(manager, graph, over, options) : speeds;
  return options;
}

std::string ComputeRequest::title() const { return operation.empty() ? expression.substr(0, 100) : operation; }

void check_size(const Graph& graph, const ProgramLimits& limits, int repeat) {
  for (NodeId id = 0; id < graph.size(); ++id)
    if (const Node& node = graph[id]; node.shape.elements() > limits.elements)
      throw Problem(413, "too_large",
                    fmt::format("a tensor of {} has {} elements, more than the limit of {}", to_string(node.shape),
                                node.shape.elements(), limits.elements));
  const double operations = cost(graph).flops * repeat;
  if (operations > limits.operations)
    throw Problem(413, "too_large",
                  fmt::format("this needs {:.3g} operations; the limit is {:.3g}", operations, limits.operations),
                  "use smaller tensors, or raise the server's --max-operations");
}

std::uint64_t check_limits(const Graph& graph, const ProgramLimits& limits, int repeat) {
  check_size(graph, limits, repeat);
  // What is computed in a fused loop takes no memory; what something else than such a loop reads, does.
  std::vector<bool> is_stored(static_cast<std::size_t>(graph.size()), false);
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph[id];
    if (is_view(node.prim) || node.prim == Prim::elementwise) continue;
    is_stored[static_cast<std::size_t>(id)] = true;
    for (const NodeId input : node.inputs) is_stored[static_cast<std::size_t>(input)] = true;
  }
  for (const NodeId output : graph.outputs()) is_stored[static_cast<std::size_t>(output)] = true;
  std::uint64_t bytes = 0;
  for (NodeId id = 0; id < graph.size(); ++id)
    if (is_stored[static_cast<std::size_t>(id)] && graph[id].prim != Prim::constant)
      bytes += storage_bytes(graph[id].dtype, graph[id].shape);
  check_memory(bytes, limits);
  return bytes;
}

void check_memory(std::uint64_t bytes, const ProgramLimits& limits) {
  if (bytes <= limits.memory_bytes) return;
  throw Problem(413, "too_large",
                fmt::format("this needs about {} of memory; the limit of a request is {}",
                            format_bytes(static_cast<double>(bytes)), format_bytes(static_cast<double>(limits.memory_bytes))),
                "use smaller tensors, or raise the server's --max-request-memory");
}

MemoryGate::Share ProgramReader::parsing(std::size_t bytes) const {
  constexpr std::uint64_t kFactor = 24;
  return memory.take(bytes * kFactor);
}

ProgramReader::Check ProgramReader::check(std::string_view text) const {
  const MemoryGate::Share parsed = parsing(text.size());
  const json::object document = parse_object(text);
  Members request(document, "");
  auto program = std::make_shared<ComputeRequest>();
  Check check;
  for (const char* either : {"operation", "expression"})
    if (const json::value* given = document.if_contains(either); given != nullptr && !given->is_string())
      request.fail(fmt::format("'{}' must be a string", either));
  program->operation = request.text("operation").value_or("");
  program->expression = request.text("expression").value_or("");
  if (program->operation.empty() == program->expression.empty())
    request.fail("give either 'operation' or 'expression'", "see docs/http.md, or GET /api/catalogue for the operations");
  if (program->expression.size() > ProgramLimits::kExpression)
    request.fail(fmt::format("the expression has {} characters, more than the limit of {}", program->expression.size(),
                             ProgramLimits::kExpression));
  read_options(*program, request);
  const std::optional<DType> dtype = request.dtype("dtype");
  for (const char* known : {"inputs", "parameters", "optional_param", "optional_param_2"}) request.find(known);
  request.done();
  MemoryTally inputs_memory(memory), graph_memory(memory);
  const GraphWatch watch([&](NodeId nodes) {
    check_stop();
    graph_memory.grow_to(static_cast<std::uint64_t>(nodes) * kNodeBytes);
  });
  if (!program->operation.empty()) {
    build_operation(*program, request, dtype, *this, inputs_memory);
  } else {
    for (const char* foreign : {"parameters", "optional_param", "optional_param_2"})
      if (request.has(foreign)) request.fail(fmt::format("'{}' is allowed only with 'operation'", foreign));
    try {
      build_expression(*program, request, dtype, *this, inputs_memory, check);
    } catch (const ExpressionError&) {
      if (check.missing.empty()) throw;
      check.failure = std::current_exception();
      return check;
    }
  }
  const std::size_t results = program->graph.outputs().size();
  program->names =
      program->operation.empty() ? result_names(program->expression, results) : op_result_names(program->operation, results);
  const bool stores_one = program->output == OutputForm::npy || program->output == OutputForm::csv;
  if (stores_one && program->graph.outputs().size() != 1)
    request.fail(fmt::format("a .{} file can store one tensor, but there are {} results", file_format(program->output),
                             program->graph.outputs().size()),
                 "use npz or safetensors");
  if (program->output == OutputForm::full)
    for (const NodeId output : program->graph.outputs())
      if (program->graph[output].shape.elements() > ProgramLimits::kFullOutput)
        throw Problem(413, "too_large", fmt::format("the full output may have at most {} elements", ProgramLimits::kFullOutput),
                      "use npy or safetensors");
  set_memory(*program, inputs_memory, graph_memory, limits);
  check.program = std::move(program);
  return check;
}

std::shared_ptr<ComputeRequest> ProgramReader::read(std::string_view text) const {
  Check checked = check(text);
  if (checked.failure) std::rethrow_exception(checked.failure);
  return checked.program;
}

}  // namespace tenon::server
