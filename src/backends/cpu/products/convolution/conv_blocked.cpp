#include "backends/cpu/products/convolution/conv_blocked.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "backends/cpu/primitives/split.h"
#include "backends/cpu/products/convolution/blocked_kernels.h"
#include "backends/cpu/products/convolution/conv_packed.h"
#include "backends/cpu/products/convolution/conv_phases.h"

namespace tenon::cpu {
namespace {

constexpr std::int64_t kTerms = 384;               // that are summed at a time
constexpr std::int64_t kBandElements = 96 * 1024;  // of the input: what a band reads stays in the L2 cache

}  // namespace

bool can_block(const Epilogue& epilogue) {
  std::size_t i = 0;
  const auto skip = [&](ElementwiseOp op) {
    if (i < epilogue.steps.size() && epilogue.steps[i].op == op &&
        epilogue.steps[i].operand == EpilogueStep::Operand::per_channel)
      ++i;
  };
  skip(ElementwiseOp::Mul);
  skip(ElementwiseOp::Add);
  return std::none_of(epilogue.steps.begin() + static_cast<std::ptrdiff_t>(i), epilogue.steps.end(), [](const EpilogueStep& s) {
    return s.operand == EpilogueStep::Operand::per_channel || s.operand == EpilogueStep::Operand::per_col;
  });
}

#if defined(__x86_64__)
namespace {

using namespace blocked;

// One phase of a convolution, and how it is divided.
struct BlockedPlan {
  std::int64_t images, groups;
  std::int64_t in_blocks, out_blocks;   // of one group; in_blocks: channels if the input is plain
  std::int64_t channels, total_blocks;  // of the result
  bool is_depthwise, is_phase;          // is_phase: of a transposed convolution
  std::int64_t unit, last_unit;         // elements of a place that are neighbours, also in the last block
  std::int64_t in_h, in_w, whole_h, whole_w;
  PhaseAxis h, w;
  std::int64_t weights, block_weights;  // where they begin, and how many floats a block of the result has
  bool copies = false;                  // a band of the input with its padding
  // Instead, where the kernel is often outside the image (dilation in small images): each part of the result has the taps that
  // are inside for all of it.
  bool leaves_out = false;
  std::int64_t pitch, plane;  // from a row to the next, from a block of channels to the next, in what kernels read
  std::int64_t band, bands, parts = 1;
  std::int64_t taps, whole_taps;
  std::int64_t widest;  // the most neighbouring places of a row that are computed alike

  BlockedPlan(const BlockedConv& conv, const ConvPhase& phase, const Shape& x, const Shape& out, int threads)
      : images(x[0]),
        groups(conv.attr.groups),
        channels(conv.outs()),
        total_blocks(channel_blocks(conv.outs())),
        is_depthwise(cpu::is_depthwise(conv.weight, conv.attr)),
        is_phase(conv.is_transposed),
        unit(conv.is_plain ? 1 : kBlock),
        last_unit(unit),
        in_h(x[2]),
        in_w(x[3]),
        whole_h(out[2]),
        whole_w(out[3]),
        h(phase.h),
        w(phase.w),
        weights(phase.weights) {
    if (is_depthwise) groups = total_blocks;
    in_blocks = is_depthwise ? 1 : (conv.group_ins() + unit - 1) / unit;
    out_blocks = is_depthwise ? 1 : channel_blocks(conv.group_outs());
    if (!is_depthwise && conv.group_ins() % unit != 0) last_unit = conv.group_ins() % unit;
    taps = in_blocks * phase.window();
    whole_taps = last_unit == unit ? taps : taps - phase.window();
    block_weights = conv.group_ins() * phase.window() * kBlock;
    const auto reads_past = [](const PhaseAxis& a, std::int64_t in) {
      return a.pad != 0 || (a.count - 1) * a.stride + (a.taps - 1) * a.dilation + 1 > in;
    };
    copies = taps > 0 && (reads_past(h, in_h) || reads_past(w, in_w));
    leaves_out = copies && inside(h, in_h) * inside(w, in_w) < 0.8 * static_cast<double>(h.count * h.taps * w.count * w.taps);
    copies = copies && !leaves_out;
    if (!copies && !leaves_out && phase.window() == 1 && h.stride == 1 && w.stride == 1 && whole_h == in_h && whole_w == in_w &&
        h.count == in_h && w.count == in_w)
      merge_rows(threads);
    const std::int64_t reach_h = (std::max<std::int64_t>(h.taps, 1) - 1) * h.dilation + 1;
    const std::int64_t reach_w = (std::max<std::int64_t>(w.taps, 1) - 1) * w.dilation + 1;
    pitch = (copies ? (w.count - 1) * w.stride + reach_w : in_w) * unit;
    const std::int64_t limit = is_depthwise ? kBandElements / 16 : kBandElements;
    const std::int64_t rows = limit / std::max<std::int64_t>(1, in_blocks * pitch);
    const std::int64_t halo = leaves_out ? 0 : reach_h - h.stride;  // rows of a band beside those of its places
    band = std::clamp<std::int64_t>((rows - halo) / h.stride, 1, h.count);
    if (threads > 1) {
      const std::int64_t tasks = std::max<std::int64_t>(1, 2 * threads / (images * groups));
      band = std::min(band, std::max<std::int64_t>(1, (h.count + tasks - 1) / tasks));
    }
    bands = (h.count + band - 1) / band;
    band = (h.count + bands - 1) / bands;
    bands = (h.count + band - 1) / band;
    if (threads > 1 && images * groups * bands < 2 * threads)
      parts = std::clamp<std::int64_t>(2 * threads / (images * groups * bands), 1, (out_blocks + 1) / 2);
    plane = copies ? ((band - 1) * h.stride + reach_h) * pitch : in_h * pitch;
    widest = widest_part();
  }

  std::int64_t widest_part() const {
    if (!leaves_out) return w.count;
    std::int64_t most = 0, here = 0;
    Range last{-1, -1};
    for (std::int64_t i = 0; i < w.count; ++i) {
      const Range range = inside(w, in_w, i);
      here = range.begin == last.begin && range.end == last.end ? here + 1 : 1;
      most = std::max(most, here);
      last = range;
    }
    return most;
  }

  // 1x1: several rows become one, as many as stay in the cache and leave enough for the threads.
  void merge_rows(int threads) {
    std::int64_t most = std::max<std::int64_t>(1, kBandElements / std::max<std::int64_t>(1, in_blocks * unit * in_w));
    if (threads > 1) most = std::min(most, std::max<std::int64_t>(1, h.count * images * groups / (2 * threads)));
    std::int64_t rows = std::min(most, h.count);
    while (h.count % rows != 0) --rows;
    in_w *= rows;
    w.count *= rows;
    whole_w *= rows;
    in_h /= rows;
    h.count /= rows;
    whole_h /= rows;
  }

  std::int64_t tasks() const { return images * groups * bands * parts; }
  std::size_t tap_bytes() const { return (static_cast<std::size_t>(taps) * sizeof(Tap) + 63) / 64 * 64; }
  std::size_t worker_bytes() const {
    return tap_bytes() + (copies ? (static_cast<std::size_t>(in_blocks * plane) * sizeof(float) + 63) / 64 * 64 : 0);
  }
  std::int64_t window() const { return h.taps * w.taps; }
  // The elements of the kernel along an axis that are inside the image for result |i|.
  static Range inside(const PhaseAxis& a, std::int64_t in, std::int64_t i) {
    const std::int64_t first = i * a.stride - a.pad;
    const std::int64_t begin = first >= 0 ? 0 : std::min(a.taps, (-first + a.dilation - 1) / a.dilation);
    return {begin, std::max(begin, first >= in ? 0 : std::min(a.taps, (in - 1 - first) / a.dilation + 1))};
  }
  // Of all results.
  static double inside(const PhaseAxis& a, std::int64_t in) {
    std::int64_t sum = 0;
    for (std::int64_t i = 0; i < a.count; ++i) {
      const Range range = inside(a, in, i);
      sum += range.end - range.begin;
    }
    return static_cast<double>(sum);
  }
  // The taps with these rows and columns of the kernel, for all channels.
  std::int64_t fill(Range rows, Range cols, Tap* to) const {
    const Tap* const begin = to;
    for (std::int64_t block = 0; block < in_blocks; ++block)
      for (std::int64_t y = rows.begin; y < rows.end; ++y)
        for (std::int64_t x = cols.begin; x < cols.end; ++x)
          *to++ = {static_cast<std::int32_t>(block * plane + (y - rows.begin) * h.dilation * pitch +
                                             (x - cols.begin) * w.dilation * unit),
                   static_cast<std::int32_t>(weights_before((block * h.taps + y) * w.taps + x))};
    return to - begin;
  }
  // Floats of a block's weights before |tap|.
  std::int64_t weights_before(std::int64_t tap) const {
    if (is_depthwise) return tap * kBlock;
    const std::int64_t whole = std::min(tap, whole_taps);
    return (whole * unit + (tap - whole) * last_unit) * kBlock;
  }
  // The place of a result in its image.
  std::int64_t place(std::int64_t y, std::int64_t x) const { return (h.first + y * h.step) * whole_w + w.first + x * w.step; }
};

// What kernels do of an epilogue.
struct KernelEnd {
  TileEnd tile;
  const float* added = nullptr;  // a whole tensor
};

// |finish| goes on after it.
KernelEnd kernel_end(Finish& finish, std::int64_t first_channel) {
  KernelEnd end{end_of_tile(finish, first_channel)};
  if (end.tile.relu || finish.is_empty()) return end;
  const auto& steps = finish.epilogue->steps;
  const EpilogueStep& step = steps[finish.first_step];
  if (step.op != ElementwiseOp::Add || step.operand != EpilogueStep::Operand::full) return end;
  end.added = finish.operands[step.index];
  ++finish.first_step;
  if (finish.first_step < steps.size() && steps[finish.first_step].op == ElementwiseOp::Relu) {
    end.tile.relu = true;
    ++finish.first_step;
  }
  return end;
}

class BlockedRunner {
 public:
  BlockedRunner(const BlockedPlan& plan, const float* x, const float* packed, float* out, const Finish& finish,
                std::byte* scratch)
      : plan_(plan),
        x_(x),
        weights_(packed + plan.weights),
        out_(out),
        finish_(finish),
        taps_(reinterpret_cast<Tap*>(scratch)),
        copy_(reinterpret_cast<float*>(scratch + plan.tap_bytes())),
        is_finite_(packed[0] != 0) {
    plan.fill({0, plan.h.taps}, {0, plan.w.taps}, taps_);
  }

  void run(std::int64_t number) {
    const std::int64_t part = number % plan_.parts, task = number / plan_.parts;
    const std::int64_t band = task % plan_.bands, group = task / plan_.bands % plan_.groups;
    image_ = task / plan_.bands / plan_.groups;
    first_ = band * plan_.band;
    rows_ = std::min(plan_.band, plan_.h.count - first_);
    const std::int64_t image_plane = plan_.in_h * plan_.in_w * plan_.unit;
    image_in_ = x_ + (image_ * plan_.groups + group) * plan_.in_blocks * image_plane;
    if (plan_.copies && is_finite_) copy_band();
    const std::int64_t most = plan_.widest <= kNarrow ? 3 : 2;
    const Range blocks = part_of(plan_.out_blocks, plan_.parts, part);
    const std::int64_t count = blocks.end - blocks.begin, tiles = (count + most - 1) / most;
    for (std::int64_t i = 0; i < tiles; ++i) {
      const Range own = part_of(count, tiles, i);
      check_stop();
      run_blocks(group * plan_.out_blocks + blocks.begin + own.begin, own.end - own.begin);
    }
  }

 private:
  // What kernels do of an epilogue, and the rest of it.
  struct End {
    Finish rest;
    const float *scale = nullptr, *shift = nullptr;
    const float* added = nullptr;  // a whole tensor
    bool relu = false;
  };

  // |values| of |count| blocks, with |fallback| if there are none, and zeros in lanes that no channel has.
  const float* per_lane(const float* values, float fallback, std::int64_t first_block, std::int64_t count,
                        std::array<float, 3 * kBlock>& memory) const {
    const std::int64_t there = std::min(count * kBlock, plan_.channels - first_block * kBlock);
    if (values && there == count * kBlock) return values;
    memory.fill(0);
    if (values)
      std::copy_n(values, there, memory.begin());
    else
      std::fill_n(memory.begin(), there, fallback);
    return memory.data();
  }

  End end_of(std::int64_t first_block, std::int64_t count) {
    End end;
    end.rest = finish_;
    const KernelEnd kernel = kernel_end(end.rest, first_block * kBlock);
    if (kernel.tile.scale || kernel.tile.shift) {
      end.scale = per_lane(kernel.tile.scale, 1, first_block, count, scale_);
      end.shift = per_lane(kernel.tile.shift, 0, first_block, count, shift_);
    }
    end.relu = kernel.tile.relu;
    end.added = kernel.added;
    return end;
  }

  void run_blocks(std::int64_t first_block, std::int64_t count) {
    const std::int64_t places = plan_.whole_h * plan_.whole_w, row = image_ * plan_.total_blocks + first_block;
    const End end = end_of(first_block, count);
    Tile tile{};
    tile.step = plan_.w.stride * plan_.unit;
    tile.unit = plan_.unit;
    tile.last_unit = plan_.last_unit;
    tile.weight_step = plan_.block_weights;
    tile.out_step = places * kBlock;
    tile.place_step = plan_.w.step * kBlock;
    tile.weights = weights_ + first_block * tile.weight_step;
    const std::int64_t start = row * tile.out_step;
    if (plan_.leaves_out)
      run_inside(tile, count, start, end);
    else if (is_finite_ || !plan_.copies)
      run_chunks(tile, {first_, first_ + rows_}, {0, plan_.w.count}, plan_.taps, count, start, end);
    else
      run_carefully(tile, count, start, end);
    if (end.rest.is_empty() || plan_.is_phase) return;
    const std::int64_t n = rows_ * plan_.w.count, place = plan_.place(first_, 0);
    constexpr std::int64_t kPiece = 128;  // places: a few kilobytes that stay in the L1 cache between the steps
    for (std::int64_t b = 0; b < count; ++b)
      for (std::int64_t p = 0; p < n; p += kPiece) {
        float* const values = out_ + start + b * tile.out_step + (place + p) * kBlock;
        end.rest.apply(values, values, row + b, (place + p) * kBlock, std::min(kPiece, n - p) * kBlock);
      }
  }

  // Results of [rows] x [cols] by |taps_|. The first tap of the first row reads |in|.
  void run_chunks(Tile tile, Range rows, Range cols, std::int64_t taps, std::int64_t count, std::int64_t start, const End& end) {
    const std::int64_t chunk = plan_.is_depthwise ? std::max<std::int64_t>(1, taps) : kTerms / plan_.unit;
    const std::int64_t most = plan_.is_depthwise ? kDepthwisePlaces : plan_.widest <= kNarrow ? kNarrow : kPlaces;
    const std::int64_t width = cols.end - cols.begin, tiles = (width + most - 1) / most;
    const float* const in = tile.in ? tile.in : plan_.copies ? copy_ : image_in_ + rows.begin * plan_.h.stride * plan_.pitch;
    const std::int64_t whole = plan_.whole_taps == plan_.taps ? taps : taps / plan_.in_blocks * (plan_.in_blocks - 1);
    for (std::int64_t t = 0; t == 0 || t < taps; t += chunk) {
      tile.taps = taps_ + t;
      tile.tap_count = std::min(chunk, taps - t);
      tile.whole_taps = whole - t;
      const bool is_last = t + chunk >= taps;
      tile.scale = is_last ? end.scale : nullptr;
      tile.shift = end.shift;
      tile.relu = is_last && end.relu;
      for (std::int64_t y = rows.begin; y < rows.end; ++y)
        for (std::int64_t i = 0; i < tiles; ++i) {
          const Range places = part_of(width, tiles, i);
          const std::int64_t at = start + plan_.place(y, cols.begin + places.begin) * kBlock;
          tile.in = in + (y - rows.begin) * plan_.h.stride * plan_.pitch + places.begin * tile.step;
          tile.out = out_ + at;
          tile.before = t > 0 ? tile.out : nullptr;
          tile.added = is_last && end.added ? end.added + at : nullptr;
          kernel_for(plan_.is_depthwise, places.end - places.begin, count)(tile);
        }
    }
  }

  // The results of a part all have the same elements of the kernel inside the image.
  void run_inside(Tile tile, std::int64_t count, std::int64_t start, const End& end) {
    for_parts(plan_.h, plan_.in_h, {first_, first_ + rows_}, [&](Range rows, Range kernel_rows) {
      for_parts(plan_.w, plan_.in_w, {0, plan_.w.count}, [&](Range cols, Range kernel_cols) {
        const std::int64_t taps = plan_.fill(kernel_rows, kernel_cols, taps_);
        const std::int64_t y = rows.begin * plan_.h.stride - plan_.h.pad + kernel_rows.begin * plan_.h.dilation;
        const std::int64_t x = cols.begin * plan_.w.stride - plan_.w.pad + kernel_cols.begin * plan_.w.dilation;
        tile.in = taps > 0 ? image_in_ + y * plan_.pitch + x * plan_.unit : image_in_;
        run_chunks(tile, rows, cols, taps, count, start, end);
      });
    });
  }

  template <class Body>
  static void for_parts(const PhaseAxis& axis, std::int64_t in, Range results, Body body) {
    for (std::int64_t i = results.begin; i < results.end;) {
      const Range kernel = BlockedPlan::inside(axis, in, i);
      std::int64_t next = i + 1;
      for (; next < results.end; ++next) {
        const Range other = BlockedPlan::inside(axis, in, next);
        if (other.begin != kernel.begin || other.end != kernel.end) break;
      }
      body({i, next}, kernel);
      i = next;
    }
  }

  // Infinite weights: a tap that is outside the image must not be multiplied with a zero. One tap at a time.
  void run_carefully(Tile tile, std::int64_t count, std::int64_t start, const End& end) {
    const float* const weights = tile.weights;
    const Kernel kernel = kernel_for(plan_.is_depthwise, 1, 1);
    const std::int64_t plane = plan_.in_h * plan_.in_w * plan_.unit;
    tile.taps = taps_;  // the first is 0
    for (std::int64_t b = 0; b < count; ++b)
      for (std::int64_t place = 0; place < rows_ * plan_.w.count; ++place) {
        const std::int64_t to_y = first_ + place / plan_.w.count, to_x = place % plan_.w.count;
        const std::int64_t y = to_y * plan_.h.stride - plan_.h.pad, x = to_x * plan_.w.stride - plan_.w.pad;
        const std::int64_t at = start + b * tile.out_step + plan_.place(to_y, to_x) * kBlock;
        tile.out = out_ + at;
        tile.before = tile.scale = tile.added = nullptr;
        tile.tap_count = 0;
        tile.relu = false;
        kernel(tile);
        tile.tap_count = 1;
        tile.before = tile.out;
        for (std::int64_t t = 0; t < plan_.taps; ++t) {
          const std::int64_t tap = t % plan_.window();
          const std::int64_t from_y = y + tap / plan_.w.taps * plan_.h.dilation,
                             from_x = x + tap % plan_.w.taps * plan_.w.dilation;
          if (from_y < 0 || from_y >= plan_.in_h || from_x < 0 || from_x >= plan_.in_w) continue;
          tile.in = image_in_ + t / plan_.window() * plane + (from_y * plan_.in_w + from_x) * plan_.unit;
          tile.whole_taps = t < plan_.whole_taps ? 1 : 0;
          tile.weights = weights + b * tile.weight_step + taps_[t].weights;
          kernel(tile);
        }
        tile.tap_count = 0;
        tile.scale = end.scale ? end.scale + b * kBlock : nullptr;
        tile.shift = end.scale ? end.shift + b * kBlock : nullptr;
        tile.added = end.added ? end.added + at : nullptr;
        tile.relu = end.relu;
        kernel(tile);
      }
  }

  void copy_band() {
    const std::int64_t plane = plan_.in_h * plan_.in_w * plan_.unit, row_elements = plan_.in_w * plan_.unit;
    const std::int64_t rows = (rows_ - 1) * plan_.h.stride + (plan_.h.taps - 1) * plan_.h.dilation + 1;
    const std::int64_t left = std::clamp<std::int64_t>(plan_.w.pad * plan_.unit, 0, plan_.pitch);
    const std::int64_t cut = std::clamp<std::int64_t>(-plan_.w.pad * plan_.unit, 0, row_elements);
    const std::int64_t middle = std::clamp<std::int64_t>(plan_.pitch - left, 0, row_elements - cut);
    for (std::int64_t c = 0; c < plan_.in_blocks; ++c)
      for (std::int64_t r = 0; r < rows; ++r) {
        const std::int64_t y = first_ * plan_.h.stride - plan_.h.pad + r;
        float* const to = copy_ + c * plan_.plane + r * plan_.pitch;
        if (y < 0 || y >= plan_.in_h) {
          std::fill_n(to, plan_.pitch, 0.0f);
          continue;
        }
        std::fill_n(to, left, 0.0f);
        std::memcpy(to + left, image_in_ + c * plane + y * row_elements + cut, static_cast<std::size_t>(middle) * sizeof(float));
        std::fill(to + left + middle, to + plan_.pitch, 0.0f);
      }
  }

  const BlockedPlan& plan_;
  const float *x_, *weights_;
  float* out_;
  const Finish& finish_;
  Tap* taps_;
  float* copy_;
  bool is_finite_;
  std::int64_t image_ = 0, first_ = 0, rows_ = 0;
  const float* image_in_ = nullptr;
  std::array<float, 3 * kBlock> scale_{}, shift_{};  // of a tile
};

// What the kernels do not do of an epilogue, where a phase has no rows of its own.
void finish_phases(ThreadPool& pool, float* out, const Shape& shape, Finish finish) {
  kernel_end(finish, 0);
  if (finish.is_empty()) return;
  const std::int64_t rows = shape[0] * shape[1], cols = shape.elements() / rows;
  constexpr std::int64_t kPiece = 128 * kBlock;
  const std::int64_t pieces = (cols + kPiece - 1) / kPiece;
  pool.for_each(rows * pieces, [&](std::int64_t task, int) {
    const std::int64_t row = task / pieces, col = task % pieces * kPiece;
    float* const values = out + row * cols + col;
    finish.apply(values, values, row, col, std::min(kPiece, cols - col));
  });
}

}  // namespace

bool has_blocked_conv() {
  static const bool has = __builtin_cpu_supports("avx512f");
  return has;
}

std::size_t blocked_conv_scratch_bytes(const ThreadPool& pool, const BlockedConv& conv, const Shape& x, const Shape& out) {
  if (out.elements() == 0) return 0;
  std::size_t bytes = 0;
  for (const ConvPhase& phase : phases_of(conv, out[2], out[3]))
    if (phase.h.count > 0 && phase.w.count > 0)
      bytes = std::max(bytes, BlockedPlan(conv, phase, x, out, pool.threads()).worker_bytes());
  return bytes * static_cast<std::size_t>(pool.threads());
}

void blocked_conv(ThreadPool& pool, const BlockedConv& conv, const View& x, const float* packed, const Target& out,
                  const Finish& finish, std::span<std::byte> scratch) {
  if (out.shape.elements() == 0) return;
  for (const ConvPhase& phase : phases_of(conv, out.shape[2], out.shape[3])) {
    if (phase.h.count == 0 || phase.w.count == 0) continue;
    const BlockedPlan plan(conv, phase, x.shape, out.shape, pool.threads());
    const std::int64_t tasks = plan.tasks();
    pool.for_each(std::min<std::int64_t>(tasks, 4 * pool.threads()), [&](std::int64_t part, int worker) {
      const Range range = part_of(tasks, std::min<std::int64_t>(tasks, 4 * pool.threads()), part);
      std::byte* const own = scratch.data() + plan.worker_bytes() * static_cast<std::size_t>(worker);
      BlockedRunner runner(plan, static_cast<const float*>(x.data), packed, static_cast<float*>(out.data), finish, own);
      for (std::int64_t task = range.begin; task < range.end; ++task) runner.run(task);
    });
  }
  if (conv.is_transposed) finish_phases(pool, static_cast<float*>(out.data), out.shape, finish);
}

}  // namespace tenon::cpu
#else

namespace tenon::cpu {

bool has_blocked_conv() { return false; }
std::size_t blocked_conv_scratch_bytes(const ThreadPool&, const BlockedConv&, const Shape&, const Shape&) { return 0; }
void blocked_conv(ThreadPool&, const BlockedConv&, const View&, const float*, const Target&, const Finish&,
                  std::span<std::byte>) {}

}  // namespace tenon::cpu
#endif
