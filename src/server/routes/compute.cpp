// /api/execute, /api/check, /api/uploads.
#include <fmt/format.h>

#include "base/text/json_writer.h"
#include "present/mesh.h"
#include "present/route.h"
#include "present/tensor/tensor.h"
#include "server/compute/execution.h"
#include "server/compute/program/estimates.h"
#include "server/http/problem.h"
#include "server/services.h"

namespace tenon::server {
namespace {

// A run that took longer than this, or had to wait, is none for the I/O thread.
constexpr double kQuickSeconds = 0.0005;

bool wants_job(const Request& request) { return request.field("Prefer").find("respond-async") != std::string_view::npos; }

// The device's name is enough to queue by; the program is read in the worker. Looking for it in the text is no parsing: a wrong
// guess only means another queue.
std::string device_key(const Call& call) {
  const std::string_view text = call.request.text();
  if (text.find("\"mesh\"") != std::string_view::npos) return "mesh";
  const std::size_t at = text.rfind("\"device\"");
  if (at == std::string_view::npos) return "device auto";
  std::string_view rest = text.substr(at + 8, 120);
  const std::size_t open = rest.find('"');
  if (open == std::string_view::npos) return "device auto";
  rest = rest.substr(open + 1);
  return fmt::format("device {}", rest.substr(0, rest.find('"')));
}

Response run_program(Services& services, const ComputeRequest& program, const Call& call, bool at_once) {
  Outcome outcome;
  MemoryGate::Share memory;
  if (program.run_bytes >= MemoryGate::kCounted) memory = services.memory.take(call.client.quota, program.run_bytes);
  try {
    execute(
        program, services.manager,
        {.memory = services.memory_of(call), .cancel = call.cancel, .limit = services.options.max_run_time, .at_once = at_once},
        outcome);
    program.is_quick = outcome.seconds < kQuickSeconds && !program.compare && !program.details && program.mesh.empty() &&
                       program.output == OutputForm::sample && program.repeat == 1;
    if (program.keep) {
      const std::string id = services.results.keep(call.client.quota, {outcome.run.outputs, program.names});
      if (!id.empty()) outcome.download = "/api/results/" + id;
    }
    Response response = answer(program, outcome, call.id);
    if (memory) memory.shrink_to(response.bytes());
    response.memory = std::move(memory);
    return response;
  } catch (const Error& error) {
    std::string lines;
    JsonWriter json(lines);
    json.begin_array();
    for (const std::string& line : outcome.status_log) json.value(line);
    json.end_array();
    throw Problem::of(error, Stage::running).with("status_log", lines);
  }
}

// Small programs that ran before answer at once: no other thread has to wake up.
std::optional<Response> execute_now(Services& services, const Call& call) {
  if (wants_job(call.request)) return std::nullopt;
  const std::shared_ptr<const ComputeRequest> program = services.programs.peek(call.request.text());
  if (!program || !program->is_quick) return std::nullopt;
  try {
    Response response = run_program(services, *program, call, /*at_once=*/true);
    services.programs.count_hit();
    return response;
  } catch (const Problem& problem) {
    // The device is taken, closed or not the CPU, or the program has to be compiled again: a worker does that.
    program->is_quick = false;
    if (problem.status() == 503 || problem.status() == 504) return std::nullopt;
    services.programs.count_hit();
    throw;
  }
}

std::string check_json(const ProgramReader::Check& check, DeviceManager& manager) {
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  json.member("success", true);
  json.list("free_names", check.free_names);
  json.list("missing", check.missing);
  json.key("inputs").begin_array();
  if (check.program) {
    for (const ProgramInput& input : check.program->inputs) {
      json.begin_object();
      json.member("name", input.name);
      present::write_type(json, input.array.dtype(), input.array.shape());
      present::write_first_values(json, input.array);
      json.end_object();
    }
  }
  json.end_array();
  json.key("results").begin_array();
  if (check.program) {
    std::size_t index = 0;
    for (const NodeId id : check.program->graph.outputs()) {
      const Node& node = check.program->graph[id];
      json.begin_object();
      json.member("name", check.program->names[index++]);
      present::write_type(json, node.dtype, node.shape);
      present::write_size(json, node.dtype, node.shape);
      json.end_object();
    }
  }
  json.end_array();
  json.member("memory_bytes", check.program ? check.program->memory_bytes : 0);
  const bool is_on_mesh = check.program && !check.program->mesh.empty();
  if (is_on_mesh) {
    const Mesh mesh = mesh_over(manager, check.program->mesh, check.program->device);
    json.key("mesh");
    present::write_mesh_plan(json, mesh,
                             explain_mesh(manager, check.program->graph, mesh, check.program->mesh_options(manager, mesh)));
  }
  json.key("route");
  if (check.program && !is_on_mesh)
    present::write_route(json, check.program->device, manager.explain(check.program->graph, check.program->run_options()));
  else
    json.null();
  json.end_object();
  return text;
}

void write_upload(JsonWriter& json, const Upload& upload, const UploadStore& store) {
  json.begin_object();
  json.member("id", upload.id);
  json.member("name", upload.name);
  json.member("bytes", upload.bytes);
  json.member("expires_in_seconds", store.seconds_left(upload));
  json.key("tensors").begin_array();
  for (const auto& [name, array] : upload.file->arrays) {
    json.begin_object();
    json.member("name", name);
    present::write_type(json, array.dtype(), array.shape());
    json.end_object();
  }
  json.end_array();
  json.end_object();
}

Response json_response(std::string body, int status = 200) {
  Response response;
  response.status = status;
  response.body = std::move(body);
  return response;
}

// Of write_upload()'s text, while it grows by doubling.
std::uint64_t upload_text_bytes(const Upload& upload) {
  std::uint64_t bytes = 2048;
  for (const auto& [name, array] : upload.file->arrays) bytes += 2 * (name.size() + 100);
  return bytes;
}

Response list_uploads(Services& services, const Call& call) {
  const std::vector<Upload> uploads = services.uploads.of_owner(call.client.key);
  std::uint64_t estimate = 0;
  for (const Upload& upload : uploads) estimate += upload_text_bytes(upload);
  MemoryGate::Share memory = services.memory_of(call).take(estimate);
  std::string text;
  JsonWriter json(text);
  std::uint64_t used = 0;
  json.begin_object();
  json.key("uploads").begin_array();
  for (const Upload& upload : uploads) {
    write_upload(json, upload, services.uploads);
    used += upload.bytes;
  }
  json.end_array();
  json.member("quota_bytes", services.uploads.quota_bytes());
  json.member("used_bytes", used);
  json.end_object();
  Response response = json_response(std::move(text));
  response.memory = std::move(memory);
  return response;
}

Response upload_response(const Upload& upload, const UploadStore& store, int status) {
  std::string text;
  JsonWriter json(text);
  write_upload(json, upload, store);
  return json_response(std::move(text), status);
}

}  // namespace

void add_compute_routes(RouteTable& routes, Services& services) {
  routes.add({.method = Method::post,
              .path = "/api/execute",
              .tag = "compute",
              .summary = "Compute an op or an expression",
              .runs = Runs::computing,
              .body = BodyKind::json,
              .request_schema = "ExecuteRequest",
              .response_schema = "ExecuteAnswer",
              .failures = {202, 404, 409, 413, 501, 504},
              .handler =
                  [&services](const Call& call) {
                    if (wants_job(call.request)) return services.jobs.create(call);
                    return run_program(services, *services.program(call), call, /*at_once=*/false);
                  },
              .quick = [&services](const Call& call) { return execute_now(services, call); },
              .queue_key = device_key});
  routes.add({.method = Method::post,
              .path = "/api/check",
              .tag = "compute",
              .summary = "Check a request for /api/execute without computing it",
              .runs = Runs::computing,
              .body = BodyKind::json,
              .request_schema = "ExecuteRequest",
              .response_schema = "CheckAnswer",
              .failures = {404, 413},
              .handler = [&services](const Call& call) {
                ProgramReader reader = services.reader(call);
                reader.computes_inputs = false;
                return json_response(check_json(reader.check(call.request.text()), services.manager));
              }});
  routes.add({.method = Method::post,
              .path = "/api/uploads",
              .tag = "compute",
              .summary = "Upload a .npy, .npz, safetensors or CSV file to use as an input",
              .runs = Runs::computing,
              .body = BodyKind::bytes,
              .response_schema = "Upload",
              .success = 201,
              .parameters = {"name: string"},
              .failures = {413},
              .handler = [&services](const Call& call) {
                const std::string name = call.request.parameter("name").value_or("");
                const Upload upload = services.uploads.add(call.client.key, services.memory_of(call), name, call.request.text());
                Response response = upload_response(upload, services.uploads, 201);
                response.fields.emplace_back("Location", "/api/uploads/" + upload.id);
                return response;
              }});
  routes.add({.method = Method::get,
              .path = "/api/uploads",
              .tag = "compute",
              .summary = "List this client's uploads",
              .runs = Runs::in_worker,
              .response_schema = R"({"type":"object","required":["uploads","quota_bytes","used_bytes"]})",
              .handler = [&services](const Call& call) { return list_uploads(services, call); }});
  routes.add({.method = Method::get,
              .path = "/api/uploads/{id}",
              .tag = "compute",
              .summary = "Show one upload",
              .runs = Runs::in_worker,
              .response_schema = "Upload",
              .failures = {404},
              .handler = [&services](const Call& call) {
                return upload_response(services.uploads.get(call.arguments[0]), services.uploads, 200);
              }});
  routes.add({.method = Method::delete_,
              .path = "/api/uploads/{id}",
              .tag = "compute",
              .summary = "Delete an upload",
              .runs = Runs::in_worker,
              .success = 204,
              .failures = {404},
              .handler = [&services](const Call& call) {
                services.uploads.remove(call.arguments[0]);
                return json_response("", 204);
              }});
}

}  // namespace tenon::server
