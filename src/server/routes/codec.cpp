// /api/encode, /api/encode/report, /api/decode: tensors in fewer bytes, with the error that costs.
#include <fmt/format.h>

#include "base/text/json_writer.h"
#include "present/tensor/encoding.h"
#include "server/http/problem.h"
#include "server/services.h"
#include "tenon/array/codec.h"
#include "tenon/error.h"

namespace tenon::server {
namespace {

Response binary_response(std::vector<std::byte> bytes, std::string_view file) {
  Response response;
  response.content_type = "application/octet-stream";
  const auto size = static_cast<std::int64_t>(bytes.size());
  auto owner = std::make_shared<std::vector<std::byte>>(std::move(bytes));
  const void* data = owner->data();
  response.tail.push_back(HostArray::borrow(DType::u8, {size}, data, std::move(owner)));
  response.fields.emplace_back("Content-Disposition", fmt::format("attachment; filename=\"{}\"", file));
  return response;
}

ArrayFile read_body(const Call& call) {
  const std::string_view text = call.request.text();
  return parse_arrays(std::as_bytes(std::span(text.data(), text.size())));
}

struct EncodedBody {
  std::vector<present::EncodedTensor> rows;
  std::map<std::string, Encoded, std::less<>> encoded;
  MemoryGate::Share memory;  // of all that and of the answer
};

// The answer, with its share of |memory| until it is sent.
Response counted(Response response, MemoryGate::Share memory) {
  if (memory) memory.shrink_to(response.bytes());
  response.memory = std::move(memory);
  return response;
}

EncodedBody encoded_body(Services& services, const Call& call) {
  const Encoding encoding = present::encoding_named(call.request.parameter("as").value_or("zstd"));
  const FileSize size = FileSize::of(call.request.text());
  EncodedBody body;
  // Read, decoded again to measure the error, the encoded bytes, and the answer; names and rows likewise.
  body.memory = services.memory_of(call).take(4 * (size.bytes + size.tensors * FileSize::kTensorBytes) + size.reading_bytes);
  for (const auto& [array, tensor] : read_body(call).arrays) {
    const std::string name = array.empty() ? "tensor" : array;
    Encoded one = encode(tensor, encoding);
    body.rows.push_back({name, encoding, tensor.dtype(), tensor.shape(), report_of(tensor, one)});
    body.encoded.emplace(name, std::move(one));
  }
  return body;
}

Response encoding_report(Services& services, const Call& call) {
  Response response;
  JsonWriter json(response.body);
  json.begin_object();
  EncodedBody body = encoded_body(services, call);
  present::write_encodings(json, body.rows);
  json.end_object();
  return counted(std::move(response), std::move(body.memory));
}

Response encode_body(Services& services, const Call& call) {
  EncodedBody body = encoded_body(services, call);
  Response response = binary_response(format_safetensors(to_file(body.encoded)), "encoded.safetensors");
  double largest = 0;
  std::uint64_t before = 0, after = 0;
  for (const present::EncodedTensor& row : body.rows) {
    largest = std::max(largest, row.report.max_abs_error);
    before += row.report.bytes_before;
    after += row.report.bytes_after;
  }
  response.fields.emplace_back("X-Tenon-Ratio",
                               fmt::format("{:.4g}", after == 0 ? 1 : static_cast<double>(before) / static_cast<double>(after)));
  response.fields.emplace_back("X-Tenon-Max-Error", fmt::format("{:.4g}", largest));
  return counted(std::move(response), std::move(body.memory));
}

Response decoded_response(const ArrayFile& decoded, std::string_view format) {
  if (format == "safetensors") return binary_response(format_safetensors(decoded), "decoded.safetensors");
  if (format == "npz") return binary_response(format_npz(decoded), "decoded.npz");
  if (format != "npy") throw Error(ErrorCode::invalid_argument, "'format' must be npy, npz or safetensors");
  if (decoded.arrays.size() != 1)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a .npy file can store one tensor, but there are {}", decoded.arrays.size()),
                "use npz or safetensors");
  return binary_response(format_npy(decoded.arrays.begin()->second), "decoded.npy");
}

Response decode_body(Services& services, const Call& call) {
  const std::string format = call.request.parameter("format").value_or("safetensors");
  const FileSize size = FileSize::of(call.request.text());
  const MemoryGate::Share body =
      services.memory_of(call).take(size.bytes + 2 * size.tensors * FileSize::kTensorBytes + size.reading_bytes);
  const ArrayFile file = read_body(call);
  const std::uint64_t bytes = decoded_bytes(file);
  if (bytes > services.limits.memory_bytes)
    throw Problem(413, "too_large", "the decoded tensors exceed the memory limit of a request");
  // The tensors, and the answer. What is not encoded goes through as it is.
  MemoryGate::Share memory = services.memory_of(call).take(2 * bytes + size.bytes);
  Response response = decoded_response(decoded_file(file), format);
  return counted(std::move(response), std::move(memory));
}

}  // namespace

void add_codec_routes(RouteTable& routes, Services& services) {
  routes.add({.method = Method::post,
              .path = "/api/encode",
              .tag = "compute",
              .summary = "Encode the tensors of a file in fewer bytes",
              .runs = Runs::computing,
              .body = BodyKind::bytes,
              .media = "application/octet-stream",
              .parameters = {"as: string"},
              .failures = {413},
              .handler = [&services](const Call& call) { return encode_body(services, call); }});
  routes.add({.method = Method::post,
              .path = "/api/encode/report",
              .tag = "compute",
              .summary = "Say what encoding the tensors of a file would gain and lose",
              .runs = Runs::computing,
              .body = BodyKind::bytes,
              .response_schema = R"({"type":"object","required":["tensors","bytes_before","bytes_after"]})",
              .parameters = {"as: string"},
              .failures = {413},
              .handler = [&services](const Call& call) { return encoding_report(services, call); }});
  routes.add({.method = Method::post,
              .path = "/api/decode",
              .tag = "compute",
              .summary = "Restore the tensors of a file that /api/encode made",
              .runs = Runs::computing,
              .body = BodyKind::bytes,
              .media = "application/octet-stream",
              .parameters = {R"(format: {"enum":["npy","npz","safetensors"]})"},
              .failures = {413},
              .handler = [&services](const Call& call) { return decode_body(services, call); }});
}

}  // namespace tenon::server
