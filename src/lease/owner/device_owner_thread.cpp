// The owner thread of a device and the transitions of its state.
#include <fmt/format.h>

#include <cassert>

#include "base/log.h"
#include "base/text/units.h"
#include "base/threads/stop_scope.h"
#include "lease/owner/device_owner.h"

namespace tenon {
namespace {

constexpr double kSlowOpenSeconds = 0.5;
constexpr int kOpenAttempts = 3;
constexpr std::chrono::milliseconds kRetryDelay{20};
// In the first moments of a hold a pause this short between two operations does not count as idle: otherwise two processes that
// compute in turn would open and close the device for every operation.
constexpr std::chrono::milliseconds kPause{5};
constexpr std::chrono::seconds kOverdue{30};
constexpr std::chrono::seconds kSpillRetry{1};
// How often to look for waiting processes where their arrival cannot be watched.
constexpr std::chrono::milliseconds kLookInterval{50};
constexpr int kAlarmingCloseFailures = 3;
// How long operations may take to fail after their device was abandoned.
constexpr std::chrono::seconds kAbandonGrace{5};

bool is_worth_retrying(const Error& error) {
  return error.code() == ErrorCode::unavailable || error.code() == ErrorCode::aborted;
}

Usage::Period period_of(DeviceState state) {
  switch (state) {
    case DeviceState::opening: return Usage::Period::opening;
    case DeviceState::idle: return Usage::Period::idle;
    case DeviceState::busy:
    case DeviceState::draining: return Usage::Period::busy;
    case DeviceState::closing: return Usage::Period::closing;
    case DeviceState::closed:
    case DeviceState::waiting:
    case DeviceState::failed:
    case DeviceState::lost: break;
  }
  return Usage::Period::closed;
}

// False if a value could not be moved.
bool empty_memory(Residency& residency, bool is_lost, bool is_forced) {
  if (is_lost) {
    residency.lose(residency.device_id() + " was lost");
    return true;
  }
  if (residency.spill()) return true;
  if (is_forced) residency.lose("its memory could not be read before it closed");
  return is_forced;
}

}  // namespace

void DeviceOwner::enter(DeviceState state, std::string_view reason, Clock::Time now) {
  state_ = state;
  if (reason.empty())
    state_reason_.clear();  // with every lease: an assignment costs more
  else
    state_reason_ = reason;
  state_since_ = now;
  usage_.begin(period_of(state), now);
}

void DeviceOwner::note_failure() {
  failed_at_ = now();
  has_failed_.store(true, std::memory_order_relaxed);
}

void DeviceOwner::begin_opening() {
  assert(!session_ && !opening_);
  opening_.emplace();
  open_ = std::stop_source();
  enter(DeviceState::waiting, "waiting in the queue", now());
}

void DeviceOwner::abandon_opening() {
  opening_.reset();
  enter(DeviceState::closed, "no request is waiting any more", now());
}

void DeviceOwner::fail_opening(const Failure& failure, std::string_view reason) {
  opening_.reset();
  enter(DeviceState::failed, reason, now());
  note_failure();
  queue_.fail_all(failure);
  closed_.notify_all();
}

void DeviceOwner::finish_opening(std::unique_ptr<OpenSession> session) {
  opening_.reset();
  session_ = std::move(session);
  session_->look_for_waiters();
  rest(session_->held_since);
  grant_waiting(session_->held_since);
  if (holders_.empty()) times_.opened_for_nobody(session_->held_since);  // the request was withdrawn meanwhile
}

void DeviceOwner::rest(Clock::Time now, std::string_view reason) {
  session_->idle_since = now;
  session_->close_at = times_.idle_until(now);
  enter(holders_.empty() ? DeviceState::idle : DeviceState::busy, reason, now);
}

void DeviceOwner::drain(CloseReason reason) {
  if (reason == CloseReason::lost) note_failure();
  if (is_open_for_use()) {
    close_reason_ = reason;
    enter(DeviceState::draining, "closes when the operation ends", now());
  } else if (state_ == DeviceState::draining) {
    close_reason_ = std::max(close_reason_, reason);
  }
  resumed_.notify_all();
  sleeper_.wake();
}

void DeviceOwner::begin_closing() {
  assert(state_ == DeviceState::draining && session_->operations == 0);
  const bool is_lost = close_reason_ == CloseReason::lost;
  if (is_lost)
    times_.forget_idle_time();
  else if (holders_.empty() && close_reason_ != CloseReason::policy)
    times_.idle_time_cut_short(now());
  enter(DeviceState::closing, is_lost ? "it was lost" : "tensors move to host memory", now());
}

void DeviceOwner::stay_open() {
  logging::error("{} stays open: its tensors could not be moved to host memory", device().id);
  const Clock::Time now = this->now();
  session_->held_since = now;
  session_->retry_at = now + kSpillRetry;
  rest(now, "its tensors could not be moved to host memory");
  closed_.notify_all();
}

void DeviceOwner::finish_closing() {
  constexpr std::string_view kReasons[] = {"closed after being idle",         "for an exclusive lease",
                                           "yielded to another process",      "on request",
                                           "its DeviceManager was destroyed", "it failed while it was open"};
  enter(close_reason_ == CloseReason::lost ? DeviceState::lost : DeviceState::closed, kReasons[static_cast<int>(close_reason_)],
        now());
  closed_.notify_all();
}

void DeviceOwner::run() {
  std::unique_lock lock(mutex_);
  while (thread_state_ == Thread::running || session_) step(lock);
  thread_state_ = Thread::ended;
  closed_.notify_all();
}

void DeviceOwner::step(std::unique_lock<std::mutex>& lock) {
  if (session_ && now() >= session_->first_overdue()) return abandon_device(lock);
  switch (state_) {
    case DeviceState::closed:
    case DeviceState::failed:
    case DeviceState::lost: return queue_.empty() ? sleep_until_event(lock) : open_device(lock);
    case DeviceState::idle:
    case DeviceState::busy:
      if (const std::optional<CloseReason> reason = reason_to_close(now())) return drain(*reason);
      grant_waiting(now());
      return sleep_until_event(lock);
    case DeviceState::draining:
      if (close_reason_ == CloseReason::yield && !session_->look_for_waiters()) return rest(now());
      return session_->operations > 0 ? sleep_until_event(lock) : close_device(lock);
    case DeviceState::waiting:
    case DeviceState::opening:
    case DeviceState::closing: break;  // left before open_device() and close_device() return
  }
}

std::optional<DeviceOwner::CloseReason> DeviceOwner::reason_to_close(Clock::Time now) const {
  const OpenSession& session = *session_;
  if (thread_state_ == Thread::stopping) return CloseReason::shut_down;
  if (now < session.retry_at) return std::nullopt;
  if (quantum_is_over(now)) return CloseReason::yield;
  if (state_ != DeviceState::idle) return std::nullopt;
  if (!queue_.empty()) return has_ticket_for(queue_.front()) ? std::nullopt : std::optional(CloseReason::exclusive_lease);
  if (session.others_wait && (now >= session.held_since + times_.min_hold() || now >= session.idle_since + kPause))
    return CloseReason::yield;
  return now >= session.close_at ? std::optional(CloseReason::policy) : std::nullopt;
}

// When reason_to_close() may have another answer although nothing has happened.
Clock::Time DeviceOwner::next_deadline(Clock::Time now) const {
  if (!session_) return Clock::kNever;
  const OpenSession& session = *session_;
  Clock::Time next = Clock::kNever;
  if (state_ == DeviceState::idle) next = queue_.empty() ? session.close_at : now;
  if (session.others_wait) {
    if (state_ == DeviceState::idle) next = std::min(next, session.idle_since + kPause);
    const Clock::Time quantum_end = session.held_since + times_.quantum();
    if (state_ != DeviceState::draining) next = std::min(next, quantum_end);
    if (state_ == DeviceState::draining && !session.overdue_is_logged) next = quantum_end + kOverdue;
  }
  next = std::min(std::max(next, session.retry_at), session.first_overdue());
  return session.pass && !watch_ ? std::min(next, now + kLookInterval) : next;
}

void DeviceOwner::sleep_until_event(std::unique_lock<std::mutex>& lock) {
  const bool is_watching = session_ && session_->pass && watch_;
  const bool others_came = sleeper_.sleep(lock, *options_.clock, next_deadline(now()), is_watching ? watch_->fd() : -1);
  if (others_came) watch_->clear();
  if (!session_) return;
  OpenSession& session = *session_;
  if (others_came || session.others_wait || !watch_) session.look_for_waiters();
  if (state_ == DeviceState::draining && session.others_wait && !session.overdue_is_logged &&
      now() >= session.held_since + times_.quantum() + kOverdue) {
    session.overdue_is_logged = true;
    logging::warn("{}: an operation of this process still runs although others wait and its quantum is over", device().id);
  }
}

// None: the state is not opening any more.
std::optional<Turnstile::Pass> DeviceOwner::enter_turnstile(std::unique_lock<std::mutex>& lock) {
  Turnstile::Pass pass;
  if (!options_.turnstile) return pass;
  const std::stop_source opening = *opening_;
  Turnstile::Options options;
  options.kind = needs_exclusive_ticket(queue_.front()) ? TicketKind::exclusive : TicketKind::shared;
  options.cancel = opening.get_token();
  options.on_wait = [&](TicketNumber ticket) {
    const std::lock_guard locked(mutex_);
    state_reason_ = "held by another process";
    queue_.wait_behind(ticket);
  };
  std::optional<Failure> failure;
  lock.unlock();
  try {
    pass = options_.turnstile->enter(options);
    if (!watch_) watch_ = options_.turnstile->watch();
  } catch (const std::exception& error) {
    if (pass)
      logging::info("{}; looking for waiting processes every {} instead", error.what(),
                    format_seconds(std::chrono::duration<double>(kLookInterval).count()));
    else
      failure = Failure::of(error);
  }
  lock.lock();
  queue_.wait_behind(0);
  if (failure && !opening.stop_requested()) {
    fail_opening(*failure, "could not join the queue between processes");
    return std::nullopt;
  }
  if (failure || queue_.empty()) {
    pass.give_back();
    abandon_opening();
    return std::nullopt;
  }
  usage_.counters.dirty_grants += pass.is_dirty();
  return pass;
}

void DeviceOwner::open_device(std::unique_lock<std::mutex>& lock) {
  begin_opening();
  std::optional<Turnstile::Pass> pass = enter_turnstile(lock);
  if (!pass) return;
  enter(DeviceState::opening, "being opened", now());
  queue_.set_opening(true);
  const std::stop_token stop = opening_->get_token();
  const std::stop_token given_up = open_.get_token();
  lock.unlock();
  std::shared_ptr<OpenDevice> opened;
  std::optional<Failure> failure;
  try {
    const StopScope scope(given_up);
    opened = open_with_retries(pass->is_dirty(), stop);
  } catch (const std::exception& error) {
    failure = Failure::of(error);
    if (given_up.stop_requested())
      *failure = {ErrorCode::unavailable, device().id + " was given up while it was being opened", ""};
  }
  lock.lock();
  queue_.set_opening(false);
  const double seconds = usage_.period_seconds(now());
  const std::uint64_t epoch = pass->epoch();
  if (failure) {
    ++usage_.counters.open_failures;
    pass->give_back_dirty();
    fail_opening(*failure, "could not be opened: " + failure->message);
  } else {
    usage_.opened(seconds);
    times_.opened(seconds);
    auto residency = std::make_shared<Residency>(device().id, opened, tensor_counters_);
    finish_opening(std::make_unique<OpenSession>(std::move(opened), std::move(residency), std::move(*pass), now()));
  }
  lock.unlock();
  if (failure) {
    logging::warn("{} could not be opened: {}", device().id, failure->message);
    send(DeviceEvent::Kind::open_failed, seconds, failure->message);
  } else {
    logging::info("{} opened in {}", device().id, format_seconds(seconds));
    if (seconds > kSlowOpenSeconds) logging::warn("{} took {} to open", device().id, format_seconds(seconds));
    send(DeviceEvent::Kind::opened, seconds, {}, epoch);
  }
  lock.lock();
}

// First what the runtime offers: its calls fail, the operations end, and the device closes as a lost one. Where that does not
// help, its threads are left in the driver, and the device goes on without them.
void DeviceOwner::abandon_device(std::unique_lock<std::mutex>& lock) {
  OpenSession& session = *session_;
  if (session.give_up_at == Clock::kNever) {
    logging::error("{}: an operation does not end within its limit; the device is given up", device().id);
    session.give_up_at = now();
    if (session.device->abandon()) {
      session.give_up_at += kAbandonGrace;
      return;
    }
  }
  const std::uint64_t epoch = session.pass.epoch();
  give_up();
  lock.unlock();
  send(DeviceEvent::Kind::lost, 0, "an operation did not end within its limit", epoch);
  lock.lock();
}

void DeviceOwner::give_up() {
  logging::error("{}: {} operations do not return; they are left to themselves", device().id, session_->operations);
  times_.forget_idle_time();
  ++usage_.counters.lost;
  session_->is_dirty = true;
  session_->give_pass_back();
  given_up_.push_back(std::move(session_));
  enter(DeviceState::lost, "an operation did not end within its limit", now());
  note_failure();
  closed_.notify_all();
}

std::shared_ptr<OpenDevice> DeviceOwner::open_with_retries(bool is_dirty, const std::stop_token& stop) const {
  if (is_dirty) {
    logging::warn("{}: its last user died or did not close it cleanly; resetting it to a known state", device().id);
    options_.backend->recover(device());
  }
  for (int attempt = 1;; ++attempt) try {
      return options_.backend->open(device(), {.budget = options_.budget, .fuse = options_.fuse});
    } catch (const Error& error) {
      if (attempt == kOpenAttempts || !is_worth_retrying(error)) throw;
      const Clock::Time again_at = now() + kRetryDelay * attempt;
      while (!stop.stop_requested() && now() < again_at) std::this_thread::sleep_for(options_.clock->wait_limit(again_at));
      if (stop.stop_requested()) throw;
    }
}

void DeviceOwner::close_device(std::unique_lock<std::mutex>& lock) {
  const CloseReason reason = close_reason_;
  const bool is_lost = reason == CloseReason::lost;
  begin_closing();
  Residency& residency = *session_->residency;
  lock.unlock();
  if (is_lost) logging::error("{} was lost", device().id);
  const bool is_empty = empty_memory(residency, is_lost, reason == CloseReason::shut_down);
  lock.lock();
  if (!is_empty) return stay_open();

  const std::unique_ptr<OpenSession> session = std::move(session_);
  const std::uint64_t epoch = session->pass.epoch();
  lock.unlock();
  const std::string failure = session->close();
  lock.lock();
  const double seconds = usage_.period_seconds(now());
  if (is_lost) {
    ++usage_.counters.lost;
  } else {
    if (usage_.closed(!failure.empty()) == kAlarmingCloseFailures)
      logging::error("{} failed to close {} times in a row", device().id, kAlarmingCloseFailures);
    usage_.counters.yields += reason == CloseReason::yield;
    times_.closed(seconds);
  }
  session->give_pass_back();
  finish_closing();
  lock.unlock();
  if (is_lost) {
    send(DeviceEvent::Kind::lost, 0, "it failed while it was open", epoch);
  } else {
    if (failure.empty())
      logging::info("{} closed in {}", device().id, format_seconds(seconds));
    else
      logging::warn("{} did not close properly: {}", device().id, failure);
    if (reason == CloseReason::yield) send(DeviceEvent::Kind::yielded, seconds, {}, epoch);
    send(failure.empty() ? DeviceEvent::Kind::closed : DeviceEvent::Kind::close_failed, seconds, failure, epoch);
  }
  lock.lock();
}

}  // namespace tenon
