#include "server/routes/inference/protocol.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text/json_writer.h"
#include "present/tensor/tensor.h"
#include "server/compute/program/estimates.h"
#include "server/compute/program/input_value.h"
#include "server/http/body/json_reader.h"
#include "server/http/problem.h"
#include "tenon/error.h"

namespace tenon::server {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxOutputs = 1000;

struct Datatype {
  std::string_view name;
  DType dtype;
};
constexpr Datatype kDatatypes[] = {{"BOOL", DType::boolean}, {"UINT8", DType::u8}, {"UINT16", DType::u16}, {"UINT32", DType::u32},
                                   {"UINT64", DType::u64},   {"INT8", DType::i8},  {"INT16", DType::i16},  {"INT32", DType::i32},
                                   {"INT64", DType::i64},    {"FP16", DType::f16}, {"BF16", DType::bf16},  {"FP32", DType::f32},
                                   {"FP64", DType::f64}};

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

NamedArray read_tensor(const json::value& item, Members& request, const Call& call, const ProgramReader& reader,
                       MemoryTally& memory, std::size_t& binary_at) {
  if (!item.is_object()) request.fail("an input must be an object");
  const json::value* given_name = item.get_object().if_contains("name");
  std::string name = given_name != nullptr && given_name->is_string() ? std::string(given_name->get_string()) : std::string();
  const std::string where = fmt::format("input '{}'", name.substr(0, 64));
  Members members(item.get_object(), where);
  members.text("name");
  const std::string datatype = members.text("datatype").value_or("");
  if (datatype == "BYTES")
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: texts are not tensors of numbers", where),
                "send texts to /v1/embeddings or /tokenize");
  const DType dtype = dtype_of_datatype(datatype);
  const std::optional<Shape> shape = members.shape("shape");
  if (!shape) members.fail("'shape' is required");
  if (shape->elements() > reader.limits.elements)
    throw Problem(413, "too_large", fmt::format("{}: more than the limit of {} elements", where, reader.limits.elements),
                  "send smaller tensors, or raise the server's --max-elements");
  const json::value* parameters = members.find("parameters");
  const json::value* size =
      parameters != nullptr && parameters->is_object() ? parameters->get_object().if_contains("binary_data_size") : nullptr;
  const json::value* data = members.find("data");
  members.done();
  if (size == nullptr && data == nullptr) members.fail("'data' or 'binary_data_size' is required");
  if (size == nullptr) return {std::move(name), listed_tensor(*data, where, dtype, *shape, reader, memory)};
  const std::size_t bytes = storage_bytes(dtype, *shape);
  if (!size->is_int64() || size->get_int64() < 0 || static_cast<std::size_t>(size->get_int64()) != bytes)
    members.fail(fmt::format("{} of {} has {} bytes, which differs from 'binary_data_size'", to_string(*shape),
                             tenon::name(dtype), bytes));
  if (bytes > call.request.text().size() - binary_at) members.fail("the body ends before the end of the tensor");
  if (bytes < MemoryGate::kCounted) memory.add(bytes + 512);  // copied; a larger one is used where it is
  const std::size_t at = std::exchange(binary_at, binary_at + bytes);
  return {std::move(name), binary_tensor(call.request, at, dtype, *shape)};
}

void read_tensors(InferenceRequest& inference, Members& request, const Call& call, const ProgramReader& reader,
                  MemoryTally& memory) {
  const json::value* inputs = request.find("inputs");
  if (inputs == nullptr || !inputs->is_array()) request.fail("'inputs' must be a list");
  std::set<std::string> names;
  std::size_t binary_at = header_length(call.request);
  for (const json::value& item : inputs->get_array()) {
    NamedArray tensor = read_tensor(item, request, call, reader, memory, binary_at);
    if (!names.insert(tensor.first).second) request.fail(fmt::format("input '{}' is given twice", tensor.first.substr(0, 64)));
    inference.inputs.push_back(std::move(tensor));
  }
  if (binary_at != call.request.text().size()) request.fail("bytes follow the last tensor");
}

void read_parameters(InferenceRequest& inference, Members& request) {
  const json::value* parameters = request.find("parameters");
  if (parameters == nullptr) return;
  if (!parameters->is_object()) request.fail("'parameters' must be an object");
  const auto natural = [&](const json::value& value, std::string_view name) {
    if (value.is_int64() && value.get_int64() >= 0 && value.get_int64() < (std::int64_t{1} << 53))
      return static_cast<std::uint64_t>(value.get_int64());
    request.fail(fmt::format("parameter '{}' must be a number of at least 0", name));
  };
  for (const auto& member : parameters->get_object()) {
    const std::string_view key = member.key();
    const json::value& value = member.value();
    if (key == "binary_data_output")
      inference.all_binary = value.is_bool() && value.get_bool();
    else if (key == "device" && value.is_string())
      inference.device = std::string(value.get_string());
    else if (key == "priority")
      inference.priority = natural(value, key);
    else if (key == "timeout")
      inference.timeout = std::chrono::microseconds(natural(value, key));
    else if (!key.starts_with("sequence_"))  // of the protocol, without a meaning here
      inference.parameters.emplace(member.key(), value);
  }
}

void read_outputs(InferenceRequest& inference, Members& request) {
  const json::value* outputs = request.find("outputs");
  if (outputs == nullptr) return;
  if (!outputs->is_array()) request.fail("'outputs' must be a list");
  for (const json::value& item : outputs->get_array()) {
    if (!item.is_object()) request.fail("an output must be an object");
    Members members(item.get_object(), "output");
    const std::string name = members.text("name").value_or("");
    const bool is_binary = binary_flag(members);
    members.done();
    if (inference.outputs.size() >= kMaxOutputs) request.fail("'outputs' has too many members");
    if (inference.wants(name) && !inference.outputs.empty())
      request.fail(fmt::format("output '{}' is named twice", name.substr(0, 64)));
    inference.outputs.push_back({name, is_binary});
  }
}

void write_output(JsonWriter& out, Response& response, const std::string& name, HostArray array, bool is_binary) {
  if (is_block(array.dtype())) array = array.cast(DType::f32);
  out.begin_object();
  out.member("name", name);
  out.member("datatype", datatype_of(array.dtype()));
  out.list("shape", array.shape());
  if (is_binary) {
    out.key("parameters").begin_object();
    out.member("binary_data_size", array.bytes());
    out.end_object();
    response.tail.push_back(std::move(array));
  } else {
    if (array.elements() > ProgramLimits::kFullOutput)
      throw Problem(413, "too_large",
                    fmt::format("outputs of more than {} elements are returned as binary data only", ProgramLimits::kFullOutput),
                    "set binary_data");
    out.key("data");
    present::write_values(out, array.reshape({array.elements()}));
  }
  out.end_object();
}

}  // namespace

DType dtype_of_datatype(std::string_view name) {
  for (const Datatype& d : kDatatypes)
    if (d.name == name) return d.dtype;
  throw Error(ErrorCode::invalid_argument, fmt::format("unknown datatype '{}'", name.substr(0, 32)),
              "use BOOL, INT32, FP32, BF16 ...");
}

std::string_view datatype_of(DType dtype) {
  for (const Datatype& d : kDatatypes)
    if (d.dtype == dtype) return d.name;
  return "FP32";
}

bool InferenceRequest::wants(std::string_view name) const {
  return outputs.empty() ||
         std::any_of(outputs.begin(), outputs.end(), [&](const WantedOutput& output) { return output.name == name; });
}

bool InferenceRequest::is_binary(std::string_view name) const {
  return all_binary || std::any_of(outputs.begin(), outputs.end(),
                                   [&](const WantedOutput& output) { return output.name == name && output.is_binary; });
}

InferenceRequest read_inference_request(const Call& call, const ProgramReader& reader) {
  const std::size_t length = header_length(call.request);
  if (length > (std::size_t{8} << 20))
    throw Problem(413, "too_large", "the JSON part has more than 8 MiB", "send tensors as binary data");
  const MemoryGate::Share parsed = reader.parsing(length);
  MemoryTally memory(reader.memory);
  const json::object document = parse_object(call.request.text().substr(0, length));
  Members request(document, "");
  InferenceRequest inference;
  inference.id = request.text("id").value_or("");
  read_tensors(inference, request, call, reader, memory);
  read_parameters(inference, request);
  read_outputs(inference, request);
  request.done();
  inference.memory = memory.take_share();
  return inference;
}

Response write_inference_answer(const InferenceRequest& request, const InferenceAnswer& answer) {
  Response response;
  JsonWriter out(response.body);
  out.begin_object();
  out.member("model_name", answer.model);
  out.member("model_version", answer.version);
  if (!request.id.empty()) out.member("id", request.id);
  out.key("parameters").begin_object();
  if (!answer.device.empty()) out.member("device", answer.device);
  out.end_object();
  out.key("outputs").begin_array();
  const auto find = [&](const std::string& name) -> const HostArray& {
    for (const NamedArray& each : answer.outputs)
      if (each.first == name) return each.second;
    std::string names;
    for (const NamedArray& each : answer.outputs)
      if (names.size() < 300) names += (names.empty() ? "'" : ", '") + each.first + "'";
    throw Error(ErrorCode::not_found, fmt::format("{} has no output '{}'", answer.model, name.substr(0, 64)),
                fmt::format("its outputs: {}", names));
  };
  if (request.outputs.empty())
    for (const NamedArray& each : answer.outputs) write_output(out, response, each.first, each.second, request.all_binary);
  for (const WantedOutput& wanted : request.outputs)
    write_output(out, response, wanted.name, find(wanted.name), request.is_binary(wanted.name));
  out.end_array();
  out.end_object();
  if (!response.tail.empty()) {
    response.content_type = "application/octet-stream";
    response.fields.emplace_back("Inference-Header-Content-Length", std::to_string(response.body.size()));
  }
  return response;
}

std::uint64_t answer_bytes(const InferenceRequest& request, const std::string& name, DType dtype, const Shape& shape) {
  if (!request.wants(name)) return 0;
  std::uint64_t bytes = 512;
  if (is_block(dtype)) bytes += static_cast<std::uint64_t>(shape.elements()) * sizeof(float);
  if (!request.is_binary(name)) bytes += text_bytes(dtype, {shape.elements()});
  return bytes;
}

}  // namespace tenon::server
