// Integers: a list of whole numbers given to an op: axes, a shape, a kernel size. Made from one number, a list in braces, a
// vector or a Shape; std::nullopt is "none given", where an op has a meaning for that.
//
//   sum(x, 0);  sum(x, {0, 1});  sum(x);      // one axis, two, all
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include "tenon/shape.h"

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
