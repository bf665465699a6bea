#include "present/tensor/encoding.h"

#include <fmt/format.h>

#include "base/text/units.h"
#include "ops/names.h"
#include "present/tensor/tensor.h"
#include "tenon/error.h"

namespace tenon::present {
namespace {

std::string bytes_text(std::uint64_t bytes) { return format_bytes(static_cast<double>(bytes)); }

std::string error_text(double error) { return error == 0 ? "0" : fmt::format("{:.2g}", error); }

}  // namespace

Encoding encoding_named(std::string_view text) {
  if (const std::optional<Encoding> known = parse_encoding(text)) return *known;
  std::vector<std::string> names;
  for (const Encoding encoding : all_encodings()) names.emplace_back(name(encoding));
  const std::string near = nearest(text, names);
  throw Error(ErrorCode::invalid_argument, fmt::format("unknown encoding '{}'", text),
              near.empty() ? fmt::format("encodings: {}", fmt::join(names, ", ")) : fmt::format("did you mean '{}'?", near));
}

void write_encodings(JsonWriter& json, std::span<const EncodedTensor> tensors) {
  std::uint64_t before = 0, after = 0;
  json.key("tensors").begin_array();
  for (const EncodedTensor& tensor : tensors) {
    const EncodingReport& report = tensor.report;
    before += report.bytes_before;
    after += report.bytes_after;
    json.begin_object();
    json.member("name", tensor.name);
    json.member("encoding", name(tensor.encoding));
    write_type(json, tensor.dtype, tensor.shape);
    json.member("bytes_before", report.bytes_before);
    json.member("bytes_after", report.bytes_after);
    json.member("ratio", report.ratio);
    json.member("lossless", report.is_lossless);
    json.member("max_abs_error", report.max_abs_error);
    json.member("max_rel_error", report.max_rel_error);
    json.member("rms_error", report.rms_error);
    json.member("differing", report.differing);
    json.end_object();
  }
  json.end_array();
  json.member("bytes_before", before);
  json.member("bytes_after", after);
}

std::string encoding_table(std::span<const EncodedTensor> tensors, const TextStyle& style) {
  Rows rows{{"TENSOR", "ENCODING", "DTYPE", "SHAPE", "BEFORE", "AFTER", "RATIO", "MAX ERROR", "RELATIVE", "RMS"}};
  for (const EncodedTensor& tensor : tensors) {
    const EncodingReport& r = tensor.report;
    rows.push_back({tensor.name, std::string(name(tensor.encoding)), std::string(name(tensor.dtype)), to_string(tensor.shape),
                    bytes_text(r.bytes_before), bytes_text(r.bytes_after), fmt::format("{:.2f}", r.ratio),
                    r.is_lossless ? "lossless" : error_text(r.max_abs_error), error_text(r.max_rel_error),
                    error_text(r.rms_error)});
  }
  return table(rows, style);
}

}  // namespace tenon::present
