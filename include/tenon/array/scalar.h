// Scalar: a number passed to an op that also accepts integers, such as the value of full(). An integer keeps all of its 64 bits.
//
//   full({2, 3}, 9007199254740993, DType::i64);  clamp(x, 0, 0.5);
#pragma once

#include <concepts>
#include <cstdint>
#include <utility>
#include <variant>

namespace tenon {

class Scalar {
 public:
  Scalar(std::floating_point auto value) : value_(static_cast<double>(value)) {}
  // A uint64 beyond the range of int64 becomes the nearest double.
  template <std::integral T>
  Scalar(T value) : value_(static_cast<std::int64_t>(value)) {
    if constexpr (std::unsigned_integral<T> && sizeof(T) == 8)
      if (!std::in_range<std::int64_t>(value)) value_ = static_cast<double>(value);
  }

  const std::variant<std::int64_t, double>& value() const noexcept { return value_; }

 private:
  std::variant<std::int64_t, double> value_;
};

}  // namespace tenon
