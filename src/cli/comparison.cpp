#include "cli/comparison.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace tenon::cli {
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

// Of the 16 neighbours in a row that share one exponent, the largest decides the step of all.
double block_peak(const HostArray& result, std::span<const double> reference, std::size_t index) {
  const Shape& shape = result.shape();
  const std::size_t columns = shape.rank() == 0 ? 1 : static_cast<std::size_t>(shape[shape.rank() - 1]);
  const std::size_t row = index / columns * columns, first = row + (index - row) / 16 * 16;
  double peak = 0;
  for (std::size_t i = first; i < std::min(first + 16, row + columns); ++i) peak = std::max(peak, std::fabs(reference[i]));
  return peak;
}

}  // namespace

Comparison compare(const HostArray& result, std::span<const double> reference) {
  Comparison comparison;
  const DType dtype = result.dtype();
  const Format format = format_of(dtype);
  const bool wide = dtype == DType::f32 || dtype == DType::f64;
  const std::vector<double> values = result.to_doubles();
  // What overflows to infinity in the result's dtype is infinite in the reference too.
  const std::vector<double> rounded =
      HostArray::from<double>(result.shape(), reference).cast(is_float(dtype) ? dtype : DType::f64).to_doubles();
  double scale = 0;
  for (const double r : reference)
    if (std::isfinite(r)) scale = std::max(scale, std::fabs(r));

  for (std::size_t i = 0; i < values.size(); ++i) {
    const double value = values[i], wanted = reference[i];
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
    const double scale_limit = !is_float(dtype) ? 0 : scale * (dtype == DType::f64 ? 1e-10 : kScaleLimit);
    const double ulp_limit = !is_float(dtype) ? 0 : wide ? kUlpLimit : 2;
    if (ulp > ulp_limit && error > scale_limit) ++comparison.mismatches;
  }
  return comparison;
}

}  // namespace tenon::cli
