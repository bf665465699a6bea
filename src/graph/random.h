// The random numbers of Prim::random: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011),
// counter-based, so element i of a tensor depends only on (seed, i), on every backend, in any order, with any number of threads.
//
// Definition:
//   key     = (seed mod 2^32, seed div 2^32)
//   words w = philox(key, counter = (b mod 2^32, b div 2^32, stream, 0)), four of 32 bits
//   uniform f32: stream 0, b = i div 4, w = words[i mod 4];  (w >> 8) * 2^-24
//   uniform f64: stream 1, b = i div 2, lo, hi = words[2 (i mod 2)], words[2 (i mod 2) + 1];  ((hi 2^32 + lo) >> 11) * 2^-53
//   normal f32:  stream 3, b = i div 4, r, a = words[2 (i div 2 mod 2)], words[2 (i div 2 mod 2) + 1];
//                v = r with bit 0 set, rounded towards zero to f32; x = bits 6 to 29 of a, as a signed number, with bit 0 set,
//                2^-23; c, s = sqrt(-2 ln(v 2^-32)) (cos, sin)(pi / 4 x), both negated if bit 31 of a is set, exchanged if bit 30
//                is set; c for even i, s for odd i, within 4 ULP
//   normal f64:  stream 2, b = i, u = (((words[1] 2^32 + words[0]) >> 11) + 1) * 2^-53, v = ((words[3] 2^32 + words[2]) >> 11) *
//   2^-53;
//                sqrt(-2 ln u) cos(2 pi v)
// f16, bf16 and the block formats are computed as f32.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace tenon {

using PhiloxWords = std::array<std::uint32_t, 4>;

enum class RandomStream : std::uint32_t { uniform_f32 = 0, uniform_f64 = 1, normal_f64 = 2, normal_f32 = 3 };

inline constexpr std::uint64_t kPhiloxFactors[] = {0xD2511F53u, 0xCD9E8D57u};
inline constexpr std::uint32_t kPhiloxKeys[] = {0x9E3779B9u, 0xBB67AE85u};

constexpr PhiloxWords philox4x32(std::uint64_t seed, std::uint64_t block, std::uint32_t stream) {
  std::uint32_t c0 = static_cast<std::uint32_t>(block), c1 = static_cast<std::uint32_t>(block >> 32), c2 = stream, c3 = 0;
  std::uint32_t k0 = static_cast<std::uint32_t>(seed), k1 = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = kPhiloxFactors[0] * c0;
    const std::uint64_t p1 = kPhiloxFactors[1] * c2;
    const std::uint32_t n0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ k0;
    const std::uint32_t n2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c1 = static_cast<std::uint32_t>(p1);
    c3 = static_cast<std::uint32_t>(p0);
    c0 = n0;
    c2 = n2;
    k0 += kPhiloxKeys[0];
    k1 += kPhiloxKeys[1];
  }
  return {c0, c1, c2, c3};
}

constexpr double unit_double(std::uint32_t low, std::uint32_t high) {  // 53 bits, in [0, 1)
  return static_cast<double>(((std::uint64_t{high} << 32) | low) >> 11) * 0x1p-53;
}

constexpr float random_uniform_f32(std::uint64_t seed, std::uint64_t i) {
  const PhiloxWords w = philox4x32(seed, i / 4, static_cast<std::uint32_t>(RandomStream::uniform_f32));
  return static_cast<float>(w[i % 4] >> 8) * 0x1p-24f;
}

constexpr double random_uniform_f64(std::uint64_t seed, std::uint64_t i) {
  const PhiloxWords w = philox4x32(seed, i / 2, static_cast<std::uint32_t>(RandomStream::uniform_f64));
  return i % 2 == 0 ? unit_double(w[0], w[1]) : unit_double(w[2], w[3]);
}

inline double random_normal_f64(std::uint64_t seed, std::uint64_t i) {
  const PhiloxWords w = philox4x32(seed, i, static_cast<std::uint32_t>(RandomStream::normal_f64));
  const double u = unit_double(w[0], w[1]) + 0x1p-53;  // exact: in (0, 1], so the logarithm is finite
  const double v = unit_double(w[2], w[3]);
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
}

// Two words of the generator as two independent normal numbers, computed in double.
inline std::array<float, 2> random_normal_pair(std::uint32_t radius, std::uint32_t angle) {
  constexpr std::uint64_t kept = ~std::uint64_t{0} << 29;  // of a double: what a float has
  const double v = std::bit_cast<double>(std::bit_cast<std::uint64_t>(static_cast<double>(radius | 1u)) & kept);
  const double x = static_cast<double>((static_cast<std::int32_t>(angle << 2) >> 8) | 1) * (0x1p-23 * std::numbers::pi / 4);
  const double r = std::sqrt(-2.0 * std::log(v * 0x1p-32)) * (angle >> 31 != 0 ? -1 : 1);
  const auto c = static_cast<float>(r * std::cos(x)), s = static_cast<float>(r * std::sin(x));
  if ((angle & 0x40000000u) != 0) return {s, c};
  return {c, s};
}

inline float random_normal_f32(std::uint64_t seed, std::uint64_t i) {
  const PhiloxWords w = philox4x32(seed, i / 4, static_cast<std::uint32_t>(RandomStream::normal_f32));
  return i % 4 < 2 ? random_normal_pair(w[0], w[1])[i % 2] : random_normal_pair(w[2], w[3])[i % 2];
}

}  // namespace tenon
