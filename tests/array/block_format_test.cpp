#include "array/block_format.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "tenon/array.h"

namespace tenon {
namespace {

using enum DType;

std::vector<std::uint8_t> encode(DType block, const Shape& shape, const std::vector<float>& values) {
  std::vector<std::uint8_t> out(storage_bytes(block, shape), 0xee);
  encode_block(block, shape, values.data(), out.data());
  return out;
}

std::vector<float> decode(DType block, const Shape& shape, const std::vector<std::uint8_t>& bytes) {
  std::vector<float> out(static_cast<std::size_t>(shape.elements()));
  decode_block(block, shape, bytes.data(), out.data());
  return out;
}

struct Vector {
  DType block;
  std::vector<float> values;
  int exponent;
  std::vector<int> codes;
  std::vector<float> decoded;
};

float from_bits(std::uint32_t bits) { return std::bit_cast<float>(bits); }

std::vector<Vector> vectors() {
  return {
      {bfloat8_b, {1, .008f}, 127, {0x40, 0x01}, {1, .015625f}},
      {bfloat8_b, {1.9999999f, -.3f, from_bits(0x3F020001)}, 127, {0x7F, 0x93, 0x20}, {1.984375f, -.296875f, .5f}},
      {bfloat8_b, {3.14159f, 2.71828f, 1.41421f, .57721f}, 128, {0x65, 0x57, 0x2D, 0x12}, {3.15625f, 2.71875f, 1.40625f, .5625f}},
      {bfloat4_b, {1, .13f}, 127, {4, 1}, {1, .25f}},
      {bfloat4_b, {3.14159f, 2.71828f, 1.41421f, .57721f}, 128, {6, 5, 3, 1}, {3, 2.5f, 1.5f, .5f}},
      {bfloat4_b, {1.5f, -.3f, .7f, .1f, .125f, .375f}, 127, {6, 9, 3, 0, 0, 2}, {1.5f, -.25f, .75f, 0, 0, .5f}},
  };
}

TEST(BlockFormat, EncodesAndDecodesTheKnownVectorsBitByBit) {
  for (const Vector& v : vectors()) {
    const Shape shape({static_cast<std::int64_t>(v.values.size())});
    const std::vector<std::uint8_t> bytes = encode(v.block, shape, v.values);
    EXPECT_EQ(bytes[0], v.exponent);
    for (std::size_t i = 0; i < v.codes.size(); ++i) {
      const int code = v.block == bfloat8_b ? bytes[64 + i] : (bytes[64 + i / 2] >> (4 * (i % 2))) & 15;
      EXPECT_EQ(code, v.codes[i]) << name(v.block) << " element " << i;
    }
    EXPECT_EQ(decode(v.block, shape, bytes), v.decoded);
  }
}

TEST(BlockFormat, ATileIs64ExponentsAndThenFourFaces) {
  // Each run of 16 is filled with its own power of two, so its exponent says where it went.
  std::vector<float> values(32 * 32);
  for (int row = 0; row < 32; ++row)
    for (int col = 0; col < 32; ++col)
      values[static_cast<std::size_t>(row * 32 + col)] = std::ldexp(1.0f, row * 2 + col / 16 - 32);
  const std::vector<std::uint8_t> bytes = encode(bfloat8_b, {32, 32}, values);
  ASSERT_EQ(bytes.size(), 1088u);
  for (int face = 0; face < 4; ++face)
    for (int row = 0; row < 16; ++row)
      EXPECT_EQ(bytes[static_cast<std::size_t>(face * 16 + row)], 127 + (face / 2 * 16 + row) * 2 + face % 2 - 32)
          << face << " " << row;
  for (std::size_t i = 64; i < 1088; ++i) EXPECT_EQ(bytes[i], 0x40);
}

TEST(BlockFormat, ElementsLieFaceByFaceRowByRow) {
  std::vector<float> values(32 * 32, 0.0f);
  values[17 * 32 + 20] = 1.0f;  // bottom right face (3), row 1, column 4
  const std::vector<std::uint8_t> wide = encode(bfloat8_b, {32, 32}, values);
  EXPECT_EQ(wide[3 * 16 + 1], 127);
  EXPECT_EQ(wide[64 + 3 * 256 + 16 + 4], 0x40);
  const std::vector<std::uint8_t> narrow = encode(bfloat4_b, {32, 32}, values);
  ASSERT_EQ(narrow.size(), 576u);
  EXPECT_EQ(narrow[64 + 3 * 128 + 8 + 2], 0x04);
  values[17 * 32 + 21] = -1.0f;  // the second of the two goes to the high half
  EXPECT_EQ(encode(bfloat4_b, {32, 32}, values)[64 + 3 * 128 + 8 + 2], 0xC4);
}

TEST(BlockFormat, PadsWithZeros) {
  const std::vector<std::uint8_t> bytes = encode(bfloat8_b, {1, 1}, {5.0f});
  ASSERT_EQ(bytes.size(), 1088u);
  for (std::size_t i = 0; i < bytes.size(); ++i) EXPECT_EQ(bytes[i] != 0, i == 0 || i == 64) << i;
}

TEST(BlockFormat, TakesWholeTilesPerMatrix) {
  EXPECT_EQ(storage_bytes(bfloat8_b, {}), 1088u);
  EXPECT_EQ(storage_bytes(bfloat8_b, {33}), 2 * 1088u);
  EXPECT_EQ(storage_bytes(bfloat8_b, {2, 33, 65}), 2 * 2 * 3 * 1088u);
  EXPECT_EQ(storage_bytes(bfloat4_b, {32, 32}), 576u);
  EXPECT_EQ(storage_bytes(bfloat4_b, {0, 32}), 0u);
}

TEST(BlockFormat, ZeroHasNoSignAndSubnormalsAreZero) {
  const Shape shape{3};
  const std::vector<float> out = decode(bfloat8_b, shape, encode(bfloat8_b, shape, {-0.0f, 1e-39f, -1e-40f}));
  for (float value : out) EXPECT_EQ(std::bit_cast<std::uint32_t>(value), 0u);
  EXPECT_EQ(encode(bfloat8_b, shape, {1.0f, -1e-9f, 0.0f})[65], 0) << "a magnitude rounded to zero drops its sign";
}

TEST(BlockFormat, InfinityAndNanSurviveAndSmallNeighboursDoNot) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  for (DType block : {bfloat8_b, bfloat4_b}) {
    const Shape shape{6};
    const std::vector<float> in{inf, -inf, std::numeric_limits<float>::quiet_NaN(), from_bits(0x7f800001), 1e30f, 0x1p127f};
    const std::vector<std::uint8_t> bytes = encode(block, shape, in);
    EXPECT_EQ(bytes[0], 255);
    const std::vector<float> out = decode(block, shape, bytes);
    EXPECT_EQ(out[0], inf);
    EXPECT_EQ(out[1], -inf);
    EXPECT_TRUE(std::isnan(out[2]));
    EXPECT_TRUE(std::isnan(out[3])) << "a signalling NaN must not become infinity";
    EXPECT_EQ(out[4], 0.0f);
    EXPECT_EQ(out[5], 0x1p127f);
  }
}

TEST(BlockFormat, TheLargestMagnitudeIsClampedNotCarried) {
  const Shape shape{1};
  EXPECT_EQ(decode(bfloat8_b, shape, encode(bfloat8_b, shape, {0x1.fffffep0f}))[0], 127.0f / 64);
  EXPECT_EQ(decode(bfloat4_b, shape, encode(bfloat4_b, shape, {0x1.fffffep0f}))[0], 7.0f / 4);
  EXPECT_EQ(decode(bfloat8_b, shape, encode(bfloat8_b, shape, {std::numeric_limits<float>::max()}))[0], 127 * 0x1p121f);
}

TEST(BlockFormat, DecodesEveryExponentAndCodeByTheFormula) {
  for (DType block : {bfloat8_b, bfloat4_b}) {
    const int magnitude_bits = block == bfloat8_b ? 7 : 3;
    std::vector<std::uint8_t> tile(storage_bytes(block, {1}));
    for (int exponent = 0; exponent < 256; ++exponent)
      for (int code = 0; code < (2 << magnitude_bits); ++code) {
        tile[0] = static_cast<std::uint8_t>(exponent);
        tile[64] = static_cast<std::uint8_t>(code);
        const int magnitude = code & ((1 << magnitude_bits) - 1);
        if (exponent == 255 && magnitude >= 1 << (magnitude_bits - 1)) continue;
        const double sign = code >> magnitude_bits != 0 ? -1 : 1;
        const double wanted = magnitude == 0 ? 0 : sign * std::ldexp(magnitude, exponent - 127 - (magnitude_bits - 1));
        const float got = decode(block, {1}, tile)[0];
        ASSERT_EQ(static_cast<double>(got), wanted) << exponent << " " << code;
        ASSERT_EQ(decode_block_element(block, {1}, tile.data(), 0), got);
      }
  }
}

// The rule for one block, with plain integers and no shared code.
float slow_round_trip(const std::vector<float>& block, std::size_t i, int bits) {
  int shared = 0;
  for (float f : block) shared = std::max(shared, static_cast<int>(std::bit_cast<std::uint32_t>(f) >> 23 & 255));
  const auto word = std::bit_cast<std::uint32_t>(block[i]);
  const int exponent = static_cast<int>(word >> 23 & 255);
  if (exponent == 0 || shared - exponent > 23) return 0;
  const double aligned = std::floor(std::ldexp(1.0 + std::ldexp(word & 0x7fffff, -23), 23 - (shared - exponent)));
  const double m = std::min(std::nearbyint(std::ldexp(aligned, bits - 24)), std::ldexp(1.0, bits) - 1);
  const double value = std::ldexp(m, shared - 127 - (bits - 1));
  return static_cast<float>(m == 0 ? 0 : (word >> 31) != 0 ? -value : value);
}

std::vector<float> random_floats(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> out(n);
  for (float& f : out) {
    const auto spread = static_cast<int>(random() % 30);
    f = std::ldexp(static_cast<float>(random()) * 0x1p-32f - 0.5f, spread - 15);
    if (random() % 50 == 0) f = 0;
  }
  return out;
}

TEST(BlockFormat, RandomBlocksFollowTheRule) {
  for (DType block : {bfloat8_b, bfloat4_b})
    for (unsigned seed = 0; seed < 300; ++seed) {
      const std::vector<float> in = random_floats(16, seed);
      const std::vector<float> out = decode(block, {16}, encode(block, {16}, in));
      for (std::size_t i = 0; i < 16; ++i)
        ASSERT_EQ(out[i], slow_round_trip(in, i, block == bfloat8_b ? 7 : 3)) << seed << " " << i;
    }
}

TEST(BlockFormat, RoundTripWithoutTilesEqualsEncodeAndDecode) {
  for (DType block : {bfloat8_b, bfloat4_b})
    for (const Shape& shape : {Shape{1, 1}, Shape{3, 7}, Shape{32, 32}, Shape{33, 65}, Shape{40, 100}, Shape{5, 16}}) {
      std::vector<float> in = random_floats(static_cast<std::size_t>(shape.elements()), 5);
      if (in.size() > 100) in[50] = -std::numeric_limits<float>::infinity();
      const std::vector<float> wanted = decode(block, shape, encode(block, shape, in));
      std::vector<float> out(in.size());
      round_trip_block(block, in.data(), out.data(), shape[0], shape[1]);
      EXPECT_EQ(out, wanted) << to_string(shape);
      round_trip_block(block, in.data(), in.data(), shape[0], shape[1]);
      EXPECT_EQ(in, wanted) << "in place";
    }
}

TEST(BlockFormat, QuantisingTwiceChangesNothing) {
  for (DType block : {bfloat8_b, bfloat4_b}) {
    std::vector<float> once(4096), twice(4096);
    const std::vector<float> in = random_floats(4096, 9);
    round_trip_block(block, in.data(), once.data(), 64, 64);
    round_trip_block(block, once.data(), twice.data(), 64, 64);
    EXPECT_EQ(once, twice);
  }
}

TEST(BlockFormat, OneElementReadsAsInTheWhole) {
  for (DType block : {bfloat8_b, bfloat4_b}) {
    const Shape shape{2, 3, 35, 50};
    const std::vector<std::uint8_t> bytes = encode(block, shape, random_floats(static_cast<std::size_t>(shape.elements()), 3));
    const std::vector<float> all = decode(block, shape, bytes);
    for (std::int64_t i = 0; i < shape.elements(); ++i)
      ASSERT_EQ(decode_block_element(block, shape, bytes.data(), i), all[static_cast<std::size_t>(i)]) << i;
  }
}

}  // namespace
}  // namespace tenon
