// Tensors as JSON: type, values, and what a page shows of a large one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/json_writer.h"
#include "tenon/array.h"
#include "tenon/io.h"

namespace tenon::present {

inline constexpr std::int64_t kSampleValues = 10;
inline constexpr std::int64_t kGridSide = 64;
inline constexpr int kHistogramBins = 32;

// Members of an object: "shape" and "dtype"; "elements" and "bytes".
void write_type(JsonWriter& json, DType dtype, const Shape& shape);
void write_size(JsonWriter& json, DType dtype, const Shape& shape);

// Element |index| in row-major order, as its dtype reads: bools, exact integers, floats in the fewest digits.
void write_element(JsonWriter& json, const HostArray& array, std::int64_t index);
// All of them as nested lists of the array's shape, a scalar as one value; for an empty tensor of many lists just [].
void write_values(JsonWriter& json, const HostArray& array);

// Members: "value" and "sample_values", the first element and the first ten.
void write_first_values(JsonWriter& json, const HostArray& array);
// Members: "statistics", "histogram", and "grid" for tables and heat maps.
void write_details(JsonWriter& json, const HostArray& array);

// What result |index| of |count| is called: "result", or "result0", "result1", ...
std::string result_name(std::size_t index, std::size_t count);
// The results under these names.
ArrayFile results_file(std::span<const HostArray> results);

}  // namespace tenon::present
