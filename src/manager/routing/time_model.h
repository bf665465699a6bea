// TimeModel: how long something takes, as a latency plus a time per unit of work, learnt from what it took.
//
// seconds = a + b x + c y with unknown a, b, c > 0. What is known of their logarithms is a mean and a covariance, corrected by
// each observation (a Kalman filter, linearised anew where it ends up): being off by a tenth counts the same for a microsecond
// and for a second, an observation moves only the parts it speaks about, and a single wild one moves little. Starts from a
// guess that may be wrong by a factor of ten or so; later observations outweigh earlier ones. A value: copy, compare, keep.
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
  // Parts guessed to be 0 stay so.
  explicit TimeModel(const TimeRates& guess);

  // Nothing happens for what is negative or not finite.
  void add(double x, double y, double seconds);
  double predict(double x, double y) const;
  TimeRates rates() const;

  // Everything but the guess, for a file. Numbers that make no sense leave the model as it was.
  std::array<double, kNumbers> numbers() const;
  void restore(std::span<const double> numbers);

  friend bool operator==(const TimeModel&, const TimeModel&) = default;

 private:
  TimeRates guess_;
  Vector offset_{};  // logarithm of each part over its guess
  Matrix covariance_{};
};

}  // namespace tenon
