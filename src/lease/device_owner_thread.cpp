// The owner thread of a device: everything that opens and closes it.
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <cmath>

#include "base/log.h"
#include "base/units.h"
#include "lease/device_owner.h"
#include "lease/device_request.h"
#include "tenon/error.h"

namespace tenon {
namespace {

using Clock = DeviceOwner::Clock;

constexpr double kSlowOpenSeconds = 0.5;
constexpr int kOpenAttempts = 3;
constexpr std::chrono::milliseconds kRetryDelay{20};
// In the first moments of a hold a pause as short as this between two operations is not idleness: without it two processes that
// compute in turn would open and close the device for every operation.
constexpr std::chrono::milliseconds kPause{5};
constexpr std::chrono::seconds kOverdue{30};
constexpr std::chrono::seconds kSpillRetry{1};
// How often to look for waiters of other processes where their coming cannot be watched.
constexpr std::chrono::milliseconds kLookInterval{50};

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

Clock::duration duration_of(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(std::min(seconds, 1e9)));
}

bool is_worth_retrying(const Error& error) {
  return error.code() == ErrorCode::unavailable || error.code() == ErrorCode::aborted;
}

}  // namespace

void DeviceOwner::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (is_lost_ && operations_ == 0) {
      bury_lost_device(lock);
      continue;
    }
    if (stopping_ && operations_ == 0) break;
    if (device_) {
      const CloseReason reason = close_reason(Clock::now());
      if (reason != CloseReason::none && operations_ == 0) {
        close_device(lock, reason);
        continue;
      }
      if (reason != CloseReason::none) {
        draining_ = true;
        if (state_ != DeviceState::draining) set_state(DeviceState::draining, "to be closed when the operation ends");
      } else if (draining_ && !is_lost_) {
        draining_ = false;  // whoever waited has gone away
        if (state_ == DeviceState::draining) set_state(holders_.empty() ? DeviceState::idle : DeviceState::busy, "");
      }
      grant_waiting();
    } else if (!queue_.empty()) {
      open_device(lock);
      continue;
    }
    sleep_until_event(lock);
  }
  fail_waiting({ErrorCode::cancelled, device().id + ": its manager is gone", ""});
  if (device_) close_device(lock, CloseReason::shut_down);
  thread_ended_ = true;
  closed_.notify_all();
}

DeviceOwner::CloseReason DeviceOwner::close_reason(Clock::time_point now) const {
  if (close_requested_) return CloseReason::request;
  if (foreign_waiting_) {
    if (quantum_is_over(now)) return CloseReason::yield;
    if (holders_.empty() && queue_.empty()) {
      const bool is_young = now < held_since_ + duration_of(min_hold());
      if (!is_young || now >= idle_since_ + kPause) return CloseReason::yield;
    }
  }
  if (holders_.empty() && !queue_.empty() && options_.turnstile && needs_exclusive_ticket(*queue_.front()) &&
      pass_.kind() == TicketKind::shared)
    return CloseReason::exclusive_lease;
  if (holders_.empty() && queue_.empty() && now >= close_at_) return CloseReason::policy;
  return CloseReason::none;
}

DeviceOwner::Clock::time_point DeviceOwner::next_deadline() const {
  Clock::time_point next = Clock::time_point::max();
  if (!device_) return next;
  const bool is_idle = holders_.empty() && queue_.empty();
  if (is_idle) next = close_at_;
  if (foreign_waiting_) {
    if (is_idle) next = std::min(next, idle_since_ + kPause);
    const Clock::time_point quantum_end = held_since_ + duration_of(quantum());
    next = std::min(next, draining_ ? quantum_end + kOverdue : quantum_end);
    if (overdue_logged_ && draining_) next = Clock::time_point::max();
  }
  if (pass_ && !watch_) next = std::min(next, Clock::now() + kLookInterval);
  return next;
}

void DeviceOwner::sleep_until_event(std::unique_lock<std::mutex>& lock) {
  const Clock::time_point deadline = next_deadline();
  wakes_at_ = deadline;
  is_asleep_ = true;
  const bool has_pass = static_cast<bool>(pass_);
  pollfd fds[2] = {{event_.get(), POLLIN, 0}, {has_pass && watch_ ? watch_->fd() : -1, POLLIN, 0}};
  timespec wait{};
  const timespec* timeout = nullptr;
  if (deadline != Clock::time_point::max()) {
    const auto left = std::max(Clock::duration::zero(), deadline - Clock::now());
    wait.tv_sec = std::chrono::duration_cast<std::chrono::seconds>(left).count();
    wait.tv_nsec = (left % std::chrono::seconds(1)).count();
    timeout = &wait;
  }
  lock.unlock();
  ppoll(fds, 2, timeout, nullptr);
  if (fds[0].revents) {
    eventfd_t ignored;
    eventfd_read(event_.get(), &ignored);
  }
  if (fds[1].revents) watch_->clear();
  lock.lock();
  is_asleep_ = false;
  wakes_at_ = Clock::time_point::min();  // awake: it looks at everything before it sleeps again
  if (fds[1].revents || foreign_waiting_ || !watch_) look_for_waiters();
  if (foreign_waiting_ && draining_ && !overdue_logged_ && Clock::now() >= held_since_ + duration_of(quantum()) + kOverdue) {
    overdue_logged_ = true;
    logging::warn("{}: an operation of this process runs on although others wait for the device and its time is up", device().id);
  }
}

void DeviceOwner::look_for_waiters() {
  if (!pass_) return;
  try {
    foreign_waiting_ = pass_.has_waiters();
  } catch (const Error& error) {
    logging::warn("{}: cannot see who waits: {}", device().id, error.what());
  }
}

bool DeviceOwner::enter_turnstile(std::unique_lock<std::mutex>& lock, TicketKind kind) {
  if (!options_.turnstile) return true;
  opening_ = std::stop_source();
  Turnstile::Options options;
  options.kind = kind;
  options.cancel = opening_.get_token();
  options.on_wait = [&](TicketNumber ticket) {
    const std::lock_guard locked(mutex_);
    waiting_ticket_ = ticket;
    state_reason_ = "another process has it";
    for (Request* request : queue_) request->changed.notify_one();  // some only try
  };
  Turnstile::Pass pass;
  std::optional<Failure> failure;
  lock.unlock();
  try {
    pass = options_.turnstile->enter(options);
  } catch (const std::exception& error) {
    failure = Failure::of(error);
  }
  if (pass && !watch_) try {
      watch_ = options_.turnstile->watch();
    } catch (const std::exception& error) {
      logging::info("{}; looking for those who wait every {} instead", error.what(),
                    format_seconds(std::chrono::duration<double>(kLookInterval).count()));
    }
  lock.lock();
  waiting_ticket_ = 0;
  if (failure) {
    const bool was_cancelled = opening_.stop_requested();
    set_state(DeviceState::closed, "nobody waits for it any more");
    if (!was_cancelled) {
      set_state(DeviceState::failed, "no place in the queue of processes");
      fail_waiting(*failure);
    }
    return false;
  }
  pass_ = std::move(pass);
  if (queue_.empty() || stopping_) {
    pass_.give_back();
    set_state(DeviceState::closed, "nobody waits for it any more");
    return false;
  }
  if (pass_.is_dirty()) ++counters_.dirty_grants;
  return true;
}

void DeviceOwner::open_device(std::unique_lock<std::mutex>& lock) {
  set_state(DeviceState::opening, "waiting for its turn");
  const TicketKind kind = needs_exclusive_ticket(*queue_.front()) ? TicketKind::exclusive : TicketKind::shared;
  if (!enter_turnstile(lock, kind)) return;

  set_state(DeviceState::opening, "being opened");
  const bool is_dirty = pass_.is_dirty();
  lock.unlock();
  const Clock::time_point start = Clock::now();
  std::shared_ptr<OpenDevice> opened;
  std::optional<Failure> failure;
  try {
    if (is_dirty) {
      logging::warn("{}: its last user died or left it in doubt; bringing it into a known state", device().id);
      options_.backend->recover(device());
    }
    opened = open_with_retries();
  } catch (const std::exception& error) {
    failure = Failure::of(error);
  }
  const double seconds = seconds_since(start);
  if (opened) {
    logging::info("{} opened in {}", device().id, format_seconds(seconds));
    if (seconds > kSlowOpenSeconds) logging::warn("{} took {} to open", device().id, format_seconds(seconds));
  } else {
    logging::warn("{} could not be opened: {}", device().id, failure->message);
  }
  lock.lock();
  ++openings_;
  last_open_seconds_ = seconds;
  counters_.open_seconds += seconds;
  if (failure) {
    ++counters_.open_failures;
    give_pass_back(true);
    set_state(DeviceState::failed, "could not be opened: " + failure->message);
    fail_waiting(*failure);
    lock.unlock();
    send(DeviceEvent::Kind::open_failed, seconds, failure->message);
    lock.lock();
    return;
  }
  ++counters_.opens;
  break_even_.record_open(seconds);
  if (break_even_.seconds() > 0) policy_.set_break_even(break_even_.seconds());
  device_ = opened;
  residency_ = std::make_shared<Residency>(device().id, std::move(opened), tensor_counters_);
  executables_ = std::make_shared<ExecutableCache>();
  held_since_ = Clock::now();
  overdue_logged_ = false;
  const std::uint64_t epoch = pass_.epoch();
  if (holders_.empty()) {
    const bool gap_was_open = gap_is_open_;
    const Clock::time_point idle_before = idle_since_;
    set_state(DeviceState::idle, "");
    grant_waiting();
    if (holders_.empty()) {  // whoever asked has given up meanwhile
      became_idle(held_since_);
      if (gap_was_open) idle_since_ = idle_before;
    }
  } else {
    set_state(DeviceState::busy, "");
    busy_since_ = held_since_;
    grant_waiting();
  }
  look_for_waiters();
  lock.unlock();
  send(DeviceEvent::Kind::opened, seconds, {}, epoch);
  lock.lock();
}

std::shared_ptr<OpenDevice> DeviceOwner::open_with_retries() {
  for (int attempt = 1;; ++attempt) try {
      return options_.backend->open(device(), {.budget = options_.budget, .fuse = options_.fuse});
    } catch (const Error& error) {
      if (attempt == kOpenAttempts || !is_worth_retrying(error) || opening_.stop_requested()) throw;
      std::this_thread::sleep_for(kRetryDelay * attempt);
    }
}

void DeviceOwner::close_device(std::unique_lock<std::mutex>& lock, CloseReason reason) {
  const bool is_forced = reason == CloseReason::shut_down;
  // Another process may have given up in the meantime; then there is nobody to close for.
  if (reason == CloseReason::yield) {
    look_for_waiters();
    if (!foreign_waiting_) return;
  }
  const Clock::time_point start = Clock::now();
  if (holders_.empty()) {
    counters_.idle_seconds += std::chrono::duration<double>(start - std::max(idle_since_, held_since_)).count();
    // How long the idle time would have been nobody knows now, except where the policy itself ended it.
    if (reason != CloseReason::policy && std::exchange(gap_is_open_, false))
      policy_.record_gap(std::max(0.0, std::chrono::duration<double>(start - idle_since_).count()), true);
  } else {
    counters_.busy_seconds += std::chrono::duration<double>(start - busy_since_).count();
  }
  draining_ = true;  // no operation begins while the mutex is free
  set_state(DeviceState::closing, "tensors move to host memory");
  const std::shared_ptr<OpenDevice> device = device_;
  const std::shared_ptr<Residency> residency = residency_;
  lock.unlock();

  bool has_spilled = residency->spill();
  if (!has_spilled && is_forced) {
    residency->lose("its memory could not be read when it closed");
    has_spilled = true;
  }
  if (!has_spilled) {
    logging::error("{} stays open: its tensors could not be moved to host memory", this->device().id);
    lock.lock();
    draining_ = close_requested_ = false;
    set_state(holders_.empty() ? DeviceState::idle : DeviceState::busy, "its tensors could not be moved to host memory");
    close_at_ = Clock::now() + kSpillRetry;
    held_since_ = Clock::now();
    closed_.notify_all();
    return;
  }
  std::string failure;
  lock.lock();
  executables_.reset();
  residency_.reset();
  device_.reset();
  lock.unlock();
  try {
    device->close();
  } catch (const std::exception& error) {
    failure = error.what();
  }
  const double seconds = seconds_since(start);
  if (failure.empty())
    logging::info("{} closed in {}", this->device().id, format_seconds(seconds));
  else
    logging::warn("{} did not close properly: {}", this->device().id, failure);

  lock.lock();
  const std::uint64_t epoch = pass_.epoch();
  if (failure.empty()) {
    close_failures_in_a_row_ = 0;
  } else {
    ++counters_.close_failures;
    if (++close_failures_in_a_row_ == 3) logging::error("{} failed to close three times in a row", this->device().id);
  }
  ++counters_.closes;
  if (reason == CloseReason::yield) ++counters_.yields;
  counters_.close_seconds += seconds;
  break_even_.record_close(seconds);
  if (break_even_.seconds() > 0) policy_.set_break_even(break_even_.seconds());
  give_pass_back(!failure.empty() || device->is_lost());
  draining_ = close_requested_ = false;
  constexpr const char* kReasons[] = {
      "", "idle", "given to another process", "on request", "for an exclusive lease", "its manager is gone"};
  set_state(DeviceState::closed, kReasons[static_cast<int>(reason)]);
  closed_.notify_all();
  lock.unlock();
  if (reason == CloseReason::yield) send(DeviceEvent::Kind::yielded, seconds, {}, epoch);
  send(failure.empty() ? DeviceEvent::Kind::closed : DeviceEvent::Kind::close_failed, seconds, failure, epoch);
  lock.lock();
}

void DeviceOwner::bury_lost_device(std::unique_lock<std::mutex>& lock) {
  const std::shared_ptr<OpenDevice> device = device_;
  const std::shared_ptr<Residency> residency = residency_;
  set_state(DeviceState::closing, "it was lost");
  executables_.reset();
  residency_.reset();
  device_.reset();
  lock.unlock();
  logging::error("{} was lost", this->device().id);
  residency->lose(this->device().id + " was lost");
  try {
    device->close();
  } catch (const std::exception&) {
    // It is gone; there is nothing to close properly.
  }
  lock.lock();
  ++counters_.lost;
  const std::uint64_t epoch = pass_.epoch();
  give_pass_back(true);
  is_lost_ = draining_ = close_requested_ = false;
  gap_is_open_ = false;
  set_state(DeviceState::lost, "it went away while it was open");
  closed_.notify_all();
  lock.unlock();
  send(DeviceEvent::Kind::lost, 0, "it went away while it was open", epoch);
  lock.lock();
}

void DeviceOwner::give_pass_back(bool dirty) {
  if (dirty)
    pass_.give_back_dirty();
  else
    pass_.give_back();
  pass_ = Turnstile::Pass();
  foreign_waiting_ = false;
}

}  // namespace tenon
