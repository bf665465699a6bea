#include "backends/cpu/products/convolution/conv_direct.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/products/convolution/planes.h"
#include "backends/cpu/products/convolution/tile_pieces.h"
#include "backends/cpu/products/gemm_packed.h"

#if defined(__x86_64__)
#include <immintrin.h>

namespace tenon::cpu {
namespace {

constexpr std::int64_t kLanes = 16, kRows = 12;  // AVX-512 only
// The planes of all channels of a band: about half of an L2 cache.
constexpr std::int64_t kBandElements = 160 * 1024;
// A part of the channels has at least so many that laying out planes for each part costs little.
constexpr std::int64_t kPartChannels = 60;

// Rows x 32 sums into |tile|: two vectors of places, at |left_place| and |right_place|; step p reads |offsets|[p] further on.
using Micro = void (*)(const float* weights, const float* left_place, const float* right_place, const std::int32_t* offsets,
                       std::int64_t depth, float* tile);

template <int Rows>
[[gnu::target("avx512f")]] void micro(const float* weights, const float* left_place, const float* right_place,
                                      const std::int32_t* offsets, std::int64_t depth, float* tile) {
  __m512 sum[Rows][2];
  _Pragma("GCC unroll 16") for (int r = 0; r < Rows; ++r) sum[r][0] = sum[r][1] = _mm512_setzero_ps();
  for (std::int64_t p = 0; p < depth; ++p, weights += kRows) {
    const std::int64_t offset = offsets[p];
    const __m512 left = _mm512_loadu_ps(left_place + offset), right = _mm512_loadu_ps(right_place + offset);
    _Pragma("GCC unroll 16") for (int r = 0; r < Rows; ++r) {
      const __m512 factor = _mm512_set1_ps(weights[r]);
      sum[r][0] = _mm512_fmadd_ps(left, factor, sum[r][0]);
      sum[r][1] = _mm512_fmadd_ps(right, factor, sum[r][1]);
    }
  }
  _Pragma("GCC unroll 16") for (int r = 0; r < Rows; ++r) {
    _mm512_storeu_ps(tile + r * kTileCols, sum[r][0]);
    _mm512_storeu_ps(tile + r * kTileCols + kLanes, sum[r][1]);
  }
}

Micro micro_for(std::int64_t rows) {
  switch (rows) {
    case 1: return micro<1>;
    case 2: return micro<2>;
    case 3: return micro<3>;
    case 4: return micro<4>;
    case 5: return micro<5>;
    case 6: return micro<6>;
    case 7: return micro<7>;
    case 8: return micro<8>;
    case 9: return micro<9>;
    case 10: return micro<10>;
    case 11: return micro<11>;
    default: return micro<12>;
  }
}

struct DirectPlan {
  std::int64_t images, groups, in_channels, out_channels, depth;
  Planes planes;
  std::int64_t bands;
  std::int64_t parts = 1;  // of the channels of a result, where there are too few bands for the threads

  DirectPlan(const View& x, const Shape& weight, const ConvAttr& attr, const Shape& out, int threads)
      : images(x.shape[0]),
        groups(attr.groups),
        in_channels(weight[1]),
        out_channels(weight[0] / attr.groups),
        depth(weight.elements() / weight[0]),
        planes(sliding_of(x, weight, attr, out), 1) {
    const Sliding& at = planes.at;
    const std::int64_t halo = (at.size[1] - 1) * at.dilation[1] / at.stride[1];
    const std::int64_t row_elements = std::max<std::int64_t>(1, in_channels * planes.pitch * at.stride[1] * at.stride[2]);
    const std::int64_t rows = kBandElements / (row_elements * at.size[0]);
    std::int64_t band = std::clamp<std::int64_t>(rows - halo, 2, at.out[1]);
    std::int64_t tasks = images * groups * at.out[0];
    const std::int64_t wanted = std::int64_t{2} * threads;
    if (threads > 1 && tasks < wanted)
      parts = std::max<std::int64_t>(1, std::min((wanted + tasks - 1) / tasks, out_channels / kPartChannels));
    tasks *= parts;
    if (threads > 1 && tasks < wanted) band = std::min(band, std::max<std::int64_t>(2, at.out[1] * tasks / wanted));
    bands = (at.out[1] + band - 1) / band;
    planes.set_band((at.out[1] + bands - 1) / bands);
    bands = (at.out[1] + planes.band - 1) / planes.band;
    if (bands > 1 || !planes.has_slices()) return;
    const std::int64_t whole = kBandElements / (row_elements * planes.rows_for(at.out[1]));
    std::int64_t together = std::clamp<std::int64_t>((whole - at.size[0]) / at.stride[0] + 1, 1, at.out[0]);
    if (threads > 1) together = std::min(together, std::max<std::int64_t>(1, tasks / wanted));
    planes.set_band(planes.band, together);
  }

  std::int64_t slice_tasks() const { return (planes.at.out[0] + planes.slices - 1) / planes.slices; }

  std::size_t offset_bytes() const { return (static_cast<std::size_t>(depth) * sizeof(std::int32_t) + 63) / 64 * 64; }
  std::size_t worker_bytes() const {
    return offset_bytes() + static_cast<std::size_t>(planes.elements * in_channels) * sizeof(float);
  }
};

class BandRunner {
 public:
  BandRunner(const DirectPlan& plan, const View& x, const float* packed, float* out, const Finish& finish, std::byte* scratch)
      : plan_(plan),
        at_(plan.planes.at),
        x_(x),
        packed_(packed),
        out_(out),
        finish_(finish),
        offsets_(reinterpret_cast<std::int32_t*>(scratch)),
        planes_(reinterpret_cast<float*>(scratch + plan.offset_bytes())) {
    const std::int64_t window = at_.window();
    for (std::int64_t p = 0; p < plan.depth; ++p)
      offsets_[p] = static_cast<std::int32_t>(p / window * plan.planes.elements + plan.planes.offset(p % window));
  }

  void run(std::int64_t of_part) {
    const std::int64_t task = of_part / plan_.parts;
    const Range channels = part_of(plan_.out_channels, plan_.parts, of_part % plan_.parts, kRows);
    const std::int64_t of_slices = plan_.slice_tasks(), band = task % plan_.bands,
                       slice = task / plan_.bands % of_slices * plan_.planes.slices,
                       slices = std::min(plan_.planes.slices, at_.out[0] - slice),
                       group = task / plan_.bands / of_slices % plan_.groups,
                       image = task / plan_.bands / of_slices / plan_.groups;
    const std::int64_t first = band * plan_.planes.band, rows = std::min(plan_.planes.band, at_.out[1] - first);
    const auto* const from =
        static_cast<const float*>(x_.data) + image * x_.strides[0] + group * plan_.in_channels * x_.strides[1];
    for (std::int64_t c = 0; c < plan_.in_channels; ++c)
      plan_.planes.fill(from + c * x_.strides[1], slice, slices, first, rows, planes_ + c * plan_.planes.elements);
    const std::int64_t places = at_.places(), first_channel = group * plan_.out_channels;
    const std::int64_t first_row = image * plan_.groups * plan_.out_channels + first_channel;
    const std::int64_t first_place = (slice * at_.out[1] + first) * at_.out[2];
    float* const to = out_ + first_row * places + first_place;
    const TileEnd end = end_of_tile(finish_, first_channel);
    const std::int64_t limit = packed_layout().depth;
    const float* const weights = packed_ + group * packed_left_elements(plan_.out_channels, plan_.depth);
    for (std::int64_t p = 0; p < plan_.depth; p += limit) {
      const std::int64_t depth = std::min(limit, plan_.depth - p);
      const bool is_last = p + depth == plan_.depth;
      tiles(weights, p, depth, TileWalk(plan_.planes, rows, slices), channels, to, places,
            is_last && !end.empty() ? &end : nullptr);
    }
    if (finish_.is_empty()) return;
    for (std::int64_t c = channels.begin; c < channels.end; ++c)
      finish_.apply(to + c * places, to + c * places, first_row + c, first_place,
                    ((slices - 1) * at_.out[1] + rows) * at_.out[2]);
  }

 private:
  // All tiles of the band, for steps [p, p + depth).
  void tiles(const float* weights, std::int64_t p, std::int64_t depth, const TileWalk& walk, const Range& channels, float* to,
             std::int64_t ldc, const TileEnd* end) {
    const float* const block = weights + p * ((plan_.out_channels + kRows - 1) / kRows * kRows);
    alignas(64) float tile[kRows * kTileCols];
    Piece pieces[kMostPieces];
    const auto one = [&](std::int64_t v, int count, std::int64_t i) {
      const std::int64_t n = std::min(kRows, plan_.out_channels - i);
      micro_for(n)(block + i * depth, planes_ + walk.place(v), planes_ + walk.second_place(v), offsets_ + p, depth, tile);
      store_rows(tile, n, pieces, count, to + i * ldc, ldc, p > 0, end, i);
    };
    // The larger operand is read once.
    const std::int64_t tiles = (walk.vectors() + 1) / 2, blocks = (channels.end - channels.begin + kRows - 1) / kRows;
    const bool by_rows = (channels.end - channels.begin) * 2 > walk.vectors() * kLanes;
    int count = 0;
    for (std::int64_t i = 0, last = -1; i < tiles * blocks; ++i) {
      const std::int64_t v = 2 * (by_rows ? i % tiles : i / blocks);
      if (v != last) count = walk.pieces(last = v, pieces);
      if (count > 0) one(v, count, channels.begin + (by_rows ? i / tiles : i % blocks) * kRows);
    }
  }

  const DirectPlan& plan_;
  const Sliding& at_;
  const View& x_;
  const float* packed_;
  float* out_;
  Finish finish_;
  std::int32_t* offsets_;
  float* planes_;
};

}  // namespace

bool has_direct_conv(const View& x, const Shape& weight, const ConvAttr& attr, const Shape& out) {
  static const bool has = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
  if (!has || !has_packed_gemm() || is_depthwise(weight, attr) || out.elements() == 0) return false;
  const Sliding at = sliding_of(x, weight, attr, out);
  if (at.window() == 1 || at.stride[1] > 2 || at.stride[2] > 2) return false;
  const Planes planes(at, 1);
  // Offsets of 32 bits.
  if (!are_tiles_better(planes, weight[0] / attr.groups, 1) || weight[1] > 4096 || planes.pitch > 1 << 16) return false;
  const DirectPlan plan(x, weight, attr, out, 1);
  return plan.planes.elements * plan.in_channels < (std::int64_t{1} << 24);
}

std::size_t direct_conv_scratch_bytes(const ThreadPool& pool, const View& x, const Shape& weight, const ConvAttr& attr,
                                      const Shape& out) {
  return DirectPlan(x, weight, attr, out, pool.threads()).worker_bytes() * static_cast<std::size_t>(pool.threads());
}

void direct_conv(ThreadPool& pool, const View& x, const float* packed, const Shape& weight, const ConvAttr& attr,
                 const Target& out, const Finish& finish, std::span<std::byte> scratch) {
  const DirectPlan plan(x, weight, attr, out.shape, pool.threads());
  pool.for_each(plan.images * plan.groups * plan.slice_tasks() * plan.bands * plan.parts, [&](std::int64_t task, int worker) {
    std::byte* const own = scratch.data() + plan.worker_bytes() * static_cast<std::size_t>(worker);
    BandRunner(plan, x, packed, static_cast<float*>(out.data), finish, own).run(task);
  });
}

}  // namespace tenon::cpu
#else

namespace tenon::cpu {

bool has_direct_conv(const View&, const Shape&, const ConvAttr&, const Shape&) { return false; }
std::size_t direct_conv_scratch_bytes(const ThreadPool&, const View&, const Shape&, const ConvAttr&, const Shape&) { return 0; }
void direct_conv(ThreadPool&, const View&, const float*, const Shape&, const ConvAttr&, const Target&, const Finish&,
                 std::span<std::byte>) {}

}  // namespace tenon::cpu
#endif
