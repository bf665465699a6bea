#include "conformance/cases/values.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "tenon/error.h"

namespace tenon::conformance {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t bits() { return mix(state_ += 0x9E3779B97F4A7C15u, 0); }
  double unit() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  double between(double low, double high) { return low + (high - low) * unit(); }
  double sign() { return bits() & 1 ? 1 : -1; }
  std::int64_t below(std::int64_t n) { return n <= 0 ? 0 : static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(n)); }

 private:
  std::uint64_t state_;
};

struct Range {
  double smallest, smallest_normal, largest;
};

Range range_of(DType dtype) {
  switch (dtype) {
    case DType::f16: return {0x1p-24, 0x1p-14, 65504};
    case DType::bf16: return {0x1p-133, 0x1p-126, 0x1.FEp127};
    case DType::f64: return {0x1p-1074, 0x1p-1022, std::numeric_limits<double>::max()};
    case DType::bfloat8_b:
    case DType::bfloat4_b: return {0x1p-126, 0x1p-126, 0x1p127};
    default: return {0x1p-149, 0x1p-126, std::numeric_limits<float>::max()};
  }
}

std::vector<double> float_specials(DType dtype) {
  const Range r = range_of(dtype);
  const double next = dtype == DType::f64 ? 0x1p-52 : dtype == DType::f16 ? 0x1p-10 : dtype == DType::bf16 ? 0x1p-7 : 0x1p-23;
  if (is_block(dtype)) return {0, 1, -1, 0.5, 2, -3, 1.75, 0.25, 100, -0.125, 1e-10, kInfinity, 1, -kInfinity, kNan, 7};
  return {0,          -0.0,       1,   -1,     kNan,  kInfinity, -kInfinity,   r.smallest, -r.smallest, r.smallest_normal,
          r.largest,  -2.5,       0.5, -0.5,   2,     1 + next,  1 - next / 2, -1 - next,  -r.largest,  -r.smallest_normal,
          3,          -3,         1.5, 1e-3,   -1e-5, 10,        88.5,         -87.5,      -103.5,      127.75,
          3.14159274, 1.57079637, 20,  -20,    709.5, -745,      1e4,          100.5,      1e7,         -1e10,
          1e20,       -0.9999,    5.5, -36.75, 0.25,  170.5};
}

// Few enough that their third power is still small.
constexpr std::size_t kPairSpecials = 30, kTripleSpecials = 11;

std::vector<std::int64_t> integer_specials(DType dtype) {
  const int bits = static_cast<int>(element_bytes(dtype)) * 8;
  std::vector<std::int64_t> values{0, 1, 2, 3, 7, 8, 31, 63, 100};
  if (is_signed_integer(dtype)) {
    const std::int64_t highest = static_cast<std::int64_t>(~std::uint64_t{0} >> (65 - bits));
    for (std::int64_t v : {highest, -highest - 1, highest - 1, -highest, std::int64_t{-1}, std::int64_t{-2}, std::int64_t{-7}})
      values.insert(values.begin() + 2, v);
  } else if (dtype != DType::boolean) {
    const std::uint64_t highest = ~std::uint64_t{0} >> (64 - bits);
    for (std::uint64_t v : {highest, highest - 1, highest / 2, highest / 2 + 1})
      values.insert(values.begin() + 2, static_cast<std::int64_t>(v));
  } else {
    values = {0, 1};
  }
  return values;
}

std::size_t special_values(DType dtype, int operands) {
  const std::size_t all = is_float(dtype) ? float_specials(dtype).size() : integer_specials(dtype).size();
  if (operands == 2) return std::min(all, kPairSpecials);
  if (operands >= 3) return std::min(all, kTripleSpecials);
  return all;
}

// The place of element i of the grid on |operand|'s axis.
std::size_t special_index(const Fill& fill, DType dtype, std::int64_t i) {
  const std::size_t n = special_values(dtype, fill.operands);
  std::size_t rest = static_cast<std::size_t>(i);
  for (int k = fill.operands - 1; k > fill.operand; --k) rest /= n;
  return rest % n;
}

// Any number of the type, all bit patterns equally likely: every exponent as often as any other, and the subnormals as one.
double any_number(DType dtype, Random& random) {
  if (is_block(dtype)) return random.sign() * std::exp2(random.between(-20, 20));
  const Range r = range_of(dtype);
  const int lowest_normal = std::ilogb(r.smallest_normal), digits = lowest_normal - std::ilogb(r.smallest);
  const int exponent = lowest_normal - 1 + static_cast<int>(random.below(std::ilogb(r.largest) - lowest_normal + 2));
  const double fraction = std::ldexp(static_cast<double>(random.below(std::int64_t{1} << digits)), -digits);
  return random.sign() * (exponent < lowest_normal ? std::ldexp(fraction, lowest_normal) : std::ldexp(1 + fraction, exponent));
}

double mixed(DType dtype, Random& random) {
  switch (random.below(4)) {
    case 0: return random.between(-8, 8);
    case 1: return random.between(-1, 1);
    case 2: return any_number(dtype, random);
    default: return random.sign() * std::exp2(random.between(-12, 8));
  }
}

double float_value(const Fill& fill, DType dtype, Random& random) {
  switch (fill.values) {
    case Values::mixed: return mixed(dtype, random);
    case Values::small:
    case Values::hard_rows: return random.between(-2, 2);
    case Values::unit: return random.between(0.05, 0.95);
    case Values::above_one: return random.between(1, 3);
    case Values::positive: return random.between(0.25, 4);
    case Values::negative: return random.between(-4, -0.05);
    case Values::wide: return random.sign() * std::exp2(random.between(-13, 13));
    case Values::near_one: return random.sign() * random.between(0.75, 4.0 / 3);
    case Values::ties: {
      constexpr double choices[] = {-2, -1, -0.0, 0, 0.5, 1, 1, 3, kInfinity, -kInfinity, kNan};
      return choices[random.below(11)];
    }
    case Values::mask: return static_cast<double>(random.below(2));
    case Values::one: return 1;
    default: return 0;
  }
}

std::int64_t integer_value(const Fill& fill, DType dtype, Random& random) {
  const bool is_signed = is_signed_integer(dtype);
  switch (fill.values) {
    case Values::mixed:
      return random.below(2) ? static_cast<std::int64_t>(random.bits())
                             : random.below(is_signed ? 21 : 12) - (is_signed ? 10 : 0);
    case Values::wide: return static_cast<std::int64_t>(random.bits());
    case Values::small:
    case Values::ties:
    case Values::hard_rows: return is_signed ? random.below(11) - 5 : random.below(10);
    case Values::positive:
    case Values::above_one: return 1 + random.below(9);
    case Values::negative: return is_signed ? -1 - random.below(9) : random.below(3);
    case Values::near_one: return is_signed && random.below(4) == 0 ? -1 : 1 + random.below(3);
    case Values::index: return is_signed ? random.below(2 * fill.limit) - fill.limit : random.below(fill.limit);
    case Values::class_index: return random.below(fill.limit);
    case Values::unit:
    case Values::mask: return random.below(2);
    case Values::one: return 1;
    default: return 0;
  }
}

// Rows 1 to 4 of the last axis.
void spoil_rows(std::vector<double>& values, const Shape& shape) {
  const std::int64_t cols = shape.rank() == 0 ? 1 : shape[shape.rank() - 1];
  if (cols == 0) return;
  const std::int64_t rows = static_cast<std::int64_t>(values.size()) / cols;
  const auto at = [&](std::int64_t row, std::int64_t col) -> double& {
    return values[static_cast<std::size_t>(row * cols + col)];
  };
  if (rows > 1) at(1, cols / 2) = kNan;
  if (rows > 2) at(2, cols - 1) = kInfinity;
  if (rows > 3) at(3, 0) = -kInfinity;
  for (std::int64_t i = 0; rows > 4 && i < cols; ++i) at(4, i) = -kInfinity;
}

HostArray filled_floats(const Fill& fill, DType dtype, const Shape& shape, Random& random) {
  const std::size_t n = static_cast<std::size_t>(shape.elements());
  if (fill.values == Values::every) {
    HostArray array = HostArray::empty(dtype, shape);
    std::byte* to = array.mutable_data();
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint16_t bits = static_cast<std::uint16_t>(i);
      std::memcpy(to + 2 * i, &bits, 2);
    }
    return array;
  }
  std::vector<double> values(n);
  if (fill.values == Values::special) {
    const std::vector<double> choices = float_specials(dtype);
    for (std::size_t i = 0; i < n; ++i) values[i] = choices[special_index(fill, dtype, static_cast<std::int64_t>(i))];
  } else {
    for (double& v : values) v = float_value(fill, dtype, random);
    if (fill.values == Values::hard_rows && !is_block(dtype)) spoil_rows(values, shape);
  }
  return HostArray::from<double>(shape, values).cast(dtype);
}

HostArray filled_integers(const Fill& fill, DType dtype, const Shape& shape, Random& random) {
  HostArray array = HostArray::empty(dtype, shape);
  std::byte* to = array.mutable_data();
  const std::size_t bytes = element_bytes(dtype);
  const std::vector<std::int64_t> choices = integer_specials(dtype);
  for (std::int64_t i = 0; i < shape.elements(); ++i) {
    std::int64_t v = fill.values == Values::special ? choices[special_index(fill, dtype, i)] : integer_value(fill, dtype, random);
    if (dtype == DType::boolean) v &= 1;
    std::memcpy(to + static_cast<std::size_t>(i) * bytes, &v, bytes);  // little endian: the low bytes come first
  }
  return array;
}

}  // namespace

std::uint64_t mix(std::uint64_t a, std::uint64_t b) noexcept {
  std::uint64_t z = a + b * 0xD6E8FEB86659FD93u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

std::int64_t special_count(DType dtype, int operands) {
  const std::int64_t n = static_cast<std::int64_t>(special_values(dtype, operands));
  std::int64_t count = n;
  for (int i = 1; i < operands; ++i) count *= n;
  return count;
}

HostArray filled(const Fill& fill, DType dtype, const Shape& shape, std::uint64_t seed) {
  Random random(seed);
  return is_float(dtype) ? filled_floats(fill, dtype, shape, random) : filled_integers(fill, dtype, shape, random);
}

}  // namespace tenon::conformance
