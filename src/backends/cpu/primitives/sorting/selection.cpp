#include "backends/cpu/primitives/sorting/selection.h"

#include <algorithm>
#include <array>

#include "backends/cpu/primitives/axis_lanes.h"
#include "backends/cpu/primitives/sorting/short_lanes.h"
#include "backends/cpu/primitives/sorting/sort_items.h"
#include "backends/cpu/primitives/split.h"
#include "backends/cpu/primitives/typed.h"
#include "tenon/error.h"

namespace tenon::cpu {
namespace {

constexpr int kDigitBits = 11, kDigits = 1 << kDigitBits;
constexpr std::int64_t kFew = 24;      // that are kept sorted
constexpr std::int64_t kScanned = 64;  // elements that are compared with the limit at a time

// Keeping candidates pays while they are few; each time the buffer is full, half of it is dropped.
bool keeps_candidates(std::int64_t wanted, std::int64_t extent) { return wanted <= extent / 8; }
std::int64_t buffer_items(std::int64_t wanted, std::int64_t extent) {
  return keeps_candidates(wanted, extent) ? std::min(extent, 2 * wanted + 4 * kScanned) : extent;
}

// Whether some element of x[0..n) comes before |limit|. NaNs come last.
template <class T>
bool any_before(const T* x, std::int64_t n, T limit, bool descending) {
  unsigned found = 0;
  if (descending)
    for (std::int64_t i = 0; i < n; ++i) found |= x[i] > limit;
  else
    for (std::int64_t i = 0; i < n; ++i) found |= x[i] < limit;
  return found != 0 || limit != limit;
}

// The first |wanted| items of the order, unsorted, at the start of |items|.
template <class T, class Item>
void keep_first(const T* in, std::int64_t step, std::int64_t n, std::int64_t wanted, bool descending, Item* items,
                std::int64_t capacity) {
  std::int64_t kept = 0, i = 0;
  for (; i < capacity; ++i) items[kept++] = Item::make(key_of(in[i * step], descending), i);
  T limit{};
  Item last{};
  const auto shrink = [&] {
    std::nth_element(items, items + wanted - 1, items + kept);
    kept = wanted;
    last = items[wanted - 1];
    limit = in[last.index() * step];
  };
  shrink();
  while (i < n) {
    const std::int64_t end = std::min(n, i + kScanned);
    if (step == 1 && !any_before(in + i, end - i, limit, descending)) {
      i = end;
      continue;
    }
    for (; i < end; ++i) {
      const Item item = Item::make(key_of(in[i * step], descending), i);
      if (item < last) items[kept++] = item;
    }
    if (kept + kScanned > capacity) shrink();
  }
  if (kept > wanted) shrink();
}

// The same, sorted, for a few: each that comes before the last of them is put at its place.
template <class T, class Item>
void keep_few(const T* in, std::int64_t step, std::int64_t n, std::int64_t wanted, bool descending, Item* items) {
  const auto insert = [&](const Item& item, std::int64_t kept) {
    std::int64_t place = kept;
    for (; place > 0 && item < items[place - 1]; --place) items[place] = items[place - 1];
    items[place] = item;
  };
  std::int64_t i = 0;
  for (; i < wanted; ++i) insert(Item::make(key_of(in[i * step], descending), i), i);
  while (i < n) {
    const std::int64_t end = std::min(n, i + kScanned);
    if (step == 1 && !any_before(in + i, end - i, in[items[wanted - 1].index()], descending)) {
      i = end;
      continue;
    }
    for (; i < end; ++i) {
      const Item item = Item::make(key_of(in[i * step], descending), i);
      if (item < items[wanted - 1]) insert(item, wanted - 1);
    }
  }
}

// Leaves the items of positions [first, first + wanted) sorted at the returned place.
template <class T, class Item>
const Item* middle_part(const T* in, std::int64_t step, std::int64_t n, std::int64_t first, std::int64_t wanted, bool descending,
                        Item* items) {
  constexpr int kShift = std::max(0, static_cast<int>(8 * sizeof(T)) - kDigitBits);
  std::array<std::int64_t, kDigits> counts{};
  for (std::int64_t i = 0; i < n; ++i) ++counts[static_cast<std::size_t>(key_of(in[i * step], descending) >> kShift)];
  // The digits that the wanted positions lie in.
  std::int64_t before = 0, low = 0;
  while (before + counts[static_cast<std::size_t>(low)] <= first) before += counts[static_cast<std::size_t>(low++)];
  std::int64_t end = before, high = low;
  while (end < first + wanted) end += counts[static_cast<std::size_t>(high++)];
  std::int64_t kept = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto key = key_of(in[i * step], descending);
    const auto digit = static_cast<std::int64_t>(key >> kShift);
    items[kept] = Item::make(key, i);
    kept += digit >= low && digit < high;
  }
  Item* const from = items + (first - before);
  if (from > items) std::nth_element(items, from, items + kept);
  if (from + wanted < items + kept) std::nth_element(from, from + wanted - 1, items + kept);
  std::sort(from, from + wanted);
  return from;
}

template <class T, class Item>
void select_lane(const T* in, std::int64_t in_step, std::int64_t* out, std::int64_t out_step, std::int64_t n,
                 const TopKAttr& attr, Item* items, std::int64_t capacity) {
  const Item* sorted = items + attr.first;
  if (const std::int64_t wanted = attr.first + attr.count; wanted <= kFew) {
    keep_few(in, in_step, n, wanted, attr.descending, items);
  } else if (keeps_candidates(wanted, n)) {
    keep_first(in, in_step, n, wanted, attr.descending, items, capacity);
    std::sort(items, items + wanted);
  } else {
    sorted = middle_part(in, in_step, n, attr.first, attr.count, attr.descending, items);
  }
  for (std::int64_t i = 0; i < attr.count; ++i) out[i * out_step] = sorted[i].index();
}

// One item more than is kept: middle_part() writes before it decides.
std::size_t worker_bytes(const View& x, const TopKAttr& attr) {
  const std::int64_t extent = x.shape[attr.axis], items = buffer_items(attr.first + attr.count, extent) + 1;
  return (item_bytes(x.dtype, extent) * static_cast<std::size_t>(items) + 63) / 64 * 64;
}

template <class T, class Item>
void select_lanes(ThreadPool& pool, const View& x, const TopKAttr& attr, const Target& out, std::span<std::byte> scratch) {
  const AxisLanes lanes(x.shape, attr.axis), results(out.shape, attr.axis);
  const auto axis = static_cast<std::size_t>(attr.axis);
  if (ShortLanes::takes(x.dtype, lanes)) {
    const ShortLanes sorter(lanes.extent());
    return for_ranges(pool, lanes.count(), 4 * lanes.extent(), [&](std::int64_t begin, std::int64_t end, int) {
      sorter.sort<T>(x, out, attr.axis, attr.descending, attr.first, attr.count, begin, end);
    });
  }
  const std::size_t bytes = worker_bytes(x, attr);
  for_ranges(pool, lanes.count(), 4 * lanes.extent(), [&](std::int64_t begin, std::int64_t end, int worker) {
    auto* items = reinterpret_cast<Item*>(scratch.data() + bytes * static_cast<std::size_t>(worker));
    for (std::int64_t lane = begin; lane < end; ++lane)
      select_lane(static_cast<const T*>(x.data) + lanes.first(lane, x.strides), x.strides[axis],
                  static_cast<std::int64_t*>(out.data) + results.first(lane, out.strides), out.strides[axis], lanes.extent(),
                  attr, items, buffer_items(attr.first + attr.count, lanes.extent()));
  });
}

}  // namespace

std::size_t select_scratch_bytes(const ThreadPool& pool, const View& x, const TopKAttr& attr) {
  return worker_bytes(x, attr) * static_cast<std::size_t>(pool.threads());
}

void select(ThreadPool& pool, const View& x, const TopKAttr& attr, const Target& out, std::span<std::byte> scratch) {
  if (out.shape.elements() == 0) return;
  if (scratch.size() < select_scratch_bytes(pool, x, attr)) throw Error(ErrorCode::internal, "select: not enough scratch memory");
  with_type(x.dtype, [&]<class T>(T) {
    if (sizeof(T) <= 4 && has_narrow_items(x.dtype, x.shape[attr.axis]))
      select_lanes<T, NarrowItem>(pool, x, attr, out, scratch);
    else
      select_lanes<T, WideItem>(pool, x, attr, out, scratch);
  });
}

}  // namespace tenon::cpu
