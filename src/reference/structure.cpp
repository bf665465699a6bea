#include <fmt/format.h>

#include <cstring>

#include "graph/random.h"
#include "reference/kernels.h"

namespace tenon::reference {
namespace {

// Moves elements independently of their type: calls f with an unsigned integer of their size.
template <class F>
void with_size(DType dtype, F&& f) {
  switch (element_bytes(dtype)) {
    case 1: return f(std::uint8_t{});
    case 2: return f(std::uint16_t{});
    case 4: return f(std::uint32_t{});
    default: return f(std::uint64_t{});
  }
}

std::size_t index(int axis) { return static_cast<std::size_t>(axis); }

std::int64_t resolve(std::int64_t i, std::int64_t extent) {
  const std::int64_t resolved = i < 0 ? i + extent : i;
  if (resolved < 0 || resolved >= extent)
    throw Error(ErrorCode::out_of_range, fmt::format("index {} is out of range for an axis of {} elements", i, extent));
  return resolved;
}

// Elements before and after |axis|.
struct AxisSplit {
  std::int64_t outer = 1, extent = 1, inner = 1;
  AxisSplit(const Shape& shape, int axis) : extent(shape[axis]) {
    for (int i = 0; i < axis; ++i) outer *= shape[i];
    for (int i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
  }
};

// The position in |shape| to which an index of |indices| refers: the index along |axis|, its own position along the others.
class IndexedWalk {
 public:
  IndexedWalk(const Shape& shape, const Shape& index_shape, int axis)
      : stride_(contiguous_strides(shape)[index(axis)]),
        extent_(shape[axis]),
        walk_(index_shape, others(shape, axis)) {}
  std::int64_t at(std::int64_t i) const { return walk_.offset() + resolve(i, extent_) * stride_; }
  void next() { walk_.next(); }

 private:
  static Strides others(const Shape& shape, int axis) {
    Strides strides = contiguous_strides(shape);
    strides[index(axis)] = 0;
    return strides;
  }
  std::int64_t stride_, extent_;
  Walk walk_;
};

}  // namespace

HostArray evaluate_view(const Node& node, const HostArray& x) {
  const Strides from = contiguous_strides(x.shape());
  Strides strides{};
  std::int64_t start = 0;
  const int rank = node.shape.rank();
  for (int i = 0; i < rank; ++i) {
    if (node.prim == Prim::transpose) {
      strides[index(i)] = from[static_cast<std::size_t>(node.as<TransposeAttr>().perm[index(i)])];
    } else if (node.prim == Prim::slice) {
      strides[index(i)] = from[index(i)] * node.as<SliceAttr>().step[index(i)];
      start += from[index(i)] * node.as<SliceAttr>().start[index(i)];
    } else {
      const int source = i - (rank - x.shape().rank());
      strides[index(i)] = source >= 0 && x.shape()[source] != 1 ? from[index(source)] : 0;
    }
  }
  HostArray out = HostArray::empty(x.dtype(), node.shape);
  with_size(x.dtype(), [&]<class T>(T) {
    const T* in = data<T>(x);
    T* to = mutable_data<T>(out);
    in_chunks(out.elements(), [&](std::int64_t first, std::int64_t count) {
      Walk walk(node.shape, strides, start);
      walk.skip(first);
      for (std::int64_t i = first; i < first + count; ++i, walk.next()) to[i] = in[walk.offset()];
    });
  });
  return out;
}

HostArray evaluate_pad(const Node& node, const HostArray& x) {
  const PadAttr& attr = node.as<PadAttr>();
  HostArray out = HostArray::full(x.dtype(), node.shape, attr.value);
  const Strides strides = contiguous_strides(node.shape);
  std::int64_t start = 0;
  for (int i = 0; i < node.shape.rank(); ++i) start += strides[index(i)] * attr.low[index(i)];
  with_size(x.dtype(), [&]<class T>(T) {
    const T* in = data<T>(x);
    T* to = mutable_data<T>(out);
    Walk walk(x.shape(), strides, start);
    for (std::int64_t i = 0; i < x.elements(); ++i, walk.next()) to[walk.offset()] = in[i];
  });
  return out;
}

HostArray evaluate_concat(const Node& node, std::span<const HostArray> parts) {
  const int axis = node.as<AxisAttr>().axis;
  HostArray out = HostArray::empty(storage_dtype(node.dtype), node.shape);
  const AxisSplit whole(node.shape, axis);
  const std::size_t bytes = element_bytes(out.dtype());
  std::byte* to = out.mutable_data();
  std::int64_t at = 0;
  for (const HostArray& part : parts) {
    const std::int64_t row = part.shape()[axis] * whole.inner;
    for (std::int64_t o = 0; o < whole.outer && row > 0; ++o)
      std::memcpy(to + static_cast<std::size_t>(o * whole.extent * whole.inner + at) * bytes,
                  part.data() + static_cast<std::size_t>(o * row) * bytes, static_cast<std::size_t>(row) * bytes);
    at += row;
  }
  return out;
}

HostArray evaluate_take(const Node& node, const HostArray& x, const HostArray& indices) {
  const AxisSplit split(x.shape(), node.as<AxisAttr>().axis);
  const std::span<const std::int64_t> wanted = indices.view<std::int64_t>();
  HostArray out = HostArray::empty(x.dtype(), node.shape);
  with_size(x.dtype(), [&]<class T>(T) {
    const T* in = data<T>(x);
    T* to = mutable_data<T>(out);
    for (std::int64_t o = 0; o < split.outer; ++o)
      for (std::int64_t i : wanted) {
        const T* row = in + (o * split.extent + resolve(i, split.extent)) * split.inner;
        for (std::int64_t k = 0; k < split.inner; ++k) *to++ = row[k];
      }
  });
  return out;
}

HostArray evaluate_gather(const Node& node, const HostArray& x, const HostArray& indices) {
  const std::span<const std::int64_t> wanted = indices.view<std::int64_t>();
  HostArray out = HostArray::empty(x.dtype(), node.shape);
  with_size(x.dtype(), [&]<class T>(T) {
    const T* in = data<T>(x);
    T* to = mutable_data<T>(out);
    IndexedWalk walk(x.shape(), node.shape, node.as<AxisAttr>().axis);
    for (std::int64_t i : wanted) {
      *to++ = in[walk.at(i)];
      walk.next();
    }
  });
  return out;
}

HostArray evaluate_scatter(const Node& node, const HostArray& x, const HostArray& indices, const HostArray& updates) {
  const ScatterAttr& attr = node.as<ScatterAttr>();
  const std::span<const std::int64_t> wanted = indices.view<std::int64_t>();
  HostArray out = x;
  with_type(x.dtype(), [&]<class T>(T) {
    const T* update = data<T>(updates);
    T* to = mutable_data<T>(out);
    IndexedWalk walk(x.shape(), indices.shape(), attr.axis);
    for (std::int64_t i : wanted) {
      T& place = to[walk.at(i)];
      if (!attr.add)
        place = *update;
      else if (x.dtype() == DType::boolean)
        place = static_cast<T>(place != T{} || *update != T{});
      else if constexpr (std::is_integral_v<T>)
        place = static_cast<T>(static_cast<std::uint64_t>(place) + static_cast<std::uint64_t>(*update));
      else
        place += *update;
      ++update;
      walk.next();
    }
  });
  return out;
}

HostArray evaluate_iota(const Node& node) {
  HostArray out = HostArray::empty(DType::i64, node.shape);
  const AxisSplit split(node.shape, node.as<AxisAttr>().axis);
  std::int64_t* to = mutable_data<std::int64_t>(out);
  for (std::int64_t i = 0; i < out.elements(); ++i) to[i] = i / split.inner % split.extent;
  return out;
}

HostArray evaluate_random(const Node& node) {
  const RandomAttr& attr = node.as<RandomAttr>();
  HostArray out = HostArray::empty(DType::f64, node.shape);
  double* to = mutable_data<double>(out);
  const bool wide = node.dtype == DType::f64;
  for (std::int64_t i = 0; i < out.elements(); ++i) {
    const std::uint64_t at = static_cast<std::uint64_t>(i);
    if (attr.normal)
      to[i] = wide ? random_normal_f64(attr.seed, at) : random_normal_f32(attr.seed, at);
    else
      to[i] = wide ? random_uniform_f64(attr.seed, at) : random_uniform_f32(attr.seed, at);
  }
  return out;
}

}  // namespace tenon::reference
