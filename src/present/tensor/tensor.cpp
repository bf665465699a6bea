#include "present/tensor/tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <span>
#include <vector>

#include "array/convert.h"
#include "tenon/error.h"

namespace tenon::present {
namespace {

template <class T>
void write_lists(JsonWriter& json, const Shape& shape, int axis, const T*& next) {
  if (axis == shape.rank()) {
    return json.value(*next++);
  }
  json.begin_array();
  for (std::int64_t i = 0; i < shape[axis]; ++i) write_lists(json, shape, axis + 1, next);
  json.end_array();
}

template <class T>
void write_typed(JsonWriter& json, const HostArray& array) {
  const T* next = array.view<T>().data();
  write_lists(json, array.shape(), 0, next);
}

void write_nested(JsonWriter& json, const HostArray& array) {
  switch (array.dtype()) {
    case DType::u8: return write_typed<std::uint8_t>(json, array);
    case DType::u16: return write_typed<std::uint16_t>(json, array);
    case DType::u32: return write_typed<std::uint32_t>(json, array);
    case DType::u64: return write_typed<std::uint64_t>(json, array);
    case DType::i8: return write_typed<std::int8_t>(json, array);
    case DType::i16: return write_typed<std::int16_t>(json, array);
    case DType::i32: return write_typed<std::int32_t>(json, array);
    case DType::i64: return write_typed<std::int64_t>(json, array);
    case DType::f32: return write_typed<float>(json, array);
    case DType::f64: return write_typed<double>(json, array);
    case DType::boolean: {
      const std::vector<double> values = array.to_doubles();
      const auto truths = std::make_unique<bool[]>(values.size());
      std::transform(values.begin(), values.end(), truths.get(), [](double value) { return value != 0; });
      const bool* next = truths.get();
      return write_lists(json, array.shape(), 0, next);
    }
    default: return write_typed<float>(json, array.cast(DType::f32));
  }
}

// Calls |use| with the values, block by block: a large tensor is never there a second time as doubles.
template <class Use>
void for_each_block(const HostArray& array, const Use& use) {
  constexpr std::int64_t kBlock = 4096;
  std::array<double, kBlock> values;
  const std::size_t size = element_bytes(array.dtype());
  for (std::int64_t i = 0; i < array.elements(); i += kBlock) {
    const std::int64_t count = std::min(kBlock, array.elements() - i);
    convert_elements(array.dtype(), array.data() + static_cast<std::size_t>(i) * size, DType::f64, values.data(), count);
    use(std::span<const double>(values).first(static_cast<std::size_t>(count)));
  }
}

struct Statistics {
  double min = INFINITY, max = -INFINITY, sum = 0, squares = 0;
  std::int64_t finite = 0, nan = 0, positive_infinity = 0, negative_infinity = 0, zero = 0;
};

void count(Statistics& s, std::span<const double> values) {
  for (const double v : values) {
    if (std::isnan(v)) {
      ++s.nan;
    } else if (std::isinf(v)) {
      ++(v > 0 ? s.positive_infinity : s.negative_infinity);
    } else {
      s.min = std::min(s.min, v);
      s.max = std::max(s.max, v);
      s.sum += v;
      ++s.finite;
      s.zero += v == 0;
    }
  }
}

Statistics measure(const HostArray& array) {
  Statistics s;
  for_each_block(array, [&](std::span<const double> values) { count(s, values); });
  const double mean = s.finite > 0 ? s.sum / static_cast<double>(s.finite) : 0;
  for_each_block(array, [&](std::span<const double> values) {
    for (const double v : values)
      if (std::isfinite(v)) s.squares += (v - mean) * (v - mean);
  });
  return s;
}

void write_statistics(JsonWriter& json, const Statistics& s) {
  const auto count = static_cast<double>(s.finite);
  json.key("statistics").begin_object();
  for (const auto& [name, value] : {std::pair{"min", s.min}, std::pair{"max", s.max}, std::pair{"mean", s.sum / count},
                                    std::pair{"deviation", std::sqrt(s.squares / count)}}) {
    json.key(name);
    if (s.finite > 0)
      json.value(value);
    else
      json.null();
  }
  json.member("nan", s.nan);
  json.member("positive_infinity", s.positive_infinity);
  json.member("negative_infinity", s.negative_infinity);
  json.member("zero", s.zero);
  json.end_object();
}

void write_histogram(JsonWriter& json, const HostArray& array, const Statistics& s) {
  json.key("histogram");
  if (s.finite == 0) return json.null();
  std::array<std::int64_t, kHistogramBins> counts{};
  const bool is_flat = s.min == s.max;
  // Halved, so that the width of a histogram over all doubles is still a double.
  const double width = s.max / 2 - s.min / 2;
  for_each_block(array, [&](std::span<const double> values) {
    for (const double v : values) {
      if (!std::isfinite(v)) continue;
      const double at = is_flat ? 0 : (v / 2 - s.min / 2) / width * kHistogramBins;
      ++counts[static_cast<std::size_t>(std::clamp(at, 0.0, kHistogramBins - 1.0))];
    }
  });
  json.begin_object();
  json.member("low", s.min);
  json.member("high", s.max);
  json.list("counts", std::span(counts).first(is_flat ? 1 : counts.size()));
  json.end_object();
}

std::vector<std::int64_t> evenly(std::int64_t extent) {
  const std::int64_t count = std::min(extent, kGridSide);
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < count; ++i) indices.push_back(count == extent ? i : i * (extent - 1) / (count - 1));
  return indices;
}

std::int64_t extent_from_end(const Shape& shape, int axis) { return shape.rank() >= axis ? shape[shape.rank() - axis] : 1; }

void check_place(const Shape& shape, const std::vector<std::int64_t>& at) {
  const int leading = std::max(0, shape.rank() - 2);
  if (static_cast<int>(at.size()) != leading)
    throw Error(ErrorCode::out_of_range,
                fmt::format("a matrix of {} is chosen by {} indices, but {} are given", to_string(shape), leading, at.size()));
  for (int axis = 0; axis < leading; ++axis)
    if (const std::int64_t index = at[static_cast<std::size_t>(axis)]; index < 0 || index >= shape[axis])
      throw Error(ErrorCode::out_of_range,
                  fmt::format("index {} is out of range for axis {} of {}", index, axis, to_string(shape)));
}

std::vector<std::int64_t> run_of(std::int64_t first, std::int64_t count, std::int64_t extent, const char* what) {
  if (first < 0 || first >= extent)
    throw Error(ErrorCode::out_of_range, fmt::format("{} {} is outside: there are {}", what, first, extent));
  std::vector<std::int64_t> indices;
  for (std::int64_t i = first; i < std::min(extent, first + std::clamp<std::int64_t>(count, 1, kGridSide)); ++i)
    indices.push_back(i);
  return indices;
}

}  // namespace

void write_type(JsonWriter& json, DType dtype, const Shape& shape) {
  json.list("shape", shape);
  json.member("dtype", name(dtype));
}

void write_size(JsonWriter& json, DType dtype, const Shape& shape) {
  json.member("elements", shape.elements());
  json.member("bytes", storage_bytes(dtype, shape));
}

void write_element(JsonWriter& json, const HostArray& array, std::int64_t index) {
  const auto i = static_cast<std::size_t>(index);
  switch (array.dtype()) {
    case DType::boolean: return json.value(array.value(index) != 0);
    case DType::i64: return json.value(array.view<std::int64_t>()[i]);
    case DType::u64: return json.value(array.view<std::uint64_t>()[i]);
    case DType::f32: return json.value(array.view<float>()[i]);
    case DType::f64: return json.value(array.view<double>()[i]);
    default: break;
  }
  const double value = array.value(index);
  if (is_integer(array.dtype())) return json.value(static_cast<std::int64_t>(value));
  json.value(static_cast<float>(value));
}

void write_first_values(JsonWriter& json, const HostArray& array, std::string_view value, std::string_view sample) {
  const std::int64_t count = std::min(array.elements(), kSampleValues);
  json.key(value);
  if (count == 0)
    json.null();
  else
    write_element(json, array, 0);
  json.key(sample).begin_array();
  for (std::int64_t i = 0; i < count; ++i) write_element(json, array, i);
  json.end_array();
}

void write_details(JsonWriter& json, const HostArray& array) {
  const HostArray plain = is_block(array.dtype()) ? array.cast(DType::f32) : array;
  const Statistics statistics = measure(plain);
  write_statistics(json, statistics);
  write_histogram(json, plain, statistics);
  json.key("grid");
  write_slice(json, plain, sample_of(plain.shape(), {}));
}

Slice2d window_of(const Shape& shape, std::vector<std::int64_t> at, std::int64_t row, std::int64_t column, std::int64_t rows,
                  std::int64_t columns) {
  check_place(shape, at);
  if (shape.elements() == 0) return {std::move(at), {}, {}};
  return {std::move(at), run_of(row, rows, extent_from_end(shape, 2), "row"),
          run_of(column, columns, extent_from_end(shape, 1), "column")};
}

Slice2d sample_of(const Shape& shape, std::vector<std::int64_t> at) {
  at.resize(std::max(at.size(), static_cast<std::size_t>(std::max(0, shape.rank() - 2))));
  if (shape.elements() == 0) return {std::move(at), {}, {}};
  check_place(shape, at);
  return {std::move(at), evenly(extent_from_end(shape, 2)), evenly(extent_from_end(shape, 1))};
}

void write_slice(JsonWriter& json, const HostArray& given, const Slice2d& slice) {
  const HostArray array = is_block(given.dtype()) ? given.cast(DType::f32) : given;
  const Shape& shape = array.shape();
  const std::int64_t columns = extent_from_end(shape, 1);
  std::int64_t matrix = 0;
  for (std::size_t axis = 0; axis < slice.at.size(); ++axis) matrix = matrix * shape[static_cast<int>(axis)] + slice.at[axis];
  json.begin_object();
  json.list("at", slice.at);
  json.list("rows", slice.rows);
  json.list("columns", slice.columns);
  json.key("values").begin_array();
  for (const std::int64_t row : slice.rows) {
    json.begin_array();
    for (const std::int64_t column : slice.columns)
      write_element(json, array, (matrix * extent_from_end(shape, 2) + row) * columns + column);
    json.end_array();
  }
  json.end_array();
  json.end_object();
}

void write_values(JsonWriter& json, const HostArray& array) {
  // The lists around an empty axis: [2, 0] is [[], []], but [1000000000, 0] is not a billion of them.
  double lists = 1;
  for (const std::int64_t extent : array.shape()) lists *= static_cast<double>(std::max<std::int64_t>(1, extent));
  if (array.elements() == 0 && lists > 1000) return json.raw("[]");
  write_nested(json, array);
}

std::string result_name(std::size_t index, std::size_t count) { return count == 1 ? "result" : fmt::format("result{}", index); }

ArrayFile results_file(std::span<const HostArray> results, std::span<const std::string> names) {
  ArrayFile file;
  for (std::size_t i = 0; i < results.size(); ++i)
    file.arrays.emplace(names.empty() ? result_name(i, results.size()) : names[i], results[i]);
  return file;
}

}  // namespace tenon::present
