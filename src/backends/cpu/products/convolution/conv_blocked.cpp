#include "backends/cpu/products/convolution/conv_blocked.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "backends/cpu/primitives/split.h"
#include "backends/cpu/products/convolution/conv_packed.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tenon::cpu {
namespace {

constexpr std::int64_t kBlock = kChannelBlock;
constexpr std::int64_t kHeader = 16;               // floats before the packed weights; the first is 1 if all weights are finite
constexpr std::int64_t kTerms = 384;               // that are summed at a time
constexpr std::int64_t kPlaces = 14;               // of a tile
constexpr std::int64_t kNarrow = 9;                // rows of at most this many places take three blocks of channels at a time
constexpr std::int64_t kBandElements = 96 * 1024;  // of the input: what a band reads stays in the L2 cache

}  // namespace

bool can_block(const Shape& weight, const ConvAttr& attr, bool plain) {
  if (weight.rank() != 4 || weight.elements() == 0 || weight[0] % kBlock != 0) return false;
  if (is_depthwise(weight, attr)) return !plain;
  if (weight[0] / attr.groups % kBlock != 0) return false;
  return plain ? attr.groups == 1 : weight[1] % kBlock == 0;
}

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

std::int64_t blocked_weight_elements(const Shape& weight) { return kHeader + weight.elements(); }

// [block of output channels][block of input channels][tap][input channel][output channel]; depthwise: [block][tap][channel].
void pack_blocked_weights(const float* weight, const BlockedConv& conv, float* packed) {
  const Shape& shape = conv.weight;
  const std::int64_t window = shape[2] * shape[3], unit = conv.is_plain || shape[1] == 1 ? 1 : kBlock;
  std::fill_n(packed, kHeader, 0.0f);
  packed[0] = is_finite(weight, shape.elements()) ? 1.0f : 0.0f;
  float* to = packed + kHeader;
  for (std::int64_t o = 0; o < shape[0]; o += kBlock)
    for (std::int64_t c = 0; c < shape[1]; c += unit)
      for (std::int64_t t = 0; t < window; ++t)
        for (std::int64_t i = c; i < c + unit; ++i)
          for (std::int64_t lane = 0; lane < kBlock; ++lane) *to++ = weight[((o + lane) * shape[1] + i) * window + t];
}

#if defined(__x86_64__)
namespace {

// One tile: neighbouring places of a row, and Blocks blocks of channels.
struct Tile {
  const float* in;                     // the first place
  std::int64_t step;                   // from a place to the next, in elements
  const std::int32_t* taps;            // offsets
  std::int64_t tap_count, unit;        // each tap reads |unit| neighbouring elements
  const float* weights;                // of the first block
  std::int64_t weight_step, out_step;  // from a block to the next
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
          _mm512_add_ps(sum[p][b], _mm512_loadu_ps(tile.before + place + p * kBlock));
    if (tile.scale) {
      const __m512 scale = _mm512_loadu_ps(tile.scale + b * kBlock), shift = _mm512_loadu_ps(tile.shift + b * kBlock);
      _Pragma("GCC unroll 16") for (int p = 0; p < Places; ++p) sum[p][b] = _mm512_fmadd_ps(sum[p][b], scale, shift);
    }
    if (tile.added)
      _Pragma("GCC unroll 16") for (int p = 0; p < Places; ++p) sum[p][b] =
          _mm512_add_ps(sum[p][b], _mm512_loadu_ps(tile.added + place + p * kBlock));
    // The second operand is the result if one is NaN.
    if (tile.relu)
      _Pragma("GCC unroll 16") for (int p = 0; p < Places; ++p) sum[p][b] = _mm512_max_ps(_mm512_setzero_ps(), sum[p][b]);
    _Pragma("GCC unroll 16") for (int p = 0; p < Places; ++p) _mm512_storeu_ps(tile.out + place + p * kBlock, sum[p][b]);
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
  const std::int64_t step = tile.step, unit = tile.unit, weight_step = tile.weight_step;
  for (std::int64_t t = 0; t < tile.tap_count; ++t) {
    const float* base[kBases];
    base[0] = tile.in + tile.taps[t];
    _Pragma("GCC unroll 8") for (int b = 1; b < kBases; ++b) base[b] = base[b - 1] + 3 * step;
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

struct BlockedPlan {
  std::int64_t images, groups, window;
  std::int64_t in_blocks, out_blocks;  // of one group; in_blocks: channels if the input is plain
  bool is_depthwise, copies;           // copies: a band of the input with its padding
  std::int64_t unit;                   // elements of a place that are neighbours
  std::int64_t in_h, in_w, out_h, out_w, stride_h, stride_w, dilation_h, dilation_w, pad_h, pad_w, size_w;
  std::int64_t pitch, plane;  // from a row to the next, from a block of channels to the next, in what kernels read
  std::int64_t band, bands, parts = 1;
  std::int64_t taps;

  BlockedPlan(const BlockedConv& conv, const Shape& x, const Shape& out, int threads)
      : images(x[0]),
        groups(conv.attr.groups),
        window(conv.weight[2] * conv.weight[3]),
        is_depthwise(cpu::is_depthwise(conv.weight, conv.attr)),
        unit(conv.is_plain ? 1 : kBlock),
        in_h(x[2]),
        in_w(x[3]),
        out_h(out[2]),
        out_w(out[3]),
        stride_h(conv.attr.stride[0]),
        stride_w(conv.attr.stride[1]),
        dilation_h(conv.attr.dilation[0]),
        dilation_w(conv.attr.dilation[1]),
        pad_h(conv.attr.pad_low[0]),
        pad_w(conv.attr.pad_low[1]),
        size_w(conv.weight[3]) {
    if (is_depthwise) groups = conv.weight[0] / kBlock;
    in_blocks = is_depthwise ? 1 : conv.weight[1] / unit;
    out_blocks = is_depthwise ? 1 : conv.weight[0] / groups / kBlock;
    taps = in_blocks * window;
    const std::int64_t size_h = conv.weight[2];
    copies = pad_h != 0 || pad_w != 0 || conv.attr.pad_high[0] != 0 || conv.attr.pad_high[1] != 0;
    if (!copies && window == 1 && stride_h == 1 && stride_w == 1) merge_rows(threads);
    const std::int64_t reach_w = (out_w - 1) * stride_w + (size_w - 1) * dilation_w + 1;
    const std::int64_t halo = (size_h - 1) * dilation_h + 1 - stride_h;  // rows of a band beside those of its places
    pitch = (copies ? reach_w : in_w) * unit;
    const std::int64_t limit = is_depthwise ? kBandElements / 16 : kBandElements;
    const std::int64_t rows = limit / std::max<std::int64_t>(1, in_blocks * pitch);
    band = std::clamp<std::int64_t>((rows - halo) / stride_h, 1, out_h);
    if (threads > 1) {
      const std::int64_t tasks = std::max<std::int64_t>(1, 2 * threads / (images * groups));
      band = std::min(band, std::max<std::int64_t>(1, (out_h + tasks - 1) / tasks));
    }
    bands = (out_h + band - 1) / band;
    band = (out_h + bands - 1) / bands;
    bands = (out_h + band - 1) / band;
    if (threads > 1 && images * groups * bands < 2 * threads)
      parts = std::clamp<std::int64_t>(2 * threads / (images * groups * bands), 1, (out_blocks + 1) / 2);
    plane = copies ? ((band - 1) * stride_h + (size_h - 1) * dilation_h + 1) * pitch : in_h * pitch;
  }

  // 1x1: several rows become one, as many as stay in the cache and leave enough for the threads.
  void merge_rows(int threads) {
    std::int64_t most = std::max<std::int64_t>(1, kBandElements / std::max<std::int64_t>(1, in_blocks * unit * in_w));
    if (threads > 1) most = std::min(most, std::max<std::int64_t>(1, out_h * images * groups / (2 * threads)));
    std::int64_t rows = std::min(most, out_h);
    while (out_h % rows != 0) --rows;
    in_w *= rows;
    out_w *= rows;
    in_h /= rows;
    out_h /= rows;
  }

  std::int64_t tasks() const { return images * groups * bands * parts; }
  std::size_t tap_bytes() const { return (static_cast<std::size_t>(taps) * sizeof(std::int32_t) + 63) / 64 * 64; }
  std::size_t worker_bytes() const {
    return tap_bytes() + (copies ? (static_cast<std::size_t>(in_blocks * plane) * sizeof(float) + 63) / 64 * 64 : 0);
  }
  std::int64_t offset(std::int64_t tap) const {
    const std::int64_t t = tap % window;
    return tap / window * plane + t / size_w * dilation_h * pitch + t % size_w * dilation_w * unit;
  }
};

class BlockedRunner {
 public:
  BlockedRunner(const BlockedPlan& plan, const float* x, const float* packed, float* out, const Finish& finish,
                std::byte* scratch)
      : plan_(plan),
        x_(x),
        weights_(packed + kHeader),
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
    rows_ = std::min(plan_.band, plan_.out_h - first_);
    const std::int64_t image_plane = plan_.in_h * plan_.in_w * plan_.unit;
    image_in_ = x_ + (image_ * plan_.groups + group) * plan_.in_blocks * image_plane;
    if (plan_.copies && is_finite_) copy_band();
    const std::int64_t most = plan_.out_w <= kNarrow ? 3 : 2;
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

  End end_of(std::int64_t first_block) const {
    static constexpr std::array<float, 3 * kBlock> kZeros{};
    static constexpr std::array<float, 3 * kBlock> kOnes = [] {
      std::array<float, 3 * kBlock> ones{};
      for (float& one : ones) one = 1;
      return ones;
    }();
    End end;
    end.rest = finish_;
    const TileEnd tile = end_of_tile(end.rest, first_block * kBlock);
    if (tile.scale || tile.shift) {
      end.scale = tile.scale ? tile.scale : kOnes.data();
      end.shift = tile.shift ? tile.shift : kZeros.data();
    }
    end.relu = tile.relu;
    if (end.relu || end.rest.is_empty()) return end;
    const auto& steps = end.rest.epilogue->steps;
    const EpilogueStep& step = steps[end.rest.first_step];
    if (step.op != ElementwiseOp::Add || step.operand != EpilogueStep::Operand::full) return end;
    end.added = end.rest.operands[step.index];
    ++end.rest.first_step;
    if (end.rest.first_step < steps.size() && steps[end.rest.first_step].op == ElementwiseOp::Relu) {
      end.relu = true;
      ++end.rest.first_step;
    }
    return end;
  }

  void run_blocks(std::int64_t first_block, std::int64_t count) {
    const std::int64_t total_blocks = plan_.groups * plan_.out_blocks, places = plan_.out_h * plan_.out_w;
    const std::int64_t row = image_ * total_blocks + first_block, place = first_ * plan_.out_w;
    const End end = end_of(first_block);
    Tile tile{};
    tile.step = plan_.stride_w * plan_.unit;
    tile.unit = plan_.unit;
    tile.weight_step = plan_.taps * (plan_.is_depthwise ? 1 : plan_.unit) * kBlock;
    tile.out_step = places * kBlock;
    tile.weights = weights_ + first_block * tile.weight_step;
    const std::int64_t start = (row * places + place) * kBlock;
    if (is_finite_ || !plan_.copies)
      run_chunks(tile, count, start, end);
    else
      run_carefully(tile, count, start, end);
    if (end.rest.is_empty()) return;
    const std::int64_t n = rows_ * plan_.out_w;
    constexpr std::int64_t kPiece = 128;  // places: a few kilobytes that stay in the L1 cache between the steps
    for (std::int64_t b = 0; b < count; ++b)
      for (std::int64_t p = 0; p < n; p += kPiece) {
        float* const values = out_ + start + b * tile.out_step + p * kBlock;
        end.rest.apply(values, values, row + b, (place + p) * kBlock, std::min(kPiece, n - p) * kBlock);
      }
  }

  void run_chunks(Tile tile, std::int64_t count, std::int64_t start, const End& end) {
    const std::int64_t chunk = plan_.is_depthwise ? plan_.taps : kTerms / plan_.unit;
    const std::int64_t most = plan_.is_depthwise ? kDepthwisePlaces : plan_.out_w <= kNarrow ? kNarrow : kPlaces;
    const std::int64_t tiles = (plan_.out_w + most - 1) / most;
    const float* const in = plan_.copies ? copy_ : image_in_ + first_ * plan_.stride_h * plan_.pitch;
    for (std::int64_t t = 0; t < plan_.taps; t += chunk) {
      tile.taps = taps_ + t;
      tile.tap_count = std::min(chunk, plan_.taps - t);
      const bool is_last = t + chunk >= plan_.taps;
      tile.scale = is_last ? end.scale : nullptr;
      tile.shift = end.shift;
      tile.relu = is_last && end.relu;
      for (std::int64_t y = 0; y < rows_; ++y)
        for (std::int64_t i = 0; i < tiles; ++i) {
          const Range places = part_of(plan_.out_w, tiles, i);
          const std::int64_t at = start + (y * plan_.out_w + places.begin) * kBlock;
          tile.in = in + y * plan_.stride_h * plan_.pitch + places.begin * tile.step;
          tile.out = out_ + at;
          tile.before = t > 0 ? tile.out : nullptr;
          tile.added = is_last && end.added ? end.added + at : nullptr;
          kernel_for(plan_.is_depthwise, places.end - places.begin, count)(tile);
        }
      tile.weights += tile.tap_count * (plan_.is_depthwise ? 1 : plan_.unit) * kBlock;
    }
  }

  // Infinite weights: a tap that is outside the image must not be multiplied with a zero. One tap at a time.
  void run_carefully(Tile tile, std::int64_t count, std::int64_t start, const End& end) {
    const float* const weights = tile.weights;
    const Kernel kernel = kernel_for(plan_.is_depthwise, 1, 1);
    const std::int64_t plane = plan_.in_h * plan_.in_w * plan_.unit;
    tile.taps = taps_;  // the first is 0
    for (std::int64_t b = 0; b < count; ++b)
      for (std::int64_t place = 0; place < rows_ * plan_.out_w; ++place) {
        const std::int64_t y = (first_ + place / plan_.out_w) * plan_.stride_h - plan_.pad_h;
        const std::int64_t x = place % plan_.out_w * plan_.stride_w - plan_.pad_w;
        const std::int64_t at = start + b * tile.out_step + place * kBlock;
        tile.out = out_ + at;
        tile.before = tile.scale = tile.added = nullptr;
        tile.tap_count = 0;
        tile.relu = false;
        kernel(tile);
        tile.tap_count = 1;
        tile.before = tile.out;
        for (std::int64_t t = 0; t < plan_.taps; ++t) {
          const std::int64_t tap = t % plan_.window;
          const std::int64_t from_y = y + tap / plan_.size_w * plan_.dilation_h,
                             from_x = x + tap % plan_.size_w * plan_.dilation_w;
          if (from_y < 0 || from_y >= plan_.in_h || from_x < 0 || from_x >= plan_.in_w) continue;
          tile.in = image_in_ + t / plan_.window * plane + (from_y * plan_.in_w + from_x) * plan_.unit;
          tile.weights = weights + b * tile.weight_step + t * (plan_.is_depthwise ? 1 : plan_.unit) * kBlock;
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
    const std::int64_t rows = (rows_ - 1) * plan_.stride_h + (plan_.window / plan_.size_w - 1) * plan_.dilation_h + 1;
    const std::int64_t left = std::min(plan_.pad_w * plan_.unit, plan_.pitch);
    const std::int64_t middle = std::clamp<std::int64_t>(plan_.pitch - left, 0, row_elements);
    for (std::int64_t c = 0; c < plan_.in_blocks; ++c)
      for (std::int64_t r = 0; r < rows; ++r) {
        const std::int64_t y = first_ * plan_.stride_h - plan_.pad_h + r;
        float* const to = copy_ + c * plan_.plane + r * plan_.pitch;
        if (y < 0 || y >= plan_.in_h) {
          std::fill_n(to, plan_.pitch, 0.0f);
          continue;
        }
        std::fill_n(to, left, 0.0f);
        std::memcpy(to + left, image_in_ + c * plane + y * row_elements, static_cast<std::size_t>(middle) * sizeof(float));
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
};

}  // namespace

bool has_blocked_conv() {
  static const bool has = __builtin_cpu_supports("avx512f");
  return has;
}

std::size_t blocked_conv_scratch_bytes(const ThreadPool& pool, const BlockedConv& conv, const Shape& x, const Shape& out) {
  if (out.elements() == 0) return 0;
  return BlockedPlan(conv, x, out, pool.threads()).worker_bytes() * static_cast<std::size_t>(pool.threads());
}

void blocked_conv(ThreadPool& pool, const BlockedConv& conv, const View& x, const float* packed, const Target& out,
                  const Finish& finish, std::span<std::byte> scratch) {
  if (out.shape.elements() == 0) return;
  const BlockedPlan plan(conv, x.shape, out.shape, pool.threads());
  const std::int64_t tasks = plan.tasks();
  pool.for_each(std::min<std::int64_t>(tasks, 4 * pool.threads()), [&](std::int64_t part, int worker) {
    const Range range = part_of(tasks, std::min<std::int64_t>(tasks, 4 * pool.threads()), part);
    std::byte* const own = scratch.data() + plan.worker_bytes() * static_cast<std::size_t>(worker);
    BlockedRunner runner(plan, static_cast<const float*>(x.data), packed, static_cast<float*>(out.data), finish, own);
    for (std::int64_t task = range.begin; task < range.end; ++task) runner.run(task);
  });
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
