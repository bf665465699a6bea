// Shape: the extents of a tensor; a small value without heap memory.
//
// The rank is at most kMaxRank, every extent is >= 0, and the number of elements is at most kMaxElements. The constructor checks
// this, so code that has a Shape can multiply its extents without overflow.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace tenon {

inline constexpr int kMaxRank = 16;
// 2^40 elements: more than any memory holds, and small enough that byte counts never overflow. Larger shapes are refused before
// anything is allocated.
inline constexpr std::int64_t kMaxElements = std::int64_t{1} << 40;

class Shape {
 public:
  Shape() = default;  // a scalar: rank 0, one element
  Shape(std::initializer_list<std::int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  // Throws invalid_argument for a negative extent or a rank above kMaxRank, resource_exhausted for too many elements.
  explicit Shape(std::span<const std::int64_t> dims);

  int rank() const noexcept { return rank_; }
  std::int64_t operator[](int axis) const noexcept { return dims_[static_cast<std::size_t>(axis)]; }
  std::span<const std::int64_t> dims() const noexcept { return {dims_.data(), static_cast<std::size_t>(rank_)}; }
  std::int64_t elements() const noexcept { return elements_; }
  auto begin() const noexcept { return dims().begin(); }
  auto end() const noexcept { return dims().end(); }

  // A copy with one extent replaced; |axis| is in [0, rank).
  Shape with(int axis, std::int64_t extent) const;

  friend bool operator==(const Shape& a, const Shape& b) noexcept {
    if (a.rank_ != b.rank_) return false;
    for (int i = 0; i < a.rank_; ++i)
      if (a[i] != b[i]) return false;
    return true;
  }

 private:
  std::array<std::int64_t, kMaxRank> dims_{};
  std::int64_t elements_ = 1;
  int rank_ = 0;
};

std::string to_string(const Shape& shape);  // "[2, 3]", "[]" for a scalar

// NumPy broadcasting. Throws invalid_argument naming both shapes if they do not match.
Shape broadcast(const Shape& a, const Shape& b);
bool broadcastable(const Shape& from, const Shape& to) noexcept;

// |axis| may be negative (counted from the end). Throws out_of_range naming the axis and the rank.
int normalize_axis(std::int64_t axis, int rank);

using Strides = std::array<std::int64_t, kMaxRank>;  // in elements, one per axis; unused entries are 0
Strides contiguous_strides(const Shape& shape) noexcept;

}  // namespace tenon
