// TimeModel: how long something takes, as a latency plus a time per unit of work, learnt from what it took.
//
// seconds = a + b x + c y, none of them negative, fitted by least squares of relative errors: being off by a tenth counts the
// same for a microsecond and for a second. Starts from a guess, which a few observations outweigh; later ones outweigh earlier
// ones. A value: copy, compare, keep in a file.
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
  static constexpr std::size_t kNumbers = 10;

  TimeModel() = default;
  explicit TimeModel(const TimeRates& guess) : guess_(guess) {}

  // Nothing happens for what is negative or not finite.
  void add(double x, double y, double seconds);
  double predict(double x, double y) const;
  TimeRates rates() const;
  // Observations that still count.
  double weight() const noexcept { return weight_; }

  // Everything but the guess, for a file. Throws nothing; numbers that make no sense leave the model as it was.
  std::array<double, kNumbers> numbers() const;
  void restore(std::span<const double> numbers);

  friend bool operator==(const TimeModel&, const TimeModel&) = default;

 private:
  TimeRates guess_;
  // Sums over observations of products of the features, each divided by the seconds: those of (fixed, x, y) in units of the guess
  // (six different products), and of each with the target, which is 1 after the division.
  std::array<double, 6> products_{};
  std::array<double, 3> targets_{};
  double weight_ = 0;
};

}  // namespace tenon
