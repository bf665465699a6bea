// How far a result is from the reference, as JSON and as text.
#pragma once

#include <string>

#include "base/text/json_writer.h"
#include "reference/comparison.h"

namespace tenon::present {

// {"matches", "mismatches", "max_abs", "max_rel", "max_ulp", "worst_index", ..., "reference_seconds"}; |reference_seconds| is
// what the reference took for all results.
void write_comparison(JsonWriter& json, const HostArray& result, const Compared& compared, double reference_seconds);
// "compared with the reference: max abs 1.19e-07, max rel 5.96e-08, max 0.5 ULP: match"
std::string comparison_text(const HostArray& result, const Comparison& comparison);

}  // namespace tenon::present
