#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <utility>

#include "backends/cpu/primitives/axis_lanes.h"
#include "backends/cpu/primitives/primitives.h"
#include "backends/cpu/primitives/sorting/short_lanes.h"
#include "backends/cpu/primitives/sorting/sort_items.h"
#include "backends/cpu/primitives/split.h"
#include "backends/cpu/primitives/typed.h"

namespace tenon::cpu {
namespace {

constexpr std::int64_t kComparisonSort = 512;  // below this, counting digits costs more than comparing
constexpr int kDigitBits = 11, kDigits = 1 << kDigitBits;
// A lane this long is worth sorting by all threads together.
constexpr std::int64_t kSharedSort = 1 << 16;

// Least significant digit first, stable. Returns the buffer that holds the result. Digits that are the same in all keys are
// skipped.
template <class Item>
Item* radix_sort(Item* items, Item* other, std::int64_t n, int key_bits) {
  for (int shift = 0; shift < key_bits; shift += kDigitBits) {
    std::array<std::int64_t, kDigits> starts{};
    if (shift > 0) check_stop();
    const auto digit = [&](const Item& item) { return static_cast<std::size_t>(item.key() >> shift & (kDigits - 1)); };
    for (std::int64_t i = 0; i < n; ++i) ++starts[digit(items[i])];
    if (starts[digit(items[0])] == n) continue;
    std::int64_t sum = 0;
    for (auto& start : starts) sum += std::exchange(start, sum);
    for (std::int64_t i = 0; i < n; ++i) other[starts[digit(items[i])]++] = items[i];
    std::swap(items, other);
  }
  return items;
}

// The same by all threads: each counts and moves the items of its own part, and parts keep their order.
template <class Item>
Item* shared_radix_sort(ThreadPool& pool, Item* items, Item* other, std::int64_t n, int key_bits, std::int64_t* counts) {
  const std::int64_t parts = pool.threads();
  const auto digit = [](const Item& item, int shift) { return static_cast<std::size_t>(item.key() >> shift & (kDigits - 1)); };
  for (int shift = 0; shift < key_bits; shift += kDigitBits) {
    pool.for_each(parts, [&](std::int64_t part, int) {
      std::int64_t* own = counts + part * kDigits;
      std::fill_n(own, kDigits, 0);
      const Range range = part_of(n, parts, part);
      for (std::int64_t i = range.begin; i < range.end; ++i) ++own[digit(items[i], shift)];
    });
    std::int64_t sum = 0, largest = 0;
    for (std::int64_t d = 0; d < kDigits; ++d) {
      const std::int64_t before = sum;
      for (std::int64_t part = 0; part < parts; ++part) sum += std::exchange(counts[part * kDigits + d], sum);
      largest = std::max(largest, sum - before);
    }
    if (largest == n) continue;
    pool.for_each(parts, [&](std::int64_t part, int) {
      std::int64_t* own = counts + part * kDigits;
      const Range range = part_of(n, parts, part);
      for (std::int64_t i = range.begin; i < range.end; ++i) other[own[digit(items[i], shift)]++] = items[i];
    });
    std::swap(items, other);
  }
  return items;
}

enum class LongKey : std::uint8_t { natural, whole, real };
template <class T>
constexpr LongKey long_key() {
  return std::is_floating_point_v<T> ? LongKey::real : std::is_signed_v<T> ? LongKey::whole : LongKey::natural;
}

// Long keys by those bits, 32 or fewer, that begin with the first in which any two of them differ, which for most keys leaves few
// that are equal; those are compared. False, with nothing written of use, if very many are. |each| calls its argument for parts
// of n, |sort| is a radix sort of items by so many bits.
template <class Each, class Sort>
bool sort_by_leading_bits(const std::byte* in, LongKey kind, std::int64_t in_step, std::int64_t* out, std::int64_t out_step,
                          std::int64_t n, bool descending, NarrowItem* items, WideItem* equal, const Each& each,
                          const Sort& sort) {
  constexpr std::int64_t kMostEqual = 4096;
  const int most_bits = n <= 8192 ? 2 * kDigitBits : 32;  // few keys differ in fewer
  const auto key = [=](std::int64_t i) -> std::uint64_t {
    const std::byte* const place = in + i * in_step * 8;
    if (kind == LongKey::real) return key_of(*reinterpret_cast<const double*>(place), descending);
    if (kind == LongKey::whole) return key_of(*reinterpret_cast<const std::int64_t*>(place), descending);
    return key_of(*reinterpret_cast<const std::uint64_t*>(place), descending);
  };
  std::atomic<std::uint64_t> differing{0};
  each([&, first = key(0)](std::int64_t begin, std::int64_t end) {
    std::uint64_t bits = 0;
    for (std::int64_t i = begin; i < end; ++i) bits |= key(i) ^ first;
    differing.fetch_or(bits, std::memory_order_relaxed);
  });
  const int bits = static_cast<int>(std::bit_width(differing.load())), shift = std::max(0, bits - most_bits);
  each([&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      items[i] = NarrowItem::make(key(i) >> shift & ((std::uint64_t{1} << most_bits) - 1), i);
  });
  const NarrowItem* sorted = sort(items, items + n, std::min(bits, most_bits));
  std::atomic<bool> has_too_many{false};
  each([&](std::int64_t begin, std::int64_t end) {
    std::int64_t i = begin;
    while (shift > 0 && i > 0 && i < end && sorted[i].key() == sorted[i - 1].key()) ++i;  // they began in the part before
    while (i < end) {
      std::int64_t last = i + 1;
      while (shift > 0 && last < n && sorted[last].key() == sorted[i].key()) ++last;
      if (last - i == 1) {
        out[i * out_step] = sorted[i].index();
      } else if (last - i > kMostEqual) {
        has_too_many = true;
        return;
      } else {
        for (std::int64_t k = i; k < last; ++k) equal[k] = WideItem::make(key(sorted[k].index()), sorted[k].index());
        std::sort(equal + i, equal + last);
        for (std::int64_t k = i; k < last; ++k) out[k * out_step] = equal[k].index();
      }
      i = last;
    }
  });
  return !has_too_many;
}
// A lane of long keys, and the memory that it is sorted in.
struct LongLane {
  const std::byte* in;
  LongKey kind;
  std::int64_t in_step;
  std::int64_t* out;
  std::int64_t out_step, n;
  bool descending;
  WideItem *items, *other;

  template <class Each, class Sort>
  bool sort(const Each& each, const Sort& sort) const {
    if (n < kComparisonSort || n >= (std::int64_t{1} << 32)) return false;
    return sort_by_leading_bits(in, kind, in_step, out, out_step, n, descending, reinterpret_cast<NarrowItem*>(items), other,
                                each, sort);
  }
};
bool sort_long_lane(const LongLane& lane) {
  const auto each = [&](auto&& body) { body(std::int64_t{0}, lane.n); };
  return lane.sort(each, [&](NarrowItem* from, NarrowItem* to, int bits) { return radix_sort(from, to, lane.n, bits); });
}
bool sort_long_lane(ThreadPool& pool, const LongLane& lane, std::int64_t* counts) {
  const auto each = [&](auto&& body) {
    for_ranges(pool, lane.n, 2, [&](std::int64_t begin, std::int64_t end, int) { body(begin, end); });
  };
  return lane.sort(
      each, [&](NarrowItem* from, NarrowItem* to, int bits) { return shared_radix_sort(pool, from, to, lane.n, bits, counts); });
}

template <class T, class Item>
void sort_shared_lane(ThreadPool& pool, const T* in, std::int64_t in_step, std::int64_t* out, std::int64_t out_step,
                      std::int64_t n, bool descending, Item* items, Item* other, std::int64_t* counts) {
  if constexpr (sizeof(T) == 8)
    if (sort_long_lane(
            pool, {reinterpret_cast<const std::byte*>(in), long_key<T>(), in_step, out, out_step, n, descending, items, other},
            counts))
      return;
  for_ranges(pool, n, 2, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) items[i] = Item::make(key_of(in[i * in_step], descending), i);
  });
  const Item* sorted = shared_radix_sort(pool, items, other, n, 8 * static_cast<int>(sizeof(T)), counts);
  for_ranges(pool, n, 2, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) out[i * out_step] = sorted[i].index();
  });
}

template <class T, class Item>
void sort_lane(const T* in, std::int64_t in_step, std::int64_t* out, std::int64_t out_step, std::int64_t n, bool descending,
               Item* items, Item* other) {
  if constexpr (sizeof(T) == 8)
    if (sort_long_lane(
            {reinterpret_cast<const std::byte*>(in), long_key<T>(), in_step, out, out_step, n, descending, items, other}))
      return;
  for (std::int64_t i = 0; i < n; ++i) items[i] = Item::make(key_of(in[i * in_step], descending), i);
  const Item* sorted = items;
  if (n < kComparisonSort) {
    std::sort(items, items + n);
  } else {
    sorted = radix_sort(items, other, n, 8 * static_cast<int>(sizeof(T)));
  }
  for (std::int64_t i = 0; i < n; ++i) out[i * out_step] = sorted[i].index();
}

// Bytes one lane needs: two buffers of items.
std::size_t lane_bytes(DType dtype, std::int64_t extent) {
  return (2 * item_bytes(dtype, extent) * static_cast<std::size_t>(extent) + 63) / 64 * 64;
}

bool is_shared(const ThreadPool& pool, const AxisLanes& lanes) {
  return pool.threads() > 1 && lanes.count() < pool.threads() && lanes.extent() >= kSharedSort;
}

template <class T, class Item>
void sort_lanes(ThreadPool& pool, const View& x, const ArgSortAttr& attr, const Target& out, std::span<std::byte> scratch) {
  const AxisLanes lanes(x.shape, attr.axis);
  const auto axis = static_cast<std::size_t>(attr.axis);
  const std::size_t per_thread = lane_bytes(x.dtype, lanes.extent());
  // With fewer lanes than threads there is memory for each lane, not for each thread.
  const bool by_lane = lanes.count() < pool.threads();
  const std::int64_t cost = 8 * lanes.extent();
  if (ShortLanes::takes(x.dtype, lanes)) {
    const ShortLanes sorter(lanes.extent());
    return for_ranges(pool, lanes.count(), cost / 2, [&](std::int64_t begin, std::int64_t end, int) {
      sorter.sort<T>(x, out, attr.axis, attr.descending, 0, lanes.extent(), begin, end);
    });
  }
  const auto sort_range = [&](std::int64_t begin, std::int64_t end, int slot) {
    auto* items = reinterpret_cast<Item*>(scratch.data() + per_thread * static_cast<std::size_t>(slot));
    for (std::int64_t lane = begin; lane < end; ++lane)
      sort_lane(static_cast<const T*>(x.data) + lanes.first(lane, x.strides), x.strides[axis],
                static_cast<std::int64_t*>(out.data) + lanes.first(lane, out.strides), out.strides[axis], lanes.extent(),
                attr.descending, items, items + lanes.extent());
  };
  if (is_shared(pool, lanes)) {
    auto* items = reinterpret_cast<Item*>(scratch.data());
    auto* counts = reinterpret_cast<std::int64_t*>(scratch.data() + per_thread);
    for (std::int64_t lane = 0; lane < lanes.count(); ++lane)
      sort_shared_lane(pool, static_cast<const T*>(x.data) + lanes.first(lane, x.strides), x.strides[axis],
                       static_cast<std::int64_t*>(out.data) + lanes.first(lane, out.strides), out.strides[axis], lanes.extent(),
                       attr.descending, items, items + lanes.extent(), counts);
  } else if (by_lane && cost >= kGrain) {
    pool.for_each(lanes.count(), [&](std::int64_t lane, int) { sort_range(lane, lane + 1, static_cast<int>(lane)); });
  } else if (by_lane) {
    sort_range(0, lanes.count(), 0);
  } else {
    for_ranges(pool, lanes.count(), cost, sort_range);
  }
}

}  // namespace

std::size_t arg_sort_scratch_bytes(const ThreadPool& pool, const View& x, int axis) {
  if (x.shape.elements() == 0) return 0;
  const AxisLanes lanes(x.shape, axis);
  if (is_shared(pool, lanes))
    return lane_bytes(x.dtype, lanes.extent()) + static_cast<std::size_t>(pool.threads()) * kDigits * sizeof(std::int64_t);
  return lane_bytes(x.dtype, lanes.extent()) * static_cast<std::size_t>(std::min<std::int64_t>(pool.threads(), lanes.count()));
}

void arg_sort(ThreadPool& pool, const View& x, const ArgSortAttr& attr, const Target& out, std::span<std::byte> scratch) {
  if (out.shape.elements() == 0) return;
  if (scratch.size() < arg_sort_scratch_bytes(pool, x, attr.axis))
    throw Error(ErrorCode::internal, "arg_sort: not enough scratch memory");
  with_type(x.dtype, [&]<class T>(T) {
    if constexpr (sizeof(T) <= 4)
      if (has_narrow_items(x.dtype, x.shape[attr.axis])) return sort_lanes<T, NarrowItem>(pool, x, attr, out, scratch);
    sort_lanes<T, WideItem>(pool, x, attr, out, scratch);
  });
}

}  // namespace tenon::cpu
