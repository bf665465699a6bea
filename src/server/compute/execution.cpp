#include "server/compute/execution.h"

#include <fmt/format.h>

#include <chrono>

#include "base/units.h"
#include "reference/reference.h"
#include "server/compute/tensor_json.h"
#include "server/http/json_writer.h"
#include "server/http/problem.h"
#include "server/watch/device_json.h"
#include "tenon/io.h"

namespace tenon::server {
namespace {

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// The reference keeps every node in double while it is needed, so all nodes count.
std::string why_not_compare(const Graph& graph) {
  std::int64_t elements = 0;
  for (NodeId id = 0; id < graph.size(); ++id) elements += graph[id].shape.elements();
  if (elements <= ProgramLimits::kCompare * 4) {
    std::int64_t results = 0;
    for (const NodeId output : graph.outputs()) results += graph[output].shape.elements();
    if (results <= ProgramLimits::kCompare) return {};
  }
  return fmt::format("too large for the reference: more than {} elements", ProgramLimits::kCompare);
}

void compare_all(const Program& program, Outcome& outcome) {
  outcome.not_compared = why_not_compare(program.graph);
  if (!outcome.not_compared.empty()) return;
  const auto begin = Clock::now();
  std::vector<std::vector<double>> reference;
  try {
    reference = reference_doubles(program.graph, program.arrays);
  } catch (const Error& error) {
    outcome.not_compared = error.what();
    return;
  }
  for (std::size_t i = 0; i < outcome.run.outputs.size(); ++i)
    outcome.compared.push_back({compare(outcome.run.outputs[i], reference[i]), std::move(reference[i])});
  outcome.reference_seconds = seconds_since(begin);
}

void write_timeline(JsonWriter& json, const Timeline& timeline) {
  json.begin_array();
  for (const Span& span : timeline) {
    json.begin_object();
    json.member("stage", span.stage);
    json.seconds("start_seconds", span.start_seconds);
    json.seconds("seconds", span.seconds);
    json.end_object();
  }
  json.end_array();
}

void write_inputs(JsonWriter& json, const Program& program) {
  json.key("inputs").begin_array();
  for (const ProgramInput& input : program.inputs) {
    json.begin_object();
    json.member("name", input.name);
    json.member("dtype", name(input.array.dtype()));
    json.key("shape");
    write_shape(json, input.array.shape());
    json.member("bytes", input.array.bytes());
    write_first_values(json, input.array);
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
  } else if (outcome.compared.empty()) {
    json.null();
  } else {
    const Compared& compared = outcome.compared[index];
    write_comparison_json(json, outcome.run.outputs[index], compared.comparison, compared.reference, outcome.reference_seconds);
  }
}

// |first_values| is the text of "value" and "sample_values" of the first result, which is there twice.
void write_results(JsonWriter& json, const Program& program, const Outcome& outcome, const std::string& first_values) {
  json.key("results").begin_array();
  for (std::size_t i = 0; i < outcome.run.outputs.size(); ++i) {
    const HostArray& array = outcome.run.outputs[i];
    json.begin_object();
    if (outcome.run.outputs.size() == 1)
      json.member("name", "result");
    else
      json.member("name", fmt::format("result{}", i));
    json.key("shape");
    write_shape(json, array.shape());
    json.member("dtype", name(array.dtype()));
    json.member("elements", array.elements());
    json.member("bytes", array.bytes());
    if (i == 0)
      json.raw(first_values);
    else
      write_first_values(json, array);
    json.key("values");
    if (program.output == OutputForm::full)
      write_values(json, array);
    else
      json.null();
    if (program.details) write_details(json, array);
    write_comparison(json, outcome, i);
    json.end_object();
  }
  json.end_array();
}

// The first result, under the names the calculator had.
void write_first_result(JsonWriter& json, const Program& program, const Outcome& outcome, const std::string& first_values) {
  const HostArray& first = outcome.run.outputs.at(0);
  json.key("shape");
  write_shape(json, first.shape());
  json.member("dtype", name(first.dtype()));
  json.member("ttnn_dtype", name(first.dtype()));
  json.raw(first_values);
  if (!outcome.compared.empty()) {
    const std::vector<double>& reference = outcome.compared[0].reference;
    json.key("torch_value");
    if (reference.empty())
      json.null();
    else
      json.value(reference[0]);
    json.member("torch_dtype", "float64");
    json.key("torch_shape");
    write_shape(json, first.shape());
  } else {
    json.key("torch_value").null();
    json.key("torch_dtype").null();
    json.key("torch_shape").null();
  }
  json.key("full_output");
  if (program.output == OutputForm::full)
    write_values(json, first);
  else
    json.null();
}

std::string server_timing(const Timeline& timeline) {
  std::string text;
  for (const Span& span : timeline)
    text += fmt::format("{}{};dur={:.3f}", text.empty() ? "" : ", ", span.stage, span.seconds * 1e3);
  return text;
}

}  // namespace

void write_route(JsonWriter& json, std::string_view wish, const Decision& decision) {
  json.begin_object();
  json.member("wish", wish);
  json.member("device", decision.device.id);
  json.member("reason", decision.reason);
  json.member("warning", decision.warning);
  json.key("considered").begin_array();
  for (const Considered& considered : decision.considered) {
    json.begin_object();
    json.member("device", considered.candidate.device.id);
    json.member("eligible", considered.is_eligible);
    json.member("remark", considered.remark);
    json.member("predicted_seconds", considered.predicted.total());
    json.member("measured", considered.predicted.is_measured);
    json.member("dollars", considered.dollars);
    json.end_object();
  }
  json.end_array();
  json.end_object();
}

std::string progress_text(const Progress& progress) {
  if (progress.stage == "opening" || progress.stage == "closing") return fmt::format("{} {}", progress.stage, progress.device);
  if (progress.stage != "queued") return fmt::format("{} on {}", progress.stage, progress.device);
  std::string text = fmt::format("queued for {}: {} ahead here, {} elsewhere", progress.device, progress.place.ahead_here,
                                 progress.place.ahead_elsewhere);
  if (!progress.place.holder.empty()) text += fmt::format("; held by {}", progress.place.holder);
  return text;
}

void execute(const Program& program, DeviceManager& manager, const ExecutionOptions& options, Outcome& outcome) {
  std::vector<std::string>& log = outcome.status_log;
  RunOptions run;
  run.device = program.device;
  run.repeat = program.repeat;
  run.priority = program.priority;
  run.cancel = options.cancel;
  run.program = program.title();
  run.timeout = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(options.timeout_seconds.value_or(program.timeout_seconds)));
  auto begin = Clock::now();
  run.explain = program.details;
  if (program.details) run.on_decision = [&](const Decision&) { begin = Clock::now(); };  // explaining is no part of computing
  // Without details nobody watches: the log is made from the timeline afterwards.
  const bool is_watched = program.details || options.on_progress;
  if (is_watched)
    run.on_progress = [&](const Progress& progress) {
      // A long wait must not make the log endless: only the latest place in the queue stays.
      if (progress.stage == "queued" && !log.empty() && log.back().starts_with("queued")) log.pop_back();
      log.push_back(progress_text(progress));
      if (options.on_progress) options.on_progress(progress, log);
    };
  outcome.run = manager.run(program.graph, program.arrays, run);
  outcome.seconds = seconds_since(begin);
  if (!is_watched) {
    log.reserve(outcome.run.timeline.size() + 1);
    for (const Span& span : outcome.run.timeline)
      if (span.seconds > 0) log.push_back(span.stage + " on " + outcome.run.device.id);
  }
  log.push_back("done in " + format_seconds(outcome.seconds));
  if (program.compare) compare_all(program, outcome);
}

std::string answer_json(const Program& program, const Outcome& outcome, std::string_view request_id) {
  std::string text;
  text.reserve(2048);
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
  write_first_values(values, outcome.run.outputs.at(0));
  write_first_result(json, program, outcome, first_values);
  json.key("status_log").begin_array();
  for (const std::string& line : outcome.status_log) json.value(line);
  json.end_array();
  json.key("device");
  write_device_brief(json, outcome.run.device);
  json.key("route");
  if (program.details)
    write_route(json, program.device, *outcome.run.decision);
  else
    json.null();
  json.key("timeline");
  write_timeline(json, outcome.run.timeline);
  json.seconds("seconds", outcome.seconds);
  json.key("download");
  if (outcome.download.empty())
    json.null();
  else
    json.value(outcome.download);
  if (program.details) write_inputs(json, program);
  write_results(json, program, outcome, first_values);
  json.end_object();
  return text;
}

Response file_response(const std::vector<HostArray>& arrays, std::string_view format, std::size_t index) {
  Response response;
  response.content_type = "application/octet-stream";
  std::vector<std::byte> bytes;
  if (format == "npy") {
    if (index >= arrays.size()) throw Error(ErrorCode::out_of_range, fmt::format("there are {} results", arrays.size()));
    bytes = format_npy(arrays[index]);
  } else if (format == "safetensors") {
    ArrayFile file;
    for (std::size_t i = 0; i < arrays.size(); ++i)
      file.arrays.emplace(arrays.size() == 1 ? "result" : fmt::format("result{}", i), arrays[i]);
    bytes = format_safetensors(file);
  } else {
    throw Error(ErrorCode::invalid_argument, "'format' must be npy or safetensors");
  }
  const auto size = static_cast<std::int64_t>(bytes.size());
  auto owner = std::make_shared<std::vector<std::byte>>(std::move(bytes));
  const void* data = owner->data();
  response.tail.push_back(HostArray::borrow(DType::u8, {size}, data, std::move(owner)));
  response.fields.emplace_back("Content-Disposition", fmt::format("attachment; filename=\"result.{}\"", format));
  return response;
}

Response answer(const Program& program, const Outcome& outcome, std::string_view request_id) {
  if (program.output == OutputForm::npy || program.output == OutputForm::safetensors) {
    Response response = file_response(outcome.run.outputs, program.output == OutputForm::npy ? "npy" : "safetensors", 0);
    response.fields.emplace_back("X-Tenon-Device", outcome.run.device.id);
    response.fields.emplace_back("Server-Timing", server_timing(outcome.run.timeline));
    return response;
  }
  Response response;
  response.body = answer_json(program, outcome, request_id);
  return response;
}

}  // namespace tenon::server
