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
};

// The points of a nest in row-major order, from number |index| on: one division for each axis at the start, none later.
class Walk {
 public:
  Walk(const Nest& nest, std::int64_t index) : nest_(nest) {
    for (int i = nest.rank - 1; i >= 0; --i) {
      const Axis& axis = nest[i];
      const std::int64_t place = place_[static_cast<std::size_t>(i)] = index % axis.extent;
      source_ += place * axis.source;
      target_ += place * axis.target;
      index /= axis.extent;
    }
  }
  std::int64_t source() const { return source_; }
  std::int64_t target() const { return target_; }

  void next() {
    for (int i = nest_.rank - 1; i >= 0; --i) {
      const Axis& axis = nest_[i];
      std::int64_t& place = place_[static_cast<std::size_t>(i)];
      source_ += axis.source;
      target_ += axis.target;
      if (++place < axis.extent) return;
      source_ -= axis.source * axis.extent;
      target_ -= axis.target * axis.extent;
      place = 0;
    }
  }

 private:
  const Nest& nest_;
  std::array<std::int64_t, kMaxRank> place_{};
  std::int64_t source_ = 0, target_ = 0;
};

// Calls body(source, target, piece) for each of |pieces| of each point of |nest|; |cost| is that of one.
template <class Body>
void for_pieces(ThreadPool& pool, const Nest& nest, std::int64_t pieces, std::int64_t cost, bool stream, const Body& body) {
  for_ranges(pool, nest.elements() * pieces, cost, [&](std::int64_t begin, std::int64_t end, int) {
    Walk walk(nest, begin / pieces);
    std::int64_t piece = begin % pieces;
    for (std::int64_t i = begin; i < end; ++i) {
      body(walk.source(), walk.target(), piece);
      if (++piece < pieces) continue;
      piece = 0;
      walk.next();
    }
    if (stream) kernels().stream_fence();
  });
}

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

// Short inner runs of small elements are fewer runs of larger ones, if all of them lie where those could.
std::int64_t widen(Nest& nest, std::int64_t bytes, const std::byte* from, const std::byte* to) {
  constexpr std::int64_t kLargest = 8, kShort = 64;
  Axis& run = nest[nest.rank - 1];
  if (run.source != 1 || run.target != 1 || run.extent * bytes >= kShort) return bytes;
  std::int64_t places = run.extent * bytes;
  for (int i = 0; i + 1 < nest.rank; ++i) places |= nest[i].source * bytes | nest[i].target * bytes;
  places |= static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(from) | reinterpret_cast<std::uintptr_t>(to));
  const std::int64_t wide = std::min(places & -places, kLargest), times = wide / bytes;
  if (times <= 1) return bytes;
  run.extent /= times;
  for (int i = 0; i + 1 < nest.rank; ++i) {
    nest[i].source /= times;
    nest[i].target /= times;
  }
  if (run.extent == 1 && nest.rank > 1) {
    nest.remove(nest.rank - 1);
    // What was beside it may be a run now.
    while (nest.rank > 1) {
      const Axis inner = nest[nest.rank - 1];
      Axis& outer = nest[nest.rank - 2];
      if (outer.source != inner.source * inner.extent || outer.target != inner.target * inner.extent) break;
      outer = {outer.extent * inner.extent, inner.source, inner.target};
      --nest.rank;
    }
  }
  return wide;
}

int log2_of(std::int64_t bytes) { return bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3; }

// Axes that are not worth a thread each are split so that no piece of an inner run is longer than this.
constexpr std::int64_t kPieceBytes = 256 * 1024;
std::int64_t pieces_of(const Axis& run, std::int64_t bytes) {
  return std::max<std::int64_t>(1, run.extent * bytes / kPieceBytes);
}

// Runs cost a thread less than elements that are moved one by one.
std::int64_t cost_of_run(std::int64_t extent, std::int64_t bytes) { return extent * bytes / 8 + 4; }

// Runs that are short, and others beside them: many in one call. The inner target stride is 1, the source's 1 or 0.
bool copy_short_runs(ThreadPool& pool, Nest& nest, const Axis& run, const std::byte* from, std::byte* to, std::int64_t bytes) {
  constexpr std::int64_t kLong = 256, kTogether = 64;
  if (run.extent * bytes >= kLong || nest.rank == 0) return false;
  const Axis rows = nest.remove(nest.rank - 1);
  const std::int64_t groups = (rows.extent + kTogether - 1) / kTogether, each = std::min(rows.extent, kTogether);
  const StridedKernel strided = kernels().strided[log2_of(bytes)];
  for_pieces(pool, nest, groups, each * cost_of_run(run.extent, bytes), false,
             [&](std::int64_t source, std::int64_t target, std::int64_t group) {
               const std::int64_t first = group * kTogether;
               strided(from + (source + first * rows.source) * bytes, run.source, rows.source,
                       to + (target + first * rows.target) * bytes, rows.target, std::min(kTogether, rows.extent - first),
                       run.extent);
             });
  return true;
}

// Both inner strides 1.
void copy_runs(ThreadPool& pool, Nest nest, const std::byte* from, std::byte* to, std::int64_t bytes, bool stream) {
  const Axis run = nest.remove(nest.rank - 1);
  if (copy_short_runs(pool, nest, run, from, to, bytes)) return;
  const std::int64_t pieces = pieces_of(run, bytes);
  const auto copy_run = stream && run.extent / pieces * bytes >= 1024 ? kernels().stream_copy : kernels().copy;
  for_pieces(pool, nest, pieces, cost_of_run(run.extent / pieces, bytes), stream,
             [&](std::int64_t source, std::int64_t target, std::int64_t i) {
               const Range piece = part_of(run.extent, pieces, i, 64);
               copy_run(to + (target + piece.begin) * bytes, from + (source + piece.begin) * bytes,
                        static_cast<std::size_t>((piece.end - piece.begin) * bytes));
             });
}

// Inner target stride 1, source stride 0: one value repeated.
void fill_runs(ThreadPool& pool, Nest nest, const std::byte* from, std::byte* to, std::int64_t bytes, bool stream) {
  const Axis run = nest.remove(nest.rank - 1);
  if (copy_short_runs(pool, nest, run, from, to, bytes)) return;
  const std::int64_t pieces = pieces_of(run, bytes);
  const auto fill_run = stream && run.extent / pieces * bytes >= 1024 ? kernels().stream_fill : kernels().fill;
  const std::int64_t cost = cost_of_run(run.extent / pieces, bytes);
  for_pieces(pool, nest, pieces, cost, stream, [&](std::int64_t source, std::int64_t target, std::int64_t i) {
    const Range piece = part_of(run.extent, pieces, i, 64);
    fill_run(to + (target + piece.begin) * bytes, from + source * bytes, static_cast<std::size_t>(bytes),
             static_cast<std::size_t>(piece.end - piece.begin));
  });
}

// Target stride 1 along |inner|, source stride 1 along |across|: transposed planes, in rectangles.
void copy_transposed(ThreadPool& pool, const Nest& outer, const Axis& inner, const Axis& across, const std::byte* from,
                     std::byte* to, std::int64_t bytes, bool stream) {
  const TransposeKernel transpose = kernels().transpose[log2_of(bytes)];
  // Bands of 64 to 128 rows of the source: long enough runs in the target, few enough pages of it at a time. The last has what
  // is left, up to twice as many. Columns are cut only if there are too few bands for the threads.
  const std::int64_t wanted = std::int64_t{4} * pool.threads(), line = 64 / bytes;
  const auto rounded = [&](std::int64_t extent) { return (extent + line - 1) / line * line; };
  const std::int64_t band = std::clamp<std::int64_t>(rounded(inner.extent / wanted), 64, 128);
  const std::int64_t bands_of_plane = std::max<std::int64_t>(1, inner.extent / band), bands = outer.elements() * bands_of_plane;
  const std::int64_t cuts =
      std::clamp<std::int64_t>(bands >= wanted ? 1 : wanted / bands, 1, std::max<std::int64_t>(1, across.extent / 256));
  for_pieces(pool, outer, bands_of_plane * cuts, inner.extent / bands_of_plane * across.extent / cuts, stream,
             [&](std::int64_t source, std::int64_t target, std::int64_t piece) {
               const Range cols = part_of(across.extent, cuts, piece % cuts, line);
               const std::int64_t number = piece / cuts, row = number * band;
               const std::int64_t rows = number + 1 == bands_of_plane ? inner.extent - row : band;
               transpose(from + (source + row * inner.source + cols.begin) * bytes, inner.source,
                         to + (target + row + cols.begin * across.target) * bytes, across.target, rows, cols.end - cols.begin,
                         stream);
             });
}

// The axis whose elements stand beside those of |cols|: the one with the source's smallest steps if those of |cols| are cache
// lines apart, so that a line is used up while it is in the cache; else the target's next.
Axis remove_rows(Nest& nest, const Axis& cols, std::int64_t bytes) {
  if (nest.rank == 0) return {};
  int best = nest.rank - 1;
  if (std::abs(cols.source) * bytes >= 64)
    for (int i = 0; i < nest.rank; ++i)
      if (nest[i].source != 0 && std::abs(nest[i].source) < std::abs(nest[best].source)) best = i;
  return nest.remove(best);
}

// Inner target stride 1: the two innermost axes in rectangles.
void gather_strided(ThreadPool& pool, Nest nest, const std::byte* from, std::byte* to, std::int64_t bytes, bool stream) {
  const Axis cols = nest.remove(nest.rank - 1), rows = remove_rows(nest, cols, bytes);
  const StridedKernel strided = kernels().strided[log2_of(bytes)];
  const bool is_across = rows.source != 0 && std::abs(rows.source) < std::abs(cols.source);
  constexpr std::int64_t kStreamed = 4096;
  const std::int64_t most_cols = stream ? kStreamed / bytes : 8192;
  const std::int64_t tile_cols = is_across ? 32 : std::min(most_cols, cols.extent);
  const std::int64_t tile_rows = std::clamp<std::int64_t>(8192 / tile_cols, 1, rows.extent);
  const std::int64_t down = (rows.extent + tile_rows - 1) / tile_rows, tiles = down * ((cols.extent + tile_cols - 1) / tile_cols);
  const bool streams = stream && tile_cols * bytes >= 1024;
  for_pieces(pool, nest, tiles, tile_rows * tile_cols, stream, [&](std::int64_t source, std::int64_t target, std::int64_t tile) {
    const std::int64_t r0 = tile % down * tile_rows, c0 = tile / down * tile_cols;
    const std::int64_t r1 = std::min(rows.extent, r0 + tile_rows), width = std::min(cols.extent, c0 + tile_cols) - c0;
    const std::byte* in = from + (source + r0 * rows.source + c0 * cols.source) * bytes;
    std::byte* out = to + (target + r0 * rows.target + c0) * bytes;
    if (!streams) return strided(in, cols.source, rows.source, out, rows.target, r1 - r0, width);
    alignas(64) std::byte line[kStreamed];
    for (std::int64_t r = r0; r < r1; ++r, in += rows.source * bytes, out += rows.target * bytes) {
      strided(in, cols.source, 0, line, 0, 1, width);
      kernels().stream_copy(out, line, static_cast<std::size_t>(width * bytes));
    }
  });
}

// Anything: the two innermost axes in tiles, so that whichever of them is the source's fast one, its lines stay in the cache.
template <class T>
void copy_strided(ThreadPool& pool, Nest nest, const T* from, T* to) {
  const Axis cols = nest.remove(nest.rank - 1), rows = remove_rows(nest, cols, sizeof(T));
  constexpr std::int64_t kTile = 32;
  const std::int64_t tile_cols = std::abs(rows.source) < std::abs(cols.source) && rows.source != 0 ? kTile : 8 * kTile * kTile;
  const std::int64_t down = (rows.extent + kTile - 1) / kTile, tiles = down * ((cols.extent + tile_cols - 1) / tile_cols);
  const std::int64_t cost = std::min(rows.extent, kTile) * std::min(cols.extent, tile_cols);
  for_pieces(pool, nest, tiles, cost, false, [&](std::int64_t source, std::int64_t target, std::int64_t tile) {
    const std::int64_t r0 = tile % down * kTile, c0 = tile / down * tile_cols;
    const std::int64_t r1 = std::min(rows.extent, r0 + kTile), c1 = std::min(cols.extent, c0 + tile_cols);
    for (std::int64_t r = r0; r < r1; ++r) {
      const T* in = from + source + r * rows.source;
      T* out = to + target + r * rows.target;
      const std::int64_t by = cols.target, step = cols.source;  // which nothing written can change
      for (std::int64_t c = c0; c < c1; ++c) out[c * by] = in[c * step];
    }
  });
}

// The axis along which the source is contiguous, if it is worth the transpose kernel; -1 otherwise.
int transposed_axis(const Nest& nest) {
  constexpr std::int64_t kLeast = 8;
  for (int i = 0; i + 1 < nest.rank; ++i)
    if (nest[i].source == 1 && nest[i].target > 0 && nest[i].extent >= kLeast) return i;
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
  auto bytes = static_cast<std::int64_t>(element_bytes(target.dtype));
  const auto* from = static_cast<const std::byte*>(source.data);
  auto* to = static_cast<std::byte*>(target.data);
  if (nest.rank == 0) {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
    return;
  }
  bytes = widen(nest, bytes, from, to);
  const Axis inner = nest[nest.rank - 1];
  // Elements repeated by a broadcast axis are read once.
  std::int64_t distinct = 1;
  for (int i = 0; i < nest.rank; ++i) distinct *= nest[i].source == 0 ? 1 : nest[i].extent;
  const bool stream = beyond_cache(static_cast<std::size_t>((nest.elements() + distinct) * bytes));
  if (inner.target == 1) {
    const bool is_long = inner.extent * bytes >= 64 || nest.rank == 1;
    if (inner.source == 1) return copy_runs(pool, nest, from, to, bytes, stream);
    if (inner.source == 0 && is_long) return fill_runs(pool, nest, from, to, bytes, stream);
    if (const int at = transposed_axis(nest); at >= 0 && inner.source >= 0) {
      const Axis across = nest.remove(at);
      const Axis along = nest.remove(nest.rank - 1);
      return copy_transposed(pool, nest, along, across, from, to, bytes, stream);
    }
    return gather_strided(pool, nest, from, to, bytes, stream);
  }
  with_bytes(bytes, [&]<class T>(T) { copy_strided(pool, nest, reinterpret_cast<const T*>(from), reinterpret_cast<T*>(to)); });
}

void fill(ThreadPool& pool, const Target& target, double value) {
  alignas(8) std::array<std::byte, 8> element;
  kernels().convert[static_cast<int>(DType::f64)][static_cast<int>(target.dtype)](&value, element.data(), 1);
  copy(pool, View{element.data(), target.dtype, target.shape, Strides{}}, target);
}

}  // namespace tenon::cpu
