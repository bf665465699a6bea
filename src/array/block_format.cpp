#include "array/block_format.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

namespace tenon {
namespace {

constexpr std::int64_t kFaceRows = 16;
constexpr std::int64_t kExponents = 64;

struct Matrices {
  std::int64_t count, rows, cols, tile_rows, tile_cols;
};

Matrices matrices_of(const Shape& shape) noexcept {
  Matrices m{};
  m.cols = shape.rank() >= 1 ? shape[shape.rank() - 1] : 1;
  m.rows = shape.rank() >= 2 ? shape[shape.rank() - 2] : 1;
  m.count = shape.elements() == 0 ? 0 : shape.elements() / (m.rows * m.cols);
  m.tile_rows = (m.rows + kTileSide - 1) / kTileSide;
  m.tile_cols = (m.cols + kTileSide - 1) / kTileSide;
  return m;
}

struct Bfp8 {
  static constexpr int kBits = 7;
  static constexpr std::int64_t kRowBytes = 16;
  static void put(const std::uint32_t* codes, std::uint8_t* out) noexcept {
    for (int i = 0; i < 16; ++i) out[i] = static_cast<std::uint8_t>(codes[i]);
  }
  static std::uint32_t get(const std::uint8_t* row, std::int64_t i) noexcept { return row[i]; }
};

struct Bfp4 {
  static constexpr int kBits = 3;
  static constexpr std::int64_t kRowBytes = 8;
  static void put(const std::uint32_t* codes, std::uint8_t* out) noexcept {
    for (int i = 0; i < 8; ++i) out[i] = static_cast<std::uint8_t>(codes[2 * i] | codes[2 * i + 1] << 4);
  }
  static std::uint32_t get(const std::uint8_t* row, std::int64_t i) noexcept { return (row[i / 2] >> (4 * (i % 2))) & 0xfu; }
};

// Loops over a run use signed integers, because baseline x86-64 has vector comparisons and conversions only for these.
template <class Format>
std::int32_t round_significand(std::int32_t significand) noexcept {
  constexpr int kDropped = 24 - Format::kBits;
  constexpr std::int32_t kLargest = (1 << Format::kBits) - 1;
  const std::int32_t odd = (significand >> kDropped) & 1;
  const std::int32_t rounded = (significand + (1 << (kDropped - 1)) - 1 + odd) >> kDropped;
  return rounded < kLargest ? rounded : kLargest;
}

// The plain rule, for any exponent.
template <class Format>
std::uint32_t encode_one(float value, int shared) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto exponent = static_cast<int>((bits >> 23) & 0xffu);
  if (exponent == 0) return 0;
  auto significand = static_cast<std::int32_t>((bits & 0x7fffffu) | 0x800000u);
  // A NaN with its payload only in the low bits would become infinity, so make it quiet.
  if ((bits & 0x7fffffffu) > 0x7f800000u) significand |= 0x400000;
  const std::int32_t magnitude = round_significand<Format>(significand >> std::min(shared - exponent, 31));
  return magnitude == 0 ? 0 : static_cast<std::uint32_t>(magnitude) | (bits >> 31) << Format::kBits;
}

int shared_exponent(const float* in) noexcept {
  std::int32_t largest = 0;
  for (int i = 0; i < 16; ++i) {
    const std::int32_t exponent = std::bit_cast<std::int32_t>(in[i]) & 0x7f800000;
    largest = exponent > largest ? exponent : largest;
  }
  return largest >> 23;
}

// Scaling by a power of two and truncating is the shift of the rule, for all sixteen at once: baseline x86-64 has no
// shift by different amounts. From exponent 24 on the scale is a normal float and subnormals truncate to zero.
bool is_ordinary(int shared) noexcept { return shared >= 24 && shared < 255; }

template <class Format>
std::int32_t ordinary_magnitude(float value, float scale) noexcept {
  const float size = std::bit_cast<float>(std::bit_cast<std::int32_t>(value) & 0x7fffffff);
  return round_significand<Format>(static_cast<std::int32_t>(size * scale));
}
float scale_of(int shared) noexcept { return std::bit_cast<float>((277 - shared) << 23); }

// Encodes sixteen floats as their shared exponent (returned) and codes: the sign above kBits of magnitude.
template <class Format>
int encode_run(const float* in, std::uint32_t* codes) noexcept {
  const int shared = shared_exponent(in);
  if (!is_ordinary(shared)) {
    for (int i = 0; i < 16; ++i) codes[i] = encode_one<Format>(in[i], shared);
    return shared;
  }
  const float scale = scale_of(shared);
  for (int i = 0; i < 16; ++i) {
    const std::int32_t magnitude = ordinary_magnitude<Format>(in[i], scale);
    const std::uint32_t sign = (std::bit_cast<std::uint32_t>(in[i]) >> 31) << Format::kBits;
    codes[i] = static_cast<std::uint32_t>(magnitude) | (magnitude == 0 ? 0 : sign);
  }
  return shared;
}

// 2^(E - 127 - (kBits - 1)), a normal float from E = kBits on.
template <class Format>
float unit_of(int exponent) noexcept {
  return std::bit_cast<float>((exponent - (Format::kBits - 1)) << 23);
}

template <class Format>
float decode_code(int exponent, std::uint32_t code) noexcept {
  constexpr std::uint32_t kTop = 1u << (Format::kBits - 1);
  const std::uint32_t magnitude = code & (2 * kTop - 1);
  const std::uint32_t sign = (code >> Format::kBits) << 31;
  if (magnitude == 0) return 0.0f;
  if (exponent == 255 && magnitude >= kTop) return std::bit_cast<float>(sign | (magnitude == kTop ? 0x7f800000u : 0x7fc00000u));
  // 2^(E - 127 - (kBits - 1)) as a double: always normal, and the product is exact as a float.
  const double unit = std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023 - 127 - (Format::kBits - 1)) << 52);
  const auto value = static_cast<float>(unit * static_cast<int>(magnitude));
  return sign != 0 ? -value : value;
}

template <class Format>
void decode_run(int exponent, const std::uint32_t* codes, float* out) noexcept {
  if (exponent == 255 || exponent < Format::kBits) {
    for (int i = 0; i < 16; ++i) out[i] = decode_code<Format>(exponent, codes[i]);
    return;
  }
  const float unit = unit_of<Format>(exponent);
  constexpr std::uint32_t kMagnitude = (1u << Format::kBits) - 1;
  for (int i = 0; i < 16; ++i) {
    const auto magnitude = static_cast<int>(codes[i] & kMagnitude);
    const float value = static_cast<float>((codes[i] >> Format::kBits) != 0 ? -magnitude : magnitude);
    out[i] = magnitude == 0 ? 0.0f : value * unit;
  }
}

// The locations of the exponent and the elements of a run; |row| and |run| count within one tile (32 rows of 2 runs).
template <class Format>
struct RunPlace {
  std::int64_t exponent, elements;
  RunPlace(std::int64_t row, std::int64_t run) noexcept {
    const std::int64_t face_row = (row / 16 * 2 + run) * kFaceRows + row % 16;
    exponent = face_row;
    elements = kExponents + face_row * Format::kRowBytes;
  }
};

template <class Format>
void encode_tile(const float* in, std::int64_t rows, std::int64_t cols, std::int64_t stride, std::uint8_t* tile) noexcept {
  if (rows < kTileSide || cols < kTileSide)
    std::memset(tile, 0, static_cast<std::size_t>(kExponents + kExponents * Format::kRowBytes));
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t run = 0; run * 16 < cols; ++run) {
      const float* source = in + row * stride + run * 16;
      std::array<float, 16> padded;
      if (cols - run * 16 < 16) {
        padded.fill(0.0f);
        std::copy_n(source, cols - run * 16, padded.begin());
        source = padded.data();
      }
      std::array<std::uint32_t, 16> codes;
      const RunPlace<Format> place(row, run);
      tile[place.exponent] = static_cast<std::uint8_t>(encode_run<Format>(source, codes.data()));
      Format::put(codes.data(), tile + place.elements);
    }
}

template <class Format>
void decode_tile(const std::uint8_t* tile, std::int64_t rows, std::int64_t cols, std::int64_t stride, float* out) noexcept {
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t run = 0; run * 16 < cols; ++run) {
      const RunPlace<Format> place(row, run);
      std::array<std::uint32_t, 16> codes;
      for (std::size_t i = 0; i < 16; ++i) codes[i] = Format::get(tile + place.elements, static_cast<std::int64_t>(i));
      std::array<float, 16> values;
      decode_run<Format>(tile[place.exponent], codes.data(), values.data());
      std::copy_n(values.begin(), std::min<std::int64_t>(16, cols - run * 16), out + row * stride + run * 16);
    }
}

// Calls visit(first element of the tile's corner, rows inside, columns inside) for each tile in storage order.
template <class Visit>
void for_each_tile(const Matrices& m, Visit visit) {
  for (std::int64_t matrix = 0; matrix < m.count; ++matrix)
    for (std::int64_t i = 0; i < m.tile_rows; ++i)
      for (std::int64_t j = 0; j < m.tile_cols; ++j)
        visit(matrix * m.rows * m.cols + i * kTileSide * m.cols + j * kTileSide, std::min(kTileSide, m.rows - i * kTileSide),
              std::min(kTileSide, m.cols - j * kTileSide));
}

template <class Format>
void round_trip_run(const float* in, float* out) noexcept {
  const int shared = shared_exponent(in);
  if (!is_ordinary(shared)) {
    for (int i = 0; i < 16; ++i) out[i] = decode_code<Format>(shared, encode_one<Format>(in[i], shared));
    return;
  }
  const float scale = scale_of(shared), unit = unit_of<Format>(shared);
  std::array<float, 16> values;  // not |out|, which may be |in|
  for (std::size_t i = 0; i < 16; ++i) {
    const std::int32_t magnitude = ordinary_magnitude<Format>(in[i], scale);
    const std::int32_t sign = magnitude == 0 ? 0 : std::bit_cast<std::int32_t>(in[i]) & std::numeric_limits<std::int32_t>::min();
    values[i] = std::bit_cast<float>(std::bit_cast<std::int32_t>(static_cast<float>(magnitude) * unit) | sign);
  }
  std::copy(values.begin(), values.end(), out);
}

template <class Format>
void round_trip(const float* in, float* out, std::int64_t rows, std::int64_t cols) noexcept {
  const std::int64_t whole = cols / 16 * 16;
  for (std::int64_t row = 0; row < rows; ++row, in += cols, out += cols) {
    for (std::int64_t begin = 0; begin < whole; begin += 16) round_trip_run<Format>(in + begin, out + begin);
    if (whole == cols) continue;
    std::array<float, 16> rest{};
    std::copy_n(in + whole, cols - whole, rest.begin());
    round_trip_run<Format>(rest.data(), rest.data());
    std::copy_n(rest.begin(), cols - whole, out + whole);
  }
}

template <class Format>
float decode_element(const Matrices& m, const std::uint8_t* tiles, std::size_t tile_size, std::int64_t index) noexcept {
  const std::int64_t matrix = index / (m.rows * m.cols), row = index / m.cols % m.rows, col = index % m.cols;
  const std::int64_t tile = (matrix * m.tile_rows + row / kTileSide) * m.tile_cols + col / kTileSide;
  const std::uint8_t* const bytes = tiles + static_cast<std::size_t>(tile) * tile_size;
  const RunPlace<Format> place(row % kTileSide, col % kTileSide / 16);
  return decode_code<Format>(bytes[place.exponent], Format::get(bytes + place.elements, col % 16));
}

}  // namespace

void encode_block(DType block, const Shape& shape, const float* in, void* out) {
  auto* tile = static_cast<std::uint8_t*>(out);
  const Matrices m = matrices_of(shape);
  for_each_tile(m, [&](std::int64_t corner, std::int64_t rows, std::int64_t cols) {
    if (block == DType::bfloat8_b)
      encode_tile<Bfp8>(in + corner, rows, cols, m.cols, tile);
    else
      encode_tile<Bfp4>(in + corner, rows, cols, m.cols, tile);
    tile += tile_bytes(block);
  });
}

void decode_block(DType block, const Shape& shape, const void* in, float* out) {
  const auto* tile = static_cast<const std::uint8_t*>(in);
  const Matrices m = matrices_of(shape);
  for_each_tile(m, [&](std::int64_t corner, std::int64_t rows, std::int64_t cols) {
    if (block == DType::bfloat8_b)
      decode_tile<Bfp8>(tile, rows, cols, m.cols, out + corner);
    else
      decode_tile<Bfp4>(tile, rows, cols, m.cols, out + corner);
    tile += tile_bytes(block);
  });
}

float decode_block_element(DType block, const Shape& shape, const void* in, std::int64_t index) {
  const auto* tiles = static_cast<const std::uint8_t*>(in);
  const Matrices m = matrices_of(shape);
  if (block == DType::bfloat8_b) return decode_element<Bfp8>(m, tiles, tile_bytes(block), index);
  return decode_element<Bfp4>(m, tiles, tile_bytes(block), index);
}

void round_trip_block(DType block, const float* in, float* out, std::int64_t rows, std::int64_t cols) {
  if (block == DType::bfloat8_b)
    round_trip<Bfp8>(in, out, rows, cols);
  else
    round_trip<Bfp4>(in, out, rows, cols);
}

}  // namespace tenon
