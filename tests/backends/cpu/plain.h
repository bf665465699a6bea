// What the tests of the CPU's primitives share: tensors as vectors, views of them, pools of several sizes.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <type_traits>
#include <vector>

#include "backends/cpu/primitives/primitives.h"

namespace tenon::cpu::plain {

// Small whole numbers for integers, numbers in [-1, 1) for floats: the same for the same seed.
template <class T>
std::vector<T> numbers(std::int64_t n, std::uint32_t seed = 1) {
  std::mt19937 engine(seed);
  std::vector<T> values(static_cast<std::size_t>(n));
  for (T& value : values) {
    if constexpr (std::is_floating_point_v<T>)
      value = static_cast<T>(static_cast<double>(engine()) / 2147483648.0 - 1.0);
    else
      value = static_cast<T>(engine() % 100);
  }
  return values;
}

template <class T>
View view(const std::vector<T>& values, const Shape& shape) {
  return dense_view(values.data(), dtype_of<T>, shape);
}

template <class T>
Target target(std::vector<T>& values, const Shape& shape) {
  values.assign(static_cast<std::size_t>(shape.elements()), T{});
  return dense_target(values.data(), dtype_of<T>, shape);
}

inline View permuted(const View& x, std::initializer_list<int> axes) {
  View result = x;
  std::vector<std::int64_t> dims;
  std::size_t to = 0;
  for (const int axis : axes) {
    dims.push_back(x.shape[axis]);
    result.strides[to++] = x.strides[static_cast<std::size_t>(axis)];
  }
  result.shape = Shape(std::span<const std::int64_t>(dims));
  return result;
}

// All index tuples of a shape in row-major order: f(index, row-major number).
template <class F>
void for_each_index(const Shape& shape, F&& f) {
  std::vector<std::int64_t> index(static_cast<std::size_t>(shape.rank()));
  for (std::int64_t n = 0; n < shape.elements(); ++n) {
    f(index, static_cast<std::size_t>(n));
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      if (++index[static_cast<std::size_t>(axis)] < shape[axis]) break;
      index[static_cast<std::size_t>(axis)] = 0;
    }
  }
}

template <class T>
T at(const View& x, const std::vector<std::int64_t>& index) {
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < index.size(); ++i) offset += index[i] * x.strides[i];
  return static_cast<const T*>(x.data)[offset];
}

// A view's elements, one by one, in row-major order.
template <class T>
std::vector<T> elements(const View& x) {
  std::vector<T> values(static_cast<std::size_t>(x.shape.elements()));
  for_each_index(x.shape, [&](const std::vector<std::int64_t>& index, std::size_t n) { values[n] = at<T>(x, index); });
  return values;
}

// Runs f once with a pool of each size: results must be the same for all.
template <class F>
void with_pools(F&& f) {
  for (const int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    f(pool);
  }
}

}  // namespace tenon::cpu::plain
