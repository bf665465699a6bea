#include "present/tensor/comparison.h"

#include <fmt/format.h>

#include <algorithm>

#include "present/tensor/tensor.h"

namespace tenon::present {
namespace {

// The element that is farthest off; where all are exact, the first.
void write_worst(JsonWriter& json, const HostArray& result, const Compared& compared) {
  const std::int64_t worst = compared.comparison.worst >= 0 ? compared.comparison.worst : result.elements() > 0 ? 0 : -1;
  if (worst < 0) {
    for (const char* key : {"worst_index", "worst_value", "worst_reference"}) json.key(key).null();
    return;
  }
  json.key("worst_index").begin_array();
  const Strides strides = contiguous_strides(result.shape());
  std::int64_t rest = worst;
  for (int axis = 0; axis < result.shape().rank(); ++axis) {
    const std::int64_t stride = strides[static_cast<std::size_t>(axis)];
    json.value(rest / stride);
    rest %= stride;
  }
  json.end_array();
  json.key("worst_value");
  write_element(json, result, worst);
  json.key("worst_reference");
  write_element(json, compared.reference, worst);
}

}  // namespace

void write_comparison(JsonWriter& json, const HostArray& result, const Compared& compared, double reference_seconds) {
  const Comparison& c = compared.comparison;
  json.begin_object();
  json.member("matches", c.mismatches == 0);
  json.member("mismatches", c.mismatches);
  json.member("max_abs", c.max_abs);
  json.member("max_rel", c.max_rel);
  json.member("max_ulp", c.max_ulp);
  write_worst(json, result, compared);
  json.member("pcc", c.pcc);
  json.key("ulp_histogram").begin_object();
  json.list("edges", kUlpEdges);
  json.list("counts", c.ulp_counts);
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
  write_first_values(json, compared.reference, "reference_value", "reference_sample_values");
  json.seconds("reference_seconds", reference_seconds);
  json.end_object();
}

std::string comparison_text(const HostArray& result, const Comparison& c) {
  if (!is_float(result.dtype()) && c.mismatches == 0) return "compared with the reference: equal";
  return fmt::format("compared with the reference: max abs {:.3g}, max rel {:.3g}, max {:.3g} ULP: {}", c.max_abs, c.max_rel,
                     c.max_ulp, c.mismatches == 0 ? "match" : fmt::format("{} of {} differ", c.mismatches, result.elements()));
}

}  // namespace tenon::present
