#include "codegen/stablehlo/conversion.h"

#include <cmath>
#include <limits>

#include "codegen/stablehlo/functions.h"

namespace tenon::stablehlo {
namespace {

Term bits_like(const Term& x, std::uint64_t value) {
  const Shape shape = x.shape();
  return x.writer().splat_bits(value, x.dtype(), shape);
}

struct Range {
  std::int64_t low;
  std::uint64_t high;
};
Range range_of(DType dtype) {
  const int bits = static_cast<int>(element_bytes(dtype)) * 8;
  const std::uint64_t all = ~std::uint64_t{0} >> (64 - bits);
  if (is_signed_integer(dtype)) return {-static_cast<std::int64_t>(all / 2) - 1, all / 2};
  return {0, all};
}

Term float_to_integer(const Term& x, DType to) {
  const Range range = range_of(to);
  const double low = static_cast<double>(range.low), beyond = 2 * static_cast<double>(range.high / 2 + 1);
  const Term below = x < low, above = x >= beyond;
  // The conversion is undefined out of range, so out-of-range values and NaN are replaced by 0.
  const Term inside = !(below | above | is_nan(x));
  const Term y = convert(select(inside, x, 0.0), to);
  const Term limited = select(below, bits_like(y, static_cast<std::uint64_t>(range.low)), y);
  return select(above, bits_like(y, range.high), limited);
}

Term integer_to_integer(const Term& x, DType to) {
  const Range from = range_of(x.dtype()), wanted = range_of(to);
  Term y = x;
  if (wanted.low > from.low) {
    const Term low = bits_like(y, static_cast<std::uint64_t>(wanted.low));
    y = select(y < low, low, y);
  }
  if (wanted.high < from.high) {
    const Term high = bits_like(y, wanted.high);
    y = select(y > high, high, y);
  }
  return convert(y, to);
}

// f64 to f32, rounded to odd, so that a second rounding to fewer bits is correct (Boldo and Melquiond, 2008).
Term narrow_to_odd(const Term& x) {
  const Term nearest = convert(x, DType::f32);
  const Term back = convert(nearest, DType::f64);
  const Term b = bitcast(nearest, DType::i32);
  const Term down = select(abs(back) > abs(x), b - 1.0, b);
  return bitcast(select((back == x) | is_nan(x), b, down | bits_like(b, 1)), DType::f32);
}

// 32- and 64-bit integers as f64 with at most 53 bits, rounded to odd if bits are lost.
Term integer_to_f64_sticky(const Term& x) {
  if (element_bytes(x.dtype()) < 8) return convert(x, DType::f64);
  const bool is_signed = is_signed_integer(x.dtype());
  const Term negative = is_signed ? x < 0.0 : x != x;
  const Term size = bitcast(is_signed ? select(negative, -x, x) : x, DType::u64);
  const Term lost = (size & bits_like(size, 0xffff)) != 0.0;
  const Term kept = (size & bits_like(size, ~std::uint64_t{0xffff})) | select(lost, bits_like(size, 0x10000), size.like(0));
  const Term large = size > bits_like(size, std::uint64_t{1} << 40);
  const Term y = convert(select(large, kept, size), DType::f64);
  return select(negative, -y, y);
}

// f32 rounded to bf16, kept as f32.
Term round_bf16(const Term& x) {
  const Term b = bitcast(x, DType::u32);
  const Term odd = (b >> 16) & bits_like(b, 1);
  const Term rounded = (b + odd + bits_like(b, 0x7fff)) & bits_like(b, 0xffff0000u);
  return select(is_nan(x), x, bitcast(rounded, DType::f32));
}
// f32 rounded to f16, kept as f32.
Term round_f16(const Term& x) {
  const Term t = abs(x);
  const Term b = bitcast(t, DType::u32);
  const Term odd = (b >> 13) & bits_like(b, 1);
  const Term normal = bitcast((b + odd + bits_like(b, 0xfff)) & bits_like(b, 0xffffe000u), DType::f32);
  const Term subnormal = rint(t * 0x1p24) * 0x1p-24;
  const Term size = select(t < 0x1p-14, subnormal, select(normal >= 65536.0, std::numeric_limits<double>::infinity(), normal));
  return select(is_nan(x), x, copysign(size, x));
}

// Rounds as in a block of sixteen adjacent elements with one exponent: the rule of docs/dtypes.md in integers.
Term round_block(const Term& x, int magnitude_bits) {
  const Shape shape = x.shape();
  if (shape.elements() == 0) return x;
  Writer& w = x.writer();
  const std::int64_t row = shape.rank() == 0 ? 1 : shape[shape.rank() - 1];
  const std::int64_t rows = shape.elements() / row, runs = (row + 15) / 16;
  const std::int64_t start[] = {0, 0};
  const Term flat = reshape(x, {rows, row});
  const Term padded = pad(flat, w.splat(0, DType::f32, {}), start, {rows, runs * 16});
  const Term b = reshape(bitcast(padded, DType::i32), {rows, runs, 16});
  const Term exponent = (b >> 23) & bits_like(b, 0xff);
  const std::int64_t last[] = {2}, kept[] = {0, 1};
  const Term shared = broadcast(reduce("maximum", exponent, 0, last), {rows, runs, 16}, kept);

  const Term fraction = b & bits_like(b, 0x7fffff);
  const Term not_number = (exponent == 255.0) & (fraction != 0.0);
  const Term significand = fraction | bits_like(b, 0x800000) | select(not_number, bits_like(b, 0x400000), b.like(0));
  const Term difference = shared - exponent;
  const Term amount = select(difference > 31.0, 31.0, difference);
  const Term shifted = binary("shift_right_logical", significand, amount);
  const int dropped = 24 - magnitude_bits;
  const std::int64_t largest = (std::int64_t{1} << magnitude_bits) - 1, top = std::int64_t{1} << (magnitude_bits - 1);
  const Term odd = (shifted >> dropped) & bits_like(b, 1);
  const Term rounded = (shifted + static_cast<double>((1 << (dropped - 1)) - 1) + odd) >> dropped;
  const Term limited = select(rounded > static_cast<double>(largest), static_cast<double>(largest), rounded);
  const Term magnitude = select(exponent == 0.0, 0.0, limited);

  // 2^(E - 127 - (bits - 1)) in two factors, both normal.
  const auto power = [](const Term& e) { return bitcast((e + 127.0) << 23, DType::f32); };
  const Term unit_exponent = shared - static_cast<double>(127 + magnitude_bits - 1);
  const Term half = unit_exponent >> 1;
  const Term size = convert(magnitude, DType::f32) * power(half) * power(unit_exponent - half);
  constexpr double kInfinity = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();
  const Term special = select(magnitude == static_cast<double>(top), size.like(kInfinity), size.like(kNan));
  const Term value = select((shared == 255.0) & (magnitude >= static_cast<double>(top)), special, size);
  const Term signed_value = select((b < 0.0) & (magnitude != 0.0), -value, value);
  const std::int64_t step[] = {1, 1};
  return reshape(slice(reshape(signed_value, {rows, runs * 16}), start, step, {rows, row}), shape);
}

// Prepares a value for rounding to |to|: as f32, or rounded to odd.
Term round_to(const Term& x, DType to) {
  switch (to) {
    case DType::f16: return round_f16(x);
    case DType::bf16: return round_bf16(x);
    case DType::bfloat8_b: return round_block(x, 7);
    case DType::bfloat4_b: return round_block(x, 3);
    default: return x;
  }
}

Term to_float(const Term& x, DType to) {
  if (compute_dtype(to) == to) return convert(x, to);
  if (x.dtype() == DType::f32) return round_to(x, to);
  // Block formats start from f32, whatever came before.
  if (is_block(to)) return round_to(convert(x, DType::f32), to);
  if (x.dtype() == DType::f64) return round_to(narrow_to_odd(x), to);
  if (element_bytes(x.dtype()) <= 2) return round_to(convert(x, DType::f32), to);
  return round_to(narrow_to_odd(integer_to_f64_sticky(x)), to);
}

}  // namespace

Term to_boolean(const Term& x) {
  if (x.dtype() == DType::boolean) return x;
  if (!is_float(x.dtype())) return x != 0.0;
  // Compares bits, because a device that flushes subnormals to zero would convert them to false.
  const bool is_wide = x.dtype() == DType::f64;
  const Term b = bitcast(x, is_wide ? DType::i64 : DType::i32);
  return (b & bits_like(b, is_wide ? ~std::uint64_t{0} >> 1 : 0x7fffffffu)) != 0.0;
}

// Uses bits rather than a conversion, because some compilers for machines with 16-bit arithmetic get the conversion wrong.
Term stored(const Term& x, DType to) {
  if (to == DType::bf16) {
    const Term b = bitcast(round_bf16(x), DType::u32);
    const Term quiet = select(is_nan(x), bits_like(b, 0x400000), b.like(0));
    return bitcast(convert((b | quiet) >> 16, DType::u16), DType::bf16);
  }
  if (to == DType::f16) {
    const Term rounded = round_f16(x);
    const Term t = abs(rounded), b = bitcast(t, DType::u32);
    const Term subnormal = convert(select(t < 0x1p-14, t * 0x1p24, 0.0), DType::u32);
    const Term normal = (b - bits_like(b, 112u << 23)) >> 13;
    const Term special = select(is_nan(x), bits_like(b, 0x7e00), bits_like(b, 0x7c00));
    const Term size = select(t < 0x1p-14, subnormal, select(t < 65536.0, normal, special));
    const Term sign = (bitcast(x, DType::u32) >> 16) & bits_like(b, 0x8000);
    return bitcast(convert(size | sign, DType::u16), DType::f16);
  }
  return is_block(to) ? x : convert(x, to);
}

Term cast(const Term& x, DType from, DType to) {
  if (to == DType::boolean) return to_boolean(x);
  if (from == DType::boolean) return to_float(convert(x, DType::u8), to);
  if (is_float(to)) return to_float(x, to);
  return is_float(from) ? float_to_integer(x, to) : integer_to_integer(x, to);
}

Term ordered_key(const Term& x, bool nan_is_largest) {
  if (x.dtype() == DType::boolean) return convert(x, DType::u8);
  if (!is_float(x.dtype())) return x;
  const bool is_wide = x.dtype() == DType::f64;
  const Term b = bitcast(x, is_wide ? DType::i64 : DType::i32);
  const Term size = b & bits_like(b, is_wide ? ~std::uint64_t{0} >> 1 : 0x7fffffffu);
  const Term key = select(b < 0.0, -size, size);
  const Range range = range_of(b.dtype());
  return select(is_nan(x), bits_like(key, nan_is_largest ? range.high : static_cast<std::uint64_t>(range.low)), key);
}

}  // namespace tenon::stablehlo
