// Encodings: exact values from the OCP specifications and ml_dtypes, round trips, and what is refused.
#include "tenon/array/codec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>

#include "array/codec/minifloat.h"
#include "tenon/error.h"

namespace tenon {
namespace {

HostArray floats(std::vector<float> values) {
  const auto count = static_cast<std::int64_t>(values.size());
  return HostArray::from<float>({count}, std::span<const float>(values));
}

HostArray wave(const Shape& shape) {
  HostArray array = HostArray::empty(DType::f32, shape);
  std::span<float> values = array.mutable_view<float>();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i)) * static_cast<float>(1 + i % 7);
  return array;
}

ErrorCode code_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::ok;
}

TEST(Minifloat, HasTheValuesOfTheSpecification) {
  EXPECT_EQ(Minifloat::of(kE4M3).largest(), 448);
  EXPECT_EQ(Minifloat::of(kE5M2).largest(), 57344);
  EXPECT_EQ(Minifloat::of(kE3M2).largest(), 28);
  EXPECT_EQ(Minifloat::of(kE2M3).largest(), 7.5F);
  EXPECT_EQ(Minifloat::of(kE2M1).largest(), 6);
  EXPECT_EQ(Minifloat::of(kE4M3).decode(0x01), 0x1p-9F);  // the smallest subnormal
  EXPECT_EQ(Minifloat::of(kE4M3).decode(0x38), 1);
  EXPECT_EQ(Minifloat::of(kE5M2).decode(0x3c), 1);
  EXPECT_EQ(Minifloat::of(kE5M2).decode(0xfc), -INFINITY);
  EXPECT_TRUE(std::isnan(Minifloat::of(kE4M3).decode(0x7f)));
}

TEST(Minifloat, EveryCodeIsEncodedAsItself) {
  for (const MinifloatFormat* format : {&kE4M3, &kE5M2, &kE3M2, &kE2M3, &kE2M1}) {
    const Minifloat& minifloat = Minifloat::of(*format);
    for (int code = 0; code < 1 << minifloat.bits(); ++code) {
      const float value = minifloat.decode(static_cast<std::uint8_t>(code));
      if (!std::isnan(value)) {
        EXPECT_EQ(minifloat.encode(value), code) << value;
      }
    }
  }
}

TEST(Minifloat, RoundsToNearestWithTiesToEvenAndSaturates) {
  const Minifloat& e2m1 = Minifloat::of(kE2M1);  // 0 0.5 1 1.5 2 3 4 6
  EXPECT_EQ(e2m1.decode(e2m1.encode(2.5F)), 2);
  EXPECT_EQ(e2m1.decode(e2m1.encode(5.0F)), 4);
  EXPECT_EQ(e2m1.decode(e2m1.encode(0.25F)), 0);
  EXPECT_EQ(e2m1.decode(e2m1.encode(0.26F)), 0.5F);
  EXPECT_EQ(e2m1.decode(e2m1.encode(-100)), -6);
  const Minifloat& e4m3 = Minifloat::of(kE4M3);
  EXPECT_EQ(e4m3.decode(e4m3.encode(1e9F)), 448);
  EXPECT_TRUE(std::isnan(e4m3.decode(e4m3.encode(INFINITY))));
  const Minifloat& e5m2 = Minifloat::of(kE5M2);
  EXPECT_EQ(e5m2.decode(e5m2.encode(INFINITY)), INFINITY);
}

TEST(Codec, DecodesWithinTheErrorOfItsFormat) {
  const std::pair<Encoding, double> limits[] = {
      {Encoding::bfloat16, 0x1p-8},   {Encoding::float8_e4m3, 0x1p-4}, {Encoding::float8_e5m2, 0x1p-3},
      {Encoding::int8, 0.51 / 127},   {Encoding::bfloat8_b, 0x1p-6},   {Encoding::bfloat4_b, 0x1p-2},
      {Encoding::mxfp8_e4m3, 0x1p-3}, {Encoding::mxfp8_e5m2, 0x1p-2},  {Encoding::mxfp6_e3m2, 0x1p-2},
      {Encoding::mxfp6_e2m3, 0x1p-3}, {Encoding::mxfp4_e2m1, 0x1p-1}};
  for (const Shape& shape : {Shape{3, 5, 70}, Shape{1}, Shape{64}, Shape{0, 4}, Shape{}}) {
    const HostArray original = wave(shape);
    for (const auto& [encoding, limit] : limits) {
      const Encoded encoded = encode(original, encoding);
      const HostArray again = decode(encoded);
      ASSERT_EQ(again.shape(), shape);
      ASSERT_EQ(again.dtype(), DType::f32);
      const EncodingReport report = report_of(original, encoded);
      EXPECT_LE(report.max_abs_error, 7 * limit) << name(encoding) << " of " << to_string(shape);
      EXPECT_EQ(report.bytes_after, encoded.bytes.size());
    }
  }
}

TEST(Codec, MxBlocksShareAPowerOfTwo) {
  std::vector<float> values(64, 0.01F);
  values[0] = 6;       // the first block has steps of 0.5 and more
  values[32] = 0.06F;  // the second has finer ones
  const Encoded encoded = encode(floats(values), Encoding::mxfp4_e2m1);
  EXPECT_EQ(encoded.bytes.size(), 2 + 32u);
  EXPECT_EQ(std::to_integer<int>(encoded.bytes[0]), 127);
  const HostArray again = decode(encoded);
  EXPECT_EQ(again.view<float>()[0], 6);
  EXPECT_EQ(again.view<float>()[1], 0);
  EXPECT_NEAR(again.view<float>()[33], 0.01, 0.003);
}

TEST(Codec, ZstdIsLosslessForEveryDtypeAndSmallerForZeros) {
  for (const DType dtype : all_dtypes()) {
    const HostArray zeros = HostArray::zeros(dtype, {32, 64});
    Encoded encoded;
    try {
      encoded = encode(zeros, Encoding::zstd);
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ErrorCode::unimplemented);
      GTEST_SKIP() << error.what();
    }
    EXPECT_LT(encoded.bytes.size() * 10, zeros.bytes());
    const HostArray again = decode(encoded);
    EXPECT_EQ(std::memcmp(again.data(), zeros.data(), zeros.bytes()), 0) << name(dtype);
    EXPECT_TRUE(report_of(zeros, encoded).is_lossless);
    encoded.bytes[encoded.bytes.size() / 2] ^= std::byte{0x55};
    EXPECT_EQ(code_of([&] { decode(encoded); }), ErrorCode::invalid_argument) << "a damaged frame is noticed";
  }
}

TEST(Codec, RefusesWhatAFormatCannotHold) {
  EXPECT_EQ(code_of([] { encode(HostArray::zeros(DType::i32, {4}), Encoding::int8); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([] { encode(floats({1, NAN}), Encoding::int8); }), ErrorCode::invalid_argument);
  Encoded cut = encode(floats({1, 2, 3}), Encoding::float8_e4m3);
  cut.bytes.pop_back();
  EXPECT_EQ(code_of([&] { decode(cut); }), ErrorCode::invalid_argument);
}

TEST(Codec, AFileOfEncodedTensorsIsSafetensors) {
  std::map<std::string, Encoded, std::less<>> encoded;
  encoded.emplace("weights", encode(wave({4, 40}), Encoding::int8));
  encoded.emplace("bias", encode(floats({1, 2, 4}), Encoding::mxfp8_e4m3));
  const ArrayFile file = parse_safetensors(format_safetensors(to_file(encoded)));
  EXPECT_EQ(file.metadata.at("tenon.weights.encoding"), "int8");
  const ArrayFile decoded = decoded_file(file);
  EXPECT_EQ(decoded.arrays.at("weights").shape(), (Shape{4, 40}));
  EXPECT_EQ(decoded.arrays.at("bias").to_doubles(), (std::vector<double>{1, 2, 4}));
  EXPECT_TRUE(decoded.metadata.empty());
}

TEST(Codec, NamesAreReadAgain) {
  for (const Encoding encoding : all_encodings()) EXPECT_EQ(parse_encoding(name(encoding)), encoding);
  EXPECT_EQ(parse_encoding("mxfp4"), Encoding::mxfp4_e2m1);
  EXPECT_FALSE(parse_encoding("float7"));
}

}  // namespace
}  // namespace tenon
