// /api/results/{id} and what is below it: results that are kept, as files and in parts.
#include <fmt/format.h>

#include <charconv>

#include "base/text/json_writer.h"
#include "present/tensor/tensor.h"
#include "server/compute/execution.h"
#include "server/compute/program/estimates.h"
#include "server/services.h"
#include "tenon/error.h"

namespace tenon::server {
namespace {

std::int64_t natural_of(std::string_view text, std::string_view name) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  if (read.ec != std::errc() || read.ptr != end || value < 0)
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}' must be an integer of at least 0", name));
  return value;
}

std::optional<std::int64_t> natural(const Call& call, std::string_view name) {
  const std::optional<std::string> text = call.request.parameter(name);
  if (!text) return std::nullopt;
  return natural_of(*text, name);
}

// "2,0" of the query; "" is none.
std::vector<std::int64_t> indices(const Call& call, std::string_view name) {
  const std::string text = call.request.parameter(name).value_or("");
  std::vector<std::int64_t> list;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    list.push_back(natural_of(std::string_view(text).substr(begin, end - begin), name));
    begin = end + 1;
  }
  return list;
}

Response fetch_file(Services& services, const Call& call) {
  const std::string format = call.request.parameter("format").value_or("npy");
  const std::int64_t index = natural(call, "index").value_or(0);
  const KeptResults results = services.results.get(call.arguments[0]);
  const auto place = static_cast<std::size_t>(index);
  const bool is_text = format == "csv" && place < results.arrays.size();
  MemoryGate::Share memory = services.memory_of(call).take(
      is_text ? csv_bytes(results.arrays[place].dtype(), results.arrays[place].shape()) : result_bytes(results.arrays));
  Response response = file_response(results, format, place);
  if (memory) memory.shrink_to(response.bytes());
  response.memory = std::move(memory);
  return response;
}

Response fetch_values(Services& services, const Call& call) {
  const KeptResults results = services.results.get(call.arguments[0]);
  const auto index = static_cast<std::size_t>(natural(call, "index").value_or(0));
  if (index >= results.arrays.size())
    throw Error(ErrorCode::out_of_range, fmt::format("the computation has {} results", results.arrays.size()));
  const HostArray& array = results.arrays[index];
  const std::optional<std::int64_t> row = natural(call, "row"), column = natural(call, "column");
  const std::int64_t rows = natural(call, "rows").value_or(present::kGridSide);
  const std::int64_t columns = natural(call, "columns").value_or(present::kGridSide);
  const bool is_window = row || column;
  Response response;
  JsonWriter json(response.body);
  json.begin_object();
  json.member("name", results.names[index]);
  present::write_type(json, array.dtype(), array.shape());
  json.key("slice");
  present::write_slice(
      json, array,
      is_window ? present::window_of(array.shape(), indices(call, "at"), row.value_or(0), column.value_or(0), rows, columns)
                : present::sample_of(array.shape(), indices(call, "at")));
  json.end_object();
  return response;
}

}  // namespace

void add_result_routes(RouteTable& routes, Services& services) {
  routes.add({.method = Method::get,
              .path = "/api/results/{id}",
              .tag = "compute",
              .summary = "Download a kept result as a file",
              .runs = Runs::computing,
              .media = "application/octet-stream",
              .parameters = {R"(format: {"enum":["npy","npz","safetensors","csv"]})", R"(index: {"type":"integer","minimum":0})"},
              .failures = {404},
              .handler = [&services](const Call& call) { return fetch_file(services, call); }});
  routes.add({.method = Method::get,
              .path = "/api/results/{id}/values",
              .tag = "compute",
              .summary = "Read a window of a kept result, or a sample of one of its matrices",
              .runs = Runs::in_worker,
              .response_schema = R"({"type":"object","required":["name","shape","dtype","slice"],"properties":{
"name":{"type":"string"},"shape":{"type":"array","items":{"type":"integer"}},"dtype":{"type":"string"},
"slice":{"type":"object","required":["at","rows","columns","values"]}}})",
              .parameters = {R"(index: {"type":"integer","minimum":0})", "at: string", R"(row: {"type":"integer","minimum":0})",
                             R"(column: {"type":"integer","minimum":0})", R"(rows: {"type":"integer","minimum":1})",
                             R"(columns: {"type":"integer","minimum":1})"},
              .failures = {404},
              .handler = [&services](const Call& call) { return fetch_values(services, call); }});
}

}  // namespace tenon::server
