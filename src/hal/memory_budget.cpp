#include "tenon/backend/memory_budget.h"

#include <fmt/format.h>

#include "base/text/units.h"
#include "tenon/error.h"

namespace tenon {
namespace {

std::string text(std::uint64_t bytes) { return format_bytes(static_cast<double>(bytes)); }

// "17.7 GiB (75 % of 23.5 GiB)"
std::string budget_text(std::uint64_t limit, std::uint64_t device_bytes) {
  if (device_bytes <= limit) return text(limit);
  return fmt::format("{} ({:.0f} % of {})", text(limit), 100 * static_cast<double>(limit) / static_cast<double>(device_bytes),
                     text(device_bytes));
}

[[noreturn]] void refuse(const std::string& device, std::uint64_t bytes, std::uint64_t used, std::uint64_t limit,
                         std::uint64_t device_bytes) {
  const std::string budget = budget_text(limit, device_bytes);
  if (bytes <= limit)
    throw Error(
        ErrorCode::resource_exhausted,
        fmt::format("{}: {} are needed, but {} of the memory budget of {} are in use", device, text(bytes), text(used), budget),
        "free tensors, use a smaller batch, or raise the setting memory_fraction");
  const bool can_be_raised = device_bytes == 0 || bytes <= device_bytes;
  throw Error(ErrorCode::resource_exhausted,
              fmt::format("{}: {} are needed; the memory budget is {}", device, text(bytes), budget),
              can_be_raised ? "use a smaller batch, or raise the setting memory_fraction"
                            : "use a smaller batch, or a device with more memory");
}

}  // namespace

std::shared_ptr<MemoryBudget> MemoryBudget::make(std::string device, std::uint64_t limit_bytes, std::uint64_t device_bytes) {
  return std::shared_ptr<MemoryBudget>(new MemoryBudget(std::move(device), limit_bytes, device_bytes));
}

MemoryBudget::Share MemoryBudget::reserve(std::uint64_t bytes) {
  std::uint64_t used = used_bytes_.load(std::memory_order_relaxed);
  for (;;) {
    const std::uint64_t limit = limit_bytes();
    if (bytes > limit || used > limit - bytes) refuse(device_, bytes, used, limit, device_bytes_);
    if (used_bytes_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed)) break;
  }
  std::uint64_t peak = peak_bytes_.load(std::memory_order_relaxed);
  while (peak < used + bytes && !peak_bytes_.compare_exchange_weak(peak, used + bytes, std::memory_order_relaxed)) {
  }
  return Share(shared_from_this(), bytes);
}

}  // namespace tenon
