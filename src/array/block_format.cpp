#include "array/block_format.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

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

// Sixteen floats as their shared exponent (returned) and codes: the sign above kBits of magnitude.
template <class Format>
std::uint32_t encode_run(const float* in, std::uint32_t* codes) noexcept {
  std::array<std::uint32_t, 16> bits;
  std::uint32_t shared = 0;
  for (std::size_t i = 0; i < 16; ++i) {
    bits[i] = std::bit_cast<std::uint32_t>(in[i]);
    shared = std::max(shared, (bits[i] >> 23) & 0xffu);
  }
  constexpr int kDropped = 24 - Format::kBits;
  constexpr std::uint32_t kLargest = (1u << Format::kBits) - 1;
  for (std::size_t i = 0; i < 16; ++i) {
    const std::uint32_t exponent = (bits[i] >> 23) & 0xffu;
    std::uint32_t significand = (bits[i] & 0x7fffffu) | 0x800000u;
    // A NaN whose payload is all in the low bits would come out as infinity: make it quiet.
    significand |= (bits[i] & 0x7fffffffu) > 0x7f800000u ? 0x400000u : 0u;
    significand = exponent == 0 ? 0 : significand >> std::min(shared - exponent, 31u);
    const std::uint32_t odd = (significand >> kDropped) & 1u;
    const std::uint32_t rounded = (significand + (1u << (kDropped - 1)) - 1 + odd) >> kDropped;
    const std::uint32_t magnitude = std::min(rounded, kLargest);
    codes[i] = magnitude == 0 ? 0 : magnitude | (bits[i] >> 31) << Format::kBits;
  }
  return shared;
}

template <class Format>
float decode_code(std::uint32_t exponent, std::uint32_t code) noexcept {
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
void decode_run(std::uint32_t exponent, const std::uint32_t* codes, float* out) noexcept {
  if (exponent == 255 || exponent < Format::kBits) {
    for (int i = 0; i < 16; ++i) out[i] = decode_code<Format>(exponent, codes[i]);
    return;
  }
  // Here the unit is a normal float, so the whole run is one multiplication per element.
  const float unit = std::bit_cast<float>((exponent - (Format::kBits - 1)) << 23);
  constexpr std::uint32_t kMagnitude = (1u << Format::kBits) - 1;
  for (int i = 0; i < 16; ++i) {
    const auto magnitude = static_cast<int>(codes[i] & kMagnitude);
    const float value = static_cast<float>((codes[i] >> Format::kBits) != 0 ? -magnitude : magnitude);
    out[i] = magnitude == 0 ? 0.0f : value * unit;
  }
}

// Where the exponent and the elements of a run lie: |row| and |run| count inside one tile (32 rows of 2 runs).
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
  for (std::int64_t row = 0; row < kTileSide; ++row)
    for (std::int64_t run = 0; run < 2; ++run) {
      std::array<float, 16> values{};
      if (row < rows && run * 16 < cols)
        std::copy_n(in + row * stride + run * 16, std::min<std::int64_t>(16, cols - run * 16), values.begin());
      std::array<std::uint32_t, 16> codes;
      const RunPlace<Format> place(row, run);
      tile[place.exponent] = static_cast<std::uint8_t>(encode_run<Format>(values.data(), codes.data()));
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
void round_trip(const float* in, float* out, std::int64_t rows, std::int64_t cols) noexcept {
  for (std::int64_t row = 0; row < rows; ++row, in += cols, out += cols)
    for (std::int64_t begin = 0; begin < cols; begin += 16) {
      const std::int64_t n = std::min<std::int64_t>(16, cols - begin);
      std::array<float, 16> values{};
      std::copy_n(in + begin, n, values.begin());
      std::array<std::uint32_t, 16> codes;
      const std::uint32_t exponent = encode_run<Format>(values.data(), codes.data());
      decode_run<Format>(exponent, codes.data(), values.data());
      std::copy_n(values.begin(), n, out + begin);
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
