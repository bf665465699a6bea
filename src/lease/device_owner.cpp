#include "lease/device_owner.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmath>
#include <utility>

#include "base/log.h"
#include "base/units.h"
#include "lease/device_request.h"
#include "lease/turnstile/fork_guard.h"
#include "lease/turnstile/queue_text.h"
#include "tenon/error.h"

namespace tenon {
namespace {

// How long a lease waits before the log says whom for, and before that is a warning; and how often somebody who wants to know is
// told of its place.
constexpr std::chrono::seconds kTellAfter{1}, kWarnAfter{30};
constexpr std::chrono::milliseconds kPlaceInterval{100};

constexpr double kMinQuantum = 1, kMinHold = 0.05;
constexpr double kHoldSmoothing = 0.1;

double seconds_between(DeviceOwner::Clock::time_point from, DeviceOwner::Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

bool is_elsewhere(const Turnstile::Position& place) {
  return !place.is_known || !place.is_in_this_pid_namespace || place.pid != getpid();
}

}  // namespace

DeviceOwner::DeviceOwner(Options options)
    : options_(std::move(options)),
      process_generation_(fork_guard::generation()),
      state_since_(Clock::now()),
      policy_(options_.policy),
      break_even_(options_.break_even) {}

std::shared_ptr<DeviceOwner> DeviceOwner::make(Options options) {
  if (!options.events) options.events = std::make_shared<EventSink>();
  return std::shared_ptr<DeviceOwner>(new DeviceOwner(std::move(options)));
}

DeviceOwner::~DeviceOwner() {
  // The thread holds a reference while it runs, so this is either its last act or after it.
  if (thread_.joinable()) thread_.detach();
}

void DeviceOwner::start_thread() {
  if (thread_started_) return;
  event_ = FileDescriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event_) throw Error(ErrorCode::resource_exhausted, "no file descriptor is left for the thread of " + device().id);
  thread_ = std::thread([self = shared_from_this()] { self->run(); });
  thread_started_ = true;
}

void DeviceOwner::wake() {
  if (!is_asleep_) return;
  is_asleep_ = false;
  eventfd_write(event_.get(), 1);
}

void DeviceOwner::set_state(DeviceState state, std::string reason) {
  state_ = state;
  state_reason_ = std::move(reason);
  state_since_ = Clock::now();
}

bool DeviceOwner::needs_exclusive_ticket(const Request& request) const {
  return device().exclusive || request.mode == LeaseMode::exclusive;
}

bool DeviceOwner::can_grant(const Request& request) const {
  if (!device_ || draining_ || close_requested_) return false;
  if (request.resumes) return true;
  if (options_.turnstile && needs_exclusive_ticket(request) && pass_.kind() == TicketKind::shared) return false;
  return holders_.empty() || (request.mode == LeaseMode::shared && holders_.front()->mode == LeaseMode::shared);
}

void DeviceOwner::grant(Request& request, Clock::time_point now) {
  request.is_granted = true;
  if (request.resumes) {
    ++operations_;
    return;
  }
  Lease::Grant& grant = *request.grant;
  if (holders_.empty()) {
    // Who asked before the last lease ended left no idle time between.
    if (std::exchange(gap_is_open_, false) && grant.asked_at > idle_since_)
      policy_.record_gap(seconds_between(idle_since_, grant.asked_at));
    if (state_ == DeviceState::idle) counters_.idle_seconds += seconds_between(std::max(idle_since_, held_since_), now);
    busy_since_ = now;
    state_ = DeviceState::busy;
    state_since_ = now;
  }
  grant.owner = shared_from_this();
  grant.granted_at = now;
  grant.epoch = pass_.epoch();
  holders_.push_back(&grant);
  ++counters_.leases;
  if (request.arrival != 0) {
    std::uint64_t& last = last_arrival_[request.priority];
    if (request.arrival < last) ++counters_.overtakes;
    last = std::max(last, request.arrival);
  }
}

void DeviceOwner::count_warm() {
  ++counters_.warm;
  ++counters_.warm_waits.counts.front();
}

void DeviceOwner::grant_waiting() {
  if (queue_.empty()) return;
  const Clock::time_point now = Clock::now();
  while (!queue_.empty() && can_grant(*queue_.front())) {
    Request& request = *queue_.front();
    queue_.pop_front();
    grant(request, now);
    request.changed.notify_one();
  }
}

void DeviceOwner::enqueue(Request& request) {
  const auto behind =
      std::find_if(queue_.begin(), queue_.end(), [&](const Request* other) { return request.goes_before(*other); });
  request.position = queue_.insert(behind, &request);
  start_thread();
  wake();
}

void DeviceOwner::forget(Request& request) {
  queue_.erase(request.position);
  if (queue_.empty()) opening_.request_stop();
  grant_waiting();
}

void DeviceOwner::fail_waiting(const Failure& failure) {
  for (Request* request : queue_) {
    request->error = failure;
    request->changed.notify_one();
  }
  queue_.clear();
}

bool DeviceOwner::is_held_by_this_thread() const {
  const std::lock_guard lock(mutex_);
  const auto self = std::this_thread::get_id();
  return std::any_of(holders_.begin(), holders_.end(), [&](const Lease::Grant* grant) { return grant->thread == self; });
}

Lease DeviceOwner::acquire(const LeaseOptions& options) {
  if (fork_guard::generation() != process_generation_)
    throw Error(ErrorCode::failed_precondition, device().id + ": this process was forked from one that used the device",
                "make a DeviceManager of its own in the child, or start it with exec");
  Request request;
  request.mode = options.mode.value_or(device().exclusive ? LeaseMode::exclusive : LeaseMode::shared);
  request.priority = options.priority;
  request.grant = std::make_shared<Lease::Grant>();
  request.grant->thread = std::this_thread::get_id();

  std::unique_lock lock(mutex_);
  if (stopping_) throw Error(ErrorCode::failed_precondition, device().id + ": its manager is gone");
  const Clock::time_point now = Clock::now();
  request.grant->asked_at = now;
  const bool was_open = device_ != nullptr;

  for (const Lease::Grant* held : holders_) {
    if (held->thread != request.grant->thread) continue;
    if (request.mode == LeaseMode::exclusive && held->mode == LeaseMode::shared)
      throw Error(ErrorCode::failed_precondition,
                  device().id + ": this thread holds a shared lease and asks for an exclusive one",
                  "ask for the exclusive lease first, or give up the shared one");
    request.mode = request.grant->mode = held->mode;
    grant(request, now);
    count_warm();
    return Lease(std::move(request.grant));
  }
  request.grant->mode = request.mode;
  request.arrival = ++arrivals_;

  if (queue_.empty() && can_grant(request) && !quantum_is_over(now)) {
    grant(request, now);
    count_warm();
  } else {
    if (state_ == DeviceState::closing || state_ == DeviceState::draining) ++counters_.requeued_at_close;
    ++counters_.queued;
    const std::uint64_t openings_before = openings_;
    enqueue(request);
    wait_for_grant(lock, request, options);
    // Who came while it was being opened waited for the rest of that only.
    if (openings_ != openings_before)
      request.grant->open_seconds =
          std::min(last_open_seconds_, seconds_between(request.grant->asked_at, request.grant->granted_at));
    const bool stayed_open = was_open && openings_ == openings_before;
    ++(stayed_open ? counters_.warm : counters_.cold);
    (stayed_open ? counters_.queued_waits : counters_.cold_waits)
        .record(seconds_between(request.grant->asked_at, request.grant->granted_at));
    counters_.queue_seconds += request.grant->queued_seconds();
  }
  const std::uint64_t epoch = request.grant->epoch;
  lock.unlock();
  if (events().is_wanted(DeviceEvent::Kind::granted))
    send(DeviceEvent::Kind::granted, request.grant->queued_seconds(), {}, epoch);
  return Lease(std::move(request.grant));
}

QueuePlace DeviceOwner::place_of(const Request& request, std::unique_lock<std::mutex>& lock) const {
  QueuePlace place;
  place.ahead_here = static_cast<int>(std::distance(queue_.begin(), std::list<Request*>::const_iterator(request.position)) +
                                      static_cast<std::ptrdiff_t>(holders_.size()));
  if (!holders_.empty()) place.holder = "this process";
  const TicketNumber ticket = waiting_ticket_;
  if (ticket == 0 || !options_.turnstile) return place;
  lock.unlock();
  for (const Turnstile::Position& other : options_.turnstile->queue().places) {
    if (other.ticket >= ticket) break;
    ++place.ahead_elsewhere;
    if (other.is_holding && place.holder.empty()) place.holder = who(other);
  }
  lock.lock();
  return place;
}

void DeviceOwner::wait_for_grant(std::unique_lock<std::mutex>& lock, Request& request, const LeaseOptions& options) {
  const Clock::time_point start = Clock::now();
  const std::optional<Clock::time_point> deadline =
      options.timeout ? std::optional(start + std::min<std::chrono::nanoseconds>(*options.timeout, std::chrono::hours(24 * 365)))
                      : std::nullopt;
  const auto is_done = [&] { return request.is_granted || request.error; };
  // Who only tries does not wait for others, but for a device that is being opened for it.
  const bool only_tries = options.timeout && *options.timeout <= std::chrono::nanoseconds(0);
  const auto is_next = [&] { return queue_.front() == &request && holders_.empty() && waiting_ticket_ == 0; };
  Clock::time_point tell_at = start + kTellAfter;
  std::optional<QueuePlace> told_place;
  while (!is_done()) {
    const Clock::time_point now = Clock::now();
    if (options.cancel.stop_requested()) break;
    if (only_tries ? !is_next() : deadline && now >= *deadline) break;
    if (options.on_wait) {
      QueuePlace place = place_of(request, lock);
      if (is_done()) break;
      if (!told_place || place != *told_place) {
        told_place = std::move(place);
        lock.unlock();
        try {
          options.on_wait(*told_place);
        } catch (...) {
          lock.lock();
          if (!is_done()) forget(request);
          throw;
        }
        lock.lock();
        if (is_done()) break;
      }
    }
    Clock::time_point next = only_tries ? tell_at : std::min(tell_at, deadline.value_or(Clock::time_point::max()));
    if (options.on_wait) next = std::min(next, now + kPlaceInterval);
    const auto is_over = [&] { return is_done() || (only_tries && !is_next()); };
    if (next == Clock::time_point::max())
      request.changed.wait(lock, options.cancel, is_over);
    else
      request.changed.wait_until(lock, options.cancel, next, is_over);
    if (is_done() || Clock::now() < tell_at) continue;
    const bool is_overdue = tell_at >= start + kWarnAfter;
    tell_at = is_overdue ? Clock::time_point::max() : start + kWarnAfter;
    const QueuePlace place = place_of(request, lock);
    logging::write(is_overdue ? logging::Level::warn : logging::Level::info,
                   "waiting for {} for {}: {} before this one, {} of them in other processes{}", device().id,
                   format_seconds(seconds_between(start, Clock::now())), place.ahead_here + place.ahead_elsewhere,
                   place.ahead_elsewhere, place.holder.empty() ? "" : ", held by " + place.holder);
  }
  if (request.is_granted) return;
  if (request.error) request.error->raise();
  const QueuePlace place = place_of(request, lock);
  if (request.is_granted) return;  // while the place was being looked up
  if (request.error) request.error->raise();
  forget(request);
  if (options.cancel.stop_requested()) {
    ++counters_.cancellations;
    throw Error(ErrorCode::cancelled, "the wait for " + device().id + " was cancelled");
  }
  ++counters_.timeouts;
  throw Error(ErrorCode::deadline_exceeded,
              fmt::format("no turn on {} within {}: {}", device().id, format_seconds(seconds_between(start, *deadline)),
                          state_ == DeviceState::opening && place.ahead_elsewhere == 0
                              ? "it is still being opened"
                              : fmt::format("{} before this one", place.ahead_here + place.ahead_elsewhere)),
              place.holder.empty() ? "wait longer, or use another device" : "held by " + place.holder);
}

void DeviceOwner::release(Lease::Grant& grant) noexcept {
  std::unique_lock lock(mutex_);
  holders_.erase(std::find(holders_.begin(), holders_.end(), &grant));
  const Clock::time_point now = Clock::now();
  last_used_ = now;
  const double held = seconds_between(grant.granted_at, now);
  usual_hold_seconds_ = usual_hold_seconds_ ? *usual_hold_seconds_ + kHoldSmoothing * (held - *usual_hold_seconds_) : held;
  if (holders_.empty()) became_idle(now);
  lock.unlock();
  if (events().is_wanted(DeviceEvent::Kind::released)) send(DeviceEvent::Kind::released, held, {}, grant.epoch);
}

void DeviceOwner::became_idle(Clock::time_point now) {
  counters_.busy_seconds += seconds_between(busy_since_, now);
  idle_since_ = now;
  gap_is_open_ = true;
  if (!device_) return;
  if (quantum_is_over(now)) draining_ = true;
  grant_waiting();
  if (!holders_.empty()) return;
  if (!draining_) {
    state_ = DeviceState::idle;
    state_since_ = now;
    state_reason_.clear();
  }
  const double threshold = policy_.threshold();
  close_at_ = threshold < 1e9 ? now + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(threshold))
                              : Clock::time_point::max();
  // The owner looks again when it wakes anyhow, so that a release costs no system call while the device is in steady use.
  if (foreign_waiting_ || draining_ || close_requested_ || !queue_.empty() || close_at_ < wakes_at_) wake();
}

DeviceOwner::Operation DeviceOwner::begin(Lease::Grant& grant, const std::stop_token& cancel) {
  std::unique_lock lock(mutex_);
  if (stopping_) throw Error(ErrorCode::failed_precondition, device().id + ": its manager is gone");
  if (device_ && !draining_ && !close_requested_) {
    ++operations_;
  } else {
    Request request;
    request.resumes = true;
    request.mode = grant.mode;
    enqueue(request);
    LeaseOptions options;
    options.cancel = cancel;
    wait_for_grant(lock, request, options);
  }
  return Operation(shared_from_this(), residency_, executables_);
}

void DeviceOwner::end_operation(bool failed) noexcept {
  const std::lock_guard lock(mutex_);
  --operations_;
  if (failed && device_ && device_->is_lost()) {
    is_lost_ = true;
    draining_ = true;
  }
  if (foreign_waiting_ && quantum_is_over(Clock::now())) draining_ = true;
  if (operations_ == 0 && (draining_ || close_requested_ || stopping_)) wake();
}

DeviceOwner::Operation::~Operation() {
  if (!owner_) return;
  residency_.reset();
  executables_.reset();
  owner_->end_operation(has_failed_);
}

double DeviceOwner::quantum() const {
  return options_.quantum_seconds.value_or(std::max(kMinQuantum, 10 * break_even_.cycle_seconds()));
}

double DeviceOwner::min_hold() const {
  return options_.min_hold_seconds.value_or(std::max(kMinHold, break_even_.cycle_seconds()));
}

bool DeviceOwner::quantum_is_over(Clock::time_point now) const {
  return foreign_waiting_ && seconds_between(held_since_, now) >= quantum();
}

void DeviceOwner::close() {
  std::unique_lock lock(mutex_);
  if (!device_) return;
  close_requested_ = true;
  const std::uint64_t opening = openings_;
  wake();
  closed_.wait(lock, [&] { return !device_ || openings_ != opening || thread_ended_; });
}

void DeviceOwner::shut_down(std::chrono::nanoseconds patience) {
  if (fork_guard::generation() != process_generation_) return;  // the thread did not come along, and may have held the mutex
  std::unique_lock lock(mutex_);
  stopping_ = true;
  if (!thread_started_) return;
  opening_.request_stop();
  wake();
  if (!closed_.wait_for(lock, patience, [&] { return thread_ended_; })) {
    logging::error("{} does not come back ({}: {}); leaving it to itself", device().id, name(state_), state_reason_);
    if (thread_.joinable()) thread_.detach();
    return;
  }
  lock.unlock();
  if (thread_.joinable()) thread_.join();
}

void DeviceOwner::send(DeviceEvent::Kind kind, double seconds, std::string message, std::uint64_t epoch) const {
  DeviceEvent event;
  event.kind = kind;
  event.device = device().id;
  event.when = std::chrono::system_clock::now();
  event.seconds = seconds;
  event.message = std::move(message);
  event.epoch = epoch;
  events().send(event);
}

void DeviceOwner::count_run(double compute_seconds, bool failed) {
  const std::lock_guard lock(mutex_);
  ++(failed ? counters_.run_failures : counters_.runs);
  counters_.compute_seconds += compute_seconds;
}

bool DeviceOwner::is_open() const {
  const std::lock_guard lock(mutex_);
  return device_ != nullptr;
}

DeviceOwner::Clock::time_point DeviceOwner::last_used() const {
  const std::lock_guard lock(mutex_);
  return last_used_;
}

int DeviceOwner::queue_length() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(queue_.size() + holders_.size());
}

bool DeviceOwner::has_compiled(const GraphKey& program) const {
  const std::lock_guard lock(mutex_);
  return device_ != nullptr && executables_ != nullptr && executables_->find(program) != nullptr;
}

int DeviceOwner::users_elsewhere() const {
  if (!options_.turnstile) return 0;
  const Turnstile::Queue queue = options_.turnstile->queue();
  return static_cast<int>(std::count_if(queue.places.begin(), queue.places.end(), is_elsewhere));
}

double DeviceOwner::expected_open_seconds() const {
  const std::lock_guard lock(mutex_);
  return break_even_.open_seconds();
}

std::optional<double> DeviceOwner::usual_hold_seconds() const {
  const std::lock_guard lock(mutex_);
  return usual_hold_seconds_;
}

DeviceStatus DeviceOwner::status() const {
  DeviceStatus status;
  {
    const std::lock_guard lock(mutex_);
    const Clock::time_point now = Clock::now();
    status.state = state_;
    status.reason = state_reason_;
    if (state_ == DeviceState::idle && close_at_ != Clock::time_point::max())
      status.reason = fmt::format("held for {} more", format_seconds(std::max(0.0, seconds_between(now, close_at_))));
    status.state_seconds = seconds_between(state_since_, now);
    for (const Lease::Grant* grant : holders_)
      status.users.push_back({"this process", true, true, seconds_between(grant->granted_at, now)});
    for (const Request* request : queue_)
      if (!request->resumes)
        status.users.push_back({"this process", false, true, seconds_between(request->grant->asked_at, now)});
    status.resident_tensors = residency_ ? residency_->size() : 0;
    if (pass_) status.epoch = pass_.epoch();
    status.policy = std::string(policy_.name());
    status.threshold_seconds = policy_.threshold();
    status.break_even_seconds = policy_.break_even();
    status.cost_over_optimum = policy_.cost_over_optimum();
    status.counters = counters_;
  }
  status.device = device();
  if (options_.turnstile)
    for (const Turnstile::Position& place : options_.turnstile->queue().places)
      if (is_elsewhere(place))
        status.users.push_back({who(place), place.is_holding, false, place.is_known ? seconds_since(place) : 0});
  // Holders first; the other processes' places are in order already.
  std::partition(status.users.begin(), status.users.end(), [](const DeviceUser& user) { return user.is_holding; });
  status.counters.spills = tensor_counters_->spills;
  status.counters.restores = tensor_counters_->restores;
  status.counters.evictions = tensor_counters_->evictions;
  status.counters.bytes_up = tensor_counters_->bytes_up;
  status.counters.bytes_down = tensor_counters_->bytes_down;
  if (options_.budget) {
    status.memory_limit_bytes = options_.budget->limit_bytes();
    status.memory_used_bytes = options_.budget->used_bytes();
    status.memory_peak_bytes = options_.budget->peak_bytes();
  }
  return status;
}

}  // namespace tenon
