#include "server/compute/execution.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include "base/text/json_writer.h"
#include "base/text/units.h"
#include "base/threads/stop_scope.h"
#include "base/threads/turn.h"
#include "graph/work.h"
#include "present/device/device.h"
#include "present/route.h"
#include "present/run.h"
#include "present/tensor/comparison.h"
#include "present/tensor/tensor.h"
#include "server/compute/program/estimates.h"
#include "server/http/problem.h"
#include "tenon/array/io.h"

namespace tenon::server {
namespace {

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// Of all nodes: the reference keeps each in double while it is needed.
std::int64_t elements_of(const Graph& graph) {
  std::int64_t elements = 0;
  for (NodeId id = 0; id < graph.size(); ++id) elements += graph[id].shape.elements();
  return elements;
}

std::string why_not_compare(const Graph& graph) {
  if (elements_of(graph) <= ProgramLimits::kCompare * 4) {
    std::int64_t results = 0;
    for (const NodeId output : graph.outputs()) results += graph[output].shape.elements();
    if (results <= ProgramLimits::kCompare) return {};
  }
  return fmt::format("too large for the reference: more than {} elements", ProgramLimits::kCompare);
}

// What the reference does one element at a time.
double reference_operations(const Graph& graph) {
  double operations = cost(graph).flops + 2.0 * static_cast<double>(elements_of(graph));
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (graph[id].prim != Prim::arg_sort) continue;
    const double line = std::max<double>(2, static_cast<double>(graph[id].shape[graph[id].as<ArgSortAttr>().axis]));
    operations += 5 * static_cast<double>(graph[id].shape.elements()) * std::log2(line);
  }
  return operations;
}

// Whether somebody who waits should have the result before it is compared: if that takes about 10 ms, or longer than what they
// notice and twice as long as the computation.
bool is_long_comparison(const Graph& graph, double run_seconds) {
  constexpr double kOperationsPerSecond = 5e8, kLong = 10e-3, kNoticed = 0.5e-3;
  const double seconds = reference_operations(graph) / kOperationsPerSecond;
  return seconds > kLong || (seconds > kNoticed && seconds > 2 * run_seconds);
}

void compare_all(const ComputeRequest& program, const ExecutionOptions& options, Outcome& outcome) {
  outcome.not_compared = why_not_compare(program.graph);
  if (!outcome.not_compared.empty()) return;
  std::optional<MemoryGate::Share> share = options.memory.try_take(reference_bytes(program.graph));
  if (!share) {
    outcome.not_compared = "the server's memory is in use";
    return;
  }
  outcome.memory = std::move(*share);
  if (options.on_result && is_long_comparison(program.graph, outcome.seconds)) options.on_result();
  try {
    outcome.compared = compare_with_reference(program.graph, program.arrays, outcome.run.outputs);
  } catch (const Error& error) {
    outcome.not_compared = error.what();
  }
  std::uint64_t kept = 0;
  for (const Compared& compared : outcome.compared.results) kept += compared.reference.bytes();
  outcome.memory.shrink_to(kept);
}

void write_inputs(JsonWriter& json, const ComputeRequest& program) {
  json.key("inputs").begin_array();
  for (const ProgramInput& input : program.inputs) {
    json.begin_object();
    json.member("name", input.name);
    present::write_type(json, input.array.dtype(), input.array.shape());
    json.member("bytes", input.array.bytes());
    present::write_first_values(json, input.array);
    json.member("given_value", input.given);
    json.end_object();
  }
  json.end_array();
}

void write_comparison(JsonWriter& json, const Outcome& outcome, std::size_t index) {
  json.key("comparison");
  if (!outcome.not_compared.empty()) {
    json.begin_object();
    json.member("skipped", outcome.not_compared);
    json.end_object();
  } else if (outcome.compared.results.empty()) {
    json.null();
  } else {
    present::write_comparison(json, outcome.run.outputs[index], outcome.compared.results[index],
                              outcome.compared.reference_seconds);
  }
}

void write_all_values(JsonWriter& json, const char* name, const ComputeRequest& program, const HostArray& array) {
  json.key(name);
  if (program.output == OutputForm::full)
    present::write_values(json, array);
  else
    json.null();
}

// |first_values| is the text of "value" and "sample_values" of the first result, which is in the answer twice.
void write_results(JsonWriter& json, const ComputeRequest& program, const Outcome& outcome, const std::string& first_values) {
  const std::vector<HostArray>& outputs = outcome.run.outputs;
  json.key("results").begin_array();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    json.begin_object();
    json.member("name", program.names[i]);
    present::write_type(json, outputs[i].dtype(), outputs[i].shape());
    present::write_size(json, outputs[i].dtype(), outputs[i].shape());
    if (i == 0)
      json.raw(first_values);
    else
      present::write_first_values(json, outputs[i]);
    write_all_values(json, "values", program, outputs[i]);
    if (program.details) present::write_details(json, outputs[i]);
    write_comparison(json, outcome, i);
    json.end_object();
  }
  json.end_array();
}

// The first result, under the names the calculator had.
void write_first_result(JsonWriter& json, const ComputeRequest& program, const Outcome& outcome,
                        const std::string& first_values) {
  const HostArray& first = outcome.run.outputs.at(0);
  present::write_type(json, first.dtype(), first.shape());
  json.member("ttnn_dtype", name(first.dtype()));
  json.raw(first_values);
  if (outcome.compared.results.empty()) {
    for (const char* reference : {"torch_value", "torch_dtype", "torch_shape"}) json.key(reference).null();
  } else {
    const HostArray& reference = outcome.compared.results[0].reference;
    json.key("torch_value");
    if (reference.elements() == 0)
      json.null();
    else
      present::write_element(json, reference, 0);
    json.member("torch_dtype", name(reference.dtype()));
    json.list("torch_shape", first.shape());
  }
  write_all_values(json, "full_output", program, first);
}

// Repeated requests share their decision: its text, a good part of a small answer, is written once.
void write_route(JsonWriter& json, const std::string& requested, const std::shared_ptr<const Decision>& decision) {
  struct Text {
    std::shared_ptr<const Decision> decision;
    std::string requested, text;
  };
  thread_local Text last;
  if (last.decision != decision || last.requested != requested) {
    last = {decision, requested, {}};
    JsonWriter text(last.text);
    present::write_route(text, requested, *decision);
  }
  json.raw(last.text);
}

std::string server_timing(const Timeline& timeline) {
  std::string text;
  for (const Span& span : timeline)
    text += fmt::format("{}{};dur={:.3f}", text.empty() ? "" : ", ", span.stage, span.seconds * 1e3);
  return text;
}

void run_on_mesh(const ComputeRequest& program, DeviceManager& manager, const RunOptions& run, Outcome& outcome) {
  if (run.at_once) throw Error(ErrorCode::unavailable, "a mesh waits for its devices");
  const WithoutTurn waits_for_members;
  const Mesh mesh = mesh_over(manager, program.mesh, program.device);
  MeshOptions options = program.mesh_options(manager, mesh);
  std::optional<MeshPlan> plan;
  if (program.details) plan = explain_mesh(manager, program.graph, mesh, options);
  options.run = run;
  options.run.client.clear();  // two of them would wait for each other, each with a device that the other one needs
  outcome.mesh = {program.mesh, mesh.devices(), tenon::run_on_mesh(manager, program.graph, program.arrays, mesh, options),
                  std::move(plan)};
  outcome.run = present::as_run(outcome.mesh->result);
}

}  // namespace

void execute(const ComputeRequest& program, DeviceManager& manager, const ExecutionOptions& options, Outcome& outcome) {
  std::vector<std::string>& log = outcome.status_log;
  RunOptions run = program.run_options();
  run.repeat = program.repeat;
  run.priority = program.priority;
  run.client = options.memory.client;
  run.cancel = options.cancel;
  run.program = program.title();
  run.limit = options.limit;
  run.at_once = options.at_once;
  run.timeout = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(program.timeout_seconds));
  auto begin = Clock::now();
  run.explain = program.details;
  if (program.details) run.on_decision = [&](const Decision&) { begin = Clock::now(); };  // explaining is no part of computing
  // Without details nobody watches: the log is made from the timeline afterwards.
  const bool is_watched = program.details || options.on_progress;
  bool is_last_queued = false;
  if (is_watched)
    run.on_progress = [&](const Progress& progress) {
      // A long wait must not make the log endless: only the latest place in the queue stays.
      const bool is_queued = progress.stage == "queued";
      if (is_queued && is_last_queued) {
        log.pop_back();
        outcome.log_seconds.pop_back();
      }
      is_last_queued = is_queued;
      log.push_back(present::progress_text(progress));
      outcome.log_seconds.push_back(seconds_since(begin));
      if (options.on_progress) options.on_progress(progress, log);
    };
  if (program.mesh.empty())
    outcome.run = manager.run(program.graph, program.arrays, run);
  else
    run_on_mesh(program, manager, run, outcome);
  outcome.seconds = seconds_since(begin);
  if (!is_watched) {
    log.reserve(outcome.run.timeline.size() + 1);
    for (const Span& span : outcome.run.timeline)
      if (span.seconds > 0) {
        log.push_back(present::progress_text({span.stage, outcome.run.device->id, {}}));
        outcome.log_seconds.push_back(span.start_seconds);
      }
  }
  log.push_back("done in " + format_seconds(outcome.seconds));
  outcome.log_seconds.push_back(outcome.seconds);
  if (program.details) outcome.cost = cost_of(outcome.run, manager.config());
  if (!program.compare) return;
  const StopScope scope(options.cancel, options.limit);
  compare_all(program, options, outcome);
}

std::string answer_json(const ComputeRequest& program, const Outcome& outcome, std::string_view request_id) {
  std::string text;
  // Text that grows by doubling would be there three times for a moment; pages that are not written cost nothing.
  text.reserve(program.output == OutputForm::full ? answer_bytes(program) : 2048);
  JsonWriter json(text);
  json.begin_object();
  json.member("success", true);
  json.member("request_id", request_id);
  if (program.operation.empty())
    json.member("expression", program.expression);
  else
    json.member("operation", program.operation);
  std::string first_values;
  JsonWriter values(first_values);
  present::write_first_values(values, outcome.run.outputs.at(0));
  write_first_result(json, program, outcome, first_values);
  json.list("status_log", outcome.status_log);
  json.list("status_log_seconds", outcome.log_seconds);
  json.key("device");
  present::write_device_brief(json, *outcome.run.device);
  json.key("route");
  if (outcome.run.decision)
    write_route(json, program.device, outcome.run.decision);
  else
    json.null();
  if (outcome.mesh) {
    json.key("mesh");
    present::write_mesh(json, *outcome.mesh);
  }
  json.key("timeline");
  present::write_timeline(json, outcome.run.timeline);
  json.seconds("seconds", outcome.seconds);
  present::write_cost(json, outcome.cost);
  json.text_or_null("download", outcome.download);
  if (program.details) write_inputs(json, program);
  write_results(json, program, outcome, first_values);
  json.end_object();
  return text;
}

Response file_response(const KeptResults& results, std::string_view format, std::size_t index) {
  Response response;
  response.content_type = "application/octet-stream";
  std::vector<std::byte> bytes;
  const bool stores_one = format == "npy" || format == "csv";
  if (stores_one && index >= results.arrays.size())
    throw Error(ErrorCode::out_of_range, fmt::format("the computation has {} results", results.arrays.size()));
  if (format == "npy") {
    bytes = format_npy(results.arrays[index]);
  } else if (format == "csv") {
    response.body = format_csv(results.arrays[index]);
    response.content_type = "text/csv; charset=utf-8";
  } else if (format == "safetensors") {
    bytes = format_safetensors(present::results_file(results.arrays, results.names));
  } else if (format == "npz") {
    bytes = format_npz(present::results_file(results.arrays, results.names));
  } else {
    throw Error(ErrorCode::invalid_argument, "'format' must be npy, npz, safetensors or csv");
  }
  if (!bytes.empty()) {
    const auto size = static_cast<std::int64_t>(bytes.size());
    auto owner = std::make_shared<std::vector<std::byte>>(std::move(bytes));
    const void* data = owner->data();
    response.tail.push_back(HostArray::borrow(DType::u8, {size}, data, std::move(owner)));
  }
  response.fields.emplace_back("Content-Disposition", fmt::format("attachment; filename=\"result.{}\"", format));
  return response;
}

Response answer(const ComputeRequest& program, const Outcome& outcome, std::string_view request_id) {
  if (const std::string_view format = file_format(program.output); !format.empty()) {
    Response response = file_response({outcome.run.outputs, program.names}, format, 0);
    response.fields.emplace_back("X-Tenon-Device", outcome.run.device->id);
    response.fields.emplace_back("Server-Timing", server_timing(outcome.run.timeline));
    return response;
  }
  Response response;
  response.body = answer_json(program, outcome, request_id);
  return response;
}

}  // namespace tenon::server
