#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "backends/cpu/plain.h"
#include "backends/cpu/products/convolution/bf16/conv16_bands.h"
#include "backends/cpu/products/convolution/bf16/conv16_direct.h"

namespace tenon::cpu {
namespace {

template <class T>
std::vector<T> plain_conv(const View& x, const View& weight, const ConvAttr& attr, const Shape& out) {
  std::vector<T> result(static_cast<std::size_t>(out.elements()));
  const std::int64_t per_group = weight.shape[1], outs = weight.shape[0] / attr.groups;
  const Shape taps = weight.shape.with(0, 1);
  plain::for_each_index(out, [&](const std::vector<std::int64_t>& place, std::size_t n) {
    double sum = 0;
    plain::for_each_index(taps, [&](std::vector<std::int64_t> tap, std::size_t) {
      std::vector<std::int64_t> index = place;
      index[1] = place[1] / outs * per_group + tap[1];
      for (std::size_t d = 0; d + 2 < tap.size(); ++d) {
        index[d + 2] = place[d + 2] * attr.stride[d] - attr.pad_low[d] + tap[d + 2] * attr.dilation[d];
        if (index[d + 2] < 0 || index[d + 2] >= x.shape[static_cast<int>(d) + 2]) return;
      }
      tap[0] = place[1];
      sum += static_cast<double>(plain::at<T>(x, index)) * static_cast<double>(plain::at<T>(weight, tap));
    });
    result[n] = static_cast<T>(sum);
  });
  return result;
}

Shape convolved(const Shape& x, const Shape& weight, const ConvAttr& attr) {
  std::vector<std::int64_t> dims{x[0], weight[0]};
  for (int i = 2; i < x.rank(); ++i) {
    const auto d = static_cast<std::size_t>(i - 2);
    dims.push_back((x[i] + attr.pad_low[d] + attr.pad_high[d] - (weight[i] - 1) * attr.dilation[d] - 1) / attr.stride[d] + 1);
  }
  return Shape(std::span<const std::int64_t>(dims));
}

template <class T>
void expect_conv(const View& x, const View& weight, const ConvAttr& attr) {
  const Shape shape = convolved(x.shape, weight.shape, attr);
  const std::vector<T> expected = plain_conv<T>(x, weight, attr, shape);
  const double limit = 16 * static_cast<double>(std::numeric_limits<T>::epsilon()) *
                       std::sqrt(static_cast<double>(weight.shape.elements() / std::max<std::int64_t>(1, weight.shape[0])) + 1);
  plain::with_pools([&](ThreadPool& pool) {
    const std::size_t bytes = conv_scratch_bytes(pool, x, weight, attr, shape);
    std::vector<std::byte> memory(bytes + 64);
    auto* scratch = reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(memory.data()) + 63) / 64 * 64);
    std::vector<T> out(expected.size() + 2, std::numeric_limits<T>::quiet_NaN());
    conv(pool, x, weight, attr, dense_target(out.data() + 1, dtype_of<T>, shape), {scratch, bytes});
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (std::isfinite(expected[i])) {
        ASSERT_NEAR(static_cast<double>(out[i + 1]), static_cast<double>(expected[i]), limit)
            << to_string(x.shape) << " * " << to_string(weight.shape) << " at " << i;
      } else {
        ASSERT_TRUE(std::isnan(expected[i]) ? std::isnan(out[i + 1]) : out[i + 1] == expected[i]) << i;
      }
    }
    ASSERT_TRUE(std::isnan(out.front()) && std::isnan(out.back()));
  });
}

template <class T>
void expect_conv(const Shape& x, const Shape& weight, const ConvAttr& attr) {
  const auto image = plain::numbers<T>(x.elements(), 1), kernel = plain::numbers<T>(weight.elements(), 2);
  expect_conv<T>(plain::view(image, x), plain::view(kernel, weight), attr);
}

template <class T>
class Conv : public testing::Test {};
using ConvTypes = testing::Types<float, double>;
TYPED_TEST_SUITE(Conv, ConvTypes);

TYPED_TEST(Conv, OverOneTwoAndThreeAxes) {
  expect_conv<TypeParam>({2, 3, 40}, {5, 3, 7}, {});
  expect_conv<TypeParam>({2, 3, 40}, {5, 3, 7},
                         {.stride = {3, 1, 1}, .dilation = {2, 1, 1}, .pad_low = {4, 0, 0}, .pad_high = {1, 0, 0}});
  expect_conv<TypeParam>({2, 3, 12, 14}, {8, 3, 3, 3}, {.pad_low = {1, 1, 0}, .pad_high = {1, 1, 0}});
  expect_conv<TypeParam>({1, 4, 17, 13}, {3, 4, 2, 5},
                         {.stride = {2, 3, 1}, .dilation = {3, 1, 1}, .pad_low = {0, 4, 0}, .pad_high = {2, 0, 0}});
  expect_conv<TypeParam>({2, 2, 6, 7, 8}, {4, 2, 3, 2, 3}, {.stride = {1, 2, 1}, .pad_low = {1, 0, 1}, .pad_high = {1, 1, 1}});
}

TYPED_TEST(Conv, InGroups) {
  expect_conv<TypeParam>({2, 6, 9, 9}, {4, 3, 3, 3}, {.pad_low = {1, 1, 0}, .groups = 2});
  expect_conv<TypeParam>({2, 6, 9, 9}, {3, 2, 3, 3}, {.groups = 3});  // one result channel a group
  expect_conv<TypeParam>({2, 6, 9, 30}, {6, 1, 3, 3},
                         {.stride = {1, 2, 1}, .pad_low = {1, 1, 0}, .pad_high = {1, 1, 0}, .groups = 6});  // depthwise
  expect_conv<TypeParam>({1, 4, 9, 9}, {12, 1, 3, 3}, {.groups = 4});                                       // three results each
  expect_conv<TypeParam>({1, 4, 30}, {8, 1, 5}, {.dilation = {2, 1, 1}, .groups = 4});
}

TYPED_TEST(Conv, WithKernelsOfOne) {
  expect_conv<TypeParam>({2, 20, 9, 11}, {7, 20, 1, 1}, {});
  expect_conv<TypeParam>({2, 20, 9, 11}, {7, 20, 1, 1}, {.stride = {2, 2, 1}});
  expect_conv<TypeParam>({2, 20, 9, 11}, {7, 20, 1, 1}, {.pad_low = {1, 1, 0}, .pad_high = {1, 1, 0}});
  expect_conv<TypeParam>({1, 8, 5}, {1, 8, 1}, {});
}

TYPED_TEST(Conv, InSeveralTilesOfPlaces) {
  expect_conv<TypeParam>({1, 16, 60, 60}, {6, 16, 3, 3}, {.pad_low = {1, 1, 0}, .pad_high = {1, 1, 0}});
}

TYPED_TEST(Conv, ReadsPermutedViewsOfBothOperands) {
  const auto image = plain::numbers<TypeParam>(2 * 10 * 11 * 3), kernel = plain::numbers<TypeParam>(5 * 3 * 3 * 3);
  const View x = plain::permuted(plain::view(image, {2, 10, 11, 3}), {0, 3, 1, 2});
  const View weight = plain::permuted(plain::view(kernel, {3, 3, 3, 5}), {3, 2, 0, 1});
  expect_conv<TypeParam>(x, weight, {.pad_low = {1, 1, 0}, .pad_high = {1, 1, 0}});
  const auto points = plain::numbers<TypeParam>(5 * 3);
  expect_conv<TypeParam>(x, plain::view(points, {5, 3, 1, 1}), {});
}

TYPED_TEST(Conv, InfinitiesAndNaNsOfBothOperandsCountOnlyWhereTheyMeetTheImage) {
  const TypeParam inf = std::numeric_limits<TypeParam>::infinity();
  auto image = plain::numbers<TypeParam>(3 * 8 * 8), kernel = plain::numbers<TypeParam>(4 * 3 * 3 * 3);
  kernel[0] = inf;  // meets only padding at the upper left
  const ConvAttr attr{.pad_low = {1, 1, 0}, .pad_high = {1, 1, 0}};
  expect_conv<TypeParam>(plain::view(image, {1, 3, 8, 8}), plain::view(kernel, {4, 3, 3, 3}), attr);
  kernel[0] = 0;
  image[20] = -inf;
  image[50] = std::numeric_limits<TypeParam>::quiet_NaN();
  expect_conv<TypeParam>(plain::view(image, {1, 3, 8, 8}), plain::view(kernel, {4, 3, 3, 3}), attr);
}

TYPED_TEST(Conv, OfNothing) {
  expect_conv<TypeParam>({0, 3, 8, 8}, {4, 3, 3, 3}, {});
  expect_conv<TypeParam>({2, 3, 8, 8}, {0, 3, 3, 3}, {});
}

// The matrix instructions of the CPU, where it has them: each image as its values ask for, beside others that do not.
TEST(Convolution, OfBfloat16OperandsIsThatOfTheirValues) {
  const Shape x_shape{3, 8, 9, 8}, w_shape{36, 8, 3, 3};
  ConvAttr attr;
  attr.pad_low = attr.pad_high = {1, 1, 0};
  const Shape shape = convolved(x_shape, w_shape, attr);
  const auto narrow = [](std::vector<float>& values) {
    std::vector<std::uint16_t> bits;
    for (float& value : values) {
      bits.push_back(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16));
      value = std::bit_cast<float>(static_cast<std::uint32_t>(bits.back()) << 16);
    }
    return bits;
  };
  for (const bool infinite : {false, true}) {
    auto x = plain::numbers<float>(x_shape.elements(), 1), w = plain::numbers<float>(w_shape.elements(), 2);
    for (std::size_t i = 0; i < x.size() / 3; ++i) x[i] *= 1e-39f;  // the first image
    if (infinite) w[0] = std::numeric_limits<float>::infinity();
    const auto x16 = narrow(x), w16 = narrow(w);
    const View from = dense_view(x16.data(), DType::bf16, x_shape), kernel = dense_view(w16.data(), DType::bf16, w_shape);
    if (!has_conv16(DType::bf16, from, kernel, attr, shape)) GTEST_SKIP() << "the CPU has no bfloat16 products";
    const auto expected = plain_conv<float>(plain::view(x, x_shape), plain::view(w, w_shape), attr, shape);
    plain::with_pools([&](ThreadPool& pool) {
      std::vector<std::byte> scratch(conv16_scratch_bytes(pool, from, kernel, attr, shape));
      std::vector<float> out;
      conv16(pool, from, kernel, attr, plain::target(out, shape), scratch);
      for (std::size_t i = 0; i < out.size(); ++i)
        if (std::isfinite(expected[i]))
          ASSERT_NEAR(out[i], expected[i], i < out.size() / 3 ? 1e-42 : 1e-4) << i;
        else
          ASSERT_EQ(std::isnan(out[i]), std::isnan(expected[i])) << i;
    });
  }
}

// --- bfloat16 images whose windows are not laid out ---
float to_f32(Bf16Bits bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

// What AmxUnit does with tiles, in plain C++.
struct EmulatedAmx {
  static constexpr std::int64_t kPairs = 16;
  struct Use {
    explicit Use(std::int64_t) {}
  };
  static std::int64_t rows_for(std::int64_t) { return 32; }
  static void tile(const Bf16Bits* weights, std::int64_t rows, std::int64_t pairs, const Bf16Pair* const* places,
                   std::int64_t pair_stride, const std::int32_t* offsets, std::int64_t steps, float* sums) {
    std::fill_n(sums, rows * kTileCols, 0.0f);
    for (std::int64_t s = 0; s < steps; ++s, weights += rows * 2 * pairs)
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t p = 0; p < pairs; ++p)
          for (std::int64_t j = 0; j < kTileCols; ++j) {
            const Bf16Pair pair = places[j / 16][offsets[s] + p * pair_stride + j % 16];
            sums[r * kTileCols + j] += to_f32(weights[r * 2 * pairs + 2 * p]) * to_f32(static_cast<Bf16Bits>(pair & 0xffff)) +
                                       to_f32(weights[r * 2 * pairs + 2 * p + 1]) * to_f32(static_cast<Bf16Bits>(pair >> 16));
          }
  }
};

struct DirectCase {
  Shape x, weight;
  ConvAttr attr;
};
const DirectCase kDirectCases[] = {
    {{2, 8, 9, 30}, {36, 8, 3, 3}, {.pad_low = {1, 1, 0}, .pad_high = {1, 1, 0}}},
    {{1, 7, 20, 41}, {5, 7, 5, 3}, {.stride = {2, 2, 1}, .pad_low = {2, 0, 0}, .pad_high = {1, 2, 0}}},
    {{1, 70, 14, 14}, {33, 70, 3, 3}, {.pad_low = {1, 1, 0}, .pad_high = {1, 1, 0}}},
    {{3, 12, 18, 33}, {10, 6, 3, 2}, {.stride = {1, 2, 1}, .dilation = {3, 2, 1}, .pad_low = {3, 1, 0}, .groups = 2}},
    {{2, 130, 16}, {6, 130, 3}, {.pad_low = {1, 0, 0}, .pad_high = {1, 0, 0}}},
    {{2, 5, 6, 7, 16}, {9, 5, 3, 3, 3}, {.pad_low = {1, 1, 1}, .pad_high = {1, 1, 1}}},
    {{1, 6, 9, 12, 27},
     {20, 6, 2, 3, 3},
     {.stride = {2, 2, 2}, .dilation = {3, 1, 1}, .pad_low = {2, 1, 1}, .pad_high = {2, 0, 1}}},
};

template <class Run>
void expect_direct(const DirectCase& each, Run&& run) {
  const auto bits = [](std::int64_t n, unsigned seed) {
    std::vector<Bf16Bits> result;
    for (const float value : plain::numbers<float>(n, seed))
      result.push_back(static_cast<Bf16Bits>(std::bit_cast<std::uint32_t>(value) >> 16));
    return result;
  };
  const auto values = [](const std::vector<Bf16Bits>& from) {
    std::vector<float> result;
    for (const Bf16Bits value : from) result.push_back(to_f32(value));
    return result;
  };
  const auto x = bits(each.x.elements(), 1), w = bits(each.weight.elements(), 2);
  const auto wide_x = values(x), wide_w = values(w);
  const Shape shape = convolved(each.x, each.weight, each.attr);
  const auto expected = plain_conv<float>(plain::view(wide_x, each.x), plain::view(wide_w, each.weight), each.attr, shape);
  plain::with_pools([&](ThreadPool& pool) {
    std::vector<float> out(expected.size() + 2, std::numeric_limits<float>::quiet_NaN());
    run(pool, dense_view(x.data(), DType::bf16, each.x), dense_view(w.data(), DType::bf16, each.weight),
        dense_target(out.data() + 1, DType::f32, shape));
    for (std::size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(out[i + 1], expected[i], 1e-4) << to_string(each.x) << " * " << to_string(each.weight) << " at " << i;
    ASSERT_TRUE(std::isnan(out.front()) && std::isnan(out.back()));
  });
}

TEST(DirectConv16, OfEmulatedTilesIsTheConvolution) {
  for (const DirectCase& each : kDirectCases)
    expect_direct(each, [&](ThreadPool& pool, const View& x, const View& weight, const Target& out) {
      const Conv16Plan<EmulatedAmx> plan(x, weight.shape, each.attr, out.shape, pool.threads());
      std::vector<std::byte> scratch(plan.scratch_bytes(pool.threads()), std::byte{0xff});  // NaN: what is not written
      plan.run(pool, static_cast<const Bf16Bits*>(x.data), static_cast<const Bf16Bits*>(weight.data),
               static_cast<float*>(out.data), scratch.data());
    });
}

TEST(DirectConv16, OfThisCpuIsTheConvolution) {
  if (bf16_unit() == Bf16Unit::none) GTEST_SKIP() << "the CPU has no bfloat16 products";
  for (const DirectCase& each : kDirectCases)
    expect_direct(each, [&](ThreadPool& pool, const View& x, const View& weight, const Target& out) {
      ASSERT_TRUE(has_direct_conv16(x, weight.shape, each.attr, out.shape)) << to_string(each.x);
      std::vector<std::byte> scratch(direct_conv16_scratch_bytes(pool, x, weight.shape, each.attr, out.shape), std::byte{0xff});
      direct_conv16(pool, x, weight, each.attr, out, scratch);
    });
}

}  // namespace
}  // namespace tenon::cpu
