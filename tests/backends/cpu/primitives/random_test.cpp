#include "graph/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backends/cpu/plain.h"

namespace tenon::cpu {
namespace {

// |ulp|: how far they may be from the definition.
template <class T>
void expect_defined_numbers(bool normal, T (*one)(std::uint64_t seed, std::uint64_t i), T ulp = 0) {
  for (const std::int64_t n : {0, 1, 3, 4, 7, 5003})
    for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{7}, ~std::uint64_t{0}})
      plain::with_pools([&](ThreadPool& pool) {
        std::vector<T> out;
        random(pool, {normal, seed}, plain::target(out, {n}));
        for (std::size_t i = 0; i < out.size(); ++i) {
          const T wanted = one(seed, i);
          if (ulp == 0)
            ASSERT_EQ(out[i], wanted) << n << " numbers, at " << i;
          else
            ASSERT_LE(std::abs(out[i] - wanted), std::abs(wanted) * ulp * std::numeric_limits<T>::epsilon())
                << n << " numbers, at " << i;
        }
      });
}

TEST(Random, UniformFloatsAreThoseOfTheDefinition) { expect_defined_numbers<float>(false, random_uniform_f32); }
TEST(Random, UniformDoublesAreThoseOfTheDefinition) { expect_defined_numbers<double>(false, random_uniform_f64); }
TEST(Random, NormalFloatsAreThoseOfTheDefinition) { expect_defined_numbers<float>(true, random_normal_f32, 4); }
TEST(Random, NormalFloatsAreTheSameInAnyPart) {
  std::vector<float> all, some;
  plain::with_pools([&](ThreadPool& pool) {
    random(pool, {true, 5}, plain::target(all, {5003}));
    random(pool, {true, 5}, plain::target(some, {1001}));
    EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin()));
  });
}
TEST(Random, NormalDoublesAreThoseOfTheDefinition) { expect_defined_numbers<double>(true, random_normal_f64); }

}  // namespace
}  // namespace tenon::cpu
