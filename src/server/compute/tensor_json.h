// What an answer says of a tensor: first values, statistics, histogram, a grid for tables and heat maps, the comparison.
#pragma once

#include <cstdint>
#include <span>

#include "reference/comparison.h"
#include "server/http/json_writer.h"

namespace tenon::server {

inline constexpr std::int64_t kSampleValues = 10;
inline constexpr std::int64_t kGridSide = 64;
inline constexpr int kHistogramBins = 32;

// "value" and "sample_values": the first element and the first ten.
void write_first_values(JsonWriter& json, const HostArray& array);
// "statistics", "histogram" and "grid".
void write_details(JsonWriter& json, const HostArray& array);
// Nested lists; for an empty tensor of many lists just [].
void write_values(JsonWriter& json, const HostArray& array);
void write_comparison_json(JsonWriter& json, const HostArray& result, const Comparison& comparison,
                           std::span<const double> reference, double reference_seconds);

}  // namespace tenon::server
