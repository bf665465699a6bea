#include "manager/routing/time_model.h"

#include <algorithm>
#include <cmath>

namespace tenon {
namespace {

// In units of the natural logarithm: 2.3 is a factor of ten.
constexpr double kGuessDeviation = 2.3;
constexpr double kMeasuredDeviation = 0.15;  // of one run from the next
constexpr double kDrift = 0.02;              // of the truth from one observation to the next
constexpr double kWild = 3;                  // deviations; what is further off counts less
constexpr double kFarthest = 30;             // no guess is wrong by more than e^30
constexpr int kRounds = 6;
// No clock measures less; keeps logarithms finite.
constexpr double kShortest = 1e-9;

using Vector = TimeModel::Vector;
using Matrix = TimeModel::Matrix;

Vector parts_of(const TimeRates& guess, const Vector& offset, double x, double y) {
  return {guess.fixed * std::exp(offset[0]), guess.per_x * std::exp(offset[1]) * x, guess.per_y * std::exp(offset[2]) * y};
}

Vector times(const Matrix& matrix, const Vector& vector) {
  Vector result{};
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) result[i] += matrix[i][j] * vector[j];
  return result;
}

double dot(const Vector& a, const Vector& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

}  // namespace

TimeModel::TimeModel(const TimeRates& guess) : guess_(guess) {
  for (int i = 0; i < 3; ++i) covariance_[i][i] = kGuessDeviation * kGuessDeviation;
}

void TimeModel::add(double x, double y, double seconds) {
  if (!std::isfinite(x) || !std::isfinite(y) || !std::isfinite(seconds) || x < 0 || y < 0 || seconds < 0) return;
  for (int i = 0; i < 3; ++i)
    covariance_[i][i] = std::min(covariance_[i][i] + kDrift * kDrift, kGuessDeviation * kGuessDeviation);
  const double target = std::log(std::max(seconds, kShortest));

  // The shares of the parts change with the parts; a few rounds from where the last one ended find the point where both fit.
  Vector offset = offset_, gain{}, shares{};
  for (int round = 0; round < kRounds; ++round) {
    const Vector parts = parts_of(guess_, offset, x, y);
    const double sum = parts[0] + parts[1] + parts[2];
    if (!(sum > 0) || !std::isfinite(sum)) return;
    for (int i = 0; i < 3; ++i) shares[i] = parts[i] / sum;
    const Vector spread = times(covariance_, shares);
    double noise = kMeasuredDeviation * kMeasuredDeviation;
    // What the observation says about the difference from where we began, linearised here.
    const Vector moved{offset_[0] - offset[0], offset_[1] - offset[1], offset_[2] - offset[2]};
    const double surprise = target - std::log(sum) - dot(shares, moved);
    const double deviation = std::sqrt(dot(shares, spread) + noise);
    if (const double wildness = std::fabs(surprise) / (kWild * deviation); wildness > 1) noise *= wildness * wildness;
    const double variance = dot(shares, spread) + noise;
    for (int i = 0; i < 3; ++i) {
      gain[i] = spread[i] / variance;
      offset[i] = std::clamp(offset_[i] + gain[i] * surprise, -kFarthest, kFarthest);
    }
  }
  const Vector spread = times(covariance_, shares);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) covariance_[i][j] -= (gain[i] * spread[j] + gain[j] * spread[i]) / 2;
  for (int i = 0; i < 3; ++i) covariance_[i][i] = std::max(covariance_[i][i], 1e-6);
  offset_ = offset;
}

TimeRates TimeModel::rates() const {
  const Vector parts = parts_of(guess_, offset_, 1, 1);
  return {parts[0], parts[1], parts[2]};
}

double TimeModel::predict(double x, double y) const {
  const Vector parts = parts_of(guess_, offset_, x, y);
  return parts[0] + parts[1] + parts[2];
}

std::array<double, TimeModel::kNumbers> TimeModel::numbers() const {
  const Matrix& c = covariance_;
  return {offset_[0], offset_[1], offset_[2], c[0][0], c[1][1], c[2][2], c[0][1], c[0][2], c[1][2]};
}

void TimeModel::restore(std::span<const double> numbers) {
  if (numbers.size() != kNumbers) return;
  for (const double number : numbers)
    if (!std::isfinite(number)) return;
  for (int i = 0; i < 3; ++i) {
    if (std::fabs(numbers[static_cast<std::size_t>(i)]) > kFarthest) return;
    const double variance = numbers[static_cast<std::size_t>(i) + 3];
    if (variance <= 0 || variance > 2 * kGuessDeviation * kGuessDeviation) return;
  }
  const double xy = numbers[6], xz = numbers[7], yz = numbers[8];
  // Correlations beyond 1 are no covariance.
  if (xy * xy > numbers[3] * numbers[4] || xz * xz > numbers[3] * numbers[5] || yz * yz > numbers[4] * numbers[5]) return;
  std::copy_n(numbers.begin(), 3, offset_.begin());
  covariance_ = {{{numbers[3], xy, xz}, {xy, numbers[4], yz}, {xz, yz, numbers[5]}}};
}

}  // namespace tenon
