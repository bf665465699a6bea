#include "backends/cpu/primitives/matmul/bf16/gemm_bf16.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "backends/cpu/plain.h"
#include "backends/cpu/primitives/matmul/bf16/few_rows.h"
#include "backends/cpu/primitives/matmul/bf16/gemm_bf16_blocks.h"

namespace tenon::cpu {
namespace {

Bf16Bits to_bf16(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<Bf16Bits>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
float to_f32(Bf16Bits value) {
  const std::uint32_t bits = static_cast<std::uint32_t>(value) << 16;
  float result = 0;
  std::memcpy(&result, &bits, sizeof result);
  return result;
}

std::vector<Bf16Bits> bf16_numbers(std::int64_t n, std::uint32_t seed) {
  std::vector<Bf16Bits> values;
  for (const float value : plain::numbers<float>(n, seed)) values.push_back(to_bf16(value));
  return values;
}

// What the AMX instructions do, in plain C++: eight tiles of 16 rows of 64 bytes.
struct EmulatedTiles {
  static void multiply(float* sums, std::int64_t ldc, const Bf16Bits* a, const Bf16Bits* b) {
    for (int row = 0; row < 16; ++row)
      for (int pair = 0; pair < 16; ++pair)
        for (int column = 0; column < 16; ++column)
          for (int half = 0; half < 2; ++half)
            sums[row * ldc + column] += to_f32(a[row * 32 + 2 * pair + half]) * to_f32(b[pair * 64 + 2 * column + half]);
  }
  static void accumulate(const Bf16Bits* a, const Bf16Bits* b, std::int64_t blocks, float* c, std::int64_t ldc, bool add) {
    for (std::int64_t row = 0; row < 32 && !add; ++row) std::fill_n(c + row * ldc, 32, 0.0f);
    for (std::int64_t block = 0; block < blocks; ++block, a += 32 * 32, b += 16 * 64)
      for (int tile = 0; tile < 4; ++tile)
        multiply(c + tile / 2 * 16 * ldc + tile % 2 * 16, ldc, a + tile / 2 * 16 * 32, b + tile % 2 * 32);
  }
};

void emulated_amx(const Matrix<Bf16Bits>& a, const Matrix<Bf16Bits>& b, float* c, std::int64_t ldc) {
  std::vector<Bf16Bits> memory_a, memory_b;
  const auto room = [](std::vector<Bf16Bits>& memory) {
    return [&](std::int64_t n) {
      memory.assign(static_cast<std::size_t>(n), 0x7fc0);  // NaN: what is not packed must not be read
      return memory.data();
    };
  };
  bf16::product(bf16::TileUnit<EmulatedTiles>{}, a, b, c, ldc, room(memory_a), room(memory_b));
}

using Product = void (*)(const Matrix<Bf16Bits>&, const Matrix<Bf16Bits>&, float*, std::int64_t);

void expect_products(Product product) {
  for (const auto& [m, k, n] : {std::array<std::int64_t, 3>{1, 1, 1},
                                {14, 32, 32},
                                {32, 64, 32},
                                {33, 65, 31},
                                {5, 7, 100},
                                {70, 513, 65},
                                {100, 1100, 40},
                                {1060, 20, 530}})
    for (const bool a_by_columns : {false, true})
      for (const bool b_by_columns : {false, true}) {
        const std::vector<Bf16Bits> a = bf16_numbers(m * k, 1), b = bf16_numbers(k * n, 2);
        const Matrix<Bf16Bits> left =
            a_by_columns ? Matrix<Bf16Bits>{a.data(), m, k, 1, m} : Matrix<Bf16Bits>{a.data(), m, k, k, 1};
        const Matrix<Bf16Bits> right =
            b_by_columns ? Matrix<Bf16Bits>{b.data(), k, n, 1, k} : Matrix<Bf16Bits>{b.data(), k, n, n, 1};
        const std::int64_t ldc = n + 3;
        std::vector<float> c(static_cast<std::size_t>(m * ldc), std::numeric_limits<float>::quiet_NaN());
        product(left, right, c.data(), ldc);
        for (std::int64_t i = 0; i < m; i += 1 + m / 40)
          for (std::int64_t j = 0; j < n; j += 1 + n / 40) {
            double sum = 0, size = 0;
            for (std::int64_t p = 0; p < k; ++p) {
              const double term = static_cast<double>(to_f32(left.data[i * left.row_stride + p * left.col_stride])) *
                                  static_cast<double>(to_f32(right.data[p * right.row_stride + j * right.col_stride]));
              sum += term;
              size += std::abs(term);
            }
            ASSERT_NEAR(static_cast<double>(c[static_cast<std::size_t>(i * ldc + j)]), sum, 1e-6 * size + 1e-30)
                << m << " x " << k << " x " << n << " at " << i << ", " << j;
          }
        for (std::int64_t i = 0; i < m; ++i)
          ASSERT_TRUE(std::isnan(c[static_cast<std::size_t>(i * ldc + n)])) << "wrote past a row";
      }
}

template <int Width>
void expect_packed_as_plainly() {
  const std::vector<Bf16Bits> numbers = bf16_numbers(80 * 80, 7);
  for (const std::int64_t count : {1, 5, Width - 1, Width})
    for (const std::int64_t steps : {1, 2, 15, 31, 32, 33, 70})
      for (const bool by_steps : {false, true}) {
        const std::int64_t pairs = (steps + 31) / 32 * 16;
        const bf16::Lines lines{numbers.data() + 3, by_steps ? 80 : 1, by_steps ? 1 : 80, std::min<std::int64_t>(count, Width),
                                steps};
        // One element more than there is room for.
        std::vector<Bf16Bits> packed(static_cast<std::size_t>(pairs * Width * 2 + 1), 0x7fc0), plain = packed;
        bf16::pack_pairs<Width>(lines, pairs, packed.data());
        bf16::pack_pairs_plainly<Width>(lines, pairs, plain.data());
        ASSERT_EQ(packed, plain) << count << " lines, " << steps << " steps, steps together: " << by_steps;
      }
}

TEST(Bf16Product, PanelsAreThoseOfPlainCode) {
  expect_packed_as_plainly<14>();
  expect_packed_as_plainly<32>();
}

TEST(Bf16Product, OfEmulatedTilesIsTheProduct) { expect_products(emulated_amx); }

TEST(Bf16Product, OfThisCpuIsTheProduct) {
  if (bf16_unit() == Bf16Unit::none) GTEST_SKIP() << "the CPU has no instructions for bfloat16";
  expect_products(gemm_bf16);
}

TEST(Bf16Product, InPartsGivesTheSameBits) {
  if (bf16_unit() == Bf16Unit::none) GTEST_SKIP() << "the CPU has no instructions for bfloat16";
  const std::vector<Bf16Bits> a = bf16_numbers(50 * 700, 3), b = bf16_numbers(700 * 70, 4);
  const Matrix<Bf16Bits> left{a.data(), 50, 700, 700, 1}, right{b.data(), 700, 70, 70, 1};
  std::vector<float> whole(50 * 70), parts(50 * 70);
  gemm_bf16(left, right, whole.data(), 70);
  for (std::int64_t i = 0; i < 50; i += 10) gemm_bf16(left.band(i, i + 10), right, parts.data() + i * 70, 70);
  EXPECT_EQ(whole, parts);
}

TEST(Bf16Product, KnowsSubnormalNumbers) {
  std::vector<Bf16Bits> values(64, 0x3f80);
  const Matrix<Bf16Bits> matrix{values.data(), 8, 8, 8, 1};
  for (const int normal : {0x0000, 0x8000, 0x0080, 0x8080, 0x7f80, 0x7fc0}) {
    values[40] = static_cast<Bf16Bits>(normal);
    EXPECT_FALSE(range_of(matrix).has_subnormals) << normal;
  }
  for (const int subnormal : {0x0001, 0x007f, 0x8001, 0x807f}) {
    values[40] = static_cast<Bf16Bits>(subnormal);
    EXPECT_TRUE(range_of(matrix).has_subnormals) << subnormal;
    EXPECT_TRUE(range_of(matrix.transposed()).has_subnormals) << subnormal;
    EXPECT_FALSE(range_of(matrix).has_tiny_lines) << subnormal;
  }
}

TEST(Bf16Product, NeedsSubnormalNumbersBesideHugeOnesAndInTinyLines) {
  std::vector<Bf16Bits> values(64, 0x3f80);
  const Matrix<Bf16Bits> matrix{values.data(), 8, 8, 8, 1};
  const Bf16Range ordinary = range_of(matrix);
  values[40] = 0x0001;
  EXPECT_FALSE(needs_subnormals(range_of(matrix), ordinary))
      << "gelu of -13 is one; it adds nothing to a sum of ordinary numbers";
  for (const int huge : {0x5f80, 0x7f80, 0xff80}) {
    values[40] = static_cast<Bf16Bits>(huge);
    EXPECT_TRUE(needs_subnormals(range_of(matrix), {.has_subnormals = true})) << huge;
    EXPECT_FALSE(needs_subnormals(range_of(matrix), ordinary)) << huge;
  }
  std::fill_n(values.begin() + 40, 8, Bf16Bits{0x0001});
  EXPECT_TRUE(needs_subnormals(range_of(matrix), ordinary)) << "a line of nothing else";
}

// A layer of a network: the rows of a batch times one matrix of weights.
TEST(Bf16Product, OfABatchWithOneRightOperandHasTheBitsOfEachAlone) {
  constexpr std::int64_t kCount = 3, kRows = 40, kDepth = 90, kCols = 70;
  std::vector<Bf16Bits> a = bf16_numbers(kCount * kRows * kDepth, 5), b = bf16_numbers(kDepth * kCols, 6);
  View shared = dense_view(b.data(), DType::bf16, {1, kDepth, kCols});
  shared.shape = Shape{kCount, kDepth, kCols};
  shared.strides[0] = 0;
  const View all = dense_view(a.data(), DType::bf16, {kCount, kRows, kDepth});
  if (!has_matmul16(DType::bf16, all, shared, {}, {kCount, kRows, kCols})) GTEST_SKIP() << "this CPU has no bfloat16 products";
  plain::with_pools([&](ThreadPool& pool) {
    std::vector<float> together, alone;
    matmul16(pool, all, shared, {}, plain::target(together, {kCount, kRows, kCols}));
    for (std::int64_t i = 0; i < kCount; ++i) {
      matmul16(pool, dense_view(a.data() + i * kRows * kDepth, DType::bf16, {kRows, kDepth}),
               dense_view(b.data(), DType::bf16, {kDepth, kCols}), {}, plain::target(alone, {kRows, kCols}));
      EXPECT_TRUE(std::equal(alone.begin(), alone.end(), together.begin() + i * kRows * kCols)) << i;
    }
  });
}

// Numbers that the instructions take for zero make a matrix take another path, but not the other matrices of its batch.
class Bf16Batch : public testing::TestWithParam<std::int64_t> {};
INSTANTIATE_TEST_SUITE_P(Rows, Bf16Batch, testing::Values(40, 7));

TEST_P(Bf16Batch, DoesNotMixSubnormalNumbersOfItsMatrices) {
  const std::int64_t kCount = 3, kRows = GetParam(), kDepth = 90, kCols = 70;
  std::vector<Bf16Bits> a = bf16_numbers(kCount * kRows * kDepth, 5), b = bf16_numbers(kDepth * kCols, 6);
  a[kRows * kDepth + 7] = 0x0040;  // in the second one, which a huge factor makes count
  b[7 * kCols] = 0x7e80;
  View shared = dense_view(b.data(), DType::bf16, {1, kDepth, kCols});
  shared.shape = Shape{kCount, kDepth, kCols};
  shared.strides[0] = 0;
  const View all = dense_view(a.data(), DType::bf16, {kCount, kRows, kDepth});
  if (!has_matmul16(DType::bf16, all, shared, {}, {kCount, kRows, kCols})) GTEST_SKIP() << "this CPU has no bfloat16 products";
  plain::with_pools([&](ThreadPool& pool) {
    std::vector<float> together, alone;
    matmul16(pool, all, shared, {}, plain::target(together, {kCount, kRows, kCols}));
    for (std::int64_t i = 0; i < kCount; ++i) {
      matmul16(pool, dense_view(a.data() + i * kRows * kDepth, DType::bf16, {kRows, kDepth}),
               dense_view(b.data(), DType::bf16, {kDepth, kCols}), {}, plain::target(alone, {kRows, kCols}));
      EXPECT_TRUE(std::equal(alone.begin(), alone.end(), together.begin() + i * kRows * kCols)) << i;
    }
  });
}

// Many matrices, and a large result of short products.
TEST(Bf16Product, IsStoredAsTheRoundedResultInFloat32) {
  for (const auto& [count, rows, depth, cols] : {std::array<std::int64_t, 4>{9, 33, 40, 49}, {1, 370, 7, 390}}) {
    std::vector<Bf16Bits> a = bf16_numbers(count * rows * depth, 5), b = bf16_numbers(count * depth * cols, 6);
    const View left = dense_view(a.data(), DType::bf16, {count, rows, depth}),
               right = dense_view(b.data(), DType::bf16, {count, depth, cols});
    const Shape out{count, rows, cols};
    if (!has_matmul16(DType::bf16, left, right, {}, out)) GTEST_SKIP() << "this CPU has no bfloat16 products";
    for (const bool has_subnormals : {false, true}) {
      if (has_subnormals) {
        a[static_cast<std::size_t>((count - 1) * rows * depth + 3)] = 0x0040;  // which a huge factor makes count
        b[static_cast<std::size_t>((count - 1) * depth * cols + 3 * cols)] = 0x7e80;
      }
      plain::with_pools([&](ThreadPool& pool) {
        ASSERT_TRUE(stores_matmul16(pool, left, right, {}, out));
        std::vector<float> wide;
        std::vector<Bf16Bits> narrow(static_cast<std::size_t>(out.elements()));
        matmul16(pool, left, right, {}, plain::target(wide, out));
        matmul16(pool, left, right, {}, dense_target(narrow.data(), DType::bf16, out));
        for (std::size_t i = 0; i < wide.size(); ++i) {
          const auto bits = std::bit_cast<std::uint32_t>(wide[i]);
          ASSERT_EQ(narrow[i], static_cast<Bf16Bits>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)) << i;
        }
      });
    }
  }
}

TEST(Bf16Product, OfFewRowsIsTheProduct) {
  if (!multiplies_few_rows()) GTEST_SKIP() << "the CPU has no instructions for bfloat16";
  for (const auto& [m, k, n] : {std::array<std::int64_t, 3>{1, 1, 1},
                                {2, 40, 33},
                                {3, 31, 100},
                                {4, 128, 64},
                                {5, 65, 31},
                                {7, 1100, 70},
                                {8, 64, 130},
                                {11, 2050, 37},
                                {16, 33, 200}})
    for (const bool a_by_columns : {false, true})
      for (const bool b_by_columns : {false, true})
        for (const bool is_transposed : {false, true}) {
          const std::vector<Bf16Bits> a = bf16_numbers(m * k, 1), b = bf16_numbers(k * n, 2);
          const Matrix<Bf16Bits> left =
              a_by_columns ? Matrix<Bf16Bits>{a.data(), m, k, 1, m} : Matrix<Bf16Bits>{a.data(), m, k, k, 1};
          const Matrix<Bf16Bits> right =
              b_by_columns ? Matrix<Bf16Bits>{b.data(), k, n, 1, k} : Matrix<Bf16Bits>{b.data(), k, n, n, 1};
          const std::int64_t row_step = is_transposed ? 1 : n + 3, col_step = is_transposed ? m + 3 : 1;
          std::vector<float> c(static_cast<std::size_t>((m + 3) * (n + 3)), -1.0f), parts = c;
          EXPECT_FALSE(multiply_few_rows(left, right, c.data(), row_step, col_step));
          for (std::int64_t i = 0; i < m; ++i)
            for (std::int64_t j = 0; j < n; ++j) {
              double sum = 0, size = 0;
              for (std::int64_t p = 0; p < k; ++p) {
                const double term = static_cast<double>(to_f32(left.data[i * left.row_stride + p * left.col_stride])) *
                                    static_cast<double>(to_f32(right.data[p * right.row_stride + j * right.col_stride]));
                sum += term;
                size += std::abs(term);
              }
              ASSERT_NEAR(static_cast<double>(c[static_cast<std::size_t>(i * row_step + j * col_step)]), sum, 1e-6 * size)
                  << m << " x " << k << " x " << n << " at " << i << ", " << j;
            }
          EXPECT_EQ(std::count(c.begin(), c.end(), -1.0f), (m + 3) * (n + 3) - m * n) << "wrote beside the product";
          for (std::int64_t j = 0; j < n; j += 32)
            multiply_few_rows(left, right.transposed().band(j, std::min(n, j + 32)).transposed(), parts.data() + j * col_step,
                              row_step, col_step);
          EXPECT_EQ(c, parts) << "in parts";
        }
}

// The whole primitive, with every layout and with numbers that the instructions would take for zero.
TEST(Bf16Product, AsAPrimitiveKeepsSubnormalNumbers) {
  for (const auto& [m, n] : {std::pair<std::int64_t, std::int64_t>{40, 50}, {1, 300}, {300, 1}, {5, 200}, {200, 11}})
    for (const bool has_subnormal : {false, true})
      for (const bool transposed : {false, true}) {
        const std::int64_t k = 90;
        std::vector<Bf16Bits> a = bf16_numbers(m * k, 5), b = bf16_numbers(k * n, 6);
        if (has_subnormal) a[3] = 0x0040, b[static_cast<std::size_t>(transposed ? 3 : 3 * n)] = 0x7e80;
        View x = dense_view(a.data(), DType::bf16, {m, k}),
             y = dense_view(b.data(), DType::bf16, transposed ? Shape{n, k} : Shape{k, n});
        const MatMulAttr attr{false, transposed};
        if (!has_matmul16(DType::bf16, x, y, attr, {m, n})) continue;
        plain::with_pools([&](ThreadPool& pool) {
          std::vector<float> out;
          matmul16(pool, x, y, attr, plain::target(out, {m, n}));
          for (std::int64_t i = 0; i < m; ++i)
            for (std::int64_t j = 0; j < n; ++j) {
              double sum = 0, size = 0;
              for (std::int64_t p = 0; p < k; ++p) {
                const double term = static_cast<double>(to_f32(a[static_cast<std::size_t>(i * k + p)])) *
                                    static_cast<double>(to_f32(b[static_cast<std::size_t>(transposed ? j * k + p : p * n + j)]));
                sum += term;
                size += std::abs(term);
              }
              ASSERT_NEAR(static_cast<double>(out[static_cast<std::size_t>(i * n + j)]), sum, 1e-6 * size) << i << ", " << j;
            }
        });
      }
}

}  // namespace
}  // namespace tenon::cpu
