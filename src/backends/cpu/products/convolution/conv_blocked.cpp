#include "backends/cpu/products/convolution/conv_blocked.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "backends/cpu/primitives/split.h"
#include "backends/cpu/products/convolution/conv_packed.h"
#include "backends/cpu/products/convolution/conv_phases.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tenon::cpu {
namespace {

constexpr std::int64_t kBlock = kChannelBlock;
constexpr std::int64_t kTerms = 384;               // that are summed at a time
constexpr std::int64_t kPlaces = 14;               // of a tile
constexpr std::int64_t kNarrow = 9;                // rows of at most this many places take three blocks of channels at a time
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

// One tile: neighbouring places of a row, and Blocks blocks of channels.
struct Tile {
  const float* in;                     // the first place
  std::int64_t step;                   // from a place to the next, in elements
  const std::int32_t* taps;            // offsets
  std::int64_t tap_count, whole_taps;  // the first |whole_taps| read |unit| neighbouring elements each, the others |last_unit|
  std::int64_t unit, last_unit;
  const float* weights;                // of the first block
  std::int64_t weight_step, out_step;  // from a block to the next
  std::int64_t place_step;             // of the result, from a place to the next
  // In this order: sums += before, sums = sums * scale + shift, sums += added, not below 0 if |relu|. |before| and |added| are at
  // the same places as |out|, |scale| and |shift| are [Blocks][16]. Each may be nullptr; |scale| stands for |shift| too.
  const float *before, *scale, *shift, *added;
  bool relu;
  float* out;
};
using Kernel = void (*)(const Tile& tile);

template <int Places, int Blocks>
[[gnu::target("avx512f"), gnu::always_inline]] inline void store(__m512 (&sum)[Places][Blocks], const Tile& tile) {
  _Pragma("GCC unroll 4") for (int b = 0; b < Blocks; ++b) {
    const std::int64_t place = b * tile.out_step;
    if (tile.before)
      _Pragma("GCC unroll 16") for (int p = 0; p < Places; ++p) sum[p][b] =
          _mm512_add_ps(sum[p][b], _mm512_loadu_ps(tile.before + place + p * tile.place_step));
    if (tile.scale) {
      const __m512 scale = _mm512_loadu_ps(tile.scale + b * kBlock), shift = _mm512_loadu_ps(tile.shift + b * kBlock);
      _Pragma("GCC unroll 16") for (int p = 0; p < Places; ++p) sum[p][b] = _mm512_fmadd_ps(sum[p][b], scale, shift);
    }
    if (tile.added)
      _Pragma("GCC unroll 16") for (int p = 0; p < Places; ++p) sum[p][b] =
          _mm512_add_ps(sum[p][b], _mm512_loadu_ps(tile.added + place + p * tile.place_step));
    // The second operand is the result if one is NaN.
    if (tile.relu)
      _Pragma("GCC unroll 16") for (int p = 0; p < Places; ++p) sum[p][b] = _mm512_max_ps(_mm512_setzero_ps(), sum[p][b]);
    _Pragma("GCC unroll 16") for (int p = 0; p < Places; ++p) _mm512_storeu_ps(tile.out + place + p * tile.place_step, sum[p][b]);
  }
}

// Places are addressed as base, base + step and base + 2 step, so that many of them need few registers.
template <int Places, int Blocks>
[[gnu::target("avx512f")]] void product(const Tile& tile) {
  constexpr int kBases = (Places + 2) / 3;
  __m512 sum[Places][Blocks];
  _Pragma("GCC unroll 16") for (int p = 0; p < Places; ++p) _Pragma("GCC unroll 4") for (int b = 0; b < Blocks; ++b) sum[p][b] =
      _mm512_setzero_ps();
  const float* weights = tile.weights;
  const std::int64_t step = tile.step, weight_step = tile.weight_step;
  for (std::int64_t t = 0; t < tile.tap_count; ++t) {
    const float* base[kBases];
    base[0] = tile.in + tile.taps[t];
    _Pragma("GCC unroll 8") for (int b = 1; b < kBases; ++b) base[b] = base[b - 1] + 3 * step;
    const std::int64_t unit = t < tile.whole_taps ? tile.unit : tile.last_unit;
    for (std::int64_t i = 0; i < unit; ++i, weights += kBlock) {
      __m512 factor[Blocks];
      _Pragma("GCC unroll 4") for (int b = 0; b < Blocks; ++b) factor[b] = _mm512_loadu_ps(weights + b * weight_step);
      _Pragma("GCC unroll 16") for (int p = 0; p < Places; ++p) {
        const __m512 value = _mm512_set1_ps(base[p / 3][p % 3 * step + i]);
        _Pragma("GCC unroll 4") for (int b = 0; b < Blocks; ++b) sum[p][b] = _mm512_fmadd_ps(value, factor[b], sum[p][b]);
      }
    }
  }
  store(sum, tile);
}

// Every channel with its own weights: |unit| is not used.
template <int Places>
[[gnu::target("avx512f")]] void depthwise_product(const Tile& tile) {
  __m512 sum[Places][1];
  _Pragma("GCC unroll 16") for (int p = 0; p < Places; ++p) sum[p][0] = _mm512_setzero_ps();
  const std::int64_t step = tile.step;
  const float* weights = tile.weights;
  for (std::int64_t t = 0; t < tile.tap_count; ++t, weights += kBlock) {
    const float* const base = tile.in + tile.taps[t];
    const __m512 factor = _mm512_loadu_ps(weights);
    _Pragma("GCC unroll 16") for (int p = 0; p < Places; ++p) sum[p][0] =
        _mm512_fmadd_ps(_mm512_loadu_ps(base + p * step), factor, sum[p][0]);
  }
  store(sum, tile);
}

template <int Blocks, int... I>
Kernel product_of(std::int64_t places, std::integer_sequence<int, I...>) {
  static constexpr Kernel kKernels[] = {product<I + 1, Blocks>...};
  return kKernels[places - 1];
}

template <int... I>
Kernel depthwise_of(std::int64_t places, std::integer_sequence<int, I...>) {
  static constexpr Kernel kKernels[] = {depthwise_product<I + 1>...};
  return kKernels[places - 1];
}

constexpr std::int64_t kDepthwisePlaces = 8;

Kernel kernel_for(bool is_depthwise, std::int64_t places, std::int64_t blocks) {
  if (is_depthwise) return depthwise_of(places, std::make_integer_sequence<int, kDepthwisePlaces>());
  if (blocks == 3) return product_of<3>(places, std::make_integer_sequence<int, kNarrow>());
  if (blocks == 2) return product_of<2>(places, std::make_integer_sequence<int, kPlaces>());
  return product_of<1>(places, std::make_integer_sequence<int, kPlaces>());
}

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
  std::int64_t pitch, plane;            // from a row to the next, from a block of channels to the next, in what kernels read
  std::int64_t band, bands, parts = 1;
  std::int64_t taps, whole_taps;

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
    if (!copies && phase.window() == 1 && h.stride == 1 && w.stride == 1 && whole_h == in_h && whole_w == in_w &&
        h.count == in_h && w.count == in_w)
      merge_rows(threads);
    const std::int64_t reach_h = (std::max<std::int64_t>(h.taps, 1) - 1) * h.dilation + 1;
    const std::int64_t reach_w = (std::max<std::int64_t>(w.taps, 1) - 1) * w.dilation + 1;
    pitch = (copies ? (w.count - 1) * w.stride + reach_w : in_w) * unit;
    const std::int64_t limit = is_depthwise ? kBandElements / 16 : kBandElements;
    const std::int64_t rows = limit / std::max<std::int64_t>(1, in_blocks * pitch);
    const std::int64_t halo = reach_h - h.stride;  // rows of a band beside those of its places
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
  std::size_t tap_bytes() const { return (static_cast<std::size_t>(taps) * sizeof(std::int32_t) + 63) / 64 * 64; }
  std::size_t worker_bytes() const {
    return tap_bytes() + (copies ? (static_cast<std::size_t>(in_blocks * plane) * sizeof(float) + 63) / 64 * 64 : 0);
  }
  std::int64_t window() const { return h.taps * w.taps; }
  std::int64_t offset(std::int64_t tap) const {
    const std::int64_t t = tap % window();
    return tap / window() * plane + t / w.taps * h.dilation * pitch + t % w.taps * w.dilation * unit;
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
        taps_(reinterpret_cast<std::int32_t*>(scratch)),
        copy_(reinterpret_cast<float*>(scratch + plan.tap_bytes())),
        is_finite_(packed[0] != 0) {
    for (std::int64_t t = 0; t < plan.taps; ++t) taps_[t] = static_cast<std::int32_t>(plan.offset(t));
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
    const std::int64_t most = plan_.w.count <= kNarrow ? 3 : 2;
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
    if (is_finite_ || !plan_.copies)
      run_chunks(tile, count, start, end);
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

  void run_chunks(Tile tile, std::int64_t count, std::int64_t start, const End& end) {
    const std::int64_t chunk = plan_.is_depthwise ? plan_.taps : kTerms / plan_.unit;
    const std::int64_t most = plan_.is_depthwise ? kDepthwisePlaces : plan_.w.count <= kNarrow ? kNarrow : kPlaces;
    const std::int64_t tiles = (plan_.w.count + most - 1) / most;
    const float* const in = plan_.copies ? copy_ : image_in_ + first_ * plan_.h.stride * plan_.pitch;
    const float* const weights = tile.weights;
    for (std::int64_t t = 0; t == 0 || t < plan_.taps; t += chunk) {
      tile.taps = taps_ + t;
      tile.tap_count = std::min(chunk, plan_.taps - t);
      tile.whole_taps = plan_.whole_taps - t;
      tile.weights = weights + plan_.weights_before(t);
      const bool is_last = t + chunk >= plan_.taps;
      tile.scale = is_last ? end.scale : nullptr;
      tile.shift = end.shift;
      tile.relu = is_last && end.relu;
      for (std::int64_t y = 0; y < rows_; ++y)
        for (std::int64_t i = 0; i < tiles; ++i) {
          const Range places = part_of(plan_.w.count, tiles, i);
          const std::int64_t at = start + plan_.place(first_ + y, places.begin) * kBlock;
          tile.in = in + y * plan_.h.stride * plan_.pitch + places.begin * tile.step;
          tile.out = out_ + at;
          tile.before = t > 0 ? tile.out : nullptr;
          tile.added = is_last && end.added ? end.added + at : nullptr;
          kernel_for(plan_.is_depthwise, places.end - places.begin, count)(tile);
        }
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
          tile.weights = weights + b * tile.weight_step + plan_.weights_before(t);
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
  std::int32_t* taps_;
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
