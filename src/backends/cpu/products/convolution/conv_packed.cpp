#include "backends/cpu/products/convolution/conv_packed.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "backends/cpu/primitives/clones.h"
#include "backends/cpu/products/convolution/conv_direct.h"
#include "backends/cpu/products/convolution/depthwise.h"
#include "backends/cpu/products/convolution/planes.h"
#include "backends/cpu/products/gemm_packed.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tenon::cpu {
namespace {

std::int64_t rounded_up(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit * unit; }

struct ConvPlan {
  Sliding at;
  std::int64_t images, groups, in_channels,
      out_channels;  // channels of one group
  Strides x_strides;
  std::int64_t places, total,
      depth;  // total: places of all images; depth: terms of one result
  std::int64_t tile = 0,
               tiles = 0;  // tiles: of an image if is_direct, else of all
  std::int64_t parts = 1;  // of a tile's channels, where there are too few tiles for the threads
  std::size_t panel_elements = 0, sum_elements = 0,
              line_elements = 0;  // of one worker
  bool is_direct = true;
  bool is_pointwise;  // 1x1: the input's channels are the matrix

  ConvPlan(const View& x, const Shape& weight, const ConvAttr& attr, const Shape& out, int threads)
      : at(sliding_of(x, weight, attr, out)),
        images(x.shape[0]),
        groups(attr.groups),
        in_channels(weight[1]),
        out_channels(weight[0] / attr.groups),
        x_strides(x.strides),
        places(at.places()),
        total(images * places),
        depth(in_channels * at.window()) {
    // The sums and the panels of a tile stay in the L2 cache; there are enough
    // tiles to go round.
    constexpr std::int64_t kTileElements = 112 * 1024, kWidest = 256;
    const std::int64_t unit = packed_layout().cols;
    const std::int64_t fits = kTileElements / std::max<std::int64_t>(1, out_channels + std::min(depth, packed_layout().depth));
    tile = std::clamp(fits / unit * unit, 2 * unit, kWidest);
    const std::int64_t wanted = (2 * threads + groups - 1) / groups;
    if (threads > 1) tile = std::min(tile, std::max(unit, rounded_up((total + wanted - 1) / wanted, unit)));
    // Places of one image that fill panels go to the result directly; small
    // images share tiles.
    is_direct = images == 1 || places >= 4 * unit;
    const std::int64_t extent = is_direct ? places : total;
    tile = std::min(tile, rounded_up(extent, unit));
    tiles = (extent + tile - 1) / tile;
    const std::int64_t tasks = tiles * groups * (is_direct ? images : 1);
    if (threads > 1 && is_direct && tasks < 2 * threads)
      parts = std::clamp<std::int64_t>((2 * threads + tasks - 1) / tasks, 1,
                                       std::max<std::int64_t>(1, out_channels / (2 * packed_layout().rows)));
    panel_elements = static_cast<std::size_t>(std::min(depth, packed_layout().depth) * tile);
    sum_elements = is_direct ? 0 : static_cast<std::size_t>(out_channels * tile);
    line_elements = static_cast<std::size_t>(tile) + 32;  // room for whole vectors
    const bool dense_image = (at.in[2] == 1 || at.steps[2] == 1) && (at.in[1] == 1 || at.steps[1] == at.in[2]) &&
                             (at.in[0] == 1 || at.steps[0] == at.in[1] * at.in[2]);
    is_pointwise = at.window() == 1 && at.stride == Spatial{1, 1, 1} && at.pad == Spatial{} && at.in == at.out && dense_image;
  }

  std::int64_t tasks() const { return tiles * groups * (is_direct ? images : 1) * parts; }
  std::size_t worker_bytes() const { return (panel_elements + sum_elements + line_elements) * sizeof(float); }
};

// A run of places that are neighbours along the last axis.
struct Run {
  std::int64_t image, place0, place1, first, last;  // the last axis: [first, last)
};

// What one tap along the last axis reads of a run: zeros, |count| elements from |source| on, zeros.
struct Piece {
  std::int32_t before, count, after;
  std::int64_t source;  // elements, from the begin of the row
};

// Which elements the taps read at the places of a tile: made once, used for every channel.
struct TileTable {
  std::vector<Run> runs;
  std::vector<std::int64_t> rows;  // [tap of the first two axes][run]: where the row begins in a channel; kOutside
  std::vector<Piece> pieces;       // [tap of the last axis][run]

  static constexpr std::int64_t kOutside = std::numeric_limits<std::int64_t>::min();
};

// One tap at all places: line[...] of |runs| runs.
using LayOut = void (*)(const float* channel, const std::int64_t* rows, const Piece* pieces, std::int64_t runs, std::int64_t step,
                        float* line);

void lay_out_plain(const float* channel, const std::int64_t* rows, const Piece* pieces, std::int64_t runs, std::int64_t step,
                   float* line) {
  for (std::int64_t r = 0; r < runs; ++r) {
    const Piece& piece = pieces[r];
    const std::int64_t n = piece.before + piece.count + piece.after;
    if (rows[r] == TileTable::kOutside) {
      line = std::fill_n(line, n, 0.0f);
      continue;
    }
    line = std::fill_n(line, piece.before, 0.0f);
    const float* const from = channel + rows[r] + piece.source;
    for (std::int64_t i = 0; i < piece.count; ++i) line[i] = from[i * step];
    line = std::fill_n(line + piece.count, piece.after, 0.0f);
  }
}

#if defined(__x86_64__)
// Whole vectors are written: the line has room behind its end, and what is written too far is overwritten by the next run.
[[gnu::target("avx512f,avx512bw,bmi2")]] void lay_out_wide(const float* channel, const std::int64_t* rows, const Piece* pieces,
                                                           std::int64_t runs, std::int64_t step, float* line) {
  const __m512 zero = _mm512_setzero_ps();
  const __m512i even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
  const auto mask = [](std::int64_t n) { return static_cast<__mmask16>(n >= 16 ? 0xffff : n <= 0 ? 0 : (1u << n) - 1); };
  for (std::int64_t r = 0; r < runs; ++r) {
    const Piece& piece = pieces[r];
    const std::int64_t n = piece.before + piece.count + piece.after;
    if (rows[r] == TileTable::kOutside) {
      for (std::int64_t i = 0; i < n; i += 16) _mm512_storeu_ps(line + i, zero);
      line += n;
      continue;
    }
    for (std::int64_t i = 0; i < piece.before; i += 16) _mm512_storeu_ps(line + i, zero);
    float* const to = line + piece.before;
    const float* const from = channel + rows[r] + piece.source;
    if (step == 1) {
      for (std::int64_t i = 0; i < piece.count; i += 16)
        _mm512_storeu_ps(to + i, _mm512_maskz_loadu_ps(mask(piece.count - i), from + i));
    } else if (step == 2) {
      for (std::int64_t i = 0; i < piece.count; i += 16) {
        const std::int64_t left = 2 * (piece.count - i) - 1;
        const __m512 a = _mm512_maskz_loadu_ps(mask(left), from + 2 * i);
        const __m512 b = _mm512_maskz_loadu_ps(mask(left - 16), from + 2 * i + 16);
        _mm512_storeu_ps(to + i, _mm512_permutex2var_ps(a, even, b));
      }
    } else {
      for (std::int64_t i = 0; i < piece.count; ++i) to[i] = from[i * step];
    }
    for (std::int64_t i = 0; i < piece.after; i += 16) _mm512_storeu_ps(to + piece.count + i, zero);
    line += n;
  }
}

LayOut lay_out() {
  static const LayOut best = __builtin_cpu_supports("avx512bw") ? lay_out_wide : lay_out_plain;
  return best;
}
#else
LayOut lay_out() { return lay_out_plain; }
#endif

// Copies |count| vectors of |Lanes| elements: the first parts of |count|
// panels, |distance| apart.
#define TENON_SPREAD(name, attribute, lanes)                                                     \
  attribute void name(const float* from, float* to, std::int64_t count, std::int64_t distance) { \
    typedef float Vector __attribute__((vector_size(lanes * sizeof(float) / 2)));                \
    for (std::int64_t i = 0; i < count; ++i, from += lanes, to += distance) {                    \
      Vector halves[2];                                                                          \
      std::memcpy(halves, from, sizeof halves);                                                  \
      std::memcpy(to, halves, sizeof halves);                                                    \
    }                                                                                            \
  }
#if defined(__x86_64__)
TENON_SPREAD(spread_wide, [[gnu::target("avx512f")]], 32)
TENON_SPREAD(spread_narrow, [[gnu::target("avx2")]], 16)
#else
TENON_SPREAD(spread_wide, , 32)
TENON_SPREAD(spread_narrow, , 16)
#endif

void spread_panels(const float* from, float* to, std::int64_t count, std::int64_t distance, std::int64_t lanes) {
  if (lanes == 32) return spread_wide(from, to, count, distance);
  spread_narrow(from, to, count, distance);
}

class TileRunner {
 public:
  TileRunner(const ConvPlan& plan, const float* x, const float* packed, float* out, const Finish& finish, float* scratch,
             TileTable& table)
      : plan_(plan),
        x_(x),
        packed_(packed),
        out_(out),
        finish_(finish),
        panels_(scratch),
        sums_(scratch + plan.panel_elements),
        line_(sums_ + plan.sum_elements),
        table_(table) {}

  void run(std::int64_t number) {
    const std::int64_t task = number / plan_.parts;
    const Range channels = part_of(plan_.out_channels, plan_.parts, number % plan_.parts, packed_layout().rows);
    if (channels.begin == channels.end) return;
    const std::int64_t group = task / plan_.tiles % plan_.groups, image = task / plan_.tiles / plan_.groups;
    const std::int64_t limit = packed_layout().depth, base = plan_.is_direct ? image * plan_.places : 0;
    begin_ = base + task % plan_.tiles * plan_.tile;
    end_ = std::min(plan_.is_direct ? base + plan_.places : plan_.total, begin_ + plan_.tile);
    const std::int64_t width = end_ - begin_, first_channel = group * plan_.out_channels;
    if (!plan_.is_pointwise) make_table();
    const float* const weights = packed_ + group * packed_left_elements(plan_.out_channels, plan_.depth);
    const std::int64_t first_row = image * plan_.groups * plan_.out_channels + first_channel;
    float* const to = plan_.is_direct ? out_ + first_row * plan_.places + (begin_ - base) : sums_;
    const std::int64_t ldc = plan_.is_direct ? plan_.places : plan_.tile;
    TileEnd end = end_of_tile(finish_, first_channel);
    for (std::int64_t p = 0; p < plan_.depth; p += limit) {
      const std::int64_t depth = std::min(limit, plan_.depth - p);
      fill_panels(group, p, depth, width);
      const bool ends = p + depth == plan_.depth && !end.empty();
      gemm_packed_left(weights, plan_.out_channels, channels.begin, channels.end, p, depth, panels_, width,
                       to + channels.begin * ldc, ldc, ends ? &end : nullptr);
    }
    if (!plan_.is_direct) return store(group);
    if (finish_.is_empty()) return;
    for (std::int64_t c = channels.begin; c < channels.end; ++c)
      finish_.apply(to + c * ldc, to + c * ldc, first_row + c, begin_ - base, width);
  }

 private:
  void make_table() {
    const Sliding& at = plan_.at;
    std::vector<Run>& runs = table_.runs;
    runs.clear();
    for (std::int64_t q = begin_; q < end_;) {
      const std::int64_t image = q / plan_.places, place = q % plan_.places;
      const std::int64_t row = place / at.out[2], first = place % at.out[2], last = std::min(at.out[2], first + end_ - q);
      runs.push_back({image, row / at.out[1], row % at.out[1], first, last});
      q += last - first;
    }
    table_.rows.clear();
    for (std::int64_t t0 = 0; t0 < at.size[0]; ++t0)
      for (std::int64_t t1 = 0; t1 < at.size[1]; ++t1)
        for (const Run& run : runs) {
          const std::int64_t a = at.source(0, run.place0, t0), b = at.source(1, run.place1, t1);
          const bool inside = at.is_inside(0, a) && at.is_inside(1, b);
          table_.rows.push_back(inside ? run.image * plan_.x_strides[0] + a * at.steps[0] + b * at.steps[1]
                                       : TileTable::kOutside);
        }
    table_.pieces.clear();
    for (std::int64_t t2 = 0; t2 < at.size[2]; ++t2)
      for (const Run& run : runs) {
        const Range range = at.inside(t2, run.first, run.last);
        table_.pieces.push_back({static_cast<std::int32_t>(range.begin - run.first),
                                 static_cast<std::int32_t>(range.end - range.begin),
                                 static_cast<std::int32_t>(run.last - range.end), at.source(2, range.begin, t2) * at.steps[2]});
      }
  }

  // Steps [p, p + depth) of all places of the tile.
  void fill_panels(std::int64_t group, std::int64_t p, std::int64_t depth, std::int64_t width) {
    const Sliding& at = plan_.at;
    const std::int64_t window = at.window(), line_taps = at.size[2];
    const auto runs = static_cast<std::int64_t>(table_.runs.size());
    const std::int64_t line_step = at.stride[2] * at.steps[2];
    const LayOut lay = lay_out();
    std::int64_t row_tap = p % window / line_taps, line_tap = p % window % line_taps;
    const float* channel = x_ + (group * plan_.in_channels + p / window) * plan_.x_strides[1];
    for (std::int64_t step = 0; step < depth; ++step) {
      if (plan_.is_pointwise) {
        fill_pointwise(channel, step, depth, width);
      } else {
        lay(channel, table_.rows.data() + row_tap * runs, table_.pieces.data() + line_tap * runs, runs, line_step, line_);
        spread(line_, 0, width, step, depth);
      }
      if (++line_tap < line_taps) continue;
      line_tap = 0;
      if (++row_tap * line_taps < window) continue;
      row_tap = 0;
      channel += plan_.x_strides[1];
    }
    // The lanes that the last panel lacks.
    const std::int64_t lanes = packed_layout().cols, missing = rounded_up(width, lanes) - width;
    if (missing > 0) {
      float* to = panels_ + (width / lanes) * lanes * depth + width % lanes;
      for (std::int64_t step = 0; step < depth; ++step) std::fill_n(to + step * lanes, missing, 0.0f);
    }
  }

  void fill_pointwise(const float* plane, std::int64_t step, std::int64_t depth, std::int64_t width) {
    for (std::int64_t done = 0; done < width;) {
      const std::int64_t q = begin_ + done, image = q / plan_.places, place = q % plan_.places;
      const std::int64_t n = std::min(plan_.places - place, width - done);
      spread(plane + image * plan_.x_strides[0] + place, done, n, step, depth);
      done += n;
    }
  }

  // Values of columns [column, column + n) at |step| into their panels.
  void spread(const float* from, std::int64_t column, std::int64_t n, std::int64_t step, std::int64_t depth) {
    const std::int64_t lanes = packed_layout().cols;
    const std::int64_t lane = column & (lanes - 1);
    float* to = panels_ + (column - lane) * depth + step * lanes;
    if (lane > 0) {
      const std::int64_t count = std::min(lanes - lane, n);
      std::memcpy(to + lane, from, static_cast<std::size_t>(count) * sizeof(float));
      from += count;
      n -= count;
      to += lanes * depth;
    }
    const std::int64_t whole = n / lanes;
    spread_panels(from, to, whole, lanes * depth, lanes);
    if (const std::int64_t rest = n - whole * lanes; rest > 0)
      std::memcpy(to + whole * lanes * depth, from + whole * lanes, static_cast<std::size_t>(rest) * sizeof(float));
  }

  void store(std::int64_t group) {
    const std::int64_t all_channels = plan_.groups * plan_.out_channels;
    for (std::int64_t q = begin_; q < end_;) {
      const std::int64_t image = q / plan_.places, place = q % plan_.places, n = std::min(plan_.places - place, end_ - q);
      for (std::int64_t c = 0; c < plan_.out_channels; ++c) {
        const std::int64_t row = image * all_channels + group * plan_.out_channels + c;
        finish_.apply(sums_ + c * plan_.tile + (q - begin_), out_ + row * plan_.places + place, row, place, n);
      }
      q += n;
    }
  }

  const ConvPlan& plan_;
  const float* x_;
  const float* packed_;
  float* out_;
  Finish finish_;
  float *panels_, *sums_, *line_;
  std::int64_t begin_ = 0, end_ = 0;
  TileTable& table_;
};

}  // namespace

TENON_CLONES bool is_finite(const float* weights, std::int64_t n) {
  // No term can cancel another: the sum of zeros is a zero unless one of them
  // is NaN.
  float sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += weights[i] * 0.0f;
  return sum == 0;
}

bool is_depthwise(const Shape& weight, const ConvAttr& attr) {
  return weight[1] == 1 && attr.groups > 1 && weight[0] == attr.groups;
}

bool has_packed_conv(const Shape& weight, const ConvAttr& attr) {
  if (!has_packed_gemm() || weight.elements() == 0) return false;
  if (is_depthwise(weight, attr)) return true;
  return weight[0] / attr.groups >= 2 || weight[1] > 1;
}

std::int64_t packed_conv_elements(const Shape& weight, const ConvAttr& attr) {
  const std::int64_t depth = weight.elements() / weight[0];
  return attr.groups * packed_left_elements(weight[0] / attr.groups, depth);
}

void pack_conv(const float* weight, const Shape& shape, const ConvAttr& attr, float* packed) {
  const std::int64_t depth = shape.elements() / shape[0], rows = shape[0] / attr.groups;
  for (std::int64_t group = 0; group < attr.groups; ++group)
    pack_left({weight + group * rows * depth, rows, depth, depth, 1}, packed + group * packed_left_elements(rows, depth));
}

std::size_t packed_conv_scratch_bytes(const ThreadPool& pool, const View& x, const Shape& weight, const ConvAttr& attr,
                                      const Shape& out) {
  if (is_depthwise(weight, attr)) return depthwise_scratch_bytes(pool, x, weight, attr, out);
  if (has_direct_conv(x, weight, attr, out)) return direct_conv_scratch_bytes(pool, x, weight, attr, out);
  return ConvPlan(x, weight, attr, out, pool.threads()).worker_bytes() * static_cast<std::size_t>(pool.threads());
}

void packed_conv(ThreadPool& pool, const View& x, const float* packed, const Shape& weight, const ConvAttr& attr,
                 const Target& out, const Finish& finish, std::span<std::byte> scratch) {
  if (out.shape.elements() == 0) return;
  if (is_depthwise(weight, attr)) return depthwise(pool, x, packed, weight, attr, out, finish, scratch);
  if (has_direct_conv(x, weight, attr, out.shape)) return direct_conv(pool, x, packed, weight, attr, out, finish, scratch);
  const ConvPlan plan(x, weight, attr, out.shape, pool.threads());
  pool.for_each(plan.tasks(), [&](std::int64_t task, int worker) {
    float* const own = reinterpret_cast<float*>(scratch.data() + plan.worker_bytes() * static_cast<std::size_t>(worker));
    thread_local TileTable table;  // keeps its memory
    TileRunner(plan, static_cast<const float*>(x.data), packed, static_cast<float*>(out.data), finish, own, table).run(task);
  });
}

}  // namespace tenon::cpu
