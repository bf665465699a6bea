// What threads that use a device call: leases, operations, questions. The owner thread is in device_owner_thread.cpp.
#include "lease/owner/device_owner.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "base/log.h"
#include "base/text/units.h"
#include "base/threads/stop_scope.h"
#include "lease/turnstile/fork_guard.h"
#include "lease/turnstile/queue_text.h"

namespace tenon {
namespace {

// What a cancelled operation may take to end by itself before the device is abandoned for it.
constexpr std::chrono::seconds kOverdueGrace{2};
constexpr std::chrono::nanoseconds kLongest = std::chrono::hours(24 * 365);
// How long a lease is used before one of a client that has used the device as much gets it.
constexpr std::chrono::milliseconds kTurn{20};
// How soon a lease that makes room for others notices that its run is cancelled.
constexpr std::chrono::milliseconds kLookForStop{100};

bool is_elsewhere(const Turnstile::Position& place) {
  return !place.is_known || !place.is_in_this_pid_namespace || place.pid != getpid();
}

}  // namespace

DeviceOwner::DeviceOwner(Options options)
    : options_(std::move(options)),
      description_(std::make_shared<const DeviceInfo>(options_.device)),
      process_generation_(fork_guard::generation()),
      state_since_(now()),
      queue_(options_.device.id, *options_.clock, options_.turnstile),
      times_(options_.policy, options_.break_even, options_.quantum_seconds, options_.min_hold_seconds),
      usage_(now()) {}

std::shared_ptr<DeviceOwner> DeviceOwner::make(Options options) {
  if (!options.events) options.events = std::make_shared<EventSink>();
  return std::shared_ptr<DeviceOwner>(new DeviceOwner(std::move(options)));
}

DeviceOwner::~DeviceOwner() {
  // The thread holds a reference while it runs, so this is either its last act or after it.
  if (thread_.joinable()) thread_.detach();
}

void DeviceOwner::check_running() const {
  if (thread_state_ == Thread::stopping || thread_state_ == Thread::ended)
    throw Error(ErrorCode::failed_precondition, device().id + ": its DeviceManager was destroyed");
}

void DeviceOwner::start_thread() {
  if (thread_state_ != Thread::none) return;
  sleeper_.prepare();
  thread_ = std::thread([self = shared_from_this()] { self->run(); });
  thread_state_ = Thread::running;
}

bool DeviceOwner::needs_exclusive_ticket(const Request& request) const {
  return device().exclusive || request.mode == LeaseMode::exclusive;
}

bool DeviceOwner::has_ticket_for(const Request& request) const {
  return !options_.turnstile || !needs_exclusive_ticket(request) || session_->pass.kind() == TicketKind::exclusive;
}

bool DeviceOwner::can_grant(const Request& request) const {
  if (!is_open_for_use()) return false;
  if (!request.grant) return true;
  if (!has_ticket_for(request)) return false;
  return holders_.empty() || (request.mode == LeaseMode::shared && holders_.front()->mode == LeaseMode::shared) ||
         goes_before_paused(request);
}

void DeviceOwner::grant(Request& request, Clock::Time now) {
  if (!request.grant) {
    ++session_->operations;
    return;
  }
  LeaseGrant& grant = *request.grant;
  if (holders_.empty()) times_.work_came(grant.asked_at);
  if (state_ == DeviceState::idle) enter(DeviceState::busy, {}, now);
  grant.owner = shared_from_this();
  grant.mode = request.mode;
  grant.granted_at = grant.runs_since = now;
  grant.turn_until = now + kTurn;
  grant.epoch = session_ ? session_->pass.epoch() : 0;
  holders_.push_back(&grant);
  leases_held_.fetch_add(1, std::memory_order_relaxed);
  ++usage_.counters.leases;
  if (queue_.is_overtaken(request)) ++usage_.counters.overtakes;
}

void DeviceOwner::grant_waiting(Clock::Time now) {
  while (!queue_.empty() && can_grant(queue_.front())) {
    grant(queue_.front(), now);
    queue_.grant_front();
  }
}

void DeviceOwner::wait_for_grant(std::unique_lock<std::mutex>& lock, Request& request, const LeaseOptions& options) {
  start_thread();
  queue_.add(request);
  sleeper_.wake();
  try {
    queue_.wait(lock, request, options, holders_);
  } catch (...) {
    usage_.counters.cancellations += request.outcome == RequestQueue::Outcome::cancelled;
    usage_.counters.timeouts += request.outcome == RequestQueue::Outcome::timed_out;
    if (queue_.empty() && opening_) opening_->request_stop();
    grant_waiting(now());  // this one may have kept others back
    throw;
  }
}

bool DeviceOwner::is_held_by_this_thread() const {
  const std::lock_guard lock(mutex_);
  return std::any_of(holders_.begin(), holders_.end(),
                     [self = std::this_thread::get_id()](const LeaseGrant* grant) { return grant->thread == self; });
}

Lease DeviceOwner::acquire(const LeaseOptions& options) {
  if (fork_guard::generation() != process_generation_)
    throw Error(ErrorCode::failed_precondition, device().id + ": this process was forked from a process that used the device",
                "create a DeviceManager in the child, or start the child with exec");
  auto granted = std::make_shared<LeaseGrant>();
  granted->thread = std::this_thread::get_id();
  Request request;
  request.grant = granted.get();
  request.mode = options.mode.value_or(device().exclusive ? LeaseMode::exclusive : LeaseMode::shared);
  request.priority = granted->priority = options.priority;
  if (device().exclusive) granted->client = options.client;

  std::unique_lock lock(mutex_);
  check_running();
  const Clock::Time asked_at = granted->asked_at = now();
  request.due = due(granted->client, asked_at);
  for (const LeaseGrant* held : holders_) {
    if (held->thread != granted->thread) continue;
    if (request.mode == LeaseMode::exclusive && held->mode == LeaseMode::shared)
      throw Error(ErrorCode::failed_precondition,
                  device().id + ": this thread requests an exclusive lease while it holds a shared one",
                  "request the exclusive lease first, or release the shared one");
    request.mode = held->mode;
    grant(request, asked_at);
    usage_.granted();
    return Lease(std::move(granted));
  }

  queue_.number(request);
  if (queue_.empty() && can_grant(request) && !quantum_is_over(asked_at)) {
    grant(request, asked_at);
    usage_.granted();
  } else {
    const bool was_open = session_ != nullptr;
    const std::uint64_t openings_before = usage_.openings();
    usage_.counters.requeued_at_close += state_ == DeviceState::closing || state_ == DeviceState::draining;
    ++usage_.counters.queued;
    wait_for_grant(lock, request, options);
    const bool was_reopened = usage_.openings() != openings_before;
    // A request that arrived during the open waited only for the rest of it.
    if (was_reopened) granted->open_seconds = std::min(usage_.last_open_seconds(), granted->waited_seconds());
    usage_.granted_after(granted->waited_seconds(), granted->queued_seconds(), was_open && !was_reopened);
  }
  const std::uint64_t epoch = granted->epoch;
  lock.unlock();
  if (is_wanted(DeviceEvent::Kind::granted)) send(DeviceEvent::Kind::granted, granted->queued_seconds(), {}, epoch);
  return Lease(std::move(granted));
}

void DeviceOwner::release(LeaseGrant& grant) noexcept {
  std::unique_lock lock(mutex_);
  holders_.erase(std::find(holders_.begin(), holders_.end(), &grant));
  leases_held_.fetch_sub(1, std::memory_order_relaxed);
  const Clock::Time now = this->now();
  const double held = Clock::seconds_between(grant.granted_at, now);
  usage_.released(held, now);
  if (!grant.is_paused) use_.add(grant.client, now - grant.runs_since, now);
  if (holders_.empty()) {
    work_ended(now);
  } else if (all_are_paused()) {
    grant_waiting(now);
    resumed_.notify_all();
  }
  lock.unlock();
  if (is_wanted(DeviceEvent::Kind::released)) send(DeviceEvent::Kind::released, held, {}, grant.epoch);
}

void DeviceOwner::work_ended(Clock::Time now) {
  times_.work_ended(now);
  if (state_ != DeviceState::busy) return;
  if (quantum_is_over(now)) return drain(CloseReason::yield);
  grant_waiting(now);
  if (!holders_.empty()) return;
  rest(now);
  // The owner looks again when it wakes anyway, so that a release costs no system call while the device is in steady use.
  sleeper_.wake_by(session_->others_wait || !queue_.empty() ? now : session_->close_at);
}

// --- Leases that make room for others ---

bool DeviceOwner::all_are_paused() const {
  return std::all_of(holders_.begin(), holders_.end(), [](const LeaseGrant* grant) { return grant->is_paused; });
}

Clock::Time DeviceOwner::due(const std::string& client, Clock::Time now) const {
  return client.empty() ? now : now + use_.of(client, now);
}

bool DeviceOwner::goes_before_paused(const Request& request) const {
  return !request.grant->client.empty() && all_are_paused() &&
         std::all_of(holders_.begin(), holders_.end(), [&](const LeaseGrant* grant) {
           return request.priority != grant->priority ? request.priority > grant->priority : request.due < grant->due;
         });
}

bool DeviceOwner::may_resume(const LeaseGrant& grant) const {
  // Before it closes, all that runs has to end.
  if (!is_open_for_use()) return true;
  return all_are_paused() && std::all_of(holders_.begin(), holders_.end(), [&](const LeaseGrant* other) {
           return other->priority != grant.priority ? other->priority < grant.priority : grant.due <= other->due;
         });
}

void DeviceOwner::offer(LeaseGrant& grant) noexcept {
  std::unique_lock lock(mutex_);
  if (queue_.empty() || !is_open_for_use()) return;
  const Request& next = queue_.front();
  if (!next.grant || next.grant->client.empty() || next.grant->client == grant.client) return;
  Clock::Time now = this->now();
  use_.add(grant.client, now - std::exchange(grant.runs_since, now), now);
  // Equals change places now and then only.
  const bool is_far_ahead = use_.of(grant.client, now) > use_.of(next.grant->client, now) + kTurn;
  if (!is_far_ahead && now < grant.turn_until) return;
  grant.due = due(grant.client, now);
  grant.is_paused = true;
  grant_waiting(now);
  grant.is_paused = !may_resume(grant);
  if (!grant.is_paused) return;
  if (all_are_paused()) resumed_.notify_all();
  grant.was_paused = true;
  while (!may_resume(grant)) {
    if (const StopScope* const scope = StopScope::current(); scope && scope->is_met()) break;
    resumed_.wait_for(lock, kLookForStop);
  }
  now = this->now();
  grant.is_paused = false;
  grant.runs_since = now;
  grant.turn_until = now + kTurn;
}

DeviceOwner::Operation DeviceOwner::begin(const LeaseGrant& grant, const std::stop_token& cancel,
                                          std::optional<std::chrono::nanoseconds> limit) {
  std::unique_lock lock(mutex_);
  check_running();
  if (is_open_for_use()) {
    ++session_->operations;
  } else {
    Request request;
    request.mode = grant.mode;
    LeaseOptions options;
    options.cancel = cancel;
    wait_for_grant(lock, request, options);
  }
  Clock::Time overdue_at = Clock::kNever;
  if (limit) {
    overdue_at = now() + std::clamp<std::chrono::nanoseconds>(*limit, {}, kLongest) + kOverdueGrace;
    session_->overdue_at.push_back(overdue_at);
    sleeper_.wake_by(overdue_at);
  }
  return Operation(shared_from_this(), *session_, overdue_at);
}

std::optional<DeviceOwner::Operation> DeviceOwner::begin_if_open(const Residency* residency) {
  const std::lock_guard lock(mutex_);
  check_running();
  if (!is_open_for_use() || (residency && residency != session_->residency.get())) return std::nullopt;
  ++session_->operations;
  return Operation(shared_from_this(), *session_, Clock::kNever);
}

std::optional<DeviceOwner::Operation> DeviceOwner::begin_at_once(std::shared_ptr<DeviceOwner> owner) {
  DeviceOwner& self = *owner;
  if (fork_guard::generation() != self.process_generation_) return std::nullopt;
  const std::lock_guard lock(self.mutex_);
  if (self.thread_state_ != Thread::running || !self.is_open_for_use() || !self.queue_.empty() || self.device().exclusive)
    return std::nullopt;
  if (!self.holders_.empty() && self.holders_.front()->mode == LeaseMode::exclusive) return std::nullopt;
  if (self.quantum_is_over(self.session_->held_since)) return std::nullopt;
  ++self.session_->operations;
  return Operation(std::move(owner), *self.session_, Clock::kNever);
}

void DeviceOwner::count_at_once(const Operation& operation) noexcept {
  static const Clock* const system = Clock::system().get();
  const Clock::Time now = options_.clock.get() == system ? operation.computed_at_ : this->now();
  ++usage_.counters.leases;
  usage_.granted();
  usage_.released(operation.compute_seconds_, now);
  ++(operation.has_failed_ ? usage_.counters.run_failures : usage_.counters.runs);
  usage_.counters.compute_seconds += operation.compute_seconds_;
  // The device rests for its state machine, but it was in use.
  if (state_ != DeviceState::idle || session_->operations > 0) return;
  usage_.counters.busy_seconds += operation.compute_seconds_;
  usage_.counters.idle_seconds -= operation.compute_seconds_;
}

void DeviceOwner::end_operation(const Operation& operation) noexcept {
  std::unique_ptr<OpenSession> gone;  // after the lock is released: destroying an abandoned device may take any time
  const std::lock_guard lock(mutex_);
  OpenSession& session = *operation.session_;
  --session.operations;
  if (operation.overdue_at_ != Clock::kNever) session.forget_overdue(operation.overdue_at_);
  if (&session != session_.get()) {
    if (session.operations > 0) return;
    const auto found = std::find_if(given_up_.begin(), given_up_.end(), [&](const auto& one) { return one.get() == &session; });
    gone = std::move(*found);
    given_up_.erase(found);
    return;
  }
  if (operation.compute_seconds_ >= 0) count_at_once(operation);
  if (operation.has_failed_ && session_->device->is_lost()) drain(CloseReason::lost);
  if (session_->others_wait && quantum_is_over(now())) drain(CloseReason::yield);
  if (state_ == DeviceState::draining && session_->operations == 0) sleeper_.wake();
}

DeviceOwner::Operation::~Operation() {
  if (owner_) owner_->end_operation(*this);
}

bool DeviceOwner::quantum_is_over(Clock::Time now) const {
  return session_ && session_->others_wait && now >= session_->held_since + times_.quantum();
}

void DeviceOwner::give_up_opening(std::unique_lock<std::mutex>& lock, std::chrono::nanoseconds patience) {
  opening_->request_stop();
  open_.request_stop();
  const auto has_ended = [this] { return state_ != DeviceState::opening; };
  if (closed_.wait_for(lock, std::clamp<std::chrono::nanoseconds>(patience, std::chrono::seconds(3), kLongest), has_ended))
    return;
  throw Error(ErrorCode::unavailable, device().id + " does not finish opening: its driver does not return",
              "restart this process, or set isolate=true so that devices are in processes of their own");
}

void DeviceOwner::close(std::optional<std::chrono::nanoseconds> patience) {
  std::unique_lock lock(mutex_);
  if (opening_ && patience) give_up_opening(lock, *patience);
  if (!session_ && state_ != DeviceState::closing) return;
  const Clock::Time overdue_at = now() + std::clamp<std::chrono::nanoseconds>(patience.value_or(kLongest), {}, kLongest);
  if (session_) session_->overdue_at.push_back(overdue_at);
  drain(CloseReason::request);
  const std::uint64_t opening = usage_.openings();
  closed_.wait(
      lock, [&] { return (state_ != DeviceState::draining && state_ != DeviceState::closing) || usage_.openings() != opening; });
  if (session_) session_->forget_overdue(overdue_at);
  if (is_open_for_use() && usage_.openings() == opening)
    throw Error(ErrorCode::unavailable, device().id + " stays open: its tensors could not be moved to host memory",
                "free host memory or drop tensors, then close it again");
}

void DeviceOwner::shut_down(std::chrono::nanoseconds patience) {
  if (fork_guard::generation() != process_generation_) return;  // the thread did not come along, and may have held the mutex
  std::unique_lock lock(mutex_);
  if (thread_state_ == Thread::none) thread_state_ = Thread::ended;
  if (thread_state_ == Thread::running) thread_state_ = Thread::stopping;
  queue_.fail_all({ErrorCode::cancelled, device().id + ": its DeviceManager was destroyed", ""});
  if (opening_) opening_->request_stop();
  open_.request_stop();
  if (session_) session_->overdue_at.push_back(now() + patience / 2);
  drain(CloseReason::shut_down);
  sleeper_.wake();
  const Clock::Time until = now() + patience;
  while (thread_state_ != Thread::ended && now() < until) closed_.wait_for(lock, options_.clock->wait_limit(until));
  std::thread thread = std::move(thread_);
  if (!thread.joinable()) return;
  if (thread_state_ != Thread::ended) {
    logging::error("{} does not come back ({}: {}); leaving it to itself", device().id, name(state_), state_reason_);
    if (session_) session_->device->abandon();
    thread.detach();
    return;
  }
  lock.unlock();
  thread.join();
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
  ++(failed ? usage_.counters.run_failures : usage_.counters.runs);
  usage_.counters.compute_seconds += compute_seconds;
}

std::optional<double> DeviceOwner::seconds_since_failure() const {
  if (!has_failed_.load(std::memory_order_relaxed)) return std::nullopt;
  const std::lock_guard lock(mutex_);
  return failed_at_ ? std::optional(Clock::seconds_between(*failed_at_, now())) : std::nullopt;
}

bool DeviceOwner::is_open() const {
  const std::lock_guard lock(mutex_);
  return session_ != nullptr;
}

Clock::Time DeviceOwner::last_used() const {
  const std::lock_guard lock(mutex_);
  return usage_.last_used();
}

int DeviceOwner::queue_length() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(queue_.size() + holders_.size());
}

bool DeviceOwner::has_compiled(const GraphKey& program) const {
  const std::lock_guard lock(mutex_);
  return session_ && session_->executables.find(program) != nullptr;
}

int DeviceOwner::users_elsewhere() const {
  if (!options_.turnstile) return 0;
  const Turnstile::Queue queue = options_.turnstile->queue();
  return static_cast<int>(std::count_if(queue.places.begin(), queue.places.end(), is_elsewhere));
}

double DeviceOwner::expected_open_seconds() const {
  const std::lock_guard lock(mutex_);
  return times_.expected_open_seconds();
}

std::optional<double> DeviceOwner::usual_hold_seconds() const {
  const std::lock_guard lock(mutex_);
  return usage_.usual_hold_seconds();
}

std::uint64_t DeviceOwner::epoch() const {
  const std::lock_guard lock(mutex_);
  return session_ ? session_->pass.epoch() : 0;
}

bool DeviceOwner::should_yield() const {
  const std::lock_guard lock(mutex_);
  return quantum_is_over(now());
}

DeviceStatus DeviceOwner::status() const {
  DeviceStatus status;
  {
    const std::lock_guard lock(mutex_);
    const Clock::Time now = this->now();
    status.state = state_;
    status.reason = state_reason_;
    if (state_ == DeviceState::idle && status.reason.empty() && session_->close_at != Clock::kNever)
      status.reason =
          fmt::format("stays open for {} more", format_seconds(std::max(0.0, Clock::seconds_between(now, session_->close_at))));
    status.state_seconds = Clock::seconds_between(state_since_, now);
    for (const LeaseGrant* grant : holders_)
      status.users.push_back({"this process", true, true, Clock::seconds_between(grant->granted_at, now)});
    for (const Request* request : queue_.requests())
      if (request->grant)
        status.users.push_back({"this process", false, true, Clock::seconds_between(request->grant->asked_at, now)});
    if (session_) {
      status.resident_tensors = session_->residency->size();
      status.epoch = session_->pass.epoch();
    }
    const KeepOpen& policy = times_.policy();
    status.policy = std::string(policy.name());
    status.threshold_seconds = policy.threshold();
    status.break_even_seconds = policy.break_even();
    status.cost_over_optimum = policy.cost_over_optimum();
    status.counters = usage_.at(now);
  }
  status.device = device();
  if (options_.turnstile)
    for (const Turnstile::Position& place : options_.turnstile->queue().places) {
      if (!is_elsewhere(place)) continue;
      auto at = status.users.end();
      if (place.is_holding) at = std::find_if(status.users.begin(), at, [](const DeviceUser& user) { return !user.is_holding; });
      status.users.insert(at, {who_in_short(place), place.is_holding, false, place.is_known ? seconds_since(place) : 0});
    }
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
