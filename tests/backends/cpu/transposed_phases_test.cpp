// Transposed convolutions by their phases, against sums in double.
#include "backends/cpu/products/convolution/transposed_phases.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "backends/cpu/plain.h"

namespace tenon::cpu {
namespace {

struct Case {
  Shape x, weight;
  ConvTransposeAttr attr;
  Spatial extra{};  // output_padding

  Shape out() const {
    Shape out = x.with(1, weight[1] * attr.groups);
    for (int i = 2; i < x.rank(); ++i) {
      const auto d = static_cast<std::size_t>(i - 2);
      const std::int64_t reach = (x[i] - 1) * attr.stride[d] + (weight[i] - 1) * attr.dilation[d] + 1;
      out = out.with(i, reach - attr.pad_low[d] - attr.pad_high[d] + extra[d]);
    }
    return out;
  }
};

std::vector<double> sums(const Case& c, const std::vector<float>& x, const std::vector<float>& weight) {
  const Shape out = c.out();
  const Strides steps = contiguous_strides(out);
  std::vector<double> result(static_cast<std::size_t>(out.elements()));
  const std::int64_t ins = c.weight[0] / c.attr.groups, outs = c.weight[1];
  const View kernel = plain::view(weight, c.weight);
  plain::for_each_index(c.x, [&](const std::vector<std::int64_t>& from, std::size_t n) {
    plain::for_each_index(c.weight.with(0, 1), [&](std::vector<std::int64_t> tap, std::size_t) {
      tap[0] = from[1];
      std::int64_t place = from[0] * steps[0] + (from[1] / ins * outs + tap[1]) * steps[1];
      for (std::size_t d = 0; d + 2 < tap.size(); ++d) {
        const std::int64_t to = from[d + 2] * c.attr.stride[d] + tap[d + 2] * c.attr.dilation[d] - c.attr.pad_low[d];
        if (to < 0 || to >= out[static_cast<int>(d) + 2]) return;
        place += to * steps[d + 2];
      }
      result[static_cast<std::size_t>(place)] += static_cast<double>(x[n]) * static_cast<double>(plain::at<float>(kernel, tap));
    });
  });
  return result;
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {{2, 5, 7, 9}, {5, 6, 4, 4}, {{2, 2, 1}, {1, 1, 1}, {1, 1, 0}, {1, 1, 0}, 1}},
      {{3, 4, 6, 5}, {4, 9, 3, 5}, {{1, 3, 1}, {1, 2, 1}, {0, 4, 0}, {2, 1, 0}, 2}, {0, 1, 0}},
      {{1, 6, 9, 8}, {6, 1, 5, 3}, {{2, 2, 1}, {1, 1, 1}, {2, 1, 0}, {2, 1, 0}, 6}, {1, 1, 0}},
      {{2, 7, 4, 5, 6}, {7, 5, 3, 4, 3}, {{2, 2, 2}, {1, 1, 2}, {1, 1, 0}, {1, 1, 0}, 1}, {1, 0, 1}},
      {{1, 3, 12, 13}, {3, 20, 2, 3}, {{4, 2, 1}, {1, 1, 1}, {0, 3, 0}, {1, 0, 0}, 1}},  // phases of no element
      {{1, 40, 12, 15}, {40, 24, 4, 4}, {{2, 2, 1}, {1, 1, 1}, {1, 1, 0}, {1, 1, 0}, 1}},
      {{1, 33, 6, 10, 11}, {33, 18, 4, 3, 4}, {{2, 1, 2}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, 1}},
  };
  return all;
}

// What a program with 16-bit operands computes: their values, rounded to bfloat16.
std::vector<std::uint16_t> narrowed(std::vector<float>& values) {
  std::vector<std::uint16_t> bits;
  for (float& value : values) {
    bits.push_back(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16));
    value = std::bit_cast<float>(static_cast<std::uint32_t>(bits.back()) << 16);
  }
  return bits;
}

std::vector<float> result_of(ThreadPool& pool, const TransposedPhases& phases, const View& x, const void* weight,
                             const Shape& shape) {
  std::vector<float> ordered(static_cast<std::size_t>(phases.weight_elements())), out;
  EXPECT_TRUE(phases.order_weights(weight, ordered.data()));
  std::vector<std::byte> memory(phases.scratch_bytes(pool) + 64);
  auto* const scratch = reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(memory.data()) + 63) / 64 * 64);
  const Target to = plain::target(out, shape);
  std::ranges::fill(out, std::numeric_limits<float>::quiet_NaN());
  phases.run(pool, x, ordered.data(), to, {scratch, memory.size() - 64});
  return out;
}

void expect_sums(DType dtype) {
  int tried = 0;
  for (const Case& c : cases()) {
    const Shape out = c.out();
    const TransposedPhases phases(c.x, c.weight, c.attr, out, dtype);
    if (!phases.is_better()) continue;
    ++tried;
    std::vector<float> x = plain::numbers<float>(c.x.elements()), weight = plain::numbers<float>(c.weight.elements(), 2);
    const bool narrow = dtype == DType::bf16;
    const std::vector<std::uint16_t> x_bits = narrow ? narrowed(x) : std::vector<std::uint16_t>{},
                                     weight_bits = narrow ? narrowed(weight) : std::vector<std::uint16_t>{};
    const std::vector<double> expected = sums(c, x, weight);
    const View from = narrow ? dense_view(x_bits.data(), dtype, c.x) : plain::view(x, c.x);
    const void* const kernel = narrow ? static_cast<const void*>(weight_bits.data()) : weight.data();
    std::vector<float> first;
    plain::with_pools([&](ThreadPool& pool) {
      const std::vector<float> result = result_of(pool, phases, from, kernel, out);
      for (std::size_t i = 0; i < result.size(); ++i)
        ASSERT_NEAR(static_cast<double>(result[i]), expected[i], 1e-4) << to_string(c.x) << " at " << i;
      if (first.empty()) first = result;
      ASSERT_EQ(result, first);
    });
  }
  EXPECT_GT(tried, 0);
}

TEST(TransposedPhases, EqualTheSumsOfProducts) {
  const TransposedPhases phases(cases()[0].x, cases()[0].weight, cases()[0].attr, cases()[0].out(), DType::f32);
  if (!phases.is_better()) GTEST_SKIP() << "the CPU has no AVX2";
  expect_sums(DType::f32);
}

TEST(TransposedPhases, OfBfloat16EqualTheSumsOfProducts) {
  const Case& large = cases()[5];
  if (!TransposedPhases(large.x, large.weight, large.attr, large.out(), DType::bf16).is_better())
    GTEST_SKIP() << "the CPU has no instructions for bfloat16";
  expect_sums(DType::bf16);
}

TEST(TransposedPhases, RefuseInfiniteWeights) {
  const Case& c = cases()[0];
  const TransposedPhases phases(c.x, c.weight, c.attr, c.out(), DType::f32);
  if (!phases.is_better()) GTEST_SKIP() << "the CPU has no AVX2";
  std::vector<float> weight = plain::numbers<float>(c.weight.elements()),
                     ordered(static_cast<std::size_t>(phases.weight_elements()));
  weight[7] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(phases.order_weights(weight.data(), ordered.data()));
}

TEST(TransposedPhases, AreNotForKernelsThatDoNotOverlap) {
  const Case c{{2, 5, 7, 9}, {5, 6, 2, 2}, {{2, 2, 1}, {1, 1, 1}, {}, {}, 1}};
  EXPECT_FALSE(TransposedPhases(c.x, c.weight, c.attr, c.out(), DType::f32).is_better());
}

}  // namespace
}  // namespace tenon::cpu
