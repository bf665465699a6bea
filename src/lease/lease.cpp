#include "tenon/lease.h"

#include "lease/owner/device_owner.h"
#include "tenon/error.h"

namespace tenon {

std::string_view name(DeviceState state) noexcept {
  constexpr std::string_view names[] = {"closed", "waiting", "opening", "idle", "busy", "draining", "closing", "failed", "lost"};
  return names[static_cast<int>(state)];
}

std::string_view name(DeviceEvent::Kind kind) noexcept {
  constexpr std::string_view names[] = {"opened",  "open_failed", "closed",  "close_failed", "lost",
                                        "granted", "released",    "yielded", "ran"};
  return names[static_cast<int>(kind)];
}

Lease::Lease(Lease&&) noexcept = default;
Lease& Lease::operator=(Lease&&) noexcept = default;
Lease::~Lease() = default;

const DeviceInfo& Lease::device() const {
  if (!grant_) throw Error(ErrorCode::failed_precondition, "this lease is empty: it was moved from or released");
  return grant_->owner->device();
}

std::uint64_t Lease::epoch() const noexcept { return grant_ ? grant_->owner->epoch() : 0; }

bool Lease::should_yield() const noexcept { return grant_ && grant_->owner->should_yield(); }

void Lease::release() noexcept { grant_.reset(); }

}  // namespace tenon
