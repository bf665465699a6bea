// Vectors compared with vectors.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "tenon/error.h"
#include "tenon/model/encoder.h"

namespace tenon {
namespace {

// One row per angle to the first axis, in the plane of the first two of |width| axes.
HostArray rows_at(const std::vector<double>& angles, std::int64_t width) {
  std::vector<float> values;
  for (const double angle : angles) {
    values.resize(values.size() + static_cast<std::size_t>(width));
    float* const row = values.data() + values.size() - width;
    row[0] = static_cast<float>(std::cos(angle));
    row[1] = static_cast<float>(std::sin(angle));
  }
  return HostArray::from<float>({static_cast<std::int64_t>(angles.size()), width}, values);
}

HostArray row_of(const HostArray& hashes, std::int64_t row) {
  const std::int64_t words = hashes.shape()[1];
  const auto* const values = reinterpret_cast<const std::uint64_t*>(hashes.data()) + row * words;
  return HostArray::from<std::uint64_t>({words}, std::vector<std::uint64_t>(values, values + words));
}

std::vector<std::uint64_t> words_of(const HostArray& hashes) {
  const auto* const values = reinterpret_cast<const std::uint64_t*>(hashes.data());
  return {values, values + hashes.elements()};
}

TEST(SimHash, BitsThatDifferTellTheAngle) {
  constexpr double pi = std::numbers::pi;
  constexpr std::int64_t kBits = 4096;
  const std::vector<double> angles{0, 0, pi / 8, pi / 2, pi};
  const HostArray hashes = simhash(rows_at(angles, 48), kBits);
  EXPECT_EQ(hashes.shape(), (Shape{5, kBits / 64}));
  const std::vector<std::int64_t> distances = hamming_distances(hashes, row_of(hashes, 0));
  EXPECT_EQ(distances[1], 0);
  EXPECT_EQ(distances[4], kBits);
  // A binomial distribution: four deviations are at most 2 * sqrt(bits).
  for (std::size_t i = 0; i < angles.size(); ++i)
    EXPECT_NEAR(static_cast<double>(distances[i]), kBits * angles[i] / pi, 2 * std::sqrt(kBits)) << i;
}

TEST(SimHash, DependsOnTheSeedAndNotOnLength) {
  const HostArray row = rows_at({0.3}, 16);
  EXPECT_EQ(words_of(simhash(row, 128, 7)), words_of(simhash(row, 128, 7)));
  EXPECT_NE(words_of(simhash(row, 128, 7)), words_of(simhash(row, 128, 8)));
  const HostArray once = HostArray::from<float>({1, 2}, {1, 2}), twice = HostArray::from<float>({1, 2}, {2, 4});
  EXPECT_EQ(words_of(simhash(once)), words_of(simhash(twice)));
}

TEST(SimHash, RefusesWhatIsNoMatrixOrFillsNoWord) {
  EXPECT_THROW(simhash(HostArray::zeros(DType::f32, {4})), Error);
  EXPECT_THROW(simhash(HostArray::zeros(DType::f32, {4, 4}), 63), Error);
  EXPECT_THROW(simhash(HostArray::zeros(DType::f32, {4, 4}), 0), Error);
  EXPECT_THROW(hamming_distances(HostArray::zeros(DType::u64, {4, 2}), HostArray::zeros(DType::u64, {1})), Error);
  EXPECT_TRUE(hamming_distances(HostArray::zeros(DType::u64, {0, 2}), HostArray::zeros(DType::u64, {2})).empty());
}

}  // namespace
}  // namespace tenon
