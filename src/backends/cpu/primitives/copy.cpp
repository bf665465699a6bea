#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/primitives/primitives.h"
#include "backends/cpu/primitives/split.h"
#include "backends/cpu/primitives/typed.h"

namespace tenon::cpu {
namespace {

struct Axis {
  std::int64_t extent = 1, source = 0, target = 0;  // strides in elements
};

// The axes of a copy, ordered by the target's strides, outermost first; adjacent axes are merged if they form one run in both.
struct Nest {
  std::array<Axis, kMaxRank> axes{};
  int rank = 0;

  std::int64_t elements() const {
    std::int64_t product = 1;
    for (int i = 0; i < rank; ++i) product *= axes[static_cast<std::size_t>(i)].extent;
    return product;
  }
  Axis& operator[](int i) { return axes[static_cast<std::size_t>(i)]; }
  const Axis& operator[](int i) const { return axes[static_cast<std::size_t>(i)]; }

  Axis remove(int at) {
    const Axis axis = (*this)[at];
    for (int i = at; i + 1 < rank; ++i) (*this)[i] = (*this)[i + 1];
    --rank;
    return axis;
  }
  // Offsets of the point with row-major number |index|.
  std::pair<std::int64_t, std::int64_t> offsets(std::int64_t index) const {
    std::int64_t source = 0, target = 0;
    for (int i = rank - 1; i >= 0; --i) {
      const Axis& axis = (*this)[i];
      source += index % axis.extent * axis.source;
      target += index % axis.extent * axis.target;
      index /= axis.extent;
    }
    return {source, target};
  }
};

Nest make_nest(const Shape& shape, const Strides& source, const Strides& target) {
  Nest nest;
  for (int i = 0; i < shape.rank(); ++i) {
    const auto a = static_cast<std::size_t>(i);
    if (shape[i] != 1) nest[nest.rank++] = {shape[i], source[a], target[a]};
  }
  for (int i = 1; i < nest.rank; ++i)  // insertion keeps equal ones in order, and allocates nothing
    for (int j = i; j > 0 && std::abs(nest[j - 1].target) < std::abs(nest[j].target); --j) std::swap(nest[j - 1], nest[j]);
  Nest merged;
  for (int i = 0; i < nest.rank; ++i) {
    const Axis& inner = nest[i];
    if (merged.rank > 0) {
      Axis& outer = merged[merged.rank - 1];
      if (outer.source == inner.source * inner.extent && outer.target == inner.target * inner.extent) {
        outer = {outer.extent * inner.extent, inner.source, inner.target};
        continue;
      }
    }
    merged[merged.rank++] = inner;
  }
  return merged;
}

void copy_run(void* to, const void* from, std::size_t bytes, bool stream) {
  if (stream && bytes >= 1024) {
    kernels().stream_copy(to, from, bytes);
  } else {
    kernels().copy(to, from, bytes);
  }
}

// Axes that are not worth a thread each are split so that no piece of an inner run is longer than this.
constexpr std::int64_t kPieceBytes = 256 * 1024;

// Both inner strides 1.
void copy_runs(ThreadPool& pool, Nest nest, const std::byte* from, std::byte* to, std::int64_t bytes, bool stream) {
  const Axis run = nest.remove(nest.rank - 1);
  const std::int64_t pieces = std::max<std::int64_t>(1, run.extent * bytes / kPieceBytes);
  const std::int64_t rows = nest.elements();
  for_ranges(pool, rows * pieces, run.extent / pieces, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) {
      const auto [source, target] = nest.offsets(i / pieces);
      const Range piece = part_of(run.extent, pieces, i % pieces, 64);
      copy_run(to + (target + piece.begin) * bytes, from + (source + piece.begin) * bytes,
               static_cast<std::size_t>((piece.end - piece.begin) * bytes), stream);
    }
    if (stream) kernels().stream_fence();
  });
}

// Inner target stride 1, source stride 0: one value repeated.
template <class T>
void fill_runs(ThreadPool& pool, Nest nest, const T* from, T* to, bool stream) {
  const Axis run = nest.remove(nest.rank - 1);
  constexpr std::int64_t kBytes = sizeof(T);
  const std::int64_t pieces = std::max<std::int64_t>(1, run.extent * kBytes / kPieceBytes);
  for_ranges(pool, nest.elements() * pieces, run.extent / pieces, [&](std::int64_t begin, std::int64_t end, int) {
    constexpr std::int64_t kPattern = 4096 / kBytes;
    alignas(64) std::array<T, kPattern> pattern;
    for (std::int64_t i = begin; i < end; ++i) {
      const auto [source, target] = nest.offsets(i / pieces);
      const Range piece = part_of(run.extent, pieces, i % pieces, 64);
      T* out = to + target + piece.begin;
      const std::int64_t n = piece.end - piece.begin;
      if (!stream || n < kPattern) {
        std::fill_n(out, n, from[source]);
        continue;
      }
      pattern.fill(from[source]);
      for (std::int64_t done = 0; done < n; done += kPattern)
        kernels().stream_copy(out + done, pattern.data(), static_cast<std::size_t>(std::min(kPattern, n - done) * kBytes));
    }
    if (stream) kernels().stream_fence();
  });
}

// Target stride 1 along |inner|, source stride 1 along |across|: transposed planes, in rectangles.
void copy_transposed(ThreadPool& pool, const Nest& outer, const Axis& inner, const Axis& across, const std::byte* from,
                     std::byte* to, std::int64_t bytes, bool stream) {
  const TransposeKernel transpose = kernels().transpose[bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3];
  // Bands of 64 to 128 rows of the source: long enough runs in the target, few enough pages of it at a time. Columns are cut only
  // if there are too few bands for the threads.
  const std::int64_t wanted = std::int64_t{4} * pool.threads(), line = 64 / bytes;
  const auto rounded = [&](std::int64_t extent) { return (extent + line - 1) / line * line; };
  const std::int64_t band = std::clamp<std::int64_t>(rounded(inner.extent / wanted), 64, 128);
  const std::int64_t bands = outer.elements() * ((inner.extent + band - 1) / band);
  const std::int64_t cuts =
      std::clamp<std::int64_t>(bands >= wanted ? 1 : wanted / bands, 1, std::max<std::int64_t>(1, across.extent / 256));
  const std::int64_t bands_of_plane = bands / outer.elements();
  for_ranges(
      pool, bands * cuts, std::min(band, inner.extent) * across.extent / cuts, [&](std::int64_t first, std::int64_t last, int) {
        for (std::int64_t i = first; i < last; ++i) {
          const Range cols = part_of(across.extent, cuts, i % cuts, line);
          const std::int64_t row = i / cuts % bands_of_plane * band, rows = std::min(inner.extent - row, band);
          const auto [source, target] = outer.offsets(i / cuts / bands_of_plane);
          transpose(from + (source + row * inner.source + cols.begin) * bytes, inner.source,
                    to + (target + row + cols.begin * across.target) * bytes, across.target, rows, cols.end - cols.begin, stream);
        }
        if (stream) kernels().stream_fence();
      });
}

// Anything: the two innermost axes in tiles, so that whichever of them is the source's fast one, its lines stay in the cache.
template <class T>
void copy_strided(ThreadPool& pool, Nest nest, const T* from, T* to) {
  const Axis cols = nest.remove(nest.rank - 1);
  Axis rows{};
  if (nest.rank > 0) {
    int best = nest.rank - 1;
    for (int i = 0; i < nest.rank; ++i)
      if (nest[i].source != 0 && std::abs(nest[i].source) < std::abs(nest[best].source)) best = i;
    rows = nest.remove(best);
  }
  constexpr std::int64_t kTile = 32;
  const std::int64_t tile_cols = std::abs(rows.source) < std::abs(cols.source) && rows.source != 0 ? kTile : 8 * kTile * kTile;
  const std::int64_t tile_rows = (rows.extent + kTile - 1) / kTile;
  const std::int64_t tiles = tile_rows * ((cols.extent + tile_cols - 1) / tile_cols);
  const std::int64_t cost = std::min(rows.extent, kTile) * std::min(cols.extent, tile_cols);
  for_ranges(pool, nest.elements() * tiles, cost, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) {
      const auto [source, target] = nest.offsets(i / tiles);
      const std::int64_t r0 = i % tiles % tile_rows * kTile, c0 = i % tiles / tile_rows * tile_cols;
      const std::int64_t r1 = std::min(rows.extent, r0 + kTile), c1 = std::min(cols.extent, c0 + tile_cols);
      for (std::int64_t r = r0; r < r1; ++r) {
        const T* in = from + source + r * rows.source;
        T* out = to + target + r * rows.target;
        if (cols.target == 1 && cols.source == -1) {
          for (std::int64_t c = c0; c < c1; ++c) out[c] = in[-c];
        } else if (cols.target == 1) {
          for (std::int64_t c = c0; c < c1; ++c) out[c] = in[c * cols.source];
        } else {
          for (std::int64_t c = c0; c < c1; ++c) out[c * cols.target] = in[c * cols.source];
        }
      }
    }
  });
}

// The axis along which the source is contiguous, if it is worth the transpose kernel; -1 otherwise.
int transposed_axis(const Nest& nest) {
  const Axis& inner = nest[nest.rank - 1];
  if (inner.target != 1 || inner.source <= 0) return -1;
  for (int i = 0; i + 1 < nest.rank; ++i)
    if (nest[i].source == 1 && nest[i].target > 0) return i;
  return -1;
}

std::size_t read_last_level_cache() {
  std::size_t best = 0;
  for (int index = 0; index < 8; ++index) {
    const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/";
    std::ifstream level_file(folder + "level"), size_file(folder + "size");
    int level = 0;
    std::size_t size = 0;
    char unit = 0;
    if (!(level_file >> level) || !(size_file >> size)) continue;
    size_file >> unit;
    if (level >= 3) best = std::max(best, size << (unit == 'K' ? 10 : unit == 'M' ? 20 : 0));
  }
#ifdef _SC_LEVEL3_CACHE_SIZE
  if (best == 0) {
    const long size = sysconf(_SC_LEVEL3_CACHE_SIZE);
    if (size > 0) best = static_cast<std::size_t>(size);
  }
#endif
  return best;
}

}  // namespace

View dense_view(const void* data, DType dtype, const Shape& shape) { return {data, dtype, shape, contiguous_strides(shape)}; }
Target dense_target(void* data, DType dtype, const Shape& shape) { return {data, dtype, shape, contiguous_strides(shape)}; }

bool beyond_cache(std::size_t bytes) {
  static const std::size_t limit = [] {
    const std::size_t cache = read_last_level_cache();
    return cache > 0 ? cache : std::size_t{24} << 20;
  }();
  return bytes > limit;
}

void copy(ThreadPool& pool, const View& source, const Target& target) {
  if (target.shape.elements() == 0) return;
  Nest nest = make_nest(target.shape, source.strides, target.strides);
  const auto bytes = static_cast<std::int64_t>(element_bytes(target.dtype));
  const auto* from = static_cast<const std::byte*>(source.data);
  auto* to = static_cast<std::byte*>(target.data);
  if (nest.rank == 0) {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
    return;
  }
  const Axis inner = nest[nest.rank - 1];
  // Elements repeated by a broadcast axis are read once.
  std::int64_t distinct = 1;
  for (int i = 0; i < nest.rank; ++i) distinct *= nest[i].source == 0 ? 1 : nest[i].extent;
  const bool stream = beyond_cache(static_cast<std::size_t>((nest.elements() + distinct) * bytes));
  if (inner.target == 1 && inner.source == 1) {
    if (inner.extent * bytes >= 64 || nest.rank == 1) return copy_runs(pool, nest, from, to, bytes, stream);
  } else if (inner.target == 1 && inner.source == 0) {
    if (inner.extent * bytes >= 64 || nest.rank == 1)
      return with_size(target.dtype, [&]<class T>(T) {
        fill_runs(pool, nest, reinterpret_cast<const T*>(from), reinterpret_cast<T*>(to), stream);
      });
  } else if (const int at = transposed_axis(nest); at >= 0) {
    const Axis across = nest.remove(at);
    const Axis along = nest.remove(nest.rank - 1);
    return copy_transposed(pool, nest, along, across, from, to, bytes, stream);
  }
  with_size(target.dtype,
            [&]<class T>(T) { copy_strided(pool, nest, reinterpret_cast<const T*>(from), reinterpret_cast<T*>(to)); });
}

void fill(ThreadPool& pool, const Target& target, double value) {
  alignas(8) std::array<std::byte, 8> element;
  kernels().convert[static_cast<int>(DType::f64)][static_cast<int>(target.dtype)](&value, element.data(), 1);
  copy(pool, View{element.data(), target.dtype, target.shape, Strides{}}, target);
}

}  // namespace tenon::cpu
