// /api/catalogue, /api/operations, /api/operations/params: the op catalogue as clients read it.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text/json_writer.h"
#include "present/operation.h"
#include "server/http/body/content_encoding.h"
#include "server/services.h"
#include "tenon/ops.h"

namespace tenon::server {
namespace {

using present::write_operation;
using present::write_parameter_value;
using present::write_parameters;

void write_dtypes(JsonWriter& json) {
  json.key("dtypes").begin_array();
  for (const DType dtype : all_dtypes()) {
    json.begin_object();
    json.member("name", name(dtype));
    json.key("aliases").begin_array();
    for (const char* alias : {"f16", "bf16", "f32", "f64", "u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "bfp8", "bfp4"})
      if (parse_dtype(alias) == dtype) json.value(alias);
    json.end_array();
    json.member("kind", is_float(dtype) ? "float" : dtype == DType::boolean ? "bool" : is_signed_integer(dtype) ? "int" : "uint");
    json.member("bits", is_block(dtype)           ? dtype == DType::bfloat8_b ? 8.5 : 4.5
                        : dtype == DType::boolean ? 8.0
                                                  : static_cast<double>(element_bytes(dtype) * 8));
    json.member("block", is_block(dtype));
    json.end_object();
  }
  json.end_array();
}

std::string catalogue(const Services& services) {
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  json.member("version", TENON_VERSION);
  json.key("operations").begin_array();
  for (const OpInfo& op : all_ops()) write_operation(json, op);
  json.end_array();
  write_dtypes(json);
  json.key("generators").raw(R"(["constant","uniform","normal","range","linspace","eye"])");
  json.key("limits").begin_object();
  json.member("elements", services.limits.elements);
  json.member("json_body_bytes", services.options.max_json_bytes);
  json.member("body_bytes", services.options.max_body_bytes);
  json.member("request_memory_bytes", services.limits.memory_bytes);
  json.member("full_output_elements", ProgramLimits::kFullOutput);
  json.member("compare_elements", ProgramLimits::kCompare);
  json.end_object();
  json.end_object();
  return text;
}

std::string operations() {
  std::map<std::string, std::vector<std::string>> categories;
  for (const OpInfo& op : all_ops()) categories[op.category].push_back(op.name);
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  for (const auto& [category, names] : categories) {
    json.list(category, names);
  }
  json.end_object();
  return text;
}

std::string operation_parameters() {
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  for (const OpInfo& op : all_ops()) {
    if (op.parameters.empty()) continue;
    json.key(op.name).begin_object();
    json.member("param_name", op.parameters[0].name);
    json.key("default");
    write_parameter_value(json, op.parameters[0].fallback);
    json.member("description", op.parameters[0].doc);
    json.member("has_second_param", op.parameters.size() > 1);
    if (op.parameters.size() > 1) {
      json.member("second_param_name", op.parameters[1].name);
      json.key("second_param_default");
      write_parameter_value(json, op.parameters[1].fallback);
      json.member("second_param_description", op.parameters[1].doc);
    }
    write_parameters(json, op);
    json.end_object();
  }
  json.end_object();
  return text;
}

// A document that never changes while the program runs.
Handler fixed_document(std::string text) {
  const std::string etag = fmt::format("\"{:016x}\"", std::hash<std::string>()(text));
  std::string packed = gzipped(text);
  return [text = std::move(text), packed = std::move(packed), etag](const Call& call) {
    Response response;
    response.fields.emplace_back("ETag", etag);
    response.fields.emplace_back("Cache-Control", "no-cache");
    response.fields.emplace_back("Vary", "Accept-Encoding");
    if (call.request.field("If-None-Match") == etag) {
      response.status = 304;
    } else if (!packed.empty() && accepts_encoding(call.request, "gzip")) {
      response.fields.emplace_back("Content-Encoding", "gzip");
      response.body = packed;
    } else {
      response.body = text;
    }
    return response;
  };
}

}  // namespace

void add_catalogue_routes(RouteTable& routes, Services& services) {
  routes.add({.method = Method::get,
              .path = "/api/catalogue",
              .tag = "catalogue",
              .summary = "Every op with its inputs, parameters and dtypes; the dtypes, generators and limits",
              .response_schema = "Catalogue",
              .handler = fixed_document(catalogue(services))});
  routes.add({.method = Method::get,
              .path = "/api/operations",
              .tag = "catalogue",
              .summary = "Names of the ops by category",
              .response_schema = R"({"type":"object","additionalProperties":{"type":"array","items":{"type":"string"}}})",
              .handler = fixed_document(operations())});
  routes.add(
      {.method = Method::get,
       .path = "/api/operations/params",
       .tag = "catalogue",
       .summary = "Parameters of the ops that have parameters",
       .response_schema = R"({"type":"object","additionalProperties":{"type":"object","required":["param_name","parameters"]}})",
       .handler = fixed_document(operation_parameters())});
}

}  // namespace tenon::server
