#include <algorithm>

#include "backends/cpu/kernels/kernels_testing.h"

namespace tenon::cpu {
namespace {

using namespace testing_kernels;

constexpr ReduceKind kKinds[] = {ReduceKind::sum, ReduceKind::prod, ReduceKind::max,
                                 ReduceKind::min, ReduceKind::any,  ReduceKind::all};
constexpr std::int64_t kSizes[] = {1,  2,   3,   7,   15,  16,   17,   31,   33,   63,   64,
                                   65, 100, 255, 256, 257, 1000, 1023, 1024, 1025, 5000, 70'001};

PartialReduceKernel partial(const Kernels& table, ReduceKind kind, DType dtype) {
  return table.partial_reduce[static_cast<int>(kind)][static_cast<int>(dtype)];
}
ColumnReduceKernel columns(const Kernels& table, ReduceKind kind, DType dtype) {
  return table.column_reduce[static_cast<int>(kind)][static_cast<int>(dtype)];
}

std::vector<float> uniform_floats(std::int64_t n, float low, float high) {
  std::mt19937 random(5);
  std::vector<float> values(static_cast<std::size_t>(n));
  for (float& x : values) x = std::uniform_real_distribution<float>(low, high)(random);
  return values;
}

// One accumulator at a time, as plainly as can be.
template <class A>
A plain(ReduceKind kind, A total, A x) {
  switch (kind) {
    case ReduceKind::sum:
      if constexpr (std::is_same_v<A, double>) return total + x;
      return static_cast<A>(static_cast<std::uint64_t>(total) + static_cast<std::uint64_t>(x));
    case ReduceKind::prod:
      if constexpr (std::is_same_v<A, double>) return total * x;
      return static_cast<A>(static_cast<std::uint64_t>(total) * static_cast<std::uint64_t>(x));
    case ReduceKind::max: return std::max(total, x);
    case ReduceKind::min: return std::min(total, x);
    case ReduceKind::any: return static_cast<A>(total != 0 || x != 0);
    default: return static_cast<A>(total != 0 && x != 0);
  }
}
template <class A>
A& member(Accumulator& a) {
  if constexpr (std::is_same_v<A, double>)
    return a.f;
  else if constexpr (std::is_same_v<A, std::int64_t>)
    return a.i;
  else
    return a.u;
}

TEST(ReduceKernels, SumFloatsAccuratelyHoweverMany) {
  for (std::int64_t n : {std::int64_t{1000}, std::int64_t{100'000}, std::int64_t{1'000'003}}) {
    for (float low : {0.0f, -1.0f}) {
      const std::vector<float> values = uniform_floats(n, low, 1.0f);
      long double exact = 0, magnitude = 0;
      for (float x : values) exact += static_cast<long double>(x), magnitude += std::fabs(static_cast<long double>(x));
      for (const Kernels* table : tables()) {
        const double sum = partial(*table, ReduceKind::sum, DType::f32)(values.data(), n).f;
        EXPECT_LT(std::fabs(static_cast<double>((sum - exact) / magnitude)), 1e-7) << n << " on " << table->isa;
      }
    }
  }
}

TEST(ReduceKernels, GiveTheSameBitsOnEveryInstructionSet) {
  const Kernels& first = *tables().front();
  for (std::int64_t n : kSizes) {
    const std::vector<float> values = uniform_floats(n, -3, 5);
    const std::vector<double> doubles(values.begin(), values.end());
    for (const Kernels* table : tables())
      for (ReduceKind kind : kKinds) {
        const auto same = [&](DType dtype, const void* data) {
          return std::bit_cast<std::uint64_t>(partial(*table, kind, dtype)(data, n).f) ==
                 std::bit_cast<std::uint64_t>(partial(first, kind, dtype)(data, n).f);
        };
        EXPECT_TRUE(same(DType::f32, values.data())) << name(kind) << " of " << n << " on " << table->isa;
        EXPECT_TRUE(same(DType::f64, doubles.data())) << name(kind) << " of " << n << " on " << table->isa;
      }
  }
}

TEST(ReduceKernels, OfElementsFarAwayGiveTheSameBits) {
  for (std::int64_t n : kSizes) {
    const std::vector<float> values = uniform_floats(n, -3, 5);
    const std::vector<double> doubles(values.begin(), values.end());
    for (const Kernels* table : tables())
      for (ReduceKind kind : {ReduceKind::sum, ReduceKind::max, ReduceKind::min}) {
        const auto same = [&](DType dtype, const void* data) {
          const PartialReduceKernel far = table->far_reduce[static_cast<int>(kind)][static_cast<int>(dtype)];
          return std::bit_cast<std::uint64_t>(far(data, n).f) ==
                 std::bit_cast<std::uint64_t>(partial(*table, kind, dtype)(data, n).f);
        };
        EXPECT_TRUE(same(DType::f32, values.data())) << name(kind) << " of " << n << " on " << table->isa;
        EXPECT_TRUE(same(DType::f64, doubles.data())) << name(kind) << " of " << n << " on " << table->isa;
      }
  }
}

TEST(ReduceKernels, OfProductsGiveTheBitsOfASumOfThem) {
  for (std::int64_t n : kSizes) {
    const std::vector<float> a = uniform_floats(n, -3, 5), b(a.rbegin(), a.rend());
    const std::vector<double> wide_a(a.begin(), a.end()), wide_b(b.begin(), b.end());
    const auto same = [&]<class T>(const Kernels& table, DType dtype, const std::vector<T>& x, const std::vector<T>& y) {
      std::vector<T> products(x.size());
      for (std::size_t i = 0; i < x.size(); ++i) products[i] = x[i] * y[i];
      return std::bit_cast<std::uint64_t>(table.product_sum[static_cast<int>(dtype)](x.data(), y.data(), n).f) ==
             std::bit_cast<std::uint64_t>(partial(table, ReduceKind::sum, dtype)(products.data(), n).f);
    };
    for (const Kernels* table : tables()) {
      EXPECT_TRUE(same(*table, DType::f32, a, b)) << n << " on " << table->isa;
      EXPECT_TRUE(same(*table, DType::f64, wide_a, wide_b)) << n << " on " << table->isa;
      EXPECT_TRUE(same(*table, DType::f32, a, a)) << n << " on " << table->isa;
    }
  }
}

// Kernels that compute and reduce in one pass give the bits of one pass after the other.
template <class T>
void expect_passes_joined(const Kernels& table, DType dtype, const std::vector<T>& a, const std::vector<T>& b) {
  const auto n = static_cast<std::int64_t>(a.size());
  const int type = static_cast<int>(dtype);
  const T shift = b[0];
  const auto bits = [](Accumulator x) { return std::bit_cast<std::uint64_t>(x.f); };
  std::vector<T> sums(a.size()), squares(a.size()), stored(a.size()), differences(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    sums[i] = a[i] + b[i];
    differences[i] = a[i] - shift;
    squares[i] = differences[i] * differences[i];
  }
  const int add = static_cast<int>(ElementwiseOp::Add);
  EXPECT_EQ(bits(table.store_and_sum[add][type](a.data(), b.data(), stored.data(), n)),
            bits(partial(table, ReduceKind::sum, dtype)(sums.data(), n)));
  EXPECT_EQ(stored, sums);
  EXPECT_EQ(bits(table.store_and_max[add][type](a.data(), b.data(), stored.data(), n)),
            bits(partial(table, ReduceKind::max, dtype)(sums.data(), n)));
  EXPECT_EQ(bits(table.sum_of_squared_deviations[type](a.data(), &shift, n, {a.data(), b.data()})),
            bits(partial(table, ReduceKind::sum, dtype)(squares.data(), n)));

  const T two = 2;
  const void* operands[] = {a.data(), &shift, &two};
  table.deviation_with[static_cast<int>(ElementwiseOp::Sub)][type](operands, stored.data(), n, nullptr);
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(stored[i], differences[i] - two);
  table.deviation_with[static_cast<int>(ElementwiseOp::Div)][type](operands, stored.data(), n, nullptr);
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(stored[i], differences[i] / two);
}

TEST(ReduceKernels, OfWhatTheyComputeGiveTheBitsOfTwoPasses) {
  for (std::int64_t n : kSizes) {
    const std::vector<float> a = uniform_floats(n, -3, 5), b(a.rbegin(), a.rend());
    const std::vector<double> wide_a(a.begin(), a.end()), wide_b(b.begin(), b.end());
    for (const Kernels* table : tables()) {
      SCOPED_TRACE(std::to_string(n) + " on " + table->isa);
      expect_passes_joined(*table, DType::f32, a, b);
      expect_passes_joined(*table, DType::f64, wide_a, wide_b);
      std::vector<float> exponentials(a.size());
      const Ahead nothing{a.data(), a.data()};
      const double sum = table->exp_sum(a.data(), 1.5f, exponentials.data(), n, nothing).f;
      EXPECT_EQ(sum, partial(*table, ReduceKind::sum, DType::f32)(exponentials.data(), n).f);
      EXPECT_EQ(sum, table->exp_sum_alone(a.data(), 1.5f, nullptr, n, nothing).f);
    }
  }
}

// A reciprocal of these is not a normal number.
TEST(ReduceKernels, DeviationsAreDividedBySmallAndLargeNumbersToo) {
  const std::vector<float> x = {1, -2, 0x1p-120f, 0};
  for (const float divisor : {0.0f, 0x1p-140f, 0x1p120f, std::numeric_limits<float>::infinity()})
    for (const Kernels* table : tables()) {
      const float shift = 0;
      const void* operands[] = {x.data(), &shift, &divisor};
      std::vector<float> out(x.size());
      table->deviation_with[static_cast<int>(ElementwiseOp::Div)][static_cast<int>(DType::f32)](operands, out.data(), 4, nullptr);
      for (std::size_t i = 0; i < x.size(); ++i)
        EXPECT_TRUE(out[i] == x[i] / divisor || (std::isnan(out[i]) && std::isnan(x[i] / divisor))) << divisor << " " << i;
    }
}

// The divisors whose reciprocals are normal numbers, and others.
TEST(NormalizeKernels, GiveTheBitsOfADeviationAndAMultiplyAdd) {
  const auto f32 = static_cast<int>(DType::f32), bf16 = static_cast<int>(DType::bf16);
  for (const std::int64_t n : {1, 15, 16, 33, 700})
    for (const float divisor : {1.7f, -0.3f, 0.0f, 0x1p-140f, std::numeric_limits<float>::infinity()})
      for (const Kernels* table : tables()) {
        if (!table->normalize) continue;
        SCOPED_TRACE(std::to_string(n) + " / " + std::to_string(divisor) + " on " + table->isa);
        std::vector<float> x = uniform_floats(n, -3, 5), quotients(x.size()), expected(x.size()), got(x.size());
        std::vector<std::uint16_t> x16(x.size()), expected16(x.size()), got16(x.size());
        table->convert[f32][bf16](x.data(), x16.data(), n);
        table->convert[bf16][f32](x16.data(), x.data(), n);
        const float rows[4] = {0.75f, divisor, -1.5f, 0.125f};
        const void *deviation[] = {x.data(), &rows[0], &rows[1]}, *sum[] = {quotients.data(), &rows[2], &rows[3]};
        table->deviation_with[static_cast<int>(ElementwiseOp::Div)][f32](deviation, quotients.data(), n, nullptr);
        table->with_one[static_cast<int>(ElementwiseOp::Mac)](sum, expected.data(), n, nullptr);
        table->convert[f32][bf16](expected.data(), expected16.data(), n);
        const auto is_as_expected = [&] {
          for (std::size_t i = 0; i < got.size(); ++i)
            if (!(got[i] == expected[i] || (std::isnan(got[i]) && std::isnan(expected[i])))) return false;
          return true;
        };
        table->normalize(x.data(), rows, got.data(), n);
        EXPECT_TRUE(is_as_expected());
        table->streaming_normalize(x.data(), rows, got.data(), n);
        table->stream_fence();
        EXPECT_TRUE(is_as_expected());
        table->normalize_bf16(x16.data(), rows, got16.data(), n);
        if (!std::isnan(expected[0])) {
          EXPECT_EQ(got16, expected16);
        }
      }
}

TEST(ReduceKernels, OfDifferencesGiveTheBitsOfTwoPasses) {
  for (std::int64_t n : kSizes) {
    const std::vector<float> a = uniform_floats(n, -3, 5), b(a.rbegin(), a.rend());
    std::vector<float> distances(a.size()), squares(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      distances[i] = std::abs(a[i] - b[i]);
      squares[i] = (a[i] - b[i]) * (a[i] - b[i]);
    }
    for (const Kernels* table : tables()) {
      const auto& kernels = table->difference_reduce[static_cast<int>(DType::f32)];
      EXPECT_EQ(kernels.sum_of_distances(a.data(), b.data(), n).f,
                partial(*table, ReduceKind::sum, DType::f32)(distances.data(), n).f);
      EXPECT_EQ(kernels.largest_distance(a.data(), b.data(), n).f,
                partial(*table, ReduceKind::max, DType::f32)(distances.data(), n).f);
      EXPECT_EQ(kernels.sum_of_squares(a.data(), b.data(), n).f,
                partial(*table, ReduceKind::sum, DType::f32)(squares.data(), n).f);
    }
  }
}

TEST(ReduceKernels, MultiplyAndCompareFloats) {
  for (std::int64_t n : kSizes) {
    const std::vector<float> values = uniform_floats(n, 0.9f, 1.1f);
    const std::vector<double> doubles(values.begin(), values.end());
    long double product = 1;
    for (float x : values) product *= static_cast<long double>(x);
    for (const Kernels* table : tables()) {
      const auto relative = [&](double got) { return std::fabs(static_cast<double>(got / product - 1)); };
      EXPECT_LT(relative(partial(*table, ReduceKind::prod, DType::f32)(values.data(), n).f), 1e-11);
      EXPECT_LT(relative(partial(*table, ReduceKind::prod, DType::f64)(doubles.data(), n).f), 1e-11);
      EXPECT_EQ(partial(*table, ReduceKind::max, DType::f32)(values.data(), n).f,
                *std::max_element(doubles.begin(), doubles.end()));
      EXPECT_EQ(partial(*table, ReduceKind::min, DType::f32)(values.data(), n).f,
                *std::min_element(doubles.begin(), doubles.end()));
      EXPECT_EQ(partial(*table, ReduceKind::max, DType::f64)(doubles.data(), n).f,
                *std::max_element(doubles.begin(), doubles.end()));
      EXPECT_EQ(partial(*table, ReduceKind::min, DType::f64)(doubles.data(), n).f,
                *std::min_element(doubles.begin(), doubles.end()));
    }
  }
}

TEST(ReduceKernels, PropagateNanFromAnyPlace) {
  for (const Kernels* table : tables())
    for (std::size_t at : {0, 5, 63, 64, 200, 1023, 1024, 1499}) {
      std::vector<float> values(1500, 1.0f);
      values[at] = std::numeric_limits<float>::quiet_NaN();
      const std::vector<double> doubles(values.begin(), values.end());
      for (ReduceKind kind : {ReduceKind::sum, ReduceKind::prod, ReduceKind::max, ReduceKind::min}) {
        EXPECT_TRUE(std::isnan(partial(*table, kind, DType::f32)(values.data(), 1500).f)) << name(kind) << " at " << at;
        EXPECT_TRUE(std::isnan(partial(*table, kind, DType::f64)(doubles.data(), 1500).f)) << name(kind) << " at " << at;
        std::vector<Accumulator> acc(1, Accumulator{.f = 1});
        columns(*table, kind, DType::f32)(values.data(), 1500, 1, 1, acc.data());
        EXPECT_TRUE(std::isnan(acc[0].f)) << name(kind) << " down a column at " << at;
      }
    }
}

template <class T, class A>
void expect_integers(DType dtype) {
  for (std::int64_t n : kSizes) {
    auto values = varied_integers<T>(static_cast<std::size_t>(n), 3);
    if (dtype == DType::boolean)
      for (T& x : values) x &= 1;
    for (ReduceKind kind : kKinds)
      for (const Kernels* table : tables()) {
        Accumulator got = partial(*table, kind, dtype)(values.data(), n);
        A expected = member<A>(got);
        if (kind == ReduceKind::max || kind == ReduceKind::min)
          expected = static_cast<A>(values[0]);
        else
          expected = kind == ReduceKind::sum || kind == ReduceKind::any ? 0 : 1;
        for (T x : values) expected = plain<A>(kind, expected, static_cast<A>(x));
        ASSERT_EQ(member<A>(got), expected) << name(kind) << " of " << n << ' ' << name(dtype) << " on " << table->isa;
      }
  }
}
TEST(ReduceKernels, ReduceIntegersExactly) {
  expect_integers<std::uint8_t, std::uint64_t>(DType::boolean);
  expect_integers<std::uint8_t, std::uint64_t>(DType::u8);
  expect_integers<std::uint16_t, std::uint64_t>(DType::u16);
  expect_integers<std::uint32_t, std::uint64_t>(DType::u32);
  expect_integers<std::uint64_t, std::uint64_t>(DType::u64);
  expect_integers<std::int8_t, std::int64_t>(DType::i8);
  expect_integers<std::int16_t, std::int64_t>(DType::i16);
  expect_integers<std::int32_t, std::int64_t>(DType::i32);
  expect_integers<std::int64_t, std::int64_t>(DType::i64);
}

TEST(ReduceKernels, OfNothingGiveTheIdentity) {
  for (const Kernels* table : tables()) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    EXPECT_EQ(partial(*table, ReduceKind::sum, DType::f32)(nullptr, 0).f, 0);
    EXPECT_FALSE(std::signbit(partial(*table, ReduceKind::sum, DType::f32)(nullptr, 0).f));
    EXPECT_EQ(partial(*table, ReduceKind::prod, DType::f32)(nullptr, 0).f, 1);
    EXPECT_EQ(partial(*table, ReduceKind::max, DType::f32)(nullptr, 0).f, -infinity);
    EXPECT_EQ(partial(*table, ReduceKind::min, DType::f64)(nullptr, 0).f, infinity);
    EXPECT_EQ(partial(*table, ReduceKind::max, DType::i8)(nullptr, 0).i, -128);
    EXPECT_EQ(partial(*table, ReduceKind::any, DType::boolean)(nullptr, 0).u, 0u);
    EXPECT_EQ(partial(*table, ReduceKind::all, DType::boolean)(nullptr, 0).u, 1u);
  }
}

template <class T, class A>
void expect_columns(DType dtype, const std::vector<T>& values, double tolerance) {
  for (std::int64_t rows : {0, 1, 15, 16, 17, 50})
    for (std::int64_t n : {1, 3, 63, 64, 65, 200, 513}) {
      const std::int64_t stride = n + 5;
      for (ReduceKind kind : kKinds)
        for (const Kernels* table : tables()) {
          std::vector<Accumulator> acc(static_cast<std::size_t>(n) + 1);
          for (Accumulator& a : acc) member<A>(a) = 2;
          columns(*table, kind, dtype)(values.data(), rows, stride, n, acc.data());
          for (std::int64_t j = 0; j < n; ++j) {
            A expected = 2;
            for (std::int64_t i = 0; i < rows; ++i)
              expected = plain<A>(kind, expected, static_cast<A>(values[static_cast<std::size_t>(i * stride + j)]));
            ASSERT_NEAR(static_cast<double>(member<A>(acc[static_cast<std::size_t>(j)])), static_cast<double>(expected),
                        tolerance * std::fabs(static_cast<double>(expected)))
                << name(kind) << " of " << rows << " rows, column " << j << " of " << n << ' ' << name(dtype) << ", "
                << table->isa;
          }
          ASSERT_EQ(member<A>(acc.back()), 2) << "beyond the last column";
        }
    }
}
TEST(ReduceKernels, ReduceColumns) {
  const std::size_t count = 50 * 520;
  const std::vector<float> floats = uniform_floats(count, 0.5f, 1.5f);
  expect_columns<float, double>(DType::f32, floats, 1e-6);
  expect_columns<double, double>(DType::f64, std::vector<double>(floats.begin(), floats.end()), 1e-14);
  expect_columns<std::int32_t, std::int64_t>(DType::i32, varied_integers<std::int32_t>(count, 1), 0);
  expect_columns<std::uint8_t, std::uint64_t>(DType::u8, varied_integers<std::uint8_t>(count, 1), 0);
}

TEST(ReduceKernels, SumColumnsToTheSameBitsOnEveryInstructionSet) {
  constexpr std::int64_t rows = 100, n = 150;
  const std::vector<float> values = uniform_floats(rows * n, -1, 3);
  const auto sums = [&](const Kernels& table) {
    std::vector<Accumulator> acc(n, Accumulator{.f = 0});
    columns(table, ReduceKind::sum, DType::f32)(values.data(), rows, n, n, acc.data());
    return acc;
  };
  const auto first = sums(*tables().front());
  for (const Kernels* table : tables()) {
    const auto other = sums(*table);
    for (std::int64_t j = 0; j < n; ++j) ASSERT_EQ(first[j].u, other[j].u) << table->isa;
  }
}

}  // namespace
}  // namespace tenon::cpu
