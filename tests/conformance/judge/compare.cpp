#include "conformance/judge/compare.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "array/block_format.h"
#include "conformance/judge/limits.h"

namespace tenon::conformance {
namespace {

using Doubles = std::vector<double>;

void fail(Comparison& c, const Mismatch& m) {
  ++c.failures;
  if (!c.worst || m.error_ulp > c.worst->error_ulp || std::isnan(m.error_ulp)) c.worst = m;
}

Comparison compare_exact(const HostArray& got, const Bounded& expected) {
  Comparison c{.elements = got.elements()};
  if (expected.error.empty() && std::memcmp(got.data(), expected.value.data(), got.bytes()) == 0) return c;
  const std::size_t size = element_bytes(got.dtype());
  for (std::int64_t i = 0; i < got.elements(); ++i) {
    const std::size_t at = static_cast<std::size_t>(i) * size;
    if (std::memcmp(got.data() + at, expected.value.data() + at, size) == 0) continue;
    const double y = got.value(i), v = expected.value.value(i), limit = expected.error_at(i);
    if (std::isinf(limit)) {
      ++c.unchecked;
    } else {
      ++c.not_rounded;
      const double error = std::max(std::abs(y - v), 1.0);  // 64-bit integers may agree as doubles
      c.worst_ulp = std::max(c.worst_ulp, error);
      if (limit == 0 || error > limit) fail(c, {i, y, v, error, limit});
    }
  }
  return c;
}

HostArray doubles_as(const Shape& shape, const Doubles& values, DType dtype) {
  return HostArray::from<double>(shape, values).cast(dtype);
}

// |v| moved by |direction| times its bound and rounded to |dtype|.
Doubles rounded(const Bounded& expected, const Doubles& v, double direction, DType dtype) {
  Doubles moved = v;
  if (direction != 0)
    for (std::size_t i = 0; i < moved.size(); ++i) {
      const double e = expected.error_at(static_cast<std::int64_t>(i));
      if (e != 0) moved[i] += direction * e;
    }
  return doubles_as(expected.value.shape(), moved, dtype).to_doubles();
}

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// How far apart, in ulps of |unit|; an infinity stands one step beyond the largest number.
double distance(double y, double v, double unit) {
  if (std::isnan(y) || std::isnan(v)) return std::isnan(y) == std::isnan(v) ? 0 : std::numeric_limits<double>::infinity();
  if (y == v) return 0;
  if (std::isinf(v)) return std::numeric_limits<double>::infinity();
  return std::abs(y - v) / unit;
}

Comparison compare_floats(const HostArray& got, const Bounded& expected, bool zero_sign) {
  const DType dtype = got.dtype();
  const bool narrow = dtype == DType::f16 || dtype == DType::bf16;
  Comparison c{.elements = got.elements()};
  const Doubles y = got.to_doubles(), v = expected.value.to_doubles();
  const Doubles nearest = rounded(expected, v, 0, dtype), low = rounded(expected, v, -1, dtype),
                high = rounded(expected, v, 1, dtype);
  // f16 and bf16 are computed in f32: the nearest f32, rounded, is right as well where the two roundings differ.
  const Doubles through = narrow ? doubles_as(got.shape(), rounded(expected, v, 0, DType::f32), dtype).to_doubles() : nearest;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double e = expected.error_at(static_cast<std::int64_t>(i));
    if (std::isinf(e)) {
      ++c.unchecked;
      continue;
    }
    if ((same(y[i], nearest[i]) || same(y[i], through[i])) &&
        !(zero_sign && y[i] == 0 && v[i] == 0 && std::signbit(y[i]) != std::signbit(v[i]))) {
      if (std::isfinite(v[i]) && std::isfinite(y[i])) c.worst_ulp = std::max(c.worst_ulp, distance(y[i], v[i], ulp(v[i], dtype)));
      continue;
    }
    // A result that may have been flushed to zero tells nothing about rounding.
    if (!(expected.flushes_subnormals && e > ulp(v[i], dtype))) ++c.not_rounded;
    const bool within = narrow || std::isinf(y[i]) ? low[i] <= y[i] && y[i] <= high[i] : std::abs(y[i] - v[i]) <= e;
    const double unit = ulp(v[i], dtype), error = distance(y[i], v[i], unit);
    if (!narrow && std::isfinite(y[i]) && e > 0) c.worst_share = std::max(c.worst_share, std::abs(y[i] - v[i]) / e);
    if (within && y[i] != nearest[i]) {
      if (std::isfinite(y[i])) c.worst_ulp = std::max(c.worst_ulp, error);
      continue;
    }
    if (std::isfinite(error)) c.worst_ulp = std::max(c.worst_ulp, error);
    fail(c, {static_cast<std::int64_t>(i), y[i], v[i], error, e / unit + (narrow ? 0.5 : 0)});
  }
  return c;
}

// The distance between neighbours in each element's block of 16.
Doubles grid_steps(const Shape& shape, const Doubles& values, DType dtype) {
  const std::int64_t cols = shape.rank() == 0 ? 1 : shape[shape.rank() - 1];
  Doubles steps(values.size(), 0.0);
  for (std::int64_t first = 0; first < static_cast<std::int64_t>(values.size()); first += cols)
    for (std::int64_t block = 0; block < cols; block += kBlockElements) {
      const std::int64_t end = std::min(block + kBlockElements, cols);
      double largest = 0;
      for (std::int64_t i = block; i < end; ++i)
        largest = std::fmax(largest, std::abs(values[static_cast<std::size_t>(first + i)]));
      const double step = largest == 0          ? 0
                          : std::isinf(largest) ? std::numeric_limits<double>::infinity()
                                                : std::ldexp(1.0, std::ilogb(largest) - (dtype == DType::bfloat8_b ? 6 : 2));
      for (std::int64_t i = block; i < end; ++i) steps[static_cast<std::size_t>(first + i)] = step;
    }
  return steps;
}

Comparison compare_blocks(const HostArray& got, const Bounded& expected) {
  const DType dtype = got.dtype();
  Comparison c{.elements = got.elements()};
  const Doubles y = got.to_doubles(), v = expected.value.to_doubles(), nearest = rounded(expected, v, 0, dtype);
  Doubles outward = v;
  bool unknown = false;
  for (std::size_t i = 0; i < v.size(); ++i) {
    const double e = expected.error_at(static_cast<std::int64_t>(i));
    unknown = unknown || std::isinf(e);
    if (e != 0) outward[i] += v[i] < 0 ? -e : e;
  }
  const Doubles steps = grid_steps(got.shape(), doubles_as(got.shape(), outward, dtype).to_doubles(), dtype);
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (same(y[i], nearest[i])) continue;
    if (unknown) {
      ++c.unchecked;  // an unknown neighbour may have set the exponent
      continue;
    }
    ++c.not_rounded;
    const double step = expected.error.empty() ? 0 : steps[i], error = std::abs(y[i] - nearest[i]);
    const double in_steps = step == 0 || std::isnan(error) ? std::numeric_limits<double>::infinity() : error / step;
    if (std::isfinite(in_steps)) c.worst_ulp = std::max(c.worst_ulp, in_steps);
    if (!(in_steps <= 1)) fail(c, {static_cast<std::int64_t>(i), y[i], nearest[i], in_steps, step == 0 ? 0.0 : 1.0});
  }
  return c;
}

}  // namespace

Comparison compare(const HostArray& got, const Bounded& expected, bool zero_sign) {
  if (!is_float(got.dtype())) return compare_exact(got, expected);
  if (is_block(got.dtype())) return compare_blocks(got, expected);
  return compare_floats(got, expected, zero_sign);
}

}  // namespace tenon::conformance
