// Evaluation of single nodes by the reference interpreter. Values are HostArrays in a *storage* dtype: f64 for float dtypes,
// otherwise the node's own.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <type_traits>

#include "base/threads/thread_pool.h"
#include "tenon/array.h"
#include "tenon/error.h"
#include "tenon/graph.h"

namespace tenon::reference {

constexpr DType storage_dtype(DType d) { return is_float(d) ? DType::f64 : d; }

// structure.cpp
HostArray evaluate_view(const Node& node, const HostArray& x);  // broadcast, transpose, slice
HostArray evaluate_pad(const Node& node, const HostArray& x);
HostArray evaluate_concat(const Node& node, std::span<const HostArray> parts);
HostArray evaluate_take(const Node& node, const HostArray& x, const HostArray& indices);
HostArray evaluate_gather(const Node& node, const HostArray& x, const HostArray& indices);
HostArray evaluate_scatter(const Node& node, const HostArray& x, const HostArray& indices, const HostArray& updates);
HostArray evaluate_iota(const Node& node);
HostArray evaluate_random(const Node& node);

// reduce.cpp
HostArray evaluate_reduce(const Node& node, const HostArray& x);
HostArray evaluate_arg_reduce(const Node& node, const HostArray& x);
HostArray evaluate_arg_sort(const Node& node, const HostArray& x);
HostArray evaluate_cumulative(const Node& node, const HostArray& x);

// products.cpp
HostArray evaluate_matmul(const Node& node, const HostArray& a, const HostArray& b);
HostArray evaluate_conv(const Node& node, const HostArray& x, const HostArray& weight);
HostArray evaluate_window(const Node& node, const HostArray& x);

// Calls f(first, count) for consecutive parts of [0, elements), on the threads of the process. Parts do not depend on the number
// of threads.
template <class F>
void in_chunks(std::int64_t elements, F&& f, std::int64_t chunk = 1 << 13) {
  const std::int64_t chunks = (elements + chunk - 1) / chunk;
  if (chunks <= 1) return elements > 0 ? f(std::int64_t{0}, elements) : void();
  process_pool().for_each(chunks, [&](std::int64_t i, int) { f(i * chunk, std::min(chunk, elements - i * chunk)); });
}

// Calls f with a value of the C++ type that stores |dtype|.
template <class F>
decltype(auto) with_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::boolean:
    case DType::u8: return f(std::uint8_t{});
    case DType::u16: return f(std::uint16_t{});
    case DType::u32: return f(std::uint32_t{});
    case DType::u64: return f(std::uint64_t{});
    case DType::i8: return f(std::int8_t{});
    case DType::i16: return f(std::int16_t{});
    case DType::i32: return f(std::int32_t{});
    case DType::i64: return f(std::int64_t{});
    default: return f(double{});
  }
}

template <class T>
const T* data(const HostArray& array) {
  return reinterpret_cast<const T*>(array.data());
}
template <class T>
T* mutable_data(HostArray& array) {
  return reinterpret_cast<T*>(array.mutable_data());
}

// Iterates over an index space in row-major order and tracks the offset given by the strides.
class Walk {
 public:
  Walk(const Shape& shape, const Strides& strides, std::int64_t start = 0) : shape_(shape), strides_(strides), offset_(start) {}

  std::int64_t offset() const { return offset_; }
  // To element |linear| in row-major order, from the first.
  Walk& skip(std::int64_t linear) {
    for (int axis = shape_.rank() - 1; axis >= 0 && linear > 0; --axis) {
      const std::size_t a = static_cast<std::size_t>(axis);
      index_[a] = linear % shape_[axis];
      offset_ += index_[a] * strides_[a];
      linear /= shape_[axis];
    }
    return *this;
  }
  void next() {
    for (int axis = shape_.rank() - 1; axis >= 0; --axis) {
      const std::size_t a = static_cast<std::size_t>(axis);
      offset_ += strides_[a];
      if (++index_[a] < shape_[axis]) return;
      offset_ -= strides_[a] * shape_[axis];
      index_[a] = 0;
    }
  }

 private:
  Shape shape_;
  Strides strides_;
  std::array<std::int64_t, kMaxRank> index_{};
  std::int64_t offset_;
};

// Neumaier's sum: the rounding errors of the additions are summed separately.
class CompensatedSum {
 public:
  void add(double x) {
    const double next = sum_ + x;
    lost_ += std::abs(sum_) >= std::abs(x) ? (sum_ - next) + x : (x - next) + sum_;
    sum_ = next;
  }
  double value() const { return std::isfinite(sum_) ? sum_ + lost_ : sum_; }

 private:
  double sum_ = 0, lost_ = 0;
};

// The accumulator for sums of T: compensated double, or wrapping integers.
template <class T>
class Sum {
 public:
  void add(T x) {
    if constexpr (std::is_integral_v<T>)
      total_ += static_cast<std::uint64_t>(x);
    else
      compensated_.add(x);
  }
  T value() const {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(total_);
    else
      return compensated_.value();
  }

 private:
  std::uint64_t total_ = 0;
  CompensatedSum compensated_;
};

}  // namespace tenon::reference
