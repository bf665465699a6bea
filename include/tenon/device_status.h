// What is known of a device's use: its state, who holds it and who waits, what happened to it and how long that took.
//
// All values: copy, compare, print. Reading a state touches no hardware.
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

// A device as this process has it. The reason is in DeviceStatus.
enum class DeviceState : std::uint8_t {
  closed,    // not open here; another process may have it
  opening,   // waiting for other processes, or being opened
  idle,      // open, no lease: held by the keep-open policy
  busy,      // open, leased
  draining,  // to be closed when the operation that runs has ended
  closing,   // tensors move to host memory, then it closes
  failed,    // the last attempt to open it failed; the next lease tries again
  lost,      // it went away while open; the next lease opens it anew
};
std::string_view name(DeviceState state) noexcept;

// A stage of a run, in the order they happened.
struct Span {
  std::string stage;  // "queued", "opening", "compiling", "uploading", "computing", "downloading", "closing"
  double seconds = 0;
  double start_seconds = 0;  // after the beginning of the run
};
using Timeline = std::vector<Span>;

// How many waits were at most so long.
struct WaitHistogram {
  static constexpr std::array<double, 12> kLimitSeconds{1e-5, 1e-4, 1e-3, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 60, 600};
  // Of those between the limit before and this one; the last: longer than all.
  std::array<std::uint64_t, kLimitSeconds.size() + 1> counts{};
  double seconds = 0;  // of all waits together

  void record(double wait_seconds) {
    const auto limit = std::lower_bound(kLimitSeconds.begin(), kLimitSeconds.end(), wait_seconds);
    ++counts[static_cast<std::size_t>(limit - kLimitSeconds.begin())];
    seconds += wait_seconds;
  }
};

// Since the manager was made. Seconds are of wall time.
struct DeviceCounters {
  std::uint64_t leases = 0, warm = 0, cold = 0, queued = 0;  // granted; finding the device open, closed; having to wait
  std::uint64_t timeouts = 0, cancellations = 0;
  std::uint64_t overtakes = 0;  // leases granted after a later one of the same priority; always 0, or the queue is broken
  std::uint64_t opens = 0, open_failures = 0, closes = 0, close_failures = 0, dirty_grants = 0;
  std::uint64_t yields = 0, lost = 0, requeued_at_close = 0;  // the last: leases that met a closing device and re-opened it
  std::uint64_t runs = 0, run_failures = 0;
  std::uint64_t spills = 0, restores = 0, evictions = 0;
  std::uint64_t bytes_up = 0, bytes_down = 0;
  double open_seconds = 0, close_seconds = 0, busy_seconds = 0, idle_seconds = 0, queue_seconds = 0, compute_seconds = 0;
  // From asking to the grant, of leases that found the device open and free; that waited until it was open; that waited for
  // others.
  WaitHistogram warm_waits, cold_waits, queued_waits;
};

// Somebody who holds a device or waits for it, in this process or another.
struct DeviceUser {
  std::string who;  // "this process", "pid 4242 (user ada): train.py"
  bool is_holding = false;
  bool is_here = false;  // in this process
  double seconds = 0;    // for this long
};

// What this process knows of a device, without touching it.
struct DeviceStatus {
  DeviceInfo device;
  DeviceState state = DeviceState::closed;
  std::string reason;             // of the state: "held for 1.2 s more", "open failed: ..."
  double state_seconds = 0;       // for this long
  std::vector<DeviceUser> users;  // holders first, then those who wait, in order
  std::uint64_t memory_limit_bytes = 0, memory_used_bytes = 0, memory_peak_bytes = 0;
  std::size_t resident_tensors = 0;
  std::uint64_t epoch = 0;  // of the hold on the device by this process; 0 without one
  std::string policy;
  double threshold_seconds = 0, break_even_seconds = 0, cost_over_optimum = 1;
  DeviceCounters counters;
};

// Something that happened to a device. Observers hear of it one at a time, from the thread it happened in; they must be quick and
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
