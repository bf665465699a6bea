// Encoded tensors as JSON and as a table: sizes, ratio and error.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/text/json_writer.h"
#include "present/text.h"
#include "tenon/array/codec.h"

namespace tenon::present {

struct EncodedTensor {
  std::string name;
  Encoding encoding{};
  DType dtype{};
  Shape shape;
  EncodingReport report;
};

// Throws invalid_argument with the names there are.
Encoding encoding_named(std::string_view text);

// Members: "tensors", each with "name", "encoding", "dtype", "shape", sizes, ratio and errors; and the sums.
void write_encodings(JsonWriter& json, std::span<const EncodedTensor> tensors);
std::string encoding_table(std::span<const EncodedTensor> tensors, const TextStyle& style);

}  // namespace tenon::present
