#include "reference/comparison.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <vector>

#include "reference/reference.h"

namespace tenon {
namespace {

struct Format {
  int mantissa_bits;
  int min_exponent;
};

Format format_of(DType dtype) {
  switch (dtype) {
    case DType::f16: return {10, -14};
    case DType::bf16: return {7, -126};
    case DType::f64: return {52, -1022};
    case DType::bfloat8_b: return {6, -126};
    case DType::bfloat4_b: return {2, -126};
    default: return {23, -126};
  }
}

double unit(double value, const Format& format) {
  const int exponent = value == 0 || !std::isfinite(value) ? format.min_exponent : std::ilogb(value);
  return std::ldexp(1.0, std::max(exponent, format.min_exponent) - format.mantissa_bits);
}

// The largest of the 16 adjacent elements that share an exponent determines the step of all.
double block_peak(const HostArray& result, std::span<const double> reference, std::size_t index) {
  const Shape& shape = result.shape();
  const std::size_t columns = shape.rank() == 0 ? 1 : static_cast<std::size_t>(shape[shape.rank() - 1]);
  const std::size_t row = index / columns * columns, first = row + (index - row) / 16 * 16;
  double peak = 0;
  for (std::size_t i = first; i < std::min(first + 16, row + columns); ++i) peak = std::max(peak, std::fabs(reference[i]));
  return peak;
}

// Two passes, so that a large mean does not cancel the variation.
std::optional<double> correlation(std::span<const double> a, std::span<const double> b) {
  double sum_a = 0, sum_b = 0, count = 0, largest = 0;
  const auto counts = [&](std::size_t i) { return std::isfinite(a[i]) && std::isfinite(b[i]); };
  for (std::size_t i = 0; i < a.size(); ++i)
    if (counts(i)) largest = std::max({largest, std::fabs(a[i]), std::fabs(b[i])});
  if (largest == 0) largest = 1;  // scaled, so that squares neither overflow nor vanish
  for (std::size_t i = 0; i < a.size(); ++i)
    if (counts(i)) sum_a += a[i] / largest, sum_b += b[i] / largest, ++count;
  if (count == 0) return std::nullopt;
  const double mean_a = sum_a / count, mean_b = sum_b / count;
  double ab = 0, aa = 0, bb = 0;
  bool is_equal = true, a_varies = false, b_varies = false;
  double first_a = NAN, first_b = NAN;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!counts(i)) continue;
    if (std::isnan(first_a)) first_a = a[i], first_b = b[i];
    is_equal = is_equal && a[i] == b[i];
    a_varies = a_varies || a[i] != first_a;
    b_varies = b_varies || b[i] != first_b;
    const double da = a[i] / largest - mean_a, db = b[i] / largest - mean_b;
    ab += da * db;
    aa += da * da;
    bb += db * db;
  }
  if (is_equal) return 1.0;
  if (!a_varies || !b_varies || aa == 0 || bb == 0) return std::nullopt;
  return std::clamp(ab / std::sqrt(aa) / std::sqrt(bb), -1.0, 1.0);
}

template <class T>
Comparison compare_integers(std::span<const T> values, std::span<const T> reference) {
  Comparison comparison;
  for (std::size_t i = 0; i < values.size(); ++i) {
    // Unsigned, because the distance of two int64 may exceed an int64.
    const auto low = static_cast<std::uint64_t>(std::min(values[i], reference[i]));
    const double error = static_cast<double>(static_cast<std::uint64_t>(std::max(values[i], reference[i])) - low);
    comparison.mismatches += error != 0;
    comparison.max_abs = std::max(comparison.max_abs, error);
    if (reference[i] != 0)
      comparison.max_rel = std::max(comparison.max_rel, error / std::fabs(static_cast<double>(reference[i])));
    if (error > comparison.max_ulp) {
      comparison.max_ulp = error;
      comparison.worst = static_cast<std::int64_t>(i);
    }
    const auto edge = std::upper_bound(kUlpEdges.begin(), kUlpEdges.end(), error);
    ++comparison.ulp_counts[static_cast<std::size_t>(edge - kUlpEdges.begin()) - 1];
  }
  return comparison;
}

}  // namespace

Tolerance tolerance_of(DType dtype) noexcept {
  if (!is_float(dtype)) return {};
  if (dtype == DType::f64) return {kUlpLimit, 1e-10};
  return {dtype == DType::f32 ? kUlpLimit : 2, kScaleLimit};
}

Comparison compare(const HostArray& result, std::span<const double> reference) {
  Comparison comparison;
  const DType dtype = result.dtype();
  const Format format = format_of(dtype);
  const Tolerance tolerance = tolerance_of(dtype);
  const std::vector<double> values = result.to_doubles();
  // A reference value that overflows in the result's dtype counts as infinite.
  const std::vector<double> rounded =
      HostArray::from<double>(result.shape(), reference).cast(is_float(dtype) ? dtype : DType::f64).to_doubles();
  double scale = 0;
  for (const double r : reference)
    if (std::isfinite(r)) scale = std::max(scale, std::fabs(r));

  for (std::size_t i = 0; i < values.size(); ++i) {
    const double value = values[i], wanted = reference[i];
    comparison.nan += std::isnan(value);
    comparison.infinite += std::isinf(value);
    comparison.reference_nan += std::isnan(wanted);
    comparison.reference_infinite += std::isinf(rounded[i]);
    if ((std::isnan(value) && std::isnan(wanted)) || value == wanted || value == rounded[i]) {
      if (!std::isfinite(value)) continue;
    } else if (!std::isfinite(value) || !std::isfinite(wanted)) {
      ++comparison.mismatches;
      comparison.max_abs = comparison.max_rel = comparison.max_ulp = INFINITY;
      comparison.worst = static_cast<std::int64_t>(i);
      continue;
    }
    const double error = std::fabs(value - wanted);
    const double ulp =
        is_float(dtype) ? error / unit(is_block(dtype) ? block_peak(result, reference, i) : wanted, format) : error;
    comparison.max_abs = std::max(comparison.max_abs, error);
    if (wanted != 0) comparison.max_rel = std::max(comparison.max_rel, error / std::fabs(wanted));
    if (ulp > comparison.max_ulp) {
      comparison.max_ulp = ulp;
      comparison.worst = static_cast<std::int64_t>(i);
    }
    const auto edge = std::upper_bound(kUlpEdges.begin(), kUlpEdges.end(), ulp);
    ++comparison.ulp_counts[static_cast<std::size_t>(edge - kUlpEdges.begin()) - 1];
    if (ulp > tolerance.ulp && error > scale * tolerance.scale) ++comparison.mismatches;
  }
  comparison.pcc = correlation(values, reference);
  return comparison;
}

Comparison compare_exactly(const HostArray& result, const HostArray& reference) {
  Comparison comparison = result.dtype() == DType::i64
                              ? compare_integers(result.view<std::int64_t>(), reference.view<std::int64_t>())
                              : compare_integers(result.view<std::uint64_t>(), reference.view<std::uint64_t>());
  comparison.pcc = correlation(result.to_doubles(), reference.to_doubles());
  return comparison;
}

ComparedResults compare_with_reference(const Graph& graph, std::span<const HostArray> inputs,
                                       std::span<const HostArray> results) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<HostArray> reference = reference_unrounded(graph, inputs);
  ComparedResults compared;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const DType dtype = results[i].dtype();
    Compared each;
    each.reference = reference[i].to_doubles();
    if (!is_float(dtype)) each.exact = std::move(reference[i]);
    const bool is_wide = dtype == DType::i64 || dtype == DType::u64;
    each.comparison = is_wide ? compare_exactly(results[i], each.exact) : compare(results[i], each.reference);
    compared.results.push_back(std::move(each));
  }
  compared.reference_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return compared;
}

}  // namespace tenon
