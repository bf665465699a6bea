// DeviceOwner: one device as this process has it: who uses it, who waits, and one thread that opens and closes it.
//
// clang-format off
//                     a lease is asked for             opened             lease
//   closed, failed, lost ──────────────► opening ─────────────────► idle ◄─────► busy
//           ▲                               │ no turn, or it fails   │            │ to be closed, an operation runs
//           │◄──────────────────────────────┘                        ▼            ▼
//           └───────────────────────────────────────────────────── closing ◄── draining
//                                        closed
// clang-format on
//
// Leases are granted under a mutex by whoever asks or releases, so that taking a device that is open costs no thread switch. Only
// the owner thread opens and closes, and only it decides to: timers, waiters of this process and of others are events to it. A
// lease that meets a closing device stays in the queue, and the device is opened again.
//
// A lease is the right to use the device; an Operation is its use. The device is closed only between operations. If it is closed
// under a lease (to let another process have it, or because it was lost), the next operation opens it again.
//
// Lifetime: shared; leases keep it alive. shut_down() ends the thread. Thread safety: all calls may run side by side.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/file_descriptor.h"
#include "lease/event_sink.h"
#include "lease/executable_cache.h"
#include "lease/policy/keep_open.h"
#include "lease/storage.h"
#include "lease/turnstile/turnstile.h"
#include "tenon/backend.h"
#include "tenon/lease.h"

namespace tenon {

class DeviceOwner : public std::enable_shared_from_this<DeviceOwner> {
 public:
  using Clock = std::chrono::steady_clock;

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
  };
  // Starts nothing before the first lease.
  static std::shared_ptr<DeviceOwner> make(Options options);
  ~DeviceOwner();

  const DeviceInfo& device() const noexcept { return options_.device; }
  const std::shared_ptr<Backend>& backend() const noexcept { return options_.backend; }
  EventSink& events() const noexcept { return *options_.events; }

  Lease acquire(const LeaseOptions& options);
  bool is_held_by_this_thread() const;

  // The use of the device under a lease. Nothing closes it meanwhile. A thread must not begin a second one within the first.
  class Operation;
  Operation begin(Lease::Grant& grant, const std::stop_token& cancel = {});

  // Closes the device when no operation runs on it; returns when it is closed. The next operation or lease opens it again.
  void close();
  // Closes the device and ends the thread: whoever waits gets cancelled. Gives up on a driver that does not return for
  // |patience| and leaves the thread to itself.
  void shut_down(std::chrono::nanoseconds patience = std::chrono::seconds(10));

  DeviceStatus status() const;
  bool is_open() const;
  // When its last lease ended, for those who prefer a device used lately.
  Clock::time_point last_used() const;
  int queue_length() const;
  // Whether the graph of this key is compiled, as long as the device stays open.
  bool has_compiled(const GraphKey& program) const;
  // Places of other processes in the device's queue.
  int users_elsewhere() const;
  double expected_open_seconds() const;
  // How long leases of this process hold the device, recent ones weighing more. None before the first has ended.
  std::optional<double> usual_hold_seconds() const;
  void count_run(double compute_seconds, bool failed);

 private:
  friend struct Lease::Grant;
  friend class Lease;
  struct Request;
  struct Failure;
  enum class CloseReason { none, policy, yield, request, exclusive_lease, shut_down };

  explicit DeviceOwner(Options options);

  // All of these with mutex_ held.
  void start_thread();
  void wake();
  void set_state(DeviceState state, std::string reason);
  bool can_grant(const Request& request) const;
  bool needs_exclusive_ticket(const Request& request) const;
  void grant(Request& request, Clock::time_point now);
  void count_warm();
  void grant_waiting();
  void enqueue(Request& request);
  void forget(Request& request);
  void fail_waiting(const Failure& failure);
  void wait_for_grant(std::unique_lock<std::mutex>& lock, Request& request, const LeaseOptions& options);
  void became_idle(Clock::time_point now);
  void end_operation_locked();
  bool quantum_is_over(Clock::time_point now) const;
  double quantum() const;
  double min_hold() const;
  CloseReason close_reason(Clock::time_point now) const;
  Clock::time_point next_deadline() const;
  QueuePlace place_of(const Request& request, std::unique_lock<std::mutex>& lock) const;

  // The owner thread.
  void run();
  void sleep_until_event(std::unique_lock<std::mutex>& lock);
  void open_device(std::unique_lock<std::mutex>& lock);
  bool enter_turnstile(std::unique_lock<std::mutex>& lock, TicketKind kind);
  std::shared_ptr<OpenDevice> open_with_retries();
  void close_device(std::unique_lock<std::mutex>& lock, CloseReason reason);
  void bury_lost_device(std::unique_lock<std::mutex>& lock);
  void give_pass_back(bool dirty);
  void look_for_waiters();

  void release(Lease::Grant& grant) noexcept;
  void end_operation(bool failed) noexcept;
  void send(DeviceEvent::Kind kind, double seconds, std::string message = {}, std::uint64_t epoch = 0) const;

  const Options options_;
  const std::uint64_t process_generation_;  // of the process whose thread this is

  mutable std::mutex mutex_;
  std::condition_variable closed_;  // the device was closed, or the thread has ended
  std::thread thread_;
  bool thread_started_ = false, thread_ended_ = false, stopping_ = false;
  FileDescriptor event_;
  bool is_asleep_ = false;
  Clock::time_point wakes_at_{};

  DeviceState state_ = DeviceState::closed;
  std::string state_reason_ = "not used yet";
  Clock::time_point state_since_;

  std::list<Request*> queue_;  // by priority, then arrival
  std::uint64_t arrivals_ = 0;
  std::map<int, std::uint64_t> last_arrival_;  // granted, for each priority
  std::vector<Lease::Grant*> holders_;
  int operations_ = 0;
  bool draining_ = false, close_requested_ = false, is_lost_ = false, overdue_logged_ = false;
  bool foreign_waiting_ = false;

  std::shared_ptr<OpenDevice> device_;
  std::shared_ptr<Residency> residency_;
  std::shared_ptr<ExecutableCache> executables_;
  Turnstile::Pass pass_;
  std::optional<Turnstile::Watch> watch_;
  std::stop_source opening_;         // ends the wait for other processes
  TicketNumber waiting_ticket_ = 0;  // while waiting for other processes
  Clock::time_point held_since_{}, idle_since_{}, busy_since_{}, close_at_{}, last_used_{};
  bool gap_is_open_ = false;  // an idle time has begun that no work has ended yet

  KeepOpen policy_;
  BreakEven break_even_;
  double last_open_seconds_ = 0;
  std::optional<double> usual_hold_seconds_;
  std::uint64_t openings_ = 0;
  int close_failures_in_a_row_ = 0;
  DeviceCounters counters_;
  std::shared_ptr<Residency::Counters> tensor_counters_ = std::make_shared<Residency::Counters>();
};

class DeviceOwner::Operation {
 public:
  Operation(Operation&& other) noexcept = default;
  ~Operation();

  OpenDevice& device() const noexcept { return residency_->device(); }
  const std::shared_ptr<Residency>& residency() const noexcept { return residency_; }
  ExecutableCache& executables() const noexcept { return *executables_; }
  // Something went wrong: if the device is lost, it is given up at the end of the operation.
  void failed() noexcept { has_failed_ = true; }

 private:
  friend class DeviceOwner;
  Operation(std::shared_ptr<DeviceOwner> owner, std::shared_ptr<Residency> residency,
            std::shared_ptr<ExecutableCache> executables)
      : owner_(std::move(owner)),
        residency_(std::move(residency)),
        executables_(std::move(executables)) {}

  std::shared_ptr<DeviceOwner> owner_;
  std::shared_ptr<Residency> residency_;
  std::shared_ptr<ExecutableCache> executables_;
  bool has_failed_ = false;
};

struct Lease::Grant {
  std::shared_ptr<DeviceOwner> owner;
  LeaseMode mode{};
  std::thread::id thread;
  DeviceOwner::Clock::time_point asked_at{}, granted_at{};
  double open_seconds = 0;  // of waiting for the lease: spent opening the device
  std::uint64_t epoch = 0;
  ~Grant() {
    if (owner) owner->release(*this);
  }
  // Of waiting: spent in the queue.
  double queued_seconds() const {
    return std::max(0.0, std::chrono::duration<double>(granted_at - asked_at).count() - open_seconds);
  }
};

}  // namespace tenon
