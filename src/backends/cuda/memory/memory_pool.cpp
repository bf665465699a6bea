#include "backends/cuda/memory/memory_pool.h"

#include <algorithm>
#include <bit>

namespace tenon::cuda {
namespace {

// Large blocks are at most an eighth larger than requested, in the driver's own steps of 2 MiB.
std::uint64_t large_class(std::uint64_t bytes) {
  const std::uint64_t step = std::max(MemoryPool::kSlabBytes, std::bit_ceil(bytes) >> 4);
  return (bytes + step - 1) / step * step;
}

}  // namespace

MemoryPool::MemoryPool(Source source) : source_(std::move(source)) {
  // Four classes per power of two, in steps of at least 256 bytes.
  for (std::uint64_t bytes = 512; bytes <= kLargestSmall; bytes += std::max<std::uint64_t>(256, std::bit_floor(bytes) / 4))
    small_.push_back({bytes, {}});
}

DevicePointer MemoryPool::lowest(std::vector<DevicePointer>& kept) {
  std::ranges::pop_heap(kept, std::greater());
  const DevicePointer address = kept.back();
  kept.pop_back();
  return address;
}

void MemoryPool::keep(std::vector<DevicePointer>& kept, DevicePointer address) {
  kept.push_back(address);
  std::ranges::push_heap(kept, std::greater());
}

MemoryPool::Class* MemoryPool::small_class(std::uint64_t bytes) noexcept {
  const auto found = std::lower_bound(small_.begin(), small_.end(), bytes,
                                      [](const Class& c, std::uint64_t wanted) { return c.bytes < wanted; });
  return found == small_.end() ? nullptr : &*found;
}

std::optional<MemoryPool::Block> MemoryPool::allocate(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (is_closed_) return std::nullopt;
  if (Class* small = small_class(bytes)) {
    if (small->kept.empty() && !cut_slab(*small)) return std::nullopt;
    return Block{lowest(small->kept), small->bytes};
  }
  const std::uint64_t size = large_class(bytes);
  if (const auto kept = large_.find(size); kept != large_.end() && !kept->second.empty())
    return Block{lowest(kept->second), size};
  const std::optional<DevicePointer> address = take(size);
  if (!address) return std::nullopt;
  large_[size].reserve(large_[size].size() + 1);  // so that giving back cannot fail
  return Block{*address, size};
}

std::optional<DevicePointer> MemoryPool::take(std::uint64_t bytes) {
  if (source_.limit_bytes && held_bytes_ + bytes > source_.limit_bytes()) trim_locked();
  std::optional<DevicePointer> address = source_.take(bytes);
  if (!address) {
    trim_locked();
    address = source_.take(bytes);
  }
  if (!address) return std::nullopt;
  from_driver_[*address] = bytes;
  held_bytes_ += bytes;
  return address;
}

bool MemoryPool::cut_slab(Class& of) {
  const std::optional<DevicePointer> slab = take(kSlabBytes);
  if (!slab) return false;
  slabs_[*slab] = &of;
  const std::uint64_t count = kSlabBytes / of.bytes;
  of.kept.reserve(of.kept.capacity() + count);
  for (std::uint64_t i = 0; i < count; ++i) keep(of.kept, *slab + i * of.bytes);
  return true;
}

void MemoryPool::give_back(const Block& block) noexcept {
  const std::lock_guard lock(mutex_);
  if (is_closed_ || block.address == 0) return;
  if (Class* small = small_class(block.bytes))
    keep(small->kept, block.address);
  else
    keep(large_[block.bytes], block.address);
}

void MemoryPool::lend(const Block& block) {
  const std::lock_guard lock(mutex_);
  if (!is_closed_) ++lent_[base_of(block)];
}

void MemoryPool::take_back(const Block& block) noexcept {
  const std::lock_guard lock(mutex_);
  if (lent_.empty()) return;  // it was lost
  const DevicePointer base = base_of(block);
  const auto lent = lent_.find(base);
  if (lent == lent_.end() || --lent->second > 0) return;
  lent_.erase(lent);
  if (!is_closed_) return;
  from_driver_.erase(base);
  source_.give_back(base);
}

DevicePointer MemoryPool::base_of(const Block& block) const { return std::prev(from_driver_.upper_bound(block.address))->first; }

void MemoryPool::trim() noexcept {
  const std::lock_guard lock(mutex_);
  if (!is_closed_) trim_locked();
}

void MemoryPool::trim_locked() noexcept {
  const auto release = [&](DevicePointer address) {
    const auto known = from_driver_.find(address);
    held_bytes_ -= known->second;
    from_driver_.erase(known);
    source_.give_back(address);
  };
  for (auto& [bytes, kept] : large_) {
    for (const DevicePointer address : kept) release(address);
    kept.clear();
  }
  // Unused blocks of a slab are counted only here, so that allocating and releasing stay fast.
  std::map<DevicePointer, std::uint64_t> unused;
  const auto slab_of = [&](DevicePointer address) { return std::prev(slabs_.upper_bound(address))->first; };
  for (const Class& of : small_)
    for (const DevicePointer address : of.kept) ++unused[slab_of(address)];
  for (const auto& [slab, count] : unused) {
    Class& of = *slabs_.at(slab);
    if (count != kSlabBytes / of.bytes) continue;
    std::erase_if(of.kept, [&](DevicePointer address) { return address >= slab && address < slab + kSlabBytes; });
    std::ranges::make_heap(of.kept, std::greater());
    slabs_.erase(slab);
    release(slab);
  }
}

void MemoryPool::close() noexcept {
  const std::lock_guard lock(mutex_);
  if (is_closed_) return;
  is_closed_ = true;
  for (const auto& [address, bytes] : from_driver_)
    if (!lent_.contains(address)) source_.give_back(address);
  std::erase_if(from_driver_, [&](const auto& allocation) { return !lent_.contains(allocation.first); });
  held_bytes_ = 0;
}

void MemoryPool::abandon() noexcept {
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
  from_driver_.clear();
  lent_.clear();
  held_bytes_ = 0;
}

std::uint64_t MemoryPool::held_bytes() const {
  const std::lock_guard lock(mutex_);
  return held_bytes_;
}

}  // namespace tenon::cuda
