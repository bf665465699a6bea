#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "backends/cpu/primitives/axis_lanes.h"
#include "backends/cpu/primitives/clones.h"
#include "backends/cpu/primitives/primitives.h"
#include "backends/cpu/primitives/typed.h"

namespace tenon::cpu {
namespace {

// One lane group of a tensor: element i of lane l is data[i * step + l * across].
template <class T>
struct Group {
  T* data = nullptr;
  std::int64_t step = 0, across = 0;
};

// f32 runs in double, integers wrap in u64.
template <class T>
struct RunningSum {
  using Total = std::conditional_t<std::is_floating_point_v<T>, double, std::uint64_t>;
  static constexpr bool kMultiplies = false;
  static Total combined(Total x, Total y) { return x + y; }
  Total total = 0;
  bool is_plain() const { return true; }
  void settle() {}
  T value(Total sum) const { return static_cast<T>(sum); }
  T add(T x) {
    total += static_cast<Total>(x);
    return static_cast<T>(total);
  }
};

// There is no type wider than f64, so the rounding errors are summed separately.
template <>
struct RunningSum<double> {
  double total = 0, lost = 0;
  double add(double x) {
    const double next = total + x, part = next - total;
    lost += (total - (next - part)) + (x - part);
    total = next;
    return std::isfinite(total) && std::isfinite(lost) ? total + lost : total;
  }
};

template <class T>
struct RunningProduct {
  using Total = std::conditional_t<std::is_floating_point_v<T>, double, std::uint64_t>;
  Total total = 1;
  T add(T x) {
    total *= static_cast<Total>(x);
    return static_cast<T>(total);
  }
};

// A product of many floats becomes a subnormal double, with which the CPU computes a hundred times slower. |total| is kept far
// from those, in units of 2^-400, if its user settles it.
template <>
struct RunningProduct<float> {
  static constexpr bool kMultiplies = true;
  static double combined(double x, double y) { return x * y; }
  double total = 1, unit = 1;
  bool is_plain() const { return powers == 0; }
  int powers = 0;  // of the unit
  void settle() {
    while (std::abs(total) < 0x1p-200 && total != 0) {
      total *= 0x1p400;
      unit *= 0x1p-400;
      ++powers;
    }
    while (std::abs(total) > 0x1p200 && powers > 0) {
      total *= 0x1p-400;
      --powers;
      unit = powers == 0 ? 1 : powers == 1 ? 0x1p-400 : powers == 2 ? 0x1p-800 : 0;
    }
  }
  // Of four factors more, which may be 2^508: with three powers it is 0 in any float, unless one is infinite.
  float value(double product) const {
    return static_cast<float>(powers < 3 || std::isfinite(product) ? product * unit : product);
  }
  float add(float x) {
    total *= static_cast<double>(x);
    return static_cast<float>(total);
  }
};

// Four neighbours of a lane are combined with each other first: the total then waits for one operation of four. Returns how many
// elements are done.
template <class Running>
[[gnu::always_inline]] inline std::int64_t scan_fours(const float* in, float* out, std::int64_t extent, Running& running) {
  typedef double Four __attribute__((vector_size(32)));
  typedef float FourFloats __attribute__((vector_size(16)));
  constexpr bool multiplies = Running::kMultiplies;
  constexpr double identity = multiplies ? 1 : 0;
  const Four none = {identity, identity, identity, identity};
  std::int64_t i = 0;
  for (; i + 4 <= extent; i += 4) {
    FourFloats loaded;
    std::memcpy(&loaded, in + i, sizeof loaded);
    const Four x = __builtin_convertvector(loaded, Four), before = __builtin_shufflevector(none, x, 0, 4, 5, 6);
    const Four pairs = multiplies ? x * before : x + before, earlier = __builtin_shufflevector(none, pairs, 0, 1, 4, 5);
    const Four firsts = multiplies ? pairs * earlier : pairs + earlier;
    const Four result = multiplies ? firsts * running.total : firsts + running.total;
    running.total = Running::combined(running.total, firsts[3]);
    if (running.is_plain()) {
      const FourFloats narrow = __builtin_convertvector(result, FourFloats);
      std::memcpy(out + i, &narrow, sizeof narrow);
    } else {
      for (int k = 0; k < 4; ++k) out[i + k] = running.value(result[k]);
    }
    running.settle();
  }
  return i;
}
TENON_CLONES std::int64_t scan_neighbours(const float* in, float* out, std::int64_t extent, RunningSum<float>& running) {
  return scan_fours(in, out, extent, running);
}
TENON_CLONES std::int64_t scan_neighbours(const float* in, float* out, std::int64_t extent, RunningProduct<float>& running) {
  return scan_fours(in, out, extent, running);
}

// A lane alone, four floats at a time as above.
template <class Running, class T>
void scan_one(Group<const T> in, Group<T> out, std::int64_t extent) {
  Running running;
  std::int64_t i = 0;
  if constexpr (std::is_same_v<T, float>) {
    if (in.step == 1 && out.step == 1) i = scan_neighbours(in.data, out.data, extent, running);
    for (; i + 4 <= extent; i += 4) {
      double x[4];
      for (std::int64_t k = 0; k < 4; ++k) x[k] = static_cast<double>(in.data[(i + k) * in.step]);
      const double two = Running::combined(x[0], x[1]), last_two = Running::combined(x[2], x[3]);
      const double firsts[] = {x[0], two, Running::combined(two, x[2]), Running::combined(two, last_two)};
      for (std::int64_t k = 0; k < 4; ++k)
        out.data[(i + k) * out.step] = running.value(Running::combined(running.total, firsts[k]));
      running.total = Running::combined(running.total, firsts[3]);
      running.settle();
    }
    for (; i < extent; ++i) {
      running.total = Running::combined(running.total, static_cast<double>(in.data[i * in.step]));
      out.data[i * out.step] = running.value(running.total);
    }
  } else {
    for (; i < extent; ++i) out.data[i * out.step] = running.add(in.data[i * in.step]);
  }
}

template <class Running, class T>
void scan(Group<const T> in, Group<T> out, std::int64_t extent, std::int64_t lanes) {
  if (lanes == 1) return scan_one<Running>(in, out, extent);
  Running running[kLaneGroup];
  for (std::int64_t i = 0; i < extent; ++i, in.data += in.step, out.data += out.step)
    for (std::int64_t l = 0; l < lanes; ++l) out.data[l * out.across] = running[l].add(in.data[l * in.across]);
}

// True when |a| comes before |b|, which was seen earlier.
template <bool Largest, class T>
bool beats(T a, T b) {
  return Largest ? a > b : a < b;
}

template <bool Largest, class T>
constexpr T worst() {
  if constexpr (std::is_floating_point_v<T>)
    return Largest ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::infinity();
  else
    return Largest ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
}

// Blocks are first only reduced, which the compiler vectorises; the one place of a block is looked for when it has a better
// value.
template <bool Largest, class T>
std::int64_t arg_of_run(const T* in, std::int64_t n) {
  constexpr std::int64_t kBlock = 1024, kWidth = 16;
  if (n <= kWidth) {
    std::int64_t place = 0;
    T extreme = in[0];
    for (std::int64_t i = 1; i < n; ++i) {
      // A NaN beats every number, and nothing beats a NaN.
      const int better = int{!is_nan(extreme)} & (int{is_nan(in[i])} | int{beats<Largest>(in[i], extreme)});  // no branches
      extreme = better != 0 ? in[i] : extreme;
      place = better != 0 ? i : place;
    }
    return place;
  }
  std::int64_t best = 0;
  if (is_nan(in[0])) return 0;
  for (std::int64_t begin = 0; begin < n; begin += kBlock) {
    const std::int64_t end = std::min(n, begin + kBlock);
    T top[kWidth];
    std::fill_n(top, kWidth, worst<Largest, T>());
    unsigned nan[kWidth] = {};
    std::int64_t i = begin;
    for (; i + kWidth <= end; i += kWidth)
      for (std::int64_t w = 0; w < kWidth; ++w) {
        const T x = in[i + w];
        top[w] = beats<Largest>(x, top[w]) ? x : top[w];
        nan[w] |= is_nan(x);
      }
    for (; i < end; ++i) {
      top[0] = beats<Largest>(in[i], top[0]) ? in[i] : top[0];
      nan[0] |= is_nan(in[i]);
    }
    T block = top[0];
    unsigned any_nan = 0;
    for (std::int64_t w = 0; w < kWidth; ++w) {
      block = beats<Largest>(top[w], block) ? top[w] : block;
      any_nan |= nan[w];
    }
    if (any_nan != 0) return std::find_if(in + begin, in + end, [](T x) { return is_nan(x); }) - in;
    if (beats<Largest>(block, in[best])) best = std::find(in + begin, in + end, block) - in;
  }
  return best;
}

// Neighbouring lanes of f32, which the compiler vectorises: branches and indices of 64 bits are in its way.
template <bool Largest>
[[gnu::always_inline]] inline void arg_of_neighbours(const float* in, std::int64_t step, std::int32_t extent, std::int64_t lanes,
                                                     std::int64_t* out) {
  float best[kLaneGroup];
  std::int32_t places[kLaneGroup] = {};
  std::copy_n(in, lanes, best);
  for (std::int32_t i = 1; i < extent; ++i) {
    in += step;
    for (std::int64_t l = 0; l < lanes; ++l) {
      const float x = in[l];
      // A NaN beats every number, and nothing beats a NaN.
      const bool better = (best[l] == best[l]) & ((x != x) | (Largest ? x > best[l] : x < best[l]));
      best[l] = better ? x : best[l];
      places[l] = better ? i : places[l];
    }
  }
  std::copy_n(places, lanes, out);
}
TENON_CLONES void largest_of_neighbours(const float* in, std::int64_t step, std::int32_t extent, std::int64_t lanes,
                                        std::int64_t* out) {
  arg_of_neighbours<true>(in, step, extent, lanes, out);
}
TENON_CLONES void smallest_of_neighbours(const float* in, std::int64_t step, std::int32_t extent, std::int64_t lanes,
                                         std::int64_t* out) {
  arg_of_neighbours<false>(in, step, extent, lanes, out);
}

template <bool Largest, class T>
void arg_of_lanes(Group<const T> in, std::int64_t extent, std::int64_t lanes, std::int64_t* out) {
  if constexpr (std::is_same_v<T, float>)
    if (in.across == 1 && extent < std::numeric_limits<std::int32_t>::max())
      return (Largest ? largest_of_neighbours : smallest_of_neighbours)(in.data, in.step, static_cast<std::int32_t>(extent),
                                                                        lanes, out);
  T best[kLaneGroup];
  for (std::int64_t l = 0; l < lanes; ++l) {
    best[l] = in.data[l * in.across];
    out[l] = 0;
  }
  for (std::int64_t i = 1; i < extent; ++i) {
    in.data += in.step;
    for (std::int64_t l = 0; l < lanes; ++l) {
      const T x = in.data[l * in.across];
      // A NaN beats every number, and nothing beats a NaN.
      const bool better = !is_nan(best[l]) && (is_nan(x) || beats<Largest>(x, best[l]));
      best[l] = better ? x : best[l];
      out[l] = better ? i : out[l];
    }
  }
}

template <bool Largest, class T>
void arg_reduce_typed(ThreadPool& pool, const View& x, int axis, const Target& out) {
  const AxisLanes lanes(x.shape, axis);
  const std::int64_t step = x.strides[static_cast<std::size_t>(axis)], across = lane_stride(x.shape, x.strides);
  const T* in = static_cast<const T*>(x.data);
  auto* to = static_cast<std::int64_t*>(out.data);
  const bool is_dense = axis == x.shape.rank() - 1 && x.strides == contiguous_strides(x.shape);
  lanes.for_groups(pool, 1, [&](std::int64_t lane, std::int64_t count, int) {
    const T* data = in + (is_dense ? lane * lanes.extent() : lanes.first(lane, x.strides));
    if (count == 1 && step == 1) {
      to[lane] = arg_of_run<Largest>(data, lanes.extent());
    } else {
      arg_of_lanes<Largest, T>({data, step, across}, lanes.extent(), count, to + lane);
    }
  });
}

}  // namespace

void cumulative(ThreadPool& pool, const View& x, const CumulativeAttr& attr, const Target& out) {
  if (out.shape.elements() == 0) return;
  with_type(out.dtype, [&]<class T>(T) {
    const AxisLanes lanes(x.shape, attr.axis);
    const auto axis = static_cast<std::size_t>(attr.axis);
    const std::int64_t in_across = lane_stride(x.shape, x.strides), out_across = lane_stride(out.shape, out.strides);
    lanes.for_groups(pool, 2, [&](std::int64_t lane, std::int64_t count, int) {
      const Group<const T> in{static_cast<const T*>(x.data) + lanes.first(lane, x.strides), x.strides[axis], in_across};
      const Group<T> to{static_cast<T*>(out.data) + lanes.first(lane, out.strides), out.strides[axis], out_across};
      if (attr.product) {
        scan<RunningProduct<T>, T>(in, to, lanes.extent(), count);
      } else {
        scan<RunningSum<T>, T>(in, to, lanes.extent(), count);
      }
    });
  });
}

void arg_reduce(ThreadPool& pool, const View& x, const ArgReduceAttr& attr, const Target& out) {
  if (out.shape.elements() == 0) return;
  with_type(x.dtype, [&]<class T>(T) {
    if (attr.largest) {
      arg_reduce_typed<true, T>(pool, x, attr.axis, out);
    } else {
      arg_reduce_typed<false, T>(pool, x, attr.axis, out);
    }
  });
}

TENON_CLONES static void count_from(std::int64_t first, std::int64_t n, std::int64_t* to) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = first + i;
}

void iota(ThreadPool& pool, const AxisAttr& attr, const Target& out) {
  const AxisSplit split(out.shape, attr.axis);
  with_type(out.dtype, [&]<class T>(T) {
    T* const to = static_cast<T*>(out.data);
    // One run of equal numbers each, or one number.
    for_ranges(pool, split.outer * split.extent, split.inner, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t i = begin; i < end;) {
        const std::int64_t first = i % split.extent, count = std::min(end - i, split.extent - first);
        if (split.inner == 1) {
          if constexpr (std::is_same_v<T, std::int64_t>)
            count_from(first, count, to + i);
          else
            for (std::int64_t j = 0; j < count; ++j) to[i + j] = static_cast<T>(first + j);
        } else
          for (std::int64_t j = 0; j < count; ++j)
            std::fill_n(to + (i + j) * split.inner, split.inner, static_cast<T>(first + j));
        i += count;
      }
    });
  });
}

}  // namespace tenon::cpu
