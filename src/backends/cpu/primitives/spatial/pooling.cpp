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
[[gnu::cold]] void join_taps(const Sliding& at, const T* line, std::int64_t begin, std::int64_t end,
                             typename Kind::Total* totals) {
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
[[gnu::cold]] typename Kind::Total join_line(const Sliding& at, const T* line, std::int64_t place) {
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

// Windows of f32 by rows: first of the rows of a window, then along that row, whose elements are split by their remainder by the
// stride, so that every tap reads neighbours.
constexpr std::int64_t kLine = 1024;      // elements of a row of the input at a time
constexpr std::int64_t kMostStride = 64;  // along a row
constexpr std::int64_t kMostTaps = 64;    // along a row

#define TENON_SPLIT_ROW(T)                                                                                     \
  TENON_CLONES void split_row(const T* from, std::int64_t step, std::int64_t n, T* parts, std::int64_t room) { \
    if (step == 2) {                                                                                           \
      T *even = parts, *odd = parts + room;                                                                    \
      for (std::int64_t i = 0; i < n; ++i) {                                                                   \
        even[i] = from[2 * i];                                                                                 \
        odd[i] = from[2 * i + 1];                                                                              \
      }                                                                                                        \
    } else if (step == 3) {                                                                                    \
      T *first = parts, *second = parts + room, *third = parts + 2 * room;                                     \
      for (std::int64_t i = 0; i < n; ++i) {                                                                   \
        first[i] = from[3 * i];                                                                                \
        second[i] = from[3 * i + 1];                                                                           \
        third[i] = from[3 * i + 2];                                                                            \
      }                                                                                                        \
    } else {                                                                                                   \
      for (std::int64_t p = 0; p < step; ++p)                                                                  \
        for (std::int64_t i = 0; i < n; ++i) parts[p * room + i] = from[step * i + p];                         \
    }                                                                                                          \
  }
TENON_SPLIT_ROW(float)
TENON_SPLIT_ROW(double)

// A window that contains a NaN gives NaN, as in WindowMax.
TENON_CLONES void join_rows(const float* a, const float* b, std::int64_t n, float* to) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = WindowMax<float>::join(a[i], b[i]);
}
TENON_CLONES void widen_row(const float* from, std::int64_t n, double* to) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<double>(from[i]);
}
TENON_CLONES void add_row(const float* from, std::int64_t n, double* to) {
  for (std::int64_t i = 0; i < n; ++i) to[i] += static_cast<double>(from[i]);
}

// out[i] = sources[0][i] joined with sources[1][i] and so on, for |Block| neighbours.
template <class Kind, int Block, class T>
[[gnu::always_inline]] inline void join_block(const T* const* sources, std::int64_t taps, std::int64_t i, float* out) {
  T totals[Block];
  for (int l = 0; l < Block; ++l) totals[l] = sources[0][i + l];
  for (std::int64_t tap = 1; tap < taps; ++tap)
    for (int l = 0; l < Block; ++l) totals[l] = Kind::join(totals[l], sources[tap][i + l]);
  for (int l = 0; l < Block; ++l) out[i + l] = static_cast<float>(totals[l]);
}
#define TENON_JOIN_TAPS(Kind, T)                                                                           \
  TENON_CLONES void join_taps_of(const T* const* sources, std::int64_t taps, std::int64_t n, float* out) { \
    std::int64_t i = 0;                                                                                    \
    for (; i + 32 <= n; i += 32) join_block<Kind<float>, 32>(sources, taps, i, out);                       \
    for (; i + 8 <= n; i += 8) join_block<Kind<float>, 8>(sources, taps, i, out);                          \
    for (; i < n; ++i) join_block<Kind<float>, 1>(sources, taps, i, out);                                  \
  }
TENON_JOIN_TAPS(WindowMax, float)
TENON_JOIN_TAPS(WindowSum, double)

// The rows, each |n| elements, joined: one of maxima is read where it is.
const float* joined(const float* const* rows, std::int64_t count, std::int64_t n, float* line) {
  if (count == 1) return rows[0];
  join_rows(rows[0], rows[1], n, line);
  for (std::int64_t r = 2; r < count; ++r) join_rows(line, rows[r], n, line);
  return line;
}
const double* joined(const float* const* rows, std::int64_t count, std::int64_t n, double* line) {
  widen_row(rows[0], n, line);
  for (std::int64_t r = 1; r < count; ++r) add_row(rows[r], n, line);
  return line;
}

bool has_fast_row(const Sliding& at) {
  return at.steps[2] == 1 && at.stride[2] <= kMostStride && at.size[2] <= kMostTaps && at.size[0] * at.size[1] <= kMostTaps &&
         (at.size[2] - 1) * at.dilation[2] < kLine / 4;
}

// One row of the result, a part at a time.
template <class Kind>
class RowOfWindows {
  using Total = typename Kind::Total;

 public:
  RowOfWindows(const Sliding& at, const float* image, std::int64_t place0, std::int64_t place1) : at_(at) {
    for (std::int64_t tap0 = 0; tap0 < at.size[0]; ++tap0) {
      const std::int64_t slice = at.source(0, place0, tap0);
      if (!at.is_inside(0, slice)) continue;
      for (std::int64_t tap = 0; tap < at.size[1]; ++tap) {
        const std::int64_t row = at.source(1, place1, tap);
        if (at.is_inside(1, row)) rows_[count_++] = image + slice * at.steps[0] + row * at.steps[1];
      }
    }
  }

  void run(float* out) {
    if (count_ == 0) return void(std::fill_n(out, at_.out[2], static_cast<float>(Kind::kStart)));
    const std::int64_t reach = (at_.size[2] - 1) * at_.dilation[2] + 1, step = at_.stride[2], places = (kLine - reach) / step + 1;
    for (std::int64_t begin = 0; begin < at_.out[2]; begin += places) {
      const std::int64_t n = std::min(places, at_.out[2] - begin), first = at_.source(2, begin, 0);
      run_part(first, (n - 1) * step + reach, n, out + begin);
    }
  }

 private:
  // |n| windows, the first from element |first| of the row on; they reach over |extent| elements.
  void run_part(std::int64_t first, std::int64_t extent, std::int64_t n, float* out) {
    const std::int64_t step = at_.stride[2], taps = at_.size[2], dilation = at_.dilation[2], reach = (taps - 1) * dilation + 1;
    const std::int64_t from = std::clamp<std::int64_t>(-first, 0, extent), to = std::clamp(at_.in[2] - first, from, extent);
    const float* inside[kMostTaps];
    for (std::int64_t r = 0; r < count_; ++r) inside[r] = rows_[r] + (first + from);
    const Total* const line = joined(inside, count_, to - from, line_);  // element i is line[i - from]
    // Windows that lie inside, and those that reach over an end.
    const std::int64_t low = std::min(n, (from + step - 1) / step);
    const std::int64_t high = to - reach < low * step ? low : std::min(n, (to - reach) / step + 1);
    const auto at_edge = [&](std::int64_t i) {
      Total total = Kind::kStart;
      for (std::int64_t tap = 0; tap < taps; ++tap)
        if (const std::int64_t place = i * step + tap * dilation; place >= from && place < to)
          total = Kind::join(total, line[place - from]);
      out[i] = static_cast<float>(total);
    };
    for (std::int64_t i = 0; i < low; ++i) at_edge(i);
    for (std::int64_t i = high; i < n; ++i) at_edge(i);
    if (low == high) return;
    const Total* const windows = line + (low * step - from);
    const Total* sources[kMostTaps];
    if (step == 1) {
      for (std::int64_t tap = 0; tap < taps; ++tap) sources[tap] = windows + tap * dilation;
    } else {
      const std::int64_t room = kLine / step + 2;
      // As many whole groups as there are, and the elements that are left.
      const std::int64_t elements = (high - low - 1) * step + reach, groups = elements / step;
      split_row(windows, step, groups, parts_, room);
      for (std::int64_t rest = groups * step; rest < elements; ++rest) parts_[rest % step * room + groups] = windows[rest];
      for (std::int64_t tap = 0; tap < taps; ++tap) sources[tap] = parts_ + tap * dilation % step * room + tap * dilation / step;
    }
    join_taps_of(sources, taps, high - low, out + low);
  }

  const Sliding& at_;
  const float* rows_[kMostTaps];
  std::int64_t count_ = 0;
  alignas(64) Total line_[kLine];
  alignas(64) Total parts_[kLine + 2 * kMostStride];
};

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

// Of any type, for what the rows above do not do. Cold: there are many types, so their loops are compiled for size.
template <class Kind, class T>
[[gnu::cold]] void pool_row(const Sliding& at, const T* image, std::int64_t place0, std::int64_t place1, T* out) {
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
          RowOfWindows<Kind>(at, from, row / at.out[1], row % at.out[1]).run(out + i * at.out[2]);
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
