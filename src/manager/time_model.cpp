#include "manager/time_model.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tenon {
namespace {

// How much the guess weighs against one observation, and how fast old observations fade: 64 of them count.
constexpr double kGuessWeight = 0.02;
constexpr double kFading = 1 - 1.0 / 64;
// No clock measures less; keeps a ratio to the measured time finite.
constexpr double kShortest = 1e-9;

using Vector = std::array<double, 3>;
using Matrix = std::array<Vector, 3>;

// The least squares solution with the variables outside |mask| zero; nothing where it does not exist.
bool solve(const Matrix& a, const Vector& b, unsigned mask, Vector& x) {
  std::array<std::array<double, 4>, 3> rows{};
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) rows[i][j] = (mask >> i & 1u) && (mask >> j & 1u) ? a[i][j] : (i == j ? 1 : 0);
    rows[i][3] = mask >> i & 1u ? b[i] : 0;
  }
  for (int column = 0; column < 3; ++column) {
    int pivot = column;
    for (int row = column + 1; row < 3; ++row)
      if (std::fabs(rows[row][column]) > std::fabs(rows[pivot][column])) pivot = row;
    if (std::fabs(rows[pivot][column]) < 1e-300) return false;
    std::swap(rows[pivot], rows[column]);
    for (int row = 0; row < 3; ++row) {
      if (row == column) continue;
      const double factor = rows[row][column] / rows[column][column];
      for (int k = column; k < 4; ++k) rows[row][k] -= factor * rows[column][k];
    }
  }
  for (int i = 0; i < 3; ++i) x[i] = rows[i][3] / rows[i][i];
  return std::isfinite(x[0]) && std::isfinite(x[1]) && std::isfinite(x[2]);
}

// Up to a constant, the squared error of |x|.
double error_of(const Matrix& a, const Vector& b, const Vector& x) {
  double error = 0;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) error += x[i] * a[i][j] * x[j];
    error -= 2 * b[i] * x[i];
  }
  return error;
}

// With three variables all sets of those that are not zero can be tried.
Vector best_without_negatives(const Matrix& a, const Vector& b) {
  Vector best{1, 1, 1};
  double smallest = std::numeric_limits<double>::infinity();
  for (unsigned mask = 0; mask < 8; ++mask) {
    Vector x{};
    if (!solve(a, b, mask, x) || x[0] < 0 || x[1] < 0 || x[2] < 0) continue;
    if (const double error = error_of(a, b, x); error < smallest) {
      smallest = error;
      best = x;
    }
  }
  return best;
}

}  // namespace

void TimeModel::add(double x, double y, double seconds) {
  if (!std::isfinite(x) || !std::isfinite(y) || !std::isfinite(seconds) || x < 0 || y < 0 || seconds < 0) return;
  const double by = 1 / std::max(seconds, kShortest);
  const Vector f{guess_.fixed * by, guess_.per_x * x * by, guess_.per_y * y * by};
  const std::array<double, 6> products{f[0] * f[0], f[0] * f[1], f[0] * f[2], f[1] * f[1], f[1] * f[2], f[2] * f[2]};
  for (std::size_t i = 0; i < products.size(); ++i) products_[i] = kFading * products_[i] + products[i];
  for (std::size_t i = 0; i < f.size(); ++i) targets_[i] = kFading * targets_[i] + f[i];
  weight_ = kFading * weight_ + 1;
}

TimeRates TimeModel::rates() const {
  const std::array<double, 6>& p = products_;
  const Matrix a{{{p[0] + kGuessWeight, p[1], p[2]}, {p[1], p[3] + kGuessWeight, p[4]}, {p[2], p[4], p[5] + kGuessWeight}}};
  const Vector b{targets_[0] + kGuessWeight, targets_[1] + kGuessWeight, targets_[2] + kGuessWeight};
  const Vector scale = best_without_negatives(a, b);
  return {guess_.fixed * scale[0], guess_.per_x * scale[1], guess_.per_y * scale[2]};
}

double TimeModel::predict(double x, double y) const {
  const TimeRates known = rates();
  return known.fixed + known.per_x * x + known.per_y * y;
}

std::array<double, TimeModel::kNumbers> TimeModel::numbers() const {
  std::array<double, kNumbers> all{};
  std::copy(products_.begin(), products_.end(), all.begin());
  std::copy(targets_.begin(), targets_.end(), all.begin() + 6);
  all[9] = weight_;
  return all;
}

void TimeModel::restore(std::span<const double> numbers) {
  if (numbers.size() != kNumbers) return;
  for (const double number : numbers)
    if (!std::isfinite(number) || number < 0) return;
  std::copy_n(numbers.begin(), 6, products_.begin());
  std::copy_n(numbers.begin() + 6, 3, targets_.begin());
  weight_ = numbers[9];
}

}  // namespace tenon
