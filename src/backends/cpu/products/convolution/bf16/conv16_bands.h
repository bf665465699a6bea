// The bands of a direct convolution of bfloat16 images, for any unit that multiplies one tile.
//
// Planes hold pairs of neighbouring channels, a word for each place. A step multiplies |pairs| pairs at one tap; weights are
// packed [block of rows][step][row][pair][2]. A unit has
//   kPairs                                         pairs of a step, at most
//   rows_for(channels)                             rows of a block of weights
//   Use(pairs)                                     held while tiles are multiplied
//   tile(weights, rows, pairs, places, pair_stride, offsets, steps, sums)
// where sums ([rows][kTileCols]) of step s are those of 16 words of each pair from places[0] + offsets[s] on, and of 16 from
// places[1] + offsets[s] on, pairs pair_stride words apart. The test of the AMX unit runs this with tiles emulated in plain C++.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

#include "backends/cpu/primitives/matmul/bf16/gemm_bf16.h"
#include "backends/cpu/primitives/split.h"
#include "backends/cpu/products/convolution/planes.h"
#include "backends/cpu/products/convolution/tile_pieces.h"

namespace tenon::cpu {

using Bf16Pair = std::uint32_t;

// The planes (planes.h) of channels |even| and |odd| of an image; no |odd|: zeros. The image is dense.
void fill_pair_planes(const Planes& planes, const Bf16Bits* even, const Bf16Bits* odd, std::int64_t slice, std::int64_t count,
                      std::int64_t first, std::int64_t rows, Bf16Pair* words);

// Adds a tile to the result, or stores it.
void store_tile_rows(const float* tile, std::int64_t rows, const Piece* pieces, int count, float* c, std::int64_t ldc, bool add);

template <class Unit>
class Conv16Plan {
 public:
  Conv16Plan(const View& x, const Shape& weight, const ConvAttr& attr, const Shape& out, int threads)
      : images_(x.shape[0]),
        groups_(attr.groups),
        in_channels_(weight[1]),
        out_channels_(weight[0] / attr.groups),
        planes_(sliding_of(x, weight, attr, out), 1),
        image_strides_{x.strides[0], x.strides[1]} {
    const Sliding& at = planes_.at;
    const std::int64_t all = (in_channels_ + 1) / 2, blocks = (all + Unit::kPairs - 1) / Unit::kPairs;
    pairs_ = (all + blocks - 1) / blocks;
    steps_ = blocks * at.window();
    rows_ = Unit::rows_for(out_channels_);
    row_blocks_ = (out_channels_ + rows_ - 1) / rows_;
    // The planes of all channels of a band take about half of an L2 cache; there are enough bands to go round.
    constexpr std::int64_t kBandWords = 96 * 1024;
    const std::int64_t row_words = pairs_ * blocks * planes_.pitch * at.size[0] * at.stride[1] * at.stride[2];
    const std::int64_t halo = planes_.rows_for(0);
    std::int64_t band = std::clamp<std::int64_t>(kBandWords / row_words - halo, std::min<std::int64_t>(2, at.out[1]), at.out[1]);
    std::int64_t tasks = images_ * groups_ * at.out[0];
    const std::int64_t wanted = std::int64_t{2} * threads;
    if (threads > 1 && tasks < wanted)
      parts_ = std::clamp<std::int64_t>(std::min((wanted + tasks - 1) / tasks, out_channels_ / kPartChannels), 1, row_blocks_);
    tasks *= parts_;
    if (threads > 1 && tasks < wanted)
      band = std::clamp<std::int64_t>(at.out[1] * tasks / wanted, std::min<std::int64_t>(2, band), band);
    bands_ = (at.out[1] + band - 1) / band;
    planes_.set_band((at.out[1] + bands_ - 1) / bands_);
    bands_ = (at.out[1] + planes_.band - 1) / planes_.band;
    if (bands_ > 1 || !planes_.has_slices()) return;
    const std::int64_t whole = kBandWords / (row_words / at.size[0] * planes_.rows_for(at.out[1]));
    std::int64_t together = std::clamp<std::int64_t>((whole - at.size[0]) / at.stride[0] + 1, 1, at.out[0]);
    if (threads > 1) together = std::min(together, std::max<std::int64_t>(1, tasks / wanted));
    planes_.set_band(planes_.band, together);
  }

  const Planes& planes() const { return planes_; }
  std::int64_t plane_words() const { return planes_.elements * pairs_ * (steps_ / planes_.at.window()); }
  std::size_t weight_bytes() const {
    return static_cast<std::size_t>(groups_ * row_blocks_ * steps_ * rows_ * pairs_) * sizeof(Bf16Pair);
  }
  std::size_t offset_bytes() const { return (static_cast<std::size_t>(steps_) * sizeof(std::int32_t) + 63) / 64 * 64; }
  std::size_t worker_bytes() const { return (static_cast<std::size_t>(plane_words()) * sizeof(Bf16Pair) + 63) / 64 * 64; }
  std::size_t scratch_bytes(int threads) const {
    return (weight_bytes() + 63) / 64 * 64 + offset_bytes() + worker_bytes() * static_cast<std::size_t>(threads);
  }

  void run(ThreadPool& pool, const Bf16Bits* x, const Bf16Bits* weight, float* out, std::byte* scratch) const {
    auto* const packed = reinterpret_cast<Bf16Bits*>(scratch);
    scratch += (weight_bytes() + 63) / 64 * 64;
    auto* const offsets = reinterpret_cast<std::int32_t*>(scratch);
    scratch += offset_bytes();
    const std::int64_t window = planes_.at.window();
    for (std::int64_t s = 0; s < steps_; ++s)
      offsets[s] = static_cast<std::int32_t>(s / window * pairs_ * planes_.elements + planes_.offset(s % window));
    for_ranges(pool, groups_ * row_blocks_, steps_ * rows_ * pairs_ * 2, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t block = begin; block < end; ++block) pack(weight, block, packed);
    });
    pool.for_each(images_ * groups_ * slice_tasks() * bands_ * parts_, [&](std::int64_t task, int worker) {
      band(task, x, packed, offsets, out,
           reinterpret_cast<Bf16Pair*>(scratch + worker_bytes() * static_cast<std::size_t>(worker)));
    });
  }

 private:
  // Steps whose sums are formed at a time: of about a thousand terms.
  static constexpr std::int64_t kSteps = std::max<std::int64_t>(1, 512 / Unit::kPairs);

  // A part of the channels has at least so many that laying out planes for each part costs little.
  static constexpr std::int64_t kPartChannels = 64;

  void pack(const Bf16Bits* weight, std::int64_t number, Bf16Bits* packed) const {
    const std::int64_t window = planes_.at.window(), depth = in_channels_ * window, block = number % row_blocks_;
    Bf16Bits* to = packed + number * steps_ * rows_ * pairs_ * 2;
    const Bf16Bits* const from = weight + (number / row_blocks_ * out_channels_ + block * rows_) * depth;
    const std::int64_t rows = std::min(rows_, out_channels_ - block * rows_);
    std::memset(to, 0, static_cast<std::size_t>(steps_ * rows_ * pairs_) * sizeof(Bf16Pair));
    if (pairs_ == 1) {
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t first = 0; first < in_channels_; first += 2) {
          const Bf16Bits *const even = from + r * depth + first * window, *const odd = even + window;
          Bf16Bits* pair = to + (first / 2 * window * rows_ + r) * 2;
          const bool has_odd = first + 1 < in_channels_;
          for (std::int64_t tap = 0; tap < window; ++tap, pair += 2 * rows_) {
            pair[0] = even[tap];
            if (has_odd) pair[1] = odd[tap];
          }
        }
      return;
    }
    for (std::int64_t first = 0; first < in_channels_; first += 2 * pairs_)
      for (std::int64_t tap = 0; tap < window; ++tap)
        for (std::int64_t r = 0; r < rows_; ++r, to += 2 * pairs_)
          for (std::int64_t c = 0; r < rows && c < std::min(2 * pairs_, in_channels_ - first); ++c)
            to[c] = from[r * depth + (first + c) * window + tap];
  }

  std::int64_t slice_tasks() const { return (planes_.at.out[0] + planes_.slices - 1) / planes_.slices; }

  void band(std::int64_t of_part, const Bf16Bits* x, const Bf16Bits* packed, const std::int32_t* offsets, float* out,
            Bf16Pair* words) const {
    const Sliding& at = planes_.at;
    const std::int64_t task = of_part / parts_;
    const Range blocks = part_of(row_blocks_, parts_, of_part % parts_);
    const std::int64_t of_slices = slice_tasks(), number = task % bands_, slice = task / bands_ % of_slices * planes_.slices,
                       slices = std::min(planes_.slices, at.out[0] - slice), group = task / bands_ / of_slices % groups_,
                       image = task / bands_ / of_slices / groups_;
    const std::int64_t first = number * planes_.band, rows = std::min(planes_.band, at.out[1] - first);
    const Bf16Bits* const from = x + image * image_strides_[0] + group * in_channels_ * image_strides_[1];
    const std::int64_t all = plane_words() / planes_.elements;
    for (std::int64_t pair = 0; pair < all; ++pair) {
      Bf16Pair* const to = words + pair * planes_.elements;
      const Bf16Bits* const even = from + 2 * pair * image_strides_[1];
      if (2 * pair >= in_channels_)
        std::fill_n(to, planes_.elements, Bf16Pair{0});
      else
        fill_pair_planes(planes_, even, 2 * pair + 1 < in_channels_ ? even + image_strides_[1] : nullptr, slice, slices, first,
                         rows, to);
    }
    const std::int64_t places = at.places();
    float* const to = out + (image * groups_ + group) * out_channels_ * places + (slice * at.out[1] + first) * at.out[2];
    const typename Unit::Use use(pairs_);
    for (std::int64_t s = 0; s < steps_; s += kSteps)
      tiles(packed + group * row_blocks_ * steps_ * rows_ * pairs_ * 2, s, std::min(kSteps, steps_ - s), words, offsets,
            TileWalk(planes_, rows, slices), blocks, to);
  }

  // All tiles of the band, for steps [s, s + count).
  void tiles(const Bf16Bits* weights, std::int64_t s, std::int64_t count, const Bf16Pair* words, const std::int32_t* offsets,
             const TileWalk& walk, const Range& blocks, float* to) const {
    const std::int64_t places = planes_.at.places();
    alignas(64) float sums[32 * kTileCols];
    Piece pieces[kMostPieces];
    const auto one = [&](std::int64_t v, int parts, std::int64_t block) {
      const Bf16Pair* const from[] = {words + walk.place(v), words + walk.second_place(v)};
      const Bf16Bits* const own = weights + (block * steps_ + s) * rows_ * pairs_ * 2;
      Unit::tile(own, rows_, pairs_, from, planes_.elements, offsets + s, count, sums);
      store_tile_rows(sums, std::min(rows_, out_channels_ - block * rows_), pieces, parts, to + block * rows_ * places, places,
                      s > 0);
    };
    // The larger operand is read once.
    const std::int64_t tiles = (walk.vectors() + 1) / 2, count_of_blocks = blocks.end - blocks.begin;
    const bool by_blocks = count_of_blocks * rows_ * 2 > walk.vectors() * 16;
    int parts = 0;
    for (std::int64_t i = 0, last = -1; i < tiles * count_of_blocks; ++i) {
      const std::int64_t v = 2 * (by_blocks ? i % tiles : i / count_of_blocks);
      if (v != last) parts = walk.pieces(last = v, pieces);
      if (parts > 0) one(v, parts, blocks.begin + (by_blocks ? i / tiles : i % count_of_blocks));
    }
  }

  std::int64_t images_, groups_, in_channels_, out_channels_;  // channels of one group
  Planes planes_;
  std::int64_t image_strides_[2];
  std::int64_t pairs_ = 1, steps_ = 0, rows_ = 1, row_blocks_ = 0, bands_ = 0;
  std::int64_t parts_ = 1;  // of the channels of a result, where there are too few bands for the threads
};

}  // namespace tenon::cpu
