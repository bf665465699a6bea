#include "server/compute/tensor_json.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace tenon::server {
namespace {

struct Statistics {
  double min = INFINITY, max = -INFINITY, sum = 0, squares = 0;
  std::int64_t finite = 0, nan = 0, positive_infinity = 0, negative_infinity = 0, zero = 0;
};

Statistics measure(std::span<const double> values) {
  Statistics s;
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
  const double mean = s.finite > 0 ? s.sum / static_cast<double>(s.finite) : 0;
  for (const double v : values)
    if (std::isfinite(v)) s.squares += (v - mean) * (v - mean);
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

void write_histogram(JsonWriter& json, std::span<const double> values, const Statistics& s) {
  json.key("histogram");
  if (s.finite == 0) return json.null();
  std::array<std::int64_t, kHistogramBins> counts{};
  const bool is_flat = s.min == s.max;
  // Halved, so that the width of a histogram over all doubles is still a double.
  const double width = s.max / 2 - s.min / 2;
  for (const double v : values) {
    if (!std::isfinite(v)) continue;
    const double at = is_flat ? 0 : (v / 2 - s.min / 2) / width * kHistogramBins;
    ++counts[static_cast<std::size_t>(std::clamp(at, 0.0, kHistogramBins - 1.0))];
  }
  json.begin_object();
  json.member("low", s.min);
  json.member("high", s.max);
  json.key("counts").begin_array();
  for (int i = 0; i < (is_flat ? 1 : kHistogramBins); ++i) json.value(counts[static_cast<std::size_t>(i)]);
  json.end_array();
  json.end_object();
}

std::vector<std::int64_t> evenly(std::int64_t extent) {
  const std::int64_t count = std::min(extent, kGridSide);
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < count; ++i) indices.push_back(count == extent ? i : i * (extent - 1) / (count - 1));
  return indices;
}

void write_grid(JsonWriter& json, const HostArray& array) {
  const Shape& shape = array.shape();
  const std::int64_t columns = shape.rank() >= 1 ? shape[shape.rank() - 1] : 1;
  const std::int64_t rows = shape.rank() >= 2 ? shape[shape.rank() - 2] : 1;
  const bool is_empty = array.elements() == 0;
  const std::vector<std::int64_t> row_indices = evenly(is_empty ? 0 : rows), column_indices = evenly(is_empty ? 0 : columns);
  const auto write_indices = [&](const char* name, const std::vector<std::int64_t>& indices) {
    json.key(name).begin_array();
    for (const std::int64_t i : indices) json.value(i);
    json.end_array();
  };
  json.key("grid").begin_object();
  write_indices("rows", row_indices);
  write_indices("columns", column_indices);
  json.key("values").begin_array();
  for (const std::int64_t row : row_indices) {
    json.begin_array();
    for (const std::int64_t column : column_indices) write_element(json, array, row * columns + column);
    json.end_array();
  }
  json.end_array();
  json.end_object();
}

}  // namespace

void write_first_values(JsonWriter& json, const HostArray& array) {
  const std::int64_t count = std::min(array.elements(), kSampleValues);
  json.key("value");
  if (count == 0)
    json.null();
  else
    write_element(json, array, 0);
  json.key("sample_values").begin_array();
  for (std::int64_t i = 0; i < count; ++i) write_element(json, array, i);
  json.end_array();
}

void write_details(JsonWriter& json, const HostArray& array) {
  const std::vector<double> values = array.to_doubles();
  const Statistics statistics = measure(values);
  write_statistics(json, statistics);
  write_histogram(json, values, statistics);
  write_grid(json, is_block(array.dtype()) ? array.cast(DType::f32) : array);
}

void write_values(JsonWriter& json, const HostArray& array) {
  double lists = 1;
  for (const std::int64_t extent : array.shape()) lists *= static_cast<double>(std::max<std::int64_t>(1, extent));
  if (array.elements() == 0 && lists > 1000) return json.raw("[]");
  write_nested(json, array);
}

void write_comparison_json(JsonWriter& json, const HostArray& result, const Comparison& c, std::span<const double> reference,
                           double reference_seconds) {
  json.begin_object();
  json.member("matches", c.mismatches == 0);
  json.member("mismatches", c.mismatches);
  json.member("max_abs", c.max_abs);
  json.member("max_rel", c.max_rel);
  json.member("max_ulp", c.max_ulp);
  const std::int64_t worst = c.worst >= 0 ? c.worst : result.elements() > 0 ? 0 : -1;
  json.key("worst_index");
  if (worst < 0) {
    json.null();
    json.key("worst_value").null();
    json.key("worst_reference").null();
  } else {
    json.begin_array();
    const Strides strides = contiguous_strides(result.shape());
    std::int64_t rest = worst;
    for (int axis = 0; axis < result.shape().rank(); ++axis) {
      const std::int64_t stride = strides[static_cast<std::size_t>(axis)];
      json.value(rest / stride);
      rest %= stride;
    }
    json.end_array();
    json.member("worst_value", result.value(worst));
    json.member("worst_reference", reference[static_cast<std::size_t>(worst)]);
  }
  json.member("pcc", c.pcc);
  json.key("ulp_histogram").begin_object();
  json.key("edges").begin_array();
  for (const double edge : kUlpEdges) json.value(edge);
  json.end_array();
  json.key("counts").begin_array();
  for (const std::int64_t count : c.ulp_counts) json.value(count);
  json.end_array();
  json.end_object();
  json.member("nan", c.nan);
  json.member("reference_nan", c.reference_nan);
  json.member("infinity", c.infinite);
  json.member("reference_infinity", c.reference_infinite);
  const Tolerance tolerance = tolerance_of(result.dtype());
  json.key("tolerance").begin_object();
  json.member("ulp", tolerance.ulp);
  json.member("relative_to_largest", tolerance.scale);
  json.end_object();
  json.key("reference_value");
  if (reference.empty())
    json.null();
  else
    json.value(reference[0]);
  json.key("reference_sample_values").begin_array();
  for (std::size_t i = 0; i < std::min<std::size_t>(reference.size(), kSampleValues); ++i) json.value(reference[i]);
  json.end_array();
  json.member("reference_seconds", reference_seconds);
  json.end_object();
}

}  // namespace tenon::server
