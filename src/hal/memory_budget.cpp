#include "tenon/memory_budget.h"

#include <fmt/format.h>

#include "base/units.h"
#include "tenon/error.h"

namespace tenon {

std::shared_ptr<MemoryBudget> MemoryBudget::make(std::string device, std::uint64_t limit_bytes) {
  return std::shared_ptr<MemoryBudget>(new MemoryBudget(std::move(device), limit_bytes));
}

MemoryBudget::Share MemoryBudget::reserve(std::uint64_t bytes) {
  std::uint64_t used = used_bytes_.load(std::memory_order_relaxed);
  for (;;) {
    const std::uint64_t limit = limit_bytes();
    if (bytes > limit || used > limit - bytes)
      throw Error(ErrorCode::resource_exhausted,
                  fmt::format("{}: {} asked for, but {} of the budget of {} are in use", device_,
                              format_bytes(static_cast<double>(bytes)), format_bytes(static_cast<double>(used)),
                              format_bytes(static_cast<double>(limit))),
                  "drop tensors, use a smaller batch, or raise memory_fraction (tenon config)");
    if (used_bytes_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed)) break;
  }
  std::uint64_t peak = peak_bytes_.load(std::memory_order_relaxed);
  while (peak < used + bytes && !peak_bytes_.compare_exchange_weak(peak, used + bytes, std::memory_order_relaxed)) {
  }
  return Share(shared_from_this(), bytes);
}

}  // namespace tenon
