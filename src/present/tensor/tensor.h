// Tensors as JSON: type, values, and what a page shows of a large one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/json_writer.h"
#include "tenon/array.h"
#include "tenon/array/io.h"

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

// Members: "value" and "sample_values", or what they are called here: the first element and the first ten.
void write_first_values(JsonWriter& json, const HostArray& array, std::string_view value = "value",
                        std::string_view sample = "sample_values");
// A part of a tensor for a table or a heat map: |at| is the index in all axes but the last two, which are rows and columns.
struct Slice2d {
  std::vector<std::int64_t> at, rows, columns;
};
// A window of at most kGridSide x kGridSide elements, cut at the edges. Throws out_of_range if |at| does not fit |shape| or the
// window begins outside.
Slice2d window_of(const Shape& shape, std::vector<std::int64_t> at, std::int64_t row, std::int64_t column, std::int64_t rows,
                  std::int64_t columns);
// Rows and columns spread evenly over the whole matrix at |at|, at most kGridSide of each; |at| shorter than needed: 0.
Slice2d sample_of(const Shape& shape, std::vector<std::int64_t> at);
// {"at", "rows", "columns", "values": [[...]]}
void write_slice(JsonWriter& json, const HostArray& array, const Slice2d& slice);

// Members: "statistics", "histogram", and "grid", the sample at index 0.
void write_details(JsonWriter& json, const HostArray& array);

// What result |index| of |count| is called: "result", or "result0", "result1", ...
std::string result_name(std::size_t index, std::size_t count);
// The results under |names|; without names as above.
ArrayFile results_file(std::span<const HostArray> results, std::span<const std::string> names = {});

}  // namespace tenon::present
