#include <algorithm>
#include <limits>
#include <type_traits>

#include "backends/cpu/primitives/clones.h"
#include "backends/cpu/primitives/primitives.h"
#include "backends/cpu/primitives/spatial/sliding.h"
#include "backends/cpu/primitives/typed.h"

namespace tenon::cpu {
namespace {

// Sums of f32 are formed in double, integers wrap.
template <class T>
struct WindowSum {
  using Total = std::conditional_t<std::is_floating_point_v<T>, double, std::uint64_t>;
  static constexpr Total kStart = 0;
  static Total join(Total a, Total b) { return a + b; }
};

// A NaN replaces every number and is kept.
template <class T>
struct WindowMax {
  using Total = T;
  static constexpr Total kStart =
      std::is_floating_point_v<T> ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
  static Total join(Total a, Total b) { return a != a || b <= a ? a : b; }
};

constexpr std::int64_t kPlaces = 256;  // of a row at a time

// Many places: each tap is added to all of them at once.
template <class Kind, class T>
void join_taps(const Sliding& at, const T* line, std::int64_t begin, std::int64_t end, typename Kind::Total* totals) {
  using Total = typename Kind::Total;
  for (std::int64_t tap = 0; tap < at.size[2]; ++tap) {
    const Range range = at.inside(tap, begin, end);
    const std::int64_t step = at.stride[2] * at.steps[2];
    const T* from = line + at.source(2, range.begin, tap) * at.steps[2];
    Total* to = totals + (range.begin - begin);
    const std::int64_t n = range.end - range.begin;
    if (step == 1) {
      for (std::int64_t i = 0; i < n; ++i) to[i] = Kind::join(to[i], static_cast<Total>(from[i]));
    } else {
      for (std::int64_t i = 0; i < n; ++i) to[i] = Kind::join(to[i], static_cast<Total>(from[i * step]));
    }
  }
}

// Few places and wide windows (global pooling): along the window, four totals side by side.
template <class Kind, class T>
typename Kind::Total join_line(const Sliding& at, const T* line, std::int64_t place) {
  using Total = typename Kind::Total;
  const std::int64_t first_source = at.source(2, place, 0), dilation = at.dilation[2];
  const std::int64_t first = first_source >= 0 ? 0 : (-first_source + dilation - 1) / dilation;
  const std::int64_t last = std::min(at.size[2], (at.in[2] - first_source + dilation - 1) / dilation);
  const std::int64_t step = dilation * at.steps[2];
  const T* from = line + first_source * at.steps[2];
  Total totals[4] = {Kind::kStart, Kind::kStart, Kind::kStart, Kind::kStart};
  std::int64_t tap = first;
  for (; tap + 4 <= last; tap += 4)
    for (std::int64_t l = 0; l < 4; ++l) totals[l] = Kind::join(totals[l], static_cast<Total>(from[(tap + l) * step]));
  for (; tap < last; ++tap) totals[0] = Kind::join(totals[0], static_cast<Total>(from[tap * step]));
  return Kind::join(Kind::join(totals[0], totals[1]), Kind::join(totals[2], totals[3]));
}

// Maxima of f32 windows: first of the rows, then along the row. A window that contains a NaN gives NaN, as in WindowMax.
TENON_CLONES void max_into(float* __restrict to, const float* from, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = to[i] != to[i] || from[i] <= to[i] ? to[i] : from[i];
}
TENON_CLONES void max_pairs_into(float* __restrict to, const float* from, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = to[i] != to[i] || from[2 * i] <= to[i] ? to[i] : from[2 * i];
}

constexpr std::int64_t kLine = 1024;  // elements of a row of the input at a time

TENON_CLONES void add_into(double* __restrict to, const float* from, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) to[i] += static_cast<double>(from[i]);
}
TENON_CLONES void sum_windows(const double* line, std::int64_t step, std::int64_t taps, std::int64_t dilation, std::int64_t n,
                              float* out) {
  for (std::int64_t i = 0; i < n; ++i) {
    double sum = 0;
    for (std::int64_t tap = 0; tap < taps; ++tap) sum += line[i * step + tap * dilation];
    out[i] = static_cast<float>(sum);
  }
}

bool has_fast_row(const Sliding& at) {
  return at.steps[2] == 1 && at.stride[2] <= 2 && at.out[2] >= 4 && (at.size[2] - 1) * at.dilation[2] < kLine / 4;
}

void max_row(const Sliding& at, const float* image, std::int64_t place0, std::int64_t place1, float* out) {
  constexpr float kLeast = -std::numeric_limits<float>::infinity();
  alignas(64) float line[kLine + 2];
  const std::int64_t reach = (at.size[2] - 1) * at.dilation[2] + 1, step = at.stride[2];
  const std::int64_t places = (kLine - reach) / step + 1;
  for (std::int64_t begin = 0; begin < at.out[2]; begin += places) {
    const std::int64_t n = std::min(places, at.out[2] - begin), first = at.source(2, begin, 0), extent = (n - 1) * step + reach;
    std::fill_n(line, extent + 1, kLeast);
    const std::int64_t from = std::clamp<std::int64_t>(-first, 0, extent), to = std::clamp(at.in[2] - first, from, extent);
    for (std::int64_t tap0 = 0; tap0 < at.size[0]; ++tap0) {
      const std::int64_t slice = at.source(0, place0, tap0);
      if (!at.is_inside(0, slice)) continue;
      for (std::int64_t tap = 0; tap < at.size[1]; ++tap) {
        const std::int64_t row = at.source(1, place1, tap);
        if (!at.is_inside(1, row)) continue;
        max_into(line + from, image + slice * at.steps[0] + row * at.steps[1] + first + from, to - from);
      }
    }
    std::fill_n(out + begin, n, kLeast);
    for (std::int64_t tap = 0; tap < at.size[2]; ++tap)
      (step == 1 ? max_into : max_pairs_into)(out + begin, line + tap * at.dilation[2], n);
  }
}

// Sums likewise, in double.
void sum_row(const Sliding& at, const float* image, std::int64_t place0, std::int64_t place1, float* out) {
  alignas(64) double line[kLine];
  const std::int64_t reach = (at.size[2] - 1) * at.dilation[2] + 1, step = at.stride[2];
  const std::int64_t places = (kLine - reach) / step + 1;
  for (std::int64_t begin = 0; begin < at.out[2]; begin += places) {
    const std::int64_t n = std::min(places, at.out[2] - begin), first = at.source(2, begin, 0), extent = (n - 1) * step + reach;
    std::fill_n(line, extent, 0.0);
    const std::int64_t from = std::clamp<std::int64_t>(-first, 0, extent), to = std::clamp(at.in[2] - first, from, extent);
    for (std::int64_t tap0 = 0; tap0 < at.size[0]; ++tap0) {
      const std::int64_t slice = at.source(0, place0, tap0);
      if (!at.is_inside(0, slice)) continue;
      for (std::int64_t tap = 0; tap < at.size[1]; ++tap) {
        const std::int64_t row = at.source(1, place1, tap);
        if (!at.is_inside(1, row)) continue;
        add_into(line + from, image + slice * at.steps[0] + row * at.steps[1] + first + from, to - from);
      }
    }
    sum_windows(line, step, at.size[2], at.dilation[2], n, out + begin);
  }
}

// Windows that do not slide along the last axis, of f32: images with their channels in blocks at the end. |Kind| is joined for 16
// neighbours at a time.
constexpr std::int64_t kNeighbours = 16;

bool has_neighbours(const Sliding& at) {
  return at.size[2] == 1 && at.stride[2] == 1 && at.pad[2] == 0 && at.in[2] == at.out[2] && at.steps[2] == 1 &&
         at.out[2] % kNeighbours == 0;
}

#define TENON_POOL_NEIGHBOURS(name, Kind)                                                                               \
  TENON_CLONES void name(const Sliding& at, const float* image, std::int64_t place0, std::int64_t place1, float* out) { \
    for (std::int64_t i = 0; i < at.out[2]; i += kNeighbours) {                                                         \
      Kind::Total totals[kNeighbours];                                                                                  \
      for (Kind::Total & total : totals) total = Kind::kStart;                                                          \
      for (std::int64_t tap0 = 0; tap0 < at.size[0]; ++tap0) {                                                          \
        const std::int64_t a = at.source(0, place0, tap0);                                                              \
        if (!at.is_inside(0, a)) continue;                                                                              \
        for (std::int64_t tap1 = 0; tap1 < at.size[1]; ++tap1) {                                                        \
          const std::int64_t b = at.source(1, place1, tap1);                                                            \
          if (!at.is_inside(1, b)) continue;                                                                            \
          const float* const from = image + a * at.steps[0] + b * at.steps[1] + i;                                      \
          for (std::int64_t l = 0; l < kNeighbours; ++l) totals[l] = Kind::join(totals[l], from[l]);                    \
        }                                                                                                               \
      }                                                                                                                 \
      for (std::int64_t l = 0; l < kNeighbours; ++l) out[i + l] = static_cast<float>(totals[l]);                        \
    }                                                                                                                   \
  }
TENON_POOL_NEIGHBOURS(max_neighbours, WindowMax<float>)
TENON_POOL_NEIGHBOURS(sum_neighbours, WindowSum<float>)

template <class Kind, class T>
void pool_row(const Sliding& at, const T* image, std::int64_t place0, std::int64_t place1, T* out) {
  using Total = typename Kind::Total;
  const bool along_window = at.out[2] < 8 && at.size[2] >= 8;
  const bool is_long = at.window() > kUnchecked / at.out[2];
  for (std::int64_t begin = 0; begin < at.out[2]; begin += kPlaces) {
    const std::int64_t end = std::min(at.out[2], begin + kPlaces);
    Total totals[kPlaces];
    std::fill_n(totals, end - begin, Kind::kStart);
    for (std::int64_t tap0 = 0; tap0 < at.size[0]; ++tap0) {
      const std::int64_t a = at.source(0, place0, tap0);
      if (!at.is_inside(0, a)) continue;
      for (std::int64_t tap1 = 0; tap1 < at.size[1]; ++tap1) {
        const std::int64_t b = at.source(1, place1, tap1);
        if (is_long) check_stop();
        if (!at.is_inside(1, b)) continue;
        const T* line = image + a * at.steps[0] + b * at.steps[1];
        if (along_window) {
          for (std::int64_t i = begin; i < end; ++i)
            totals[i - begin] = Kind::join(totals[i - begin], join_line<Kind>(at, line, i));
        } else {
          join_taps<Kind>(at, line, begin, end, totals);
        }
      }
    }
    for (std::int64_t i = begin; i < end; ++i) out[i] = static_cast<T>(totals[i - begin]);
  }
}

template <class Kind, class T>
void pool_images(ThreadPool& pool, const View& x, const Sliding& at, T* out) {
  const std::int64_t images = x.shape[0] * x.shape[1], rows = at.out[0] * at.out[1];
  [[maybe_unused]] const bool fast = has_fast_row(at), neighbours = has_neighbours(at);
  for_ranges(pool, images * rows, at.out[2] * at.window(), [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t image = i / rows, row = i % rows;
      const T* from = static_cast<const T*>(x.data) + image / x.shape[1] * x.strides[0] + image % x.shape[1] * x.strides[1];
      if constexpr (std::is_same_v<T, float>)
        if (neighbours) {
          constexpr auto pool_neighbours = std::is_same_v<Kind, WindowMax<float>> ? max_neighbours : sum_neighbours;
          pool_neighbours(at, from, row / at.out[1], row % at.out[1], out + i * at.out[2]);
          continue;
        }
      if constexpr (std::is_same_v<T, float>)
        if (fast) {
          constexpr auto pool_line = std::is_same_v<Kind, WindowMax<float>> ? max_row : sum_row;
          pool_line(at, from, row / at.out[1], row % at.out[1], out + i * at.out[2]);
          continue;
        }
      pool_row<Kind>(at, from, row / at.out[1], row % at.out[1], out + i * at.out[2]);
    }
  });
}

}  // namespace

void window(ThreadPool& pool, const View& x, const WindowAttr& attr, const Target& out) {
  if (out.shape.elements() == 0) return;
  const Sliding at(attr, attr.size, x.shape, x.strides, out.shape);
  with_type(x.dtype, [&]<class T>(T) {
    if (attr.max) {
      pool_images<WindowMax<T>>(pool, x, at, static_cast<T*>(out.data));
    } else {
      pool_images<WindowSum<T>>(pool, x, at, static_cast<T*>(out.data));
    }
  });
}

}  // namespace tenon::cpu
