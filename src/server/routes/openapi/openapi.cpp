#include "server/routes/openapi/openapi.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <vector>

#include "base/text/json_writer.h"
#include "server/http/problem.h"
#include "server/routes/openapi/openapi_schemas.h"

namespace tenon::server {
namespace {

std::string schema_text(const std::string& schema) {
  if (schema.empty()) return R"({"type":"object"})";
  if (schema.front() == '{') return schema;
  return fmt::format(R"({{"$ref":"#/components/schemas/{}"}})", schema);
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  return result;
}

std::string operation_id(const Route& route) {
  std::string id = lower(name(route.method));
  for (const char c : route.path) {
    if (c == '/' || c == '.')
      id += '_';
    else if (c != '{' && c != '}')
      id += c;
  }
  return id;
}

void write_parameters(JsonWriter& json, const Route& route) {
  json.key("parameters").begin_array();
  for (std::size_t at = route.path.find('{'); at != std::string::npos; at = route.path.find('{', at + 1)) {
    const std::string parameter = route.path.substr(at + 1, route.path.find('}', at) - at - 1);
    json.begin_object();
    json.member("name", parameter);
    json.member("in", "path");
    json.member("required", true);
    // What is always there, so that those who try the routes come further than 404.
    if (parameter == "model") json.member("example", "op.add");
    if (parameter == "version") json.member("example", "1");
    json.key("schema").raw(R"({"type":"string","minLength":1,"maxLength":200})");
    json.end_object();
  }
  for (const std::string& parameter : route.parameters) {
    const std::size_t colon = parameter.find(": ");
    json.begin_object();
    json.member("name", parameter.substr(0, colon));
    json.member("in", "query");
    json.member("required", false);
    const std::string type = parameter.substr(colon + 2);
    json.key("schema").raw(type == "integer"     ? R"({"type":"integer","minimum":0,"maximum":9007199254740991})"
                           : type.front() == '{' ? std::string_view(type)
                                                 : R"({"type":"string"})");
    json.end_object();
  }
  json.end_array();
}

void write_body(JsonWriter& json, const Route& route) {
  if (route.body == BodyKind::none) return;
  json.key("requestBody").begin_object();
  json.member("required", true);
  json.key("content").begin_object();
  const auto media = [&](const char* type, const std::string& schema) {
    json.key(type).begin_object();
    json.key("schema").raw(schema);
    json.end_object();
  };
  if (route.body == BodyKind::bytes) {
    media("application/octet-stream", R"({"type":"string","format":"binary"})");
  } else {
    media("application/json", schema_text(route.request_schema));
    if (route.body == BodyKind::form_or_json) media("application/x-www-form-urlencoded", schema_text(route.request_schema));
    if (route.body == BodyKind::inference) media("application/octet-stream", R"({"type":"string","format":"binary"})");
  }
  json.end_object();
  json.end_object();
}

void write_response(JsonWriter& json, const Route& route, int status) {
  json.key(std::to_string(status)).begin_object();
  json.member("description", reason_phrase(status));
  const bool has_body = status != 204 && status != 303 && status != 304;
  if (has_body) {
    json.key("content").begin_object();
    if (status < 300 && status != route.success && route.path == "/api/execute") {
      json.key("application/json").begin_object();
      json.key("schema").raw(schema_text("Job"));
    } else if (status < 300) {
      json.key(route.media).begin_object();
      json.key("schema").raw(route.media == "application/json" ? schema_text(route.response_schema) : R"({"type":"string"})");
      if (route.path == "/api/execute") {
        json.end_object();
        json.key("application/octet-stream").begin_object();
        json.key("schema").raw(R"({"type":"string","format":"binary"})");
      }
      if (route.body == BodyKind::inference) {
        json.end_object();
        json.key("application/octet-stream").begin_object();
        json.key("schema").raw(R"({"type":"string","format":"binary"})");
      }
    } else {
      json.key("application/problem+json").begin_object();
      json.key("schema").raw(schema_text("Problem"));
    }
    json.end_object();
    json.end_object();
  }
  json.end_object();
}

void write_operation(JsonWriter& json, const Route& route, bool has_login) {
  json.key(lower(name(route.method))).begin_object();
  json.member("operationId", operation_id(route));
  json.key("tags").begin_array();
  json.value(route.tag);
  json.end_array();
  json.member("summary", route.summary);
  write_parameters(json, route);
  write_body(json, route);
  std::set<int> statuses{route.success, 400, 403, 429, 503};
  statuses.insert(route.failures.begin(), route.failures.end());
  if (has_login && route.access == Access::login) statuses.insert(401);
  if (route.body != BodyKind::none) statuses.insert({408, 411, 413, 415});
  if (route.path.find('{') != std::string::npos) statuses.insert(404);
  statuses.insert(500);
  json.key("responses").begin_object();
  for (const int status : statuses) write_response(json, route, status);
  json.end_object();
  if (has_login && route.access == Access::open) json.key("security").raw("[]");
  json.end_object();
}

}  // namespace

std::string openapi_document(const RouteTable& routes, bool has_login) {
  std::map<std::string, std::vector<const Route*>> paths;
  for (const Route& route : routes.all()) paths[route.path].push_back(&route);
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  json.member("openapi", "3.1.0");
  json.key("info").begin_object();
  json.member("title", "Tenon");
  json.member("summary", "Tensors on any device");
  json.member("version", TENON_VERSION);
  json.key("license").raw(R"({"name":"see LICENSE"})");
  json.end_object();
  json.key("servers").raw(R"([{"url":"/"}])");
  json.key("paths").begin_object();
  for (const auto& [path, list] : paths) {
    json.key(path).begin_object();
    for (const Route* route : list) write_operation(json, *route, has_login);
    json.end_object();
  }
  json.end_object();
  json.key("components").begin_object();
  json.key("schemas").begin_object();
  for (const NamedSchema& schema : openapi_schemas()) json.key(schema.name).raw(schema.json);
  json.end_object();
  json.key("securitySchemes")
      .raw(R"({"session":{"type":"apiKey","in":"cookie","name":"tenon_session"},"token":{"type":"http","scheme":"bearer"}})");
  json.end_object();
  if (has_login) json.key("security").raw(R"([{"session":[]},{"token":[]}])");
  json.end_object();
  return text;
}

}  // namespace tenon::server
