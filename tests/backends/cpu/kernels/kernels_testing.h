// What the tests of the CPU kernels share: the levels this machine can run, values worth trying, distances in ULP.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "backends/cpu/kernels/kernels.h"

namespace tenon::cpu::testing_kernels {

inline std::vector<const Kernels*> tables() {
  std::vector<const Kernels*> found;
  for (int level : {0, 2, 3, 4})
    if (const Kernels* table = kernels_for_level(level)) found.push_back(table);
  return found;
}

// The error of |got| in units of the last place of |exact| rounded to f32; infinite where one is NaN and the other is not.
// Infinity counts as the number after the largest.
inline double ulp_error(float got, double exact) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  if (std::isnan(exact) || std::isnan(got)) return std::isnan(exact) && std::isnan(got) ? 0 : kNever;
  const auto bounded = [](double x) { return std::clamp(x, -0x1p128, 0x1p128); };
  const double size = std::fabs(bounded(exact));
  int exponent = -200;
  if (size > 0) std::frexp(std::min(size, 0x1.fffffep127), &exponent);
  return std::fabs(bounded(got) - bounded(exact)) / std::ldexp(1.0, std::max(exponent - 24, -149));
}

inline std::vector<float> special_floats() {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> values = {0.0f,
                               1.0f,
                               2.0f,
                               3.0f,
                               0.5f,
                               0.25f,
                               1.5f,
                               6.0f,
                               10.0f,
                               0x1p-149f,
                               0x1p-126f,
                               1.1e-38f,
                               0x1p-25f,
                               1e-8f,
                               1e-4f,
                               0.9f,
                               0.999999f,
                               1.000001f,
                               88.7228f,
                               88.7229f,
                               87.3366f,
                               103.972f,
                               104.0f,
                               127.999f,
                               128.0f,
                               149.0f,
                               149.5f,
                               1.5707964f,
                               3.1415927f,
                               30000.0f,
                               30001.0f,
                               1.6e6f,
                               1e10f,
                               0x1p24f,
                               0x1p31f,
                               0x1p63f,
                               0x1.fffffep127f,
                               infinity,
                               std::numeric_limits<float>::quiet_NaN()};
  const std::size_t positive = values.size();
  for (std::size_t i = 0; i < positive; ++i) values.push_back(-values[i]);
  return values;
}

// Special values first, then any bit pattern, then numbers of the sizes in which most functions do something.
inline std::vector<float> varied_floats(std::size_t count, std::uint32_t seed) {
  std::vector<float> values = special_floats();
  std::mt19937 random(seed);
  const auto uniform = [&](float limit) { return std::uniform_real_distribution<float>(-limit, limit)(random); };
  while (values.size() < count) {
    values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
    values.push_back(uniform(1.0f));
    values.push_back(uniform(10.0f));
    values.push_back(uniform(110.0f));
    values.push_back(std::rint(uniform(20.0f)));
  }
  values.resize(count);
  return values;
}

// Random bits, with 0, 1 and the limits often among them.
template <class T>
std::vector<T> varied_integers(std::size_t count, std::uint32_t seed) {
  std::vector<T> values = {0, 1, 2, 3, 7, std::numeric_limits<T>::max(), std::numeric_limits<T>::min(), static_cast<T>(-1)};
  std::mt19937_64 random(seed);
  while (values.size() < count) {
    const std::uint64_t bits = random();
    values.push_back(static_cast<T>(bits >> (bits & 63)));
    values.push_back(static_cast<T>(bits % 9));
    values.push_back(values[bits % 8]);
  }
  values.resize(count);
  return values;
}

}  // namespace tenon::cpu::testing_kernels
