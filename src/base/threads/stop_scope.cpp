#include "base/threads/stop_scope.h"

#include <algorithm>

#include "base/text/units.h"
#include "base/threads/turn.h"
#include "tenon/error.h"

namespace tenon {
namespace {

constinit thread_local const StopScope* innermost = nullptr;

// Far from the end of the clock's range, so that adding it to a time cannot overflow.
constexpr std::chrono::nanoseconds kLongest = std::chrono::hours(24 * 365);

}  // namespace

StopScope::StopScope(std::stop_token cancel, std::optional<std::chrono::nanoseconds> limit) noexcept
    : outer_(innermost),
      cancel_(std::move(cancel)),
      limit_(limit),
      deadline_(limit ? Clock::now() + std::clamp<std::chrono::nanoseconds>(*limit, {}, kLongest) : Clock::time_point::max()) {
  if (limit_ || cancel_.stop_possible()) innermost = this;
}

StopScope::~StopScope() { innermost = outer_; }

const StopScope* StopScope::current() noexcept { return innermost; }

bool StopScope::is_cancelled() const noexcept { return cancel_.stop_requested() || (outer_ && outer_->is_cancelled()); }

bool StopScope::is_expired() const noexcept { return (limit_ && Clock::now() >= deadline_) || (outer_ && outer_->is_expired()); }

void StopScope::check() const {
  if (Turn* const turn = Turn::current()) turn->offer();
  if (is_met()) raise();
}

void StopScope::raise() const {
  for (const StopScope* scope = this; scope; scope = scope->outer_) {
    if (scope->cancel_.stop_requested()) break;
    if (scope->limit_ && Clock::now() >= scope->deadline_)
      throw Error(
          ErrorCode::deadline_exceeded,
          "the run was stopped at its time limit of " + format_seconds(std::chrono::duration<double>(*scope->limit_).count()),
          "use smaller tensors, or split the work");
  }
  throw Error(ErrorCode::cancelled, "the run was cancelled while it computed");
}

StopScope::Borrow::Borrow(const StopScope* scope) noexcept : own_(innermost) { innermost = scope; }
StopScope::Borrow::~Borrow() { innermost = own_; }

}  // namespace tenon
