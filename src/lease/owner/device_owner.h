// DeviceOwner: one device as this process has it: who uses it, who waits, and one thread that opens and closes it.
//
// clang-format off
//              request              opened               lease
//   closed ───► waiting ─► opening ──────────► idle ◄──────────────► busy
//   failed ◄───────────── it failed, or        │                     │   a reason to close: the policy, another
//   lost                  nobody waits         └─────► draining ◄────┘   process, close(), shut_down(), a loss
//     ▲                                                   │
//     └────────────────────── closing ◄───────────────────┘ no operation runs
//
//   draining ──► idle, busy: the waiting process has gone.   closing ──► idle, busy: tensors could not be moved.
//   busy, draining ──► lost: an operation is overdue, the device was abandoned, and still the operation does not end.
// clang-format on
//
// The state decides: only an idle or busy device is granted and only a draining one is closed. Leases are granted under a mutex
// by the thread that asks or releases, so that taking an open device costs no thread switch. Only the owner thread opens and
// closes; deadlines, requests, releases and other processes that come are events it looks at between sleeps. A request that meets
// a closing device stays in the queue, and the device is opened again.
//
// A lease is the right to use the device; an Operation is its use. The device is closed only between operations. If it is closed
// under a lease (to give it to another process, or because it was lost), the next operation opens it again.
//
// Lifetime: shared; leases keep it alive. shut_down() ends the thread. Thread safety: all calls may run concurrently.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/threads/recent_use.h"
#include "lease/event_sink.h"
#include "lease/owner/open_session.h"
#include "lease/owner/request_queue.h"
#include "lease/owner/sleeper.h"
#include "lease/owner/usage.h"
#include "lease/policy/hold_times.h"
#include "lease/turnstile/turnstile.h"
#include "tenon/backend.h"
#include "tenon/lease.h"

namespace tenon {

class DeviceOwner : public std::enable_shared_from_this<DeviceOwner> {
 public:
  struct Options {
    DeviceInfo device;
    std::shared_ptr<Backend> backend;
    std::optional<Turnstile> turnstile;  // none: not shared with other processes
    KeepOpen policy = KeepOpen::always(1e-6);
    BreakEven break_even{0, 0};
    std::optional<double> quantum_seconds, min_hold_seconds;  // none: from the break-even's open and close times
    std::shared_ptr<MemoryBudget> budget;
    bool fuse = true;  // programs
    std::shared_ptr<EventSink> events;
    std::shared_ptr<const Clock> clock = Clock::system();
  };
  // Starts nothing before the first lease.
  static std::shared_ptr<DeviceOwner> make(Options options);
  ~DeviceOwner();

  const DeviceInfo& device() const noexcept { return options_.device; }
  // The same for results, which outlive this.
  const std::shared_ptr<const DeviceInfo>& description() const noexcept { return description_; }
  const std::shared_ptr<Backend>& backend() const noexcept { return options_.backend; }
  EventSink& events() const noexcept { return *options_.events; }

  Lease acquire(const LeaseOptions& options);
  bool is_held_by_this_thread() const;
  // |lease| must not be empty.
  static LeaseGrant& grant_of(const Lease& lease) { return *lease.grant_; }

  // The use of the device under a lease. Nothing closes it meanwhile. A thread must not begin a second one within the first.
  class Operation;
  // An operation that runs longer than |limit| costs the device: it is abandoned and lost.
  Operation begin(const LeaseGrant& grant, const std::stop_token& cancel = {},
                  std::optional<std::chrono::nanoseconds> limit = std::nullopt);

  // The same without waiting, for a thread that holds a lease: none unless the device is open, and was not closed since it had
  // |residency|; null: whenever it was opened.
  std::optional<Operation> begin_if_open(const Residency* residency);

  // The use of a device that is open, shared and not waited for, without a lease of its own: what a program of a microsecond can
  // afford. None if it is not. Operation::count_run() says how it went.
  static std::optional<Operation> begin_at_once(std::shared_ptr<DeviceOwner> owner);
  // Lets others use an exclusive device for a while that are due before this lease, which has a client. Called between the tiles
  // of its operation by the thread that runs it; may block.
  void offer(LeaseGrant& grant) noexcept;
  // Of all devices of this process: leases that are held now. Without any, no thread has one.
  static int leases_held() noexcept { return leases_held_.load(std::memory_order_relaxed); }

  // Closes the device when no operation runs on it; returns when it is closed. The next operation or lease opens it again. Throws
  // unavailable if its tensors could not be moved to host memory: then it stays open. A device whose operations do not end within
  // |patience| is abandoned and lost; one that is being opened is not waited for: its opening is given up.
  void close(std::optional<std::chrono::nanoseconds> patience = std::nullopt);
  // Closes the device and ends the thread; requests that wait are cancelled. Operations that still run after half of |patience|
  // lose the device. Gives up on a driver that does not return within |patience| and leaves the thread to itself.
  void shut_down(std::chrono::nanoseconds patience = std::chrono::seconds(10));

  DeviceStatus status() const;
  bool is_open() const;
  // When its last lease ended, for choosing the most recently used device.
  Clock::Time last_used() const;
  int queue_length() const;
  // Whether the graph of this key is compiled, as long as the device stays open.
  bool has_compiled(const GraphKey& program) const;
  // Places of other processes in the device's queue.
  int users_elsewhere() const;
  double expected_open_seconds() const;
  // How long leases of this process hold the device, recent ones weighing more. None before the first has ended.
  std::optional<double> usual_hold_seconds() const;
  // Since it was lost or could not be opened, in this process. None if neither has happened.
  std::optional<double> seconds_since_failure() const;
  void count_run(double compute_seconds, bool failed);
  // Of the hold on the device by this process; 0 without one.
  std::uint64_t epoch() const;
  // Another process waits and the quantum is over.
  bool should_yield() const;

 private:
  friend struct LeaseGrant;
  using Request = RequestQueue::Request;
  using Failure = RequestQueue::Failure;
  // The later ones prevail.
  enum class CloseReason : std::uint8_t { policy, exclusive_lease, yield, request, shut_down, lost };
  enum class Thread : std::uint8_t { none, running, stopping, ended };

  explicit DeviceOwner(Options options);

  // All of these with mutex_ held.
  Clock::Time now() const noexcept { return options_.clock->now(); }
  void check_running() const;
  void start_thread();
  bool needs_exclusive_ticket(const Request& request) const;
  bool has_ticket_for(const Request& request) const;
  bool can_grant(const Request& request) const;
  void grant(Request& request, Clock::Time now);
  void grant_waiting(Clock::Time now);
  // Leases that make room for others stay among the holders.
  bool all_are_paused() const;
  bool goes_before_paused(const Request& request) const;
  bool may_resume(const LeaseGrant& grant) const;
  Clock::Time due(const std::string& client, Clock::Time now) const;
  void give_up_opening(std::unique_lock<std::mutex>& lock, std::chrono::nanoseconds patience);
  void wait_for_grant(std::unique_lock<std::mutex>& lock, Request& request, const LeaseOptions& options);
  bool is_open_for_use() const noexcept { return state_ == DeviceState::idle || state_ == DeviceState::busy; }
  bool quantum_is_over(Clock::Time now) const;

  // The transitions, with mutex_ held.
  void enter(DeviceState state, std::string_view reason, Clock::Time now);
  void note_failure();
  void begin_opening();                                                // closed, failed, lost -> opening
  void abandon_opening();                                              // opening -> closed
  void fail_opening(const Failure& failure, std::string_view reason);  // opening -> failed
  void finish_opening(std::unique_ptr<OpenSession> session);           // opening -> idle, busy
  void work_ended(Clock::Time now);                                    // busy -> idle, draining
  void rest(Clock::Time now, std::string_view reason = {});            // draining, closing -> idle, busy
  void drain(CloseReason reason);                                      // idle, busy -> draining
  void begin_closing();                                                // draining -> closing
  void stay_open();                                                    // closing -> idle, busy
  void finish_closing();                                               // closing -> closed, lost
  void give_up();                                                      // busy, draining -> lost

  // The owner thread.
  void run();
  void step(std::unique_lock<std::mutex>& lock);
  std::optional<CloseReason> reason_to_close(Clock::Time now) const;
  Clock::Time next_deadline(Clock::Time now) const;
  void sleep_until_event(std::unique_lock<std::mutex>& lock);
  void open_device(std::unique_lock<std::mutex>& lock);
  std::optional<Turnstile::Pass> enter_turnstile(std::unique_lock<std::mutex>& lock);
  std::shared_ptr<OpenDevice> open_with_retries(bool is_dirty, const std::stop_token& stop) const;
  void close_device(std::unique_lock<std::mutex>& lock);
  void abandon_device(std::unique_lock<std::mutex>& lock);

  void release(LeaseGrant& grant) noexcept;
  void end_operation(const Operation& operation) noexcept;
  void count_at_once(const Operation& operation) noexcept;
  bool is_wanted(DeviceEvent::Kind kind) const noexcept {
    return device().kind == DeviceKind::cpu ? events().is_wanted_of_cpu(kind) : events().is_wanted(kind);
  }
  void send(DeviceEvent::Kind kind, double seconds, std::string message = {}, std::uint64_t epoch = 0) const;

  static inline std::atomic<int> leases_held_{0};
  const Options options_;
  const std::shared_ptr<const DeviceInfo> description_;
  const std::uint64_t process_generation_;  // of the process whose thread this is

  mutable std::mutex mutex_;
  std::condition_variable closed_;  // a closing has ended, or the thread
  std::thread thread_;
  Thread thread_state_ = Thread::none;
  Sleeper sleeper_;

  DeviceState state_ = DeviceState::closed;
  std::string state_reason_ = "not used yet";
  Clock::Time state_since_;
  std::optional<Clock::Time> failed_at_;  // lost, or not opened
  std::atomic<bool> has_failed_ = false;  // whether it ever failed, readable without the mutex
  CloseReason close_reason_{};            // while draining and closing

  RequestQueue queue_;
  RequestQueue::Holders holders_;
  std::condition_variable resumed_;                     // a lease that is paused may go on
  RecentUse use_;                                       // by clients
  std::optional<std::stop_source> opening_;             // exactly while opening: ends the wait for other processes, and retries
  std::stop_source open_;                               // ends an open that hangs, as far as the backend can
  std::unique_ptr<OpenSession> session_;                // exactly while the device is open
  std::vector<std::unique_ptr<OpenSession>> given_up_;  // with operations that have not returned
  std::optional<Turnstile::Watch> watch_;               // tells that other processes came; kept for all sessions
  HoldTimes times_;
  Usage usage_;
  const std::shared_ptr<Residency::Counters> tensor_counters_ = std::make_shared<Residency::Counters>();
};

class DeviceOwner::Operation {
 public:
  Operation(Operation&& other) noexcept = default;
  ~Operation();

  OpenDevice& device() const noexcept { return *session_->device; }
  const std::shared_ptr<Residency>& residency() const noexcept { return session_->residency; }
  ExecutableCache& executables() const noexcept { return session_->executables; }
  DeviceOwner& owner() const noexcept { return *owner_; }
  // Used by one thread at a time.
  JoinedGroups& groups() const noexcept { return session_->groups; }
  // Something went wrong: if the device is lost, it is given up at the end of the operation.
  void failed() noexcept { has_failed_ = true; }
  // For one that was begun at once: counts as a lease and a run when it ends. |now|: of the system's clock, read for the last
  // time.
  void count_run(double compute_seconds, Clock::Time now) noexcept {
    compute_seconds_ = compute_seconds;
    computed_at_ = now;
  }

 private:
  friend class DeviceOwner;
  Operation(std::shared_ptr<DeviceOwner> owner, OpenSession& session, Clock::Time overdue_at)
      : owner_(std::move(owner)),
        session_(&session),
        overdue_at_(overdue_at) {}

  std::shared_ptr<DeviceOwner> owner_;
  OpenSession* session_;  // stays as it is until its last operation has ended, also when it was given up
  Clock::Time overdue_at_;
  Clock::Time computed_at_{};
  bool has_failed_ = false;
  double compute_seconds_ = -1;  // of a run that end_operation() counts; negative for none
};

struct LeaseGrant {
  std::shared_ptr<DeviceOwner> owner;
  LeaseMode mode{};
  std::thread::id thread;
  Clock::Time asked_at{}, granted_at{};
  double open_seconds = 0;  // part of the wait for the lease: spent opening the device
  std::uint64_t epoch = 0;
  std::string client;
  int priority = 0;
  Clock::Time runs_since{};  // its client is charged from here
  Clock::Time turn_until{};  // others of whom as much has been used wait until then
  Clock::Time due{};         // while it is paused
  bool is_paused = false, was_paused = false;
  ~LeaseGrant() {
    if (owner) owner->release(*this);
  }
  double waited_seconds() const { return Clock::seconds_between(asked_at, granted_at); }
  // Part of the wait: spent in the queue.
  double queued_seconds() const { return std::max(0.0, waited_seconds() - open_seconds); }
};

}  // namespace tenon
