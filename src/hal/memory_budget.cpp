#include "tenon/memory_budget.h"

#include <fmt/format.h>

#include "base/units.h"
#include "tenon/error.h"

namespace tenon {
namespace {

[[noreturn]] void refuse(const std::string& device, std::uint64_t bytes, std::uint64_t used, std::uint64_t limit) {
  const auto text = [](std::uint64_t count) { return format_bytes(static_cast<double>(count)); };
  const bool can_ever_fit = bytes <= limit;
  throw Error(ErrorCode::resource_exhausted,
              can_ever_fit ? fmt::format("{}: {} needed, but {} of the memory budget of {} are in use", device, text(bytes),
                                         text(used), text(limit))
                           : fmt::format("{}: {} needed, but the memory budget is {}", device, text(bytes), text(limit)),
              can_ever_fit ? "free tensors, use a smaller batch, or raise the setting memory_fraction"
                           : "use a smaller batch, or raise the setting memory_fraction");
}

}  // namespace

std::shared_ptr<MemoryBudget> MemoryBudget::make(std::string device, std::uint64_t limit_bytes) {
  return std::shared_ptr<MemoryBudget>(new MemoryBudget(std::move(device), limit_bytes));
}

MemoryBudget::Share MemoryBudget::reserve(std::uint64_t bytes) {
  std::uint64_t used = used_bytes_.load(std::memory_order_relaxed);
  for (;;) {
    const std::uint64_t limit = limit_bytes();
    if (bytes > limit || used > limit - bytes) refuse(device_, bytes, used, limit);
    if (used_bytes_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed)) break;
  }
  std::uint64_t peak = peak_bytes_.load(std::memory_order_relaxed);
  while (peak < used + bytes && !peak_bytes_.compare_exchange_weak(peak, used + bytes, std::memory_order_relaxed)) {
  }
  return Share(shared_from_this(), bytes);
}

}  // namespace tenon
