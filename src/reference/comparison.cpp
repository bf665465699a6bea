#include "reference/comparison.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "reference/kernels.h"
#include "reference/reference.h"

namespace tenon {
namespace {

using reference::in_chunks;

constexpr std::int64_t kChunk = 1 << 12;

struct Format {
  int mantissa_bits;
  int min_exponent;
  double largest;  // finite
};

Format format_of(DType dtype) {
  constexpr double kLargestF32 = std::numeric_limits<float>::max();
  switch (dtype) {
    case DType::f16: return {10, -14, 65504};
    case DType::bf16: return {7, -126, 0x1.fep127};
    case DType::f64: return {52, -1022, std::numeric_limits<double>::max()};
    case DType::bfloat8_b: return {6, -126, kLargestF32};
    case DType::bfloat4_b: return {2, -126, kLargestF32};
    default: return {23, -126, kLargestF32};
  }
}

// 2^exponent for exponents of normal doubles.
double power_of_two(int exponent) { return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52); }

// The ULP of |format| at |value|, which is finite.
double unit(double value, const Format& format) {
  const int biased = static_cast<int>(std::bit_cast<std::uint64_t>(value) >> 52 & 0x7ff);
  const int exponent = std::max(biased - 1023, format.min_exponent) - format.mantissa_bits;
  return exponent >= -1022 ? power_of_two(exponent) : std::ldexp(1.0, exponent);
}

// The largest of the 16 adjacent elements that share an exponent determines the step of all.
double block_peak(const Shape& shape, std::span<const double> reference, std::size_t index) {
  const std::size_t columns = shape.rank() == 0 ? 1 : static_cast<std::size_t>(shape[shape.rank() - 1]);
  const std::size_t row = index / columns * columns, first = row + (index - row) / 16 * 16;
  double peak = 0;
  for (std::size_t i = first; i < std::min(first + 16, row + columns); ++i) peak = std::max(peak, std::fabs(reference[i]));
  return std::isfinite(peak) ? peak : 0;
}

// The loops below read a million elements in a millisecond or two, because the compiler vectorises them: maxima of sizes are
// taken as integers (bits of doubles that are not negative are ordered like their values, and a NaN needs no thought), and sums
// may be taken in any order.
#ifdef __clang__
#define TENON_SUMS_IN_ANY_ORDER _Pragma("clang fp reassociate(on)")
#else
#define TENON_SUMS_IN_ANY_ORDER
#endif
#if defined(__x86_64__) && !defined(__AVX2__)
// Compiled twice, and chosen when the program starts.
#define TENON_WIDE __attribute__((target("avx2")))
const bool kHasWide = __builtin_cpu_supports("avx2") != 0;
#endif

std::int64_t bits(double value) { return std::bit_cast<std::int64_t>(value); }
double value_of(std::int64_t bits) { return std::bit_cast<double>(bits); }
constexpr double kLargestDouble = std::numeric_limits<double>::max();

// Sums over the elements that are finite on both sides, and the largest reference value: what the second pass needs.
struct Ranges {
  double scale = 0;    // the largest finite reference value
  double largest = 0;  // of both sides, where both are finite
  double sum_a = 0, sum_b = 0;
  std::int64_t count = 0, unlike_a = 0, unlike_b = 0;  // elements that are not those of |first|

  bool is_constant() const { return unlike_a == 0 || unlike_b == 0; }
  void add(const Ranges& other) {
    scale = std::max(scale, other.scale);
    largest = std::max(largest, other.largest);
    sum_a += other.sum_a;
    sum_b += other.sum_b;
    count += other.count;
    unlike_a += other.unlike_a;
    unlike_b += other.unlike_b;
  }
};

// Sums of the deviations from the means, for Pearson's correlation.
struct Deviations {
  double ab = 0, aa = 0, bb = 0;
  bool is_equal = true;

  void add(const Deviations& other) {
    ab += other.ab;
    aa += other.aa;
    bb += other.bb;
    is_equal = is_equal && other.is_equal;
  }
};

struct Pair {
  double a = 0, b = 0;
};

// The first elements that are finite on both sides.
Pair first_finite(const HostArray& result, std::span<const double> reference) {
  for (std::size_t i = 0; i < reference.size(); ++i)
    if (const double a = result.value(static_cast<std::int64_t>(i)); std::isfinite(a) && std::isfinite(reference[i]))
      return {a, reference[i]};
  return {};
}

[[gnu::always_inline]] inline Ranges ranges_body(const double* values, const double* reference, std::size_t size, Pair first) {
  TENON_SUMS_IN_ANY_ORDER
  std::int64_t scale = 0, largest = 0, count = 0, unlike_a = 0, unlike_b = 0;
  double sum_a = 0, sum_b = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const double a = values[i], b = reference[i];
    const double size_a = std::fabs(a), size_b = std::fabs(b);
    const bool is_known_b = size_b <= kLargestDouble, both = is_known_b & (size_a <= kLargestDouble);
    const std::int64_t bits_a = both ? bits(size_a) : 0, bits_b = is_known_b ? bits(size_b) : 0, both_b = both ? bits_b : 0;
    scale = std::max(scale, bits_b);
    largest = std::max(largest, std::max(bits_a, both_b));
    // Scaled, so that the sum of many of the largest doubles stays finite.
    sum_a += both ? a * 0x1p-64 : 0;
    sum_b += both ? b * 0x1p-64 : 0;
    count += both;
    unlike_a += both & (a != first.a);
    unlike_b += both & (b != first.b);
  }
  return {value_of(scale), value_of(largest), sum_a, sum_b, count, unlike_a, unlike_b};
}

Ranges ranges_narrow(const double* values, const double* reference, std::size_t size, Pair first) {
  return ranges_body(values, reference, size, first);
}
#ifdef TENON_WIDE
TENON_WIDE Ranges ranges_wide(const double* values, const double* reference, std::size_t size, Pair first) {
  return ranges_body(values, reference, size, first);
}
#endif

Ranges ranges_of(std::span<const double> values, std::span<const double> reference, Pair first) {
#ifdef TENON_WIDE
  if (kHasWide) return ranges_wide(values.data(), reference.data(), values.size(), first);
#endif
  return ranges_narrow(values.data(), reference.data(), values.size(), first);
}

// Errors of elements that are finite on both sides, in a format whose ULPs are normal doubles.
struct PlainErrors {
  double max_abs = 0, max_rel = 0, max_ulp = 0;
  std::int64_t mismatches = 0;
  std::array<std::int64_t, kUlpEdges.size()> at_least{};  // elements whose error is this many ULP or more
};
struct PlainLimits {
  Format format;
  double allowed_ulp = 0, allowed = 0;
};

// |ulps| gets the error of each.
[[gnu::always_inline]] inline PlainErrors plain_body(const double* values, const double* wanted, std::size_t size,
                                                     const PlainLimits& limits, double* ulps) {
  const double smallest = power_of_two(limits.format.min_exponent), allowed_ulp = limits.allowed_ulp, allowed = limits.allowed;
  const std::uint64_t turn = static_cast<std::uint64_t>(2 * 1023 + limits.format.mantissa_bits) << 52;
  std::int64_t max_abs = 0, max_rel = 0, max_ulp = 0, mismatches = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const double error = std::fabs(values[i] - wanted[i]), magnitude = std::fabs(wanted[i]);
    // One over the ULP at |magnitude|: the power of two in it, its exponent bits, negated.
    const double at_least = magnitude > smallest ? magnitude : smallest;
    const double ulp =
        error * value_of(static_cast<std::int64_t>(turn - (std::bit_cast<std::uint64_t>(at_least) & 0x7ff0000000000000)));
    const double relative = magnitude > 0 ? error / magnitude : 0;
    ulps[i] = ulp;
    max_abs = std::max(max_abs, bits(error));
    max_rel = std::max(max_rel, bits(relative));
    max_ulp = std::max(max_ulp, bits(ulp));
    mismatches += (ulp > allowed_ulp) & (error > allowed);
  }
  PlainErrors errors{value_of(max_abs), value_of(max_rel), value_of(max_ulp), mismatches, {}};
  errors.at_least[0] = static_cast<std::int64_t>(size);
  // Most results are within the first edges.
  for (std::size_t edge = 1; edge < kUlpEdges.size() && errors.max_ulp >= kUlpEdges[edge]; ++edge) {
    std::int64_t count = 0;
    for (std::size_t i = 0; i < size; ++i) count += ulps[i] >= kUlpEdges[edge];
    errors.at_least[edge] = count;
  }
  return errors;
}

PlainErrors plain_narrow(const double* values, const double* wanted, std::size_t size, const PlainLimits& limits, double* ulps) {
  return plain_body(values, wanted, size, limits, ulps);
}
#ifdef TENON_WIDE
TENON_WIDE PlainErrors plain_wide(const double* values, const double* wanted, std::size_t size, const PlainLimits& limits,
                                  double* ulps) {
  return plain_body(values, wanted, size, limits, ulps);
}
#endif

struct Scaling {
  double factor = 1, mean_a = 0, mean_b = 0;
};

[[gnu::always_inline]] inline Deviations deviations_body(const double* values, const double* wanted, std::size_t size,
                                                         Scaling scaling) {
  TENON_SUMS_IN_ANY_ORDER
  double ab = 0, aa = 0, bb = 0;
  std::int64_t differ = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const double a = values[i], b = wanted[i];
    const bool both = (std::fabs(a) <= kLargestDouble) & (std::fabs(b) <= kLargestDouble);
    const double da = both ? a * scaling.factor - scaling.mean_a : 0, db = both ? b * scaling.factor - scaling.mean_b : 0;
    differ += both & (a != b);
    ab += da * db;
    aa += da * da;
    bb += db * db;
  }
  return {ab, aa, bb, differ == 0};
}

Deviations deviations_narrow(const double* values, const double* wanted, std::size_t size, Scaling scaling) {
  return deviations_body(values, wanted, size, scaling);
}
#ifdef TENON_WIDE
TENON_WIDE Deviations deviations_wide(const double* values, const double* wanted, std::size_t size, Scaling scaling) {
  return deviations_body(values, wanted, size, scaling);
}
#endif

// The second pass over one part of the tensor. Counts are those of Comparison.
class Judge {
 public:
  Judge(DType dtype, const Shape& shape, std::span<const double> reference, const Ranges& ranges)
      : shape_(shape),
        reference_(reference),
        format_(format_of(dtype)),
        is_float_(is_float(dtype)),
        is_block_(is_block(dtype)),
        dtype_(dtype),
        tolerance_(tolerance_of(dtype)),
        allowed_(ranges.scale * tolerance_.scale),
        factor_(ranges.largest > 0 ? power_of_two(std::clamp(-std::ilogb(ranges.largest), -1022, 1022)) : 1),
        scaling_{factor_, ranges.count > 0 ? ranges.sum_a / static_cast<double>(ranges.count) * 0x1p64 * factor_ : 0,
                 ranges.count > 0 ? ranges.sum_b / static_cast<double>(ranges.count) * 0x1p64 * factor_ : 0} {}

  void judge(std::span<const double> values, std::size_t first, Comparison& c, Deviations& d) const {
    const double* const wanted = reference_.data() + first;
    if (is_plain(values, wanted))
      judge_plain(values, first, c);
    else
      judge_any(values, first, c);
#ifdef TENON_WIDE
    if (kHasWide) return d.add(deviations_wide(values.data(), wanted, values.size(), scaling_));
#endif
    d.add(deviations_narrow(values.data(), wanted, values.size(), scaling_));
  }

 private:
  bool is_plain(std::span<const double> values, const double* wanted) const {
    if (!is_float_ || is_block_ || dtype_ == DType::f64) return false;
    std::int64_t beyond = 0;
    for (std::size_t i = 0; i < values.size(); ++i)
      beyond += !((std::fabs(values[i]) <= format_.largest) & (std::fabs(wanted[i]) <= format_.largest));
    return beyond == 0;
  }

  void judge_plain(std::span<const double> values, std::size_t first, Comparison& c) const {
    const double* const wanted = reference_.data() + first;
    const PlainLimits limits{format_, tolerance_.ulp, allowed_};
    std::array<double, kChunk> ulps;
#ifdef TENON_WIDE
    const PlainErrors errors = kHasWide ? plain_wide(values.data(), wanted, values.size(), limits, ulps.data())
                                        : plain_narrow(values.data(), wanted, values.size(), limits, ulps.data());
#else
    const PlainErrors errors = plain_narrow(values.data(), wanted, values.size(), limits, ulps.data());
#endif
    for (std::size_t edge = 0; edge < kUlpEdges.size(); ++edge)
      c.ulp_counts[edge] += errors.at_least[edge] - (edge + 1 < kUlpEdges.size() ? errors.at_least[edge + 1] : 0);
    c.max_abs = errors.max_abs;
    c.max_rel = errors.max_rel;
    c.mismatches += errors.mismatches;
    if (errors.max_ulp == 0) return;
    c.max_ulp = errors.max_ulp;
    c.worst = static_cast<std::int64_t>(first) + (std::find(ulps.begin(), ulps.end(), c.max_ulp) - ulps.begin());
  }

  void judge_any(std::span<const double> values, std::size_t first, Comparison& c) const {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::size_t at = first + i;
      const double value = values[i], wanted = reference_[at], rounded = rounded_to_dtype(wanted);
      c.nan += std::isnan(value);
      c.infinite += std::isinf(value);
      c.reference_nan += std::isnan(wanted);
      c.reference_infinite += std::isinf(rounded);
      if ((std::isnan(value) && std::isnan(wanted)) || value == wanted || value == rounded) {
        if (!std::isfinite(value)) continue;
      } else if (!std::isfinite(value) || !std::isfinite(wanted)) {
        ++c.mismatches;
        c.max_abs = c.max_rel = c.max_ulp = INFINITY;
        c.worst = static_cast<std::int64_t>(at);
        continue;
      }
      count(std::fabs(value - wanted), wanted, at, c);
    }
  }

  void count(double error, double wanted, std::size_t at, Comparison& c) const {
    const double ulp = is_float_ ? error / unit(is_block_ ? block_peak(shape_, reference_, at) : wanted, format_) : error;
    c.max_abs = std::max(c.max_abs, error);
    if (wanted != 0) c.max_rel = std::max(c.max_rel, error / std::fabs(wanted));
    if (ulp > c.max_ulp) {
      c.max_ulp = ulp;
      c.worst = static_cast<std::int64_t>(at);
    }
    const auto edge = std::upper_bound(kUlpEdges.begin(), kUlpEdges.end(), ulp);
    ++c.ulp_counts[static_cast<std::size_t>(edge - kUlpEdges.begin()) - 1];
    if (ulp > tolerance_.ulp && error > allowed_) ++c.mismatches;
  }

  // A reference value that overflows in the result's dtype counts as infinite. Only that matters: |value - wanted| is the error,
  // whatever the reference is rounded to.
  double rounded_to_dtype(double wanted) const {
    if (!is_float_ || dtype_ == DType::f64 || !(std::fabs(wanted) > format_.largest)) return wanted;
    return HostArray::full(DType::f64, {}, wanted).cast(is_block_ ? DType::f32 : dtype_).value(0);
  }

  const Shape& shape_;
  const std::span<const double> reference_;
  const Format format_;
  const bool is_float_, is_block_;
  const DType dtype_;
  const Tolerance tolerance_;
  const double allowed_, factor_;
  const Scaling scaling_;
};

// |part| is of later elements.
void join(Comparison& all, const Comparison& part) {
  all.max_abs = std::max(all.max_abs, part.max_abs);
  all.max_rel = std::max(all.max_rel, part.max_rel);
  if (part.max_ulp > all.max_ulp) {
    all.max_ulp = part.max_ulp;
    all.worst = part.worst;
  }
  all.mismatches += part.mismatches;
  for (std::size_t i = 0; i < all.ulp_counts.size(); ++i) all.ulp_counts[i] += part.ulp_counts[i];
  all.nan += part.nan;
  all.reference_nan += part.reference_nan;
  all.infinite += part.infinite;
  all.reference_infinite += part.reference_infinite;
}

std::optional<double> correlation(const Ranges& ranges, const Deviations& d) {
  if (ranges.count == 0) return std::nullopt;
  if (d.is_equal) return 1.0;
  if (ranges.is_constant() || d.aa == 0 || d.bb == 0) return std::nullopt;
  return std::clamp(d.ab / std::sqrt(d.aa) / std::sqrt(d.bb), -1.0, 1.0);
}

// The elements [first, first + count) in double.
std::span<const double> doubles_of(const HostArray& array, std::int64_t first, std::int64_t count, std::span<double> buffer) {
  const auto at = static_cast<std::size_t>(first), size = static_cast<std::size_t>(count);
  if (array.dtype() == DType::f64) return array.view<double>().subspan(at, size);
  if (array.dtype() == DType::f32) {
    const float* const from = array.view<float>().data() + at;
    for (std::size_t i = 0; i < size; ++i) buffer[i] = from[i];
    return buffer.first(size);
  }
  const std::size_t bytes = element_bytes(array.dtype());
  const HostArray part = HostArray::borrow(array.dtype(), {count}, array.data() + at * bytes, nullptr);
  const HostArray converted = part.cast(DType::f64);
  std::ranges::copy(converted.view<double>(), buffer.begin());
  return buffer.first(size);
}

template <class T>
Comparison compare_integers(const HostArray& result, const HostArray& reference) {
  const T* const got = reference::data<T>(result);
  const T* const wanted = reference::data<T>(reference);
  Comparison c;
  for (std::int64_t i = 0; i < result.elements(); ++i) {
    if (got[i] == wanted[i]) {
      ++c.ulp_counts[0];
      continue;
    }
    const auto a = static_cast<long double>(got[i]), b = static_cast<long double>(wanted[i]);
    const auto error = static_cast<double>(a > b ? a - b : b - a);
    c.max_abs = std::max(c.max_abs, error);
    if (wanted[i] != 0) c.max_rel = std::max(c.max_rel, error / std::fabs(static_cast<double>(b)));
    if (error > c.max_ulp) {
      c.max_ulp = error;
      c.worst = i;
    }
    const auto edge = std::upper_bound(kUlpEdges.begin(), kUlpEdges.end(), error);
    ++c.ulp_counts[static_cast<std::size_t>(edge - kUlpEdges.begin()) - 1];
    ++c.mismatches;
  }
  return c;
}

}  // namespace

Tolerance tolerance_of(DType dtype) noexcept {
  if (!is_float(dtype)) return {};
  if (dtype == DType::f64) return {kUlpLimit, 1e-10};
  return {dtype == DType::f32 ? kUlpLimit : 2, kScaleLimit};
}

Comparison compare(const HostArray& given, std::span<const double> reference) {
  const DType dtype = given.dtype();
  const HostArray result = is_block(dtype) ? given.cast(DType::f32) : given;
  const std::int64_t elements = result.elements();
  const auto chunks = static_cast<std::size_t>((elements + kChunk - 1) / kChunk);
  std::vector<Ranges> ranges(chunks);
  std::vector<Comparison> comparisons(chunks);
  std::vector<Deviations> deviations(chunks);
  const auto each = [&](const auto& use) {
    in_chunks(
        elements,
        [&](std::int64_t first, std::int64_t count) {
          std::array<double, kChunk> buffer;
          use(static_cast<std::size_t>(first / kChunk), doubles_of(result, first, count, buffer),
              static_cast<std::size_t>(first));
        },
        kChunk);
  };
  const Pair first_pair = first_finite(result, reference);
  each([&](std::size_t chunk, std::span<const double> values, std::size_t first) {
    ranges[chunk] = ranges_of(values, reference.subspan(first, values.size()), first_pair);
  });
  Ranges all;
  for (const Ranges& part : ranges) all.add(part);
  const Judge judge(dtype, given.shape(), reference, all);
  each([&](std::size_t chunk, std::span<const double> values, std::size_t first) {
    judge.judge(values, first, comparisons[chunk], deviations[chunk]);
  });
  Comparison comparison;
  Deviations deviation;
  for (std::size_t i = 0; i < chunks; ++i) {
    join(comparison, comparisons[i]);
    deviation.add(deviations[i]);
  }
  comparison.pcc = correlation(all, deviation);
  return comparison;
}

Comparison compare(const HostArray& result, const HostArray& reference) {
  if (is_float(result.dtype())) return compare(result, reference.view<double>());
  // Pearson's correlation does not need exact integers.
  Comparison c = compare(result, reference.to_doubles());
  const std::optional<double> pcc = c.pcc;
  c = reference::with_type(result.dtype(), [&]<class T>(T) {
    if constexpr (std::is_integral_v<T>)
      return compare_integers<T>(result, reference);
    else
      return Comparison();
  });
  c.pcc = c.mismatches == 0 && result.elements() > 0 ? std::optional(1.0) : pcc;
  return c;
}

ComparedResults compare_with_reference(const Graph& graph, std::span<const HostArray> inputs,
                                       std::span<const HostArray> results) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<HostArray> reference = reference_unrounded(graph, inputs);
  ComparedResults compared;
  for (std::size_t i = 0; i < results.size(); ++i)
    compared.results.push_back({compare(results[i], reference[i]), std::move(reference[i])});
  compared.reference_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return compared;
}

}  // namespace tenon
