// Lease: the right to use a device, for exactly as long as there is work.
//
// A lease is granted in order of arrival within its priority, first among the threads of this process, then among the processes
// of the machine; then the device is opened, or found still open. Giving it up lets the keep-open policy decide whether the
// device closes now, stays open for a while, or goes to whoever waits. A thread that asks again for a device it holds gets it at
// once.
//
// While another process waits and this one's quantum is over, the device is given away at the end of an operation, the lease
// remaining: the next operation waits for the device to come back. Tensors on it move to host memory before and back after.
//
// Lifetime: movable; ends when dropped, on an exception, and with the process however that dies. May outlive the manager.
// Thread safety: a Lease is used by one thread at a time. It may be dropped by another thread than the one that took it.
//
//   Lease lease = manager.lease({.device = "gpu", .timeout = std::chrono::seconds(30)});
//   for (const Batch& batch : batches) manager.run(graph, batch);          // all in one lease: run() uses the thread's lease
//   lease.release();                                                       // or the end of the scope
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "tenon/device_status.h"

namespace tenon {

enum class LeaseMode : std::uint8_t { exclusive, shared };

// Where somebody who waits stands.
struct QueuePlace {
  int ahead_here = 0;       // leases of this process before this one
  int ahead_elsewhere = 0;  // other processes before this one
  std::string holder;       // who has it, if known: "pid 4242 (user ada): train.py"
  friend bool operator==(const QueuePlace&, const QueuePlace&) = default;
};

struct LeaseOptions {
  std::string device = "auto";  // "auto", a kind, an id
  // How long to wait for the device at most; none: Config::lease_timeout_seconds. Zero: not for others, only until it is open.
  std::optional<std::chrono::nanoseconds> timeout = std::nullopt;
  int priority = 0;  // higher first; in order of arrival among equals
  // None: exclusive where the device is for one process at a time, shared elsewhere.
  std::optional<LeaseMode> mode = std::nullopt;
  std::stop_token cancel = {};
  // Called by the waiting thread when it has to wait, and when its place changes.
  std::function<void(const QueuePlace&)> on_wait = {};
};

class DeviceOwner;
struct LeaseGrant;

class Lease {
 public:
  Lease() = default;  // empty
  Lease(Lease&&) noexcept;
  Lease& operator=(Lease&&) noexcept;
  ~Lease();

  explicit operator bool() const noexcept { return grant_ != nullptr; }
  const DeviceInfo& device() const;
  // Grows every time the device comes to a process of this machine; 0 while it is elsewhere, and where a device has no queue.
  std::uint64_t epoch() const noexcept;
  // Another process waits and the quantum is over: the device goes away at the end of this operation.
  bool should_yield() const noexcept;
  void release() noexcept;

 private:
  friend class DeviceOwner;
  explicit Lease(std::shared_ptr<LeaseGrant> grant) noexcept : grant_(std::move(grant)) {}
  std::shared_ptr<LeaseGrant> grant_;
};

}  // namespace tenon
