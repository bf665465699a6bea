// The routes of the Open Inference Protocol v2 with Triton's extensions for repositories, configurations and statistics.
#include <fmt/format.h>

#include "base/text/json_writer.h"
#include "server/http/body/json_reader.h"
#include "server/http/problem.h"
#include "server/routes/inference/inference.h"
#include "server/services.h"

namespace tenon::server {
namespace {

namespace json = boost::json;

bool is_op(const Call& call) { return OpModels::is_op(call.arguments[0]); }

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

Response healthy(bool is_ok) {
  if (!is_ok) throw Problem(503, "unavailable", "the server is shutting down").with_retry(5);
  Response response;
  response.body = "{}";
  return response;
}

Response model_ready(Services& services, const Call& call) {
  if (is_op(call)) {
    OpModels::check(call);
  } else {
    const std::shared_ptr<ServedModel> model = model_of(services, call);
    if (!model->is_servable())
      throw Error(ErrorCode::failed_precondition,
                  fmt::format("model {} is not served: {}", model->name(), model->status().problem),
                  fmt::format("POST /v2/repository/models/{}/load", model->name()));
  }
  return healthy(!services.is_draining);
}

Response repository_index(Services& services, const Call& call) {
  bool only_ready = false;
  if (!call.request.text().empty()) {
    const json::object document = parse_object(call.request.text());
    Members request(document, "");
    only_ready = request.boolean("ready").value_or(false);
    request.done();
  }
  Response response;
  JsonWriter out(response.body);
  out.begin_array();
  write_model_index(out, services, only_ready);
  OpModels::write_index(out);
  out.end_array();
  return response;
}

constexpr std::size_t kMaxControlBytes = 64 << 10;

// The body of load and unload: {"parameters": {...}}, of which unload_dependents has no meaning here.
void check_control(const Call& call) {
  if (call.request.text().empty()) return;
  const json::object document = parse_object(call.request.text());
  Members request(document, "");
  const json::value* parameters = request.find("parameters");
  request.done();
  if (parameters == nullptr) return;
  if (!parameters->is_object()) request.fail("'parameters' must be an object");
  for (const auto& member : parameters->get_object())
    if (member.key() != "unload_dependents")
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("parameter '{}' is not supported", std::string(member.key()).substr(0, 64)),
                  "put the model and its config.pbtxt into the server's folder, then load it");
}

void refuse_op(const Call& call) {
  if (is_op(call)) throw Error(ErrorCode::failed_precondition, fmt::format("{} is an op: it is always there", call.arguments[0]));
}

void add_descriptions(RouteTable& routes, Services& services, const std::shared_ptr<OpModels>& ops) {
  const auto get = [&](std::string path, std::string summary, std::string schema, Handler of_op, Handler of_model) {
    routes.add({.method = Method::get,
                .path = std::move(path),
                .tag = "inference",
                .summary = std::move(summary),
                .runs = Runs::computing,
                .response_schema = std::move(schema),
                .failures = {404, 409, 413, 501, 504},
                .handler = std::move(of_model),
                .quick = [of_op](const Call& call) -> std::optional<Response> {
                  if (!is_op(call)) return std::nullopt;
                  return of_op(call);
                },
                .queue_key = [](const Call& call) { return "model " + call.arguments[0]; }});
  };
  for (const char* path : {"/v2/models/{model}", "/v2/models/{model}/versions/{version}"}) {
    get(path, "Describe a model", "Model", OpModels::metadata,
        [&services](const Call& call) { return model_metadata(services, call); });
    get(path + std::string("/config"), "Show the inputs, outputs and parameters of a model", "", OpModels::config,
        [&services](const Call& call) { return model_config(services, call); });
    routes.add({.method = Method::get,
                .path = path + std::string("/ready"),
                .tag = "inference",
                .summary = "Show whether a model can be used",
                .failures = {404, 409},
                .handler = [&services](const Call& call) { return model_ready(services, call); }});
    routes.add({.method = Method::get,
                .path = path + std::string("/stats"),
                .tag = "inference",
                .summary = "Show how often a model was used, in which batches",
                .failures = {404},
                .handler = [&services, ops](const Call& call) {
                  return is_op(call) ? ops->statistics(call) : model_statistics({model_of(services, call)});
                }});
  }
}

void add_repository(RouteTable& routes, Services& services) {
  routes.add({.method = Method::post,
              .path = "/v2/repository/index",
              .tag = "inference",
              .summary = "List all models",
              .response_schema = R"({"type":"array","items":{"type":"object","required":["name"]}})",
              .handler = [&services](const Call& call) { return repository_index(services, call); }});
  const auto control = [&](const char* path, const char* summary, auto action) {
    routes.add({.method = Method::post,
                .path = path,
                .tag = "inference",
                .summary = summary,
                .runs = Runs::computing,
                .body = BodyKind::inference,
                .max_body_bytes = kMaxControlBytes,
                .request_schema = R"({"type":"object","properties":{"parameters":{"type":"object"}}})",
                .failures = {404, 409, 413, 501, 504},
                .handler = [action](const Call& call) {
                  check_control(call);
                  refuse_op(call);
                  action(call);
                  Response response;
                  response.body = "{}";
                  return response;
                }});
  };
  control("/v2/repository/models/{model}/load", "Load a model of the folder, or load it again after a change",
          [&services](const Call& call) { services.models.load(call.arguments[0], call.cancel); });
  control("/v2/repository/models/{model}/unload", "Unload a model until it is loaded again",
          [&services](const Call& call) { services.models.unload(call.arguments[0]); });
}

}  // namespace

void add_inference_routes(RouteTable& routes, Services& services) {
  auto ops = std::make_shared<OpModels>(services);
  const auto get = [&](const char* path, const char* summary, Access access, Handler handler) {
    routes.add({.method = Method::get,
                .path = path,
                .tag = "inference",
                .summary = summary,
                .access = access,
                .handler = std::move(handler)});
  };
  get("/v2", "Describe the server (Open Inference Protocol)", Access::login, [](const Call&) { return server_metadata(); });
  get("/v2/health/live", "Show whether the server responds", Access::open, [](const Call&) { return healthy(true); });
  get("/v2/health/ready", "Show whether the server accepts requests", Access::open,
      [&services](const Call&) { return healthy(!services.is_draining); });
  get("/v2/models/stats", "Show how often the models of the folder were used", Access::login,
      [&services](const Call&) { return model_statistics(services.models.all()); });
  add_descriptions(routes, services, ops);
  add_repository(routes, services);
  for (const char* path : {"/v2/models/{model}/infer", "/v2/models/{model}/versions/{version}/infer"})
    routes.add({.method = Method::post,
                .path = path,
                .tag = "inference",
                .summary = "Compute an op or run a model",
                .runs = Runs::computing,
                .body = BodyKind::inference,
                .request_schema = "InferenceRequest",
                .response_schema = "InferenceAnswer",
                .failures = {404, 409, 413, 501, 504},
                .begin = [&services, ops](const Call& call, const Finish& finish) {
                  if (!is_op(call)) return infer_with_model(services, call, finish);
                  ops->infer(services, call, finish);
                }});
}

}  // namespace tenon::server
