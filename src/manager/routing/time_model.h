// TimeModel: predicts a time as a latency plus a time per unit of work, learned from observations.
//
// seconds = a + b x + c y with unknown a, b, c > 0. The model keeps mean and covariance of their logarithms and updates them with
// each observation (an iterated Kalman filter): a relative error weighs the same at a microsecond and at a second, an observation
// changes only the terms that contribute to it, and a single outlier changes little. The initial guess may be wrong by a factor
// of about ten; later observations outweigh earlier ones. A value.
//
//   TimeModel upload({.fixed = 20e-6, .per_x = 1e-10});
//   upload.add(bytes, 0, seconds);
//   upload.predict(1e9, 0);
#pragma once

#include <array>
#include <span>

namespace tenon {

struct TimeRates {
  double fixed = 0;             // seconds
  double per_x = 0, per_y = 0;  // seconds for one unit
  friend bool operator==(const TimeRates&, const TimeRates&) = default;
};

class TimeModel {
 public:
  using Vector = std::array<double, 3>;
  using Matrix = std::array<Vector, 3>;
  static constexpr std::size_t kNumbers = 9;

  TimeModel() : TimeModel(TimeRates{}) {}
  // Terms with an initial guess of 0 stay 0.
  explicit TimeModel(const TimeRates& guess);

  // Ignores values that are negative or not finite.
  void add(double x, double y, double seconds);
  double predict(double x, double y) const;
  TimeRates rates() const;

  // The state without the guess, for a file. Invalid numbers leave the model unchanged.
  std::array<double, kNumbers> numbers() const;
  void restore(std::span<const double> numbers);

  friend bool operator==(const TimeModel&, const TimeModel&) = default;

 private:
  TimeRates guess_;
  Vector offset_{};  // logarithm of each part over its guess
  Matrix covariance_{};
};

}  // namespace tenon
