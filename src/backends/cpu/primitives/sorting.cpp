#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>

#include "backends/cpu/primitives/axis_lanes.h"
#include "backends/cpu/primitives/primitives.h"
#include "backends/cpu/primitives/split.h"
#include "backends/cpu/primitives/typed.h"

namespace tenon::cpu {
namespace {

template <class T>
using Bits = std::conditional_t<
    sizeof(T) == 1, std::uint8_t,
    std::conditional_t<sizeof(T) == 2, std::uint16_t, std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;

// An unsigned key with the requested order: the order of negative numbers is reversed, both zeros are equal, NaNs are last in
// either direction.
template <class T>
Bits<T> key_of(T value, bool descending) {
  using U = Bits<T>;
  constexpr U kSign = static_cast<U>(U{1} << (8 * sizeof(T) - 1));
  if constexpr (std::is_floating_point_v<T>) {
    if (value != value) return static_cast<U>(~U{0});
    const U bits = std::bit_cast<U>(value == T{} ? T{} : value);
    const U key = static_cast<U>((bits & kSign) ? ~bits : bits | kSign);
    return descending ? static_cast<U>(~key) : key;
  } else {
    const U bits = static_cast<U>(value);
    const U key = std::is_signed_v<T> ? static_cast<U>(bits ^ kSign) : bits;
    return descending ? static_cast<U>(~key) : key;
  }
}

// The sorted elements. Keys of up to 32 bits share a word with the index, so that the index breaks ties.
struct Narrow {
  std::uint64_t word;
  static Narrow make(std::uint64_t key, std::int64_t index) { return {key << 32 | static_cast<std::uint64_t>(index)}; }
  std::uint64_t key() const { return word >> 32; }
  std::int64_t index() const { return static_cast<std::int64_t>(word & 0xffffffffu); }
  friend bool operator<(const Narrow& a, const Narrow& b) { return a.word < b.word; }
};
struct Wide {
  std::uint64_t bits;
  std::int64_t at;
  static Wide make(std::uint64_t key, std::int64_t index) { return {key, index}; }
  std::uint64_t key() const { return bits; }
  std::int64_t index() const { return at; }
  friend bool operator<(const Wide& a, const Wide& b) { return a.bits != b.bits ? a.bits < b.bits : a.at < b.at; }
};

constexpr std::int64_t kComparisonSort = 512;  // below this, counting digits costs more than comparing
constexpr int kDigitBits = 11, kDigits = 1 << kDigitBits;
constexpr std::int64_t kNarrowExtent = std::int64_t{1} << 32;

// Least significant digit first, stable. Returns the buffer that holds the result. Digits that are the same in all keys are
// skipped.
template <class Item>
Item* radix_sort(Item* items, Item* other, std::int64_t n, int key_bits) {
  for (int shift = 0; shift < key_bits; shift += kDigitBits) {
    std::array<std::int64_t, kDigits> starts{};
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

template <class T, class Item>
void sort_lane(const T* in, std::int64_t in_step, std::int64_t* out, std::int64_t out_step, std::int64_t n, bool descending,
               Item* items, Item* other) {
  for (std::int64_t i = 0; i < n; ++i) items[i] = Item::make(key_of(in[i * in_step], descending), i);
  const Item* sorted = items;
  if (n < kComparisonSort) {
    std::sort(items, items + n);
  } else {
    sorted = radix_sort(items, other, n, 8 * static_cast<int>(sizeof(T)));
  }
  for (std::int64_t i = 0; i < n; ++i) out[i * out_step] = sorted[i].index();
}

bool is_narrow(DType dtype, std::int64_t extent) { return element_bytes(dtype) <= 4 && extent < kNarrowExtent; }

// Bytes one thread needs: two buffers of items.
std::size_t lane_bytes(DType dtype, std::int64_t extent) {
  const std::size_t item = is_narrow(dtype, extent) ? sizeof(Narrow) : sizeof(Wide);
  return (2 * item * static_cast<std::size_t>(extent) + 63) / 64 * 64;
}

template <class T, class Item>
void sort_lanes(ThreadPool& pool, const View& x, const ArgSortAttr& attr, const Target& out, std::span<std::byte> scratch) {
  const AxisLanes lanes(x.shape, attr.axis);
  const auto axis = static_cast<std::size_t>(attr.axis);
  const std::size_t per_thread = lane_bytes(x.dtype, lanes.extent());
  // With fewer lanes than threads there is memory for each lane, not for each thread.
  const bool by_lane = lanes.count() < pool.threads();
  const std::int64_t cost = 8 * lanes.extent();
  const auto sort_range = [&](std::int64_t begin, std::int64_t end, int slot) {
    auto* items = reinterpret_cast<Item*>(scratch.data() + per_thread * static_cast<std::size_t>(slot));
    for (std::int64_t lane = begin; lane < end; ++lane)
      sort_lane(static_cast<const T*>(x.data) + lanes.first(lane, x.strides), x.strides[axis],
                static_cast<std::int64_t*>(out.data) + lanes.first(lane, out.strides), out.strides[axis], lanes.extent(),
                attr.descending, items, items + lanes.extent());
  };
  if (by_lane && cost >= kGrain) {
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
  return lane_bytes(x.dtype, lanes.extent()) * static_cast<std::size_t>(std::min<std::int64_t>(pool.threads(), lanes.count()));
}

void arg_sort(ThreadPool& pool, const View& x, const ArgSortAttr& attr, const Target& out, std::span<std::byte> scratch) {
  if (out.shape.elements() == 0) return;
  if (scratch.size() < arg_sort_scratch_bytes(pool, x, attr.axis))
    throw Error(ErrorCode::internal, "arg_sort: not enough scratch memory");
  with_type(x.dtype, [&]<class T>(T) {
    if (sizeof(T) <= 4 && is_narrow(x.dtype, x.shape[attr.axis])) {
      sort_lanes<T, Narrow>(pool, x, attr, out, scratch);
    } else {
      sort_lanes<T, Wide>(pool, x, attr, out, scratch);
    }
  });
}

}  // namespace tenon::cpu
