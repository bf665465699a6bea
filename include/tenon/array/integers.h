// Integers: a list of integers passed to an op, such as axes, a shape or a kernel size. Constructed from one number, a list in
// braces, a vector or a Shape; std::nullopt means "not given", for ops that have a default.
//
//   sum(x, 0);  sum(x, {0, 1});  sum(x);      // one axis, two, all
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include "tenon/array/shape.h"

namespace tenon {

class Integers {
 public:
  Integers(std::nullopt_t) {}
  Integers(std::integral auto value) : values_(std::vector{static_cast<std::int64_t>(value)}) {}
  Integers(std::initializer_list<std::int64_t> values) : values_(values) {}
  Integers(std::vector<std::int64_t> values) : values_(std::move(values)) {}
  Integers(const Shape& shape) : values_(std::vector<std::int64_t>(shape.begin(), shape.end())) {}

  const std::optional<std::vector<std::int64_t>>& values() const noexcept { return values_; }

 private:
  std::optional<std::vector<std::int64_t>> values_;
};

}  // namespace tenon
