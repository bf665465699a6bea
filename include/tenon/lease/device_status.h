// The state of a device: holders and waiters, events, counters and times.
//
// All types are values. Reading a state does not touch the hardware.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/device.h"

namespace tenon {

// The state of a device in this process; DeviceStatus has the reason.
enum class DeviceState : std::uint8_t {
  closed,    // not open in this process; another process may have it
  waiting,   // other processes hold it; a request of this process is in their queue
  opening,   // being opened
  idle,      // open, no lease: held by the keep-open policy
  busy,      // open, leased
  draining,  // will close when the current operation ends
  closing,   // tensors move to host memory, then the device closes
  failed,    // the last attempt to open it failed; the next lease tries again
  lost,      // it failed while open; the next lease opens it again
};
std::string_view name(DeviceState state) noexcept;

// One stage of a run.
struct Span {
  std::string stage;  // "queued", "opening", "compiling", "uploading", "computing", "downloading", "closing"
  double seconds = 0;
  double start_seconds = 0;  // after the start of the run
};
using Timeline = std::vector<Span>;

// Histogram of wait times.
struct WaitHistogram {
  static constexpr std::array<double, 12> kLimitSeconds{1e-5, 1e-4, 1e-3, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 60, 600};
  // The number of waits up to each limit and longer than the previous one; the last counts waits beyond all limits.
  std::array<std::uint64_t, kLimitSeconds.size() + 1> counts{};
  double seconds = 0;  // the sum of all waits

  void record(double wait_seconds) {
    const auto limit = std::lower_bound(kLimitSeconds.begin(), kLimitSeconds.end(), wait_seconds);
    ++counts[static_cast<std::size_t>(limit - kLimitSeconds.begin())];
    seconds += wait_seconds;
  }
};

// Counted since the manager was created. Seconds are wall time.
struct DeviceCounters {
  std::uint64_t leases = 0, warm = 0, cold = 0, queued = 0;  // granted; found the device open; found it closed; had to wait
  std::uint64_t timeouts = 0, cancellations = 0;
  std::uint64_t overtakes = 0;  // leases granted after a later one of the same priority; always 0 unless the queue is broken
  std::uint64_t opens = 0, open_failures = 0, closes = 0, close_failures = 0, dirty_grants = 0;
  std::uint64_t yields = 0, lost = 0, requeued_at_close = 0;  // the last: leases that met a closing device and reopened it
  std::uint64_t runs = 0, run_failures = 0;
  std::uint64_t spills = 0, restores = 0, evictions = 0;
  std::uint64_t bytes_up = 0, bytes_down = 0;
  double open_seconds = 0, close_seconds = 0, busy_seconds = 0, idle_seconds = 0, queue_seconds = 0, compute_seconds = 0;
  // Wait from request to grant, for leases that found the device open and free, that waited for it to open, and that waited for
  // others.
  WaitHistogram warm_waits, cold_waits, queued_waits;
};

// A holder or waiter of a device, in this process or another.
struct DeviceUser {
  std::string who;  // "this process", "pid 4242 (user ada): train.py"
  bool is_holding = false;
  bool is_here = false;  // in this process
  double seconds = 0;    // how long it has held or waited
};

// What this process knows about a device without touching it.
struct DeviceStatus {
  DeviceInfo device;
  DeviceState state = DeviceState::closed;
  std::string reason;             // of the state: "stays open for 1.2 s more", "could not be opened: ..."
  double state_seconds = 0;       // how long it has been in this state
  std::vector<DeviceUser> users;  // holders first, then waiters in order
  std::uint64_t memory_limit_bytes = 0, memory_used_bytes = 0, memory_peak_bytes = 0;
  std::size_t resident_tensors = 0;
  std::uint64_t epoch = 0;  // of this process's hold on the device; 0 without one
  std::string policy;
  double threshold_seconds = 0, break_even_seconds = 0, cost_over_optimum = 1;
  DeviceCounters counters;
};

// An event of a device. Observers are called one at a time, on the thread in which the event occurs; they must return quickly and
// must not call the manager.
struct DeviceEvent {
  enum class Kind : std::uint8_t { opened, open_failed, closed, close_failed, lost, granted, released, yielded, ran };
  Kind kind{};
  std::string device;
  std::chrono::system_clock::time_point when;
  double seconds = 0;   // of opening, closing, holding, running
  std::string message;  // for failures
  std::uint64_t epoch = 0;
  // For ran:
  std::string program;
  Timeline timeline;
  std::uint64_t bytes = 0;
};
std::string_view name(DeviceEvent::Kind kind) noexcept;

}  // namespace tenon
