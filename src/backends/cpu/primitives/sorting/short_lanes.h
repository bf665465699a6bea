// Many short lanes, sorted side by side: a network of comparisons, each of which orders two items of sixteen lanes at once.
// Thread safety: sort() may run on several threads at once, for different lanes.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "backends/cpu/primitives/axis_lanes.h"
#include "backends/cpu/primitives/primitives.h"
#include "backends/cpu/primitives/sorting/sort_items.h"

namespace tenon::cpu {

class ShortLanes {
 public:
  static constexpr std::int64_t kTogether = 16, kLongest = 64;

  // Whether lanes with items of one word are so many and so short.
  static bool takes(DType dtype, const AxisLanes& lanes) {
    return element_bytes(dtype) <= 4 && lanes.extent() <= kLongest && lanes.count() >= kTogether / 2;
  }

  explicit ShortLanes(std::int64_t extent);

  // Writes the indices of positions [first, first + count) of the order of the lanes [begin, end) along axis |axis| of x.
  template <class T>
  void sort(const View& x, const Target& out, int axis, bool descending, std::int64_t first, std::int64_t count,
            std::int64_t begin, std::int64_t end) const {
    LaneOffsets lanes(x.shape, axis, x.strides, begin), results(out.shape, axis, out.strides, begin);
    const std::int64_t extent = x.shape[axis];
    const std::int64_t step = x.strides[static_cast<std::size_t>(axis)], out_step = out.strides[static_cast<std::size_t>(axis)];
    alignas(64) std::uint64_t words[kLongest * kTogether] = {};
    for (; begin < end; begin += kTogether) {
      const std::int64_t together = std::min(kTogether, end - begin);
      for (std::int64_t lane = 0; lane < together; ++lane) {
        const T* const in = static_cast<const T*>(x.data) + lanes.next();
        for (std::int64_t i = 0; i < extent; ++i)
          words[i * kTogether + lane] = NarrowItem::make(key_of(in[i * step], descending), i).word;
      }
      order(words);
      for (std::int64_t lane = 0; lane < together; ++lane) {
        auto* const to = static_cast<std::int64_t*>(out.data) + results.next();
        for (std::int64_t i = 0; i < count; ++i) to[i * out_step] = NarrowItem{words[(first + i) * kTogether + lane]}.index();
      }
    }
  }

 private:
  // Each column of |words|, kTogether of them.
  void order(std::uint64_t* words) const;

  std::vector<std::pair<std::uint8_t, std::uint8_t>> comparisons_;
};

}  // namespace tenon::cpu
