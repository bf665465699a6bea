#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "reference/kernels.h"

namespace tenon::reference {
namespace {

template <class T>
bool is_nan(T x) {
  return x != x;
}

template <class T>
T multiply(T x, T y) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<std::uint64_t>(x) * static_cast<std::uint64_t>(y));
  else
    return x * y;
}

// Calls f(element) for the |count| elements of one result.
template <class T, class Next>
T reduce_one(ReduceKind kind, std::int64_t count, Next next) {
  if (kind == ReduceKind::sum) {
    Sum<T> sum;
    for (std::int64_t i = 0; i < count; ++i) sum.add(next());
    return sum.value();
  }
  if (kind == ReduceKind::prod) {
    T product{1};
    for (std::int64_t i = 0; i < count; ++i) product = multiply(product, next());
    return product;
  }
  if (kind == ReduceKind::any || kind == ReduceKind::all) {
    bool any = false, all = true;
    for (std::int64_t i = 0; i < count; ++i) {
      const bool x = next() != T{};
      any = any || x;
      all = all && x;
    }
    return static_cast<T>(kind == ReduceKind::any ? any : all);
  }
  T best = next();
  for (std::int64_t i = 1; i < count; ++i) {
    const T x = next();
    if (is_nan(best)) continue;
    if (is_nan(x) || (kind == ReduceKind::max ? x > best : x < best)) best = x;
  }
  return best;
}

// Iterates over all axes except one: f(first offset) for every line along the axis, whose elements are |stride| apart.
template <class F>
void for_each_line(const Shape& shape, int axis, F&& f) {
  std::int64_t outer = 1, stride = 1;
  for (int i = 0; i < axis; ++i) outer *= shape[i];
  for (int i = axis + 1; i < shape.rank(); ++i) stride *= shape[i];
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t k = 0; k < stride; ++k) f(o * shape[axis] * stride + k, stride, o * stride + k);
}

}  // namespace

HostArray evaluate_reduce(const Node& node, const HostArray& x) {
  const ReduceAttr& attr = node.as<ReduceAttr>();
  const Strides strides = contiguous_strides(x.shape());
  std::vector<std::int64_t> kept, reduced;
  Strides kept_strides{}, reduced_strides{};
  for (int i = 0; i < x.shape().rank(); ++i) {
    const bool is_reduced = attr.axes & (1u << i);
    std::vector<std::int64_t>& dims = is_reduced ? reduced : kept;
    (is_reduced ? reduced_strides : kept_strides)[dims.size()] = strides[static_cast<std::size_t>(i)];
    dims.push_back(x.shape()[i]);
  }
  const Shape kept_shape{std::span<const std::int64_t>(kept)}, reduced_shape{std::span<const std::int64_t>(reduced)};
  HostArray out = HostArray::empty(x.dtype(), node.shape);
  with_type(x.dtype(), [&]<class T>(T) {
    const T* in = data<T>(x);
    T* to = mutable_data<T>(out);
    const std::int64_t each = reduced_shape.elements();
    const auto reduce_from = [&](std::int64_t first, std::int64_t count) {
      Walk place(kept_shape, kept_strides);
      place.skip(first);
      for (std::int64_t i = first; i < first + count; ++i, place.next()) {
        if (reduced.size() == 1) {  // one axis, which needs no walk
          const T* next = in + place.offset();
          to[i] =
              reduce_one<T>(attr.kind, each, [&, stride = reduced_strides[0]] { return *std::exchange(next, next + stride); });
          continue;
        }
        Walk walk(reduced_shape, reduced_strides, place.offset());
        to[i] = reduce_one<T>(attr.kind, each, [&] {
          const T value = in[walk.offset()];
          walk.next();
          return value;
        });
      }
    };
    in_chunks(out.elements(), reduce_from, std::max<std::int64_t>(1, (1 << 13) / std::max<std::int64_t>(1, each)));
  });
  return out;
}

HostArray evaluate_arg_reduce(const Node& node, const HostArray& x) {
  const ArgReduceAttr& attr = node.as<ArgReduceAttr>();
  HostArray out = HostArray::empty(DType::i64, node.shape);
  std::int64_t* to = mutable_data<std::int64_t>(out);
  with_type(x.dtype(), [&]<class T>(T) {
    const T* in = data<T>(x);
    for_each_line(x.shape(), attr.axis, [&](std::int64_t first, std::int64_t stride, std::int64_t line) {
      std::int64_t best = 0;
      for (std::int64_t i = 1; i < x.shape()[attr.axis]; ++i) {
        const T a = in[first + i * stride], b = in[first + best * stride];
        if (is_nan(b)) break;
        if (is_nan(a) || (attr.largest ? a > b : a < b)) best = i;
      }
      to[line] = best;
    });
  });
  return out;
}

HostArray evaluate_arg_sort(const Node& node, const HostArray& x) {
  const ArgSortAttr& attr = node.as<ArgSortAttr>();
  HostArray out = HostArray::empty(DType::i64, node.shape);
  std::int64_t* to = mutable_data<std::int64_t>(out);
  with_type(x.dtype(), [&]<class T>(T) {
    struct Item {
      T value;
      std::int64_t index;
    };
    std::vector<Item> order(static_cast<std::size_t>(x.shape()[attr.axis]));
    const T* in = data<T>(x);
    for_each_line(x.shape(), attr.axis, [&](std::int64_t first, std::int64_t stride, std::int64_t) {
      for (std::int64_t i = 0; Item & item : order) item = {in[first + i * stride], i}, ++i;
      // Stable: equal elements, and NaNs among themselves, are ordered by index.
      std::sort(order.begin(), order.end(), [&](const Item& a, const Item& b) {
        if (a.value < b.value || a.value > b.value) return attr.descending ? a.value > b.value : a.value < b.value;
        if (is_nan(a.value) != is_nan(b.value)) return is_nan(b.value);
        return a.index < b.index;
      });
      for (std::size_t i = 0; i < order.size(); ++i) to[first + static_cast<std::int64_t>(i) * stride] = order[i].index;
    });
  });
  return out;
}

HostArray evaluate_cumulative(const Node& node, const HostArray& x) {
  const CumulativeAttr& attr = node.as<CumulativeAttr>();
  HostArray out = HostArray::empty(x.dtype(), node.shape);
  with_type(x.dtype(), [&]<class T>(T) {
    const T* in = data<T>(x);
    T* to = mutable_data<T>(out);
    for_each_line(x.shape(), attr.axis, [&](std::int64_t first, std::int64_t stride, std::int64_t) {
      Sum<T> sum;
      T product{1};
      for (std::int64_t i = 0; i < x.shape()[attr.axis]; ++i) {
        const std::int64_t at = first + i * stride;
        if (attr.product) {
          product = multiply(product, in[at]);
          to[at] = product;
        } else {
          sum.add(in[at]);
          to[at] = sum.value();
        }
      }
    });
  });
  return out;
}

}  // namespace tenon::reference
