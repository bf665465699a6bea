// /api/models: the models of the folder as the page shows them.
#include <fmt/format.h>

#include <algorithm>

#include "base/text/json_writer.h"
#include "present/route.h"
#include "server/http/problem.h"
#include "server/routes/inference/inference.h"
#include "server/routes/parameters.h"
#include "server/services.h"
#include "tenon/error.h"
#include "tenon/tensor/program.h"

namespace tenon::server {
namespace {

void write_values(JsonWriter& json, const JsonKey& key, const std::vector<ModelValue>& values) {
  json.key(key).begin_array();
  for (const ModelValue& value : values) {
    json.begin_object();
    json.member("name", value.name);
    json.member("type", value.type);
    json.member("dtype", value.dtype ? std::optional(name(*value.dtype)) : std::nullopt);
    json.member("optional", value.is_optional);
    json.key("shape").begin_array();
    for (const ModelValue::Extent& each : value.shape) {
      if (each.extent)
        json.value(*each.extent);
      else
        json.value(each.name);
    }
    json.end_array();
    json.end_object();
  }
  json.end_array();
}

void write_info(JsonWriter& json, const ModelInfo& info) {
  json.begin_object();
  json.member("format", info.format);
  json.text_or_null("producer", info.producer);
  json.member("opset", info.opset);
  json.member("nodes", info.nodes);
  json.member("parameters", info.parameters);
  json.member("weight_bytes", info.weight_bytes);
  write_values(json, "inputs", info.inputs);
  write_values(json, "outputs", info.outputs);
  json.key("ops").begin_object();
  for (const auto& [op, count] : info.ops) json.member(op, count);
  json.end_object();
  json.end_object();
}

// Without loading anything.
void write_model(JsonWriter& json, ServedModel& model) {
  const ServedModel::Status status = model.status();
  const BatchStatistics batches = model.batcher().statistics();
  std::error_code error;
  const std::uintmax_t file_bytes =
      model.source().body ? model.source().body->view().size() : std::filesystem::file_size(model.source().file, error);
  json.begin_object();
  json.member("name", model.name());
  json.member("version", std::to_string(model.version()));
  json.member("file_bytes", error ? std::uintmax_t{0} : file_bytes);
  json.member("text", model.source().tokenizer.has_value());
  json.member("sent", model.source().body != nullptr);
  json.member("generates", model.is_generator());
  if (model.is_generator()) {
    const GenerationStatistics generation = model.generation();
    json.key("generation").begin_object();
    json.member("waiting", generation.waiting);
    json.member("running", generation.running);
    json.member("requests", generation.requests);
    json.member("failures", generation.failures);
    json.member("prompt_tokens", generation.prompt_tokens);
    json.member("tokens", generation.tokens);
    json.member("departed", generation.departed);
    json.member("late", generation.late);
    json.member("refused", generation.refused);
    json.member("repeated", generation.repeated);
    if (status.loaded && status.loaded->generator) {
      json.member("chat_format", status.loaded->generator->chat_format());
      json.member("context", status.loaded->generator->context());
      json.member("device", status.loaded->generator->device());
      json.key("devices").begin_array();
      for (const Generator& replica : status.loaded->replicas) json.value(replica.device());
      json.end_array();
    }
    json.end_object();
  }
  write_batching(json, model, status, batches);
  json.member("inferences", batches.inferences);
  json.member("executions", batches.executions);
  json.member("failures", batches.fail.count);
  json.seconds("queue_seconds", static_cast<double>(batches.queue.nanoseconds) * 1e-9);
  json.seconds("compute_seconds", static_cast<double>(batches.compute.nanoseconds) * 1e-9);
  json.key("batches").begin_array();
  for (const auto& [rows, duration] : batches.batches) {
    json.begin_object();
    json.member("rows", rows);
    json.member("count", duration.count);
    json.seconds("seconds", static_cast<double>(duration.nanoseconds) * 1e-9);
    json.end_object();
  }
  json.end_array();
  json.key("info");
  if (status.info)
    write_info(json, *status.info);
  else
    json.null();
  json.end_object();
}

// The device that a request with the smallest inputs would use now.
void write_route(JsonWriter& json, Services& services, const ServedModel& model, const LoadedModel& loaded) {
  if (loaded.generator) return json.key("route").null();
  const UseManager manager(services.manager);
  Model::Tensors inputs;
  for (const ModelValue& value : loaded.model->info().inputs) {
    if (!value.dtype || value.is_optional) continue;
    std::vector<std::int64_t> extents;
    for (std::size_t i = 0; i < value.shape.size(); ++i) extents.push_back(value.shape[i].extent.value_or(i == 0 ? 1 : 32));
    inputs.emplace(value.name, program_input(*value.dtype, Shape(extents)));
  }
  std::string text;
  try {
    JsonWriter route(text);
    present::write_route(route, "auto", services.manager.explain(*model.graph(loaded, inputs)));
  } catch (const Error&) {
    text = "null";  // a shape that the model does not take
  } catch (const Problem&) {
    text = "null";  // or that takes too much
  }
  json.key("route").raw(text);
}

Response list_models(Services& services, const Call& call) {
  Response response;
  JsonWriter json(response.body);
  json.begin_object();
  json.member("folder", services.models.has_folder());
  json.key("models").begin_array();
  for (const std::shared_ptr<ServedModel>& model : services.models.visible_to(call.client.key)) write_model(json, *model);
  json.end_array();
  json.end_object();
  return response;
}

Response model_response(Services& services, const Call& call, const std::shared_ptr<ServedModel>& model) {
  const std::shared_ptr<const LoadedModel> loaded = model->acquire(call.cancel);
  Response response;
  JsonWriter json(response.body);
  json.begin_object();
  json.key("model");
  write_model(json, *model);
  write_route(json, services, *model, *loaded);
  json.end_object();
  return response;
}

// The nodes of the model's graph, a part at a time: large models have many thousands.
Response model_graph(Services& services, const Call& call) {
  constexpr std::uint64_t kMost = 1000;
  const std::shared_ptr<const LoadedModel> loaded = services.models.find(call.arguments[0])->acquire(call.cancel);
  if (!loaded->model)
    throw Error(ErrorCode::unimplemented, "a language model has no graph of its own", "its programs are made for each length");
  const std::uint64_t first = natural_parameter(call, "first", 0);
  const std::uint64_t count = std::min(natural_parameter(call, "count", 200), kMost);
  Response response;
  JsonWriter json(response.body);
  json.begin_object();
  json.key("nodes").begin_array();
  std::uint64_t next = first;
  for (const ModelNode& node : loaded->model->nodes(first, count)) {
    json.begin_object();
    json.text_or_null("name", node.name);
    json.member("op", node.op);
    json.list("inputs", node.inputs);
    json.list("weights", node.weights);
    json.list("outputs", node.outputs);
    json.end_object();
    ++next;
  }
  json.end_array();
  const bool is_end = loaded->model->nodes(next, 1).empty();
  json.member("next", is_end ? std::nullopt : std::optional(next));
  json.end_object();
  return response;
}

Response add_model(Services& services, const Call& call) {
  if (call.request.text().empty()) throw Error(ErrorCode::invalid_argument, "the body is empty", "send an ONNX file");
  const std::string name = call.request.parameter("name").value_or("model");
  const std::shared_ptr<ServedModel> model =
      services.models.add(name, call.client.key, call.client.quota, call.request.body, call.cancel);
  Response response = model_response(services, call, model);
  response.status = 201;
  response.fields.emplace_back("Location", "/api/models/" + model->name());
  return response;
}

}  // namespace

void add_model_routes(RouteTable& routes, Services& services) {
  routes.add({.method = Method::get,
              .path = "/api/models",
              .tag = "models",
              .summary = "List the models of the folder with their state and batches",
              .runs = Runs::in_worker,
              .response_schema = R"({"type":"object","required":["folder","models"]})",
              .handler = [&services](const Call& call) { return list_models(services, call); }});
  routes.add({.method = Method::get,
              .path = "/api/models/{name}",
              .tag = "models",
              .summary = "Show one model: inputs, outputs, ops, and where it would run",
              .runs = Runs::computing,
              .response_schema = R"({"type":"object","required":["model","route"]})",
              .failures = {404, 409, 413, 501, 504},
              .handler = [&services](const Call& call) {
                return model_response(services, call, services.models.find(call.arguments[0]));
              }});
  routes.add({.method = Method::get,
              .path = "/api/models/{name}/graph",
              .tag = "models",
              .summary = "List the nodes of a model's graph, a part at a time",
              .runs = Runs::computing,
              .response_schema = R"({"type":"object","required":["nodes","next"]})",
              .parameters = {"first: integer", "count: integer"},
              .failures = {404, 409, 413, 501, 504},
              .handler = [&services](const Call& call) { return model_graph(services, call); }});
  routes.add({.method = Method::post,
              .path = "/api/models",
              .tag = "models",
              .summary = "Send an ONNX model to try it; it is forgotten when it was not used for a while",
              .runs = Runs::computing,
              .body = BodyKind::bytes,
              .response_schema = R"({"type":"object","required":["model","route"]})",
              .success = 201,
              .parameters = {"name: string"},
              .failures = {404, 409, 413, 501, 504},
              .handler = [&services](const Call& call) { return add_model(services, call); }});
  routes.add({.method = Method::delete_,
              .path = "/api/models/{name}",
              .tag = "models",
              .summary = "Delete a model that was sent",
              .runs = Runs::in_worker,
              .success = 204,
              .failures = {404},
              .handler = [&services](const Call& call) {
                services.models.remove(call.arguments[0]);
                Response response;
                response.status = 204;
                return response;
              }});
}

}  // namespace tenon::server
