#include "backends/cpu/primitives/sorting/short_lanes.h"

#include <cstring>

#include "backends/cpu/primitives/clones.h"

namespace tenon::cpu {
namespace {

typedef std::uint64_t Words __attribute__((vector_size(8 * ShortLanes::kTogether)));

TENON_CLONES void order_columns(std::uint64_t* words, const std::pair<std::uint8_t, std::uint8_t>* comparisons,
                                std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t* const first = words + comparisons[i].first * ShortLanes::kTogether;
    std::uint64_t* const second = words + comparisons[i].second * ShortLanes::kTogether;
    Words a, b;
    std::memcpy(&a, first, sizeof a);
    std::memcpy(&b, second, sizeof b);
    const Words less = a < b ? a : b, more = a < b ? b : a;
    std::memcpy(first, &less, sizeof less);
    std::memcpy(second, &more, sizeof more);
  }
}

}  // namespace

// Batcher's odd-even merge sort: runs of p items are merged to runs of 2 p.
ShortLanes::ShortLanes(std::int64_t extent) {
  for (std::int64_t p = 1; p < extent; p *= 2)
    for (std::int64_t k = p; k >= 1; k /= 2)
      for (std::int64_t j = k % p; j + k < extent; j += 2 * k)
        for (std::int64_t i = j; i < std::min(j + k, extent - k); ++i)
          if (i / (2 * p) == (i + k) / (2 * p))
            comparisons_.emplace_back(static_cast<std::uint8_t>(i), static_cast<std::uint8_t>(i + k));
}

void ShortLanes::order(std::uint64_t* words) const { order_columns(words, comparisons_.data(), comparisons_.size()); }

}  // namespace tenon::cpu
