// Lease: the right to use a device while there is work.
//
// Leases are granted by priority and then in order of arrival, first among the threads of this process, then among the processes
// of the machine; the device is then opened unless it is already open. When a lease is released, the keep-open policy decides
// whether the device closes now, stays open for a while, or goes to a waiting process. A thread that requests a device it already
// holds gets it at once.
//
// If another process waits and this process's quantum has expired, the device is yielded at the end of an operation. The lease
// stays valid: its next operation waits for the device. Tensors on the device are spilled before and restored after.
//
// Lifetime: movable; ends when it is destroyed and with the process, however the process ends. May outlive the manager.
// Thread safety: a Lease must be used by one thread at a time. It may be destroyed by a thread other than the one that took it.
//
//   Lease lease = manager.lease({.device = "gpu", .timeout = std::chrono::seconds(30)});
//   for (const Batch& batch : batches) manager.run(graph, batch);          // one lease for all: run() uses the thread's lease
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

#include "tenon/lease/device_status.h"

namespace tenon {

enum class LeaseMode : std::uint8_t { exclusive, shared };

// The position of a waiter in the queue.
struct QueuePlace {
  int ahead_here = 0;       // leases of this process ahead of this one
  int ahead_elsewhere = 0;  // other processes ahead of this one
  std::string holder;       // the holder, if known: "pid 4242 (user ada): train.py"
  friend bool operator==(const QueuePlace&, const QueuePlace&) = default;
};

struct LeaseOptions {
  std::string device = "auto";  // "auto", a kind, an id
  // How long to wait; nullopt: Config::lease_timeout_seconds. Zero: fail if others are ahead, but wait for the device to open.
  std::optional<std::chrono::nanoseconds> timeout = std::nullopt;
  int priority = 0;  // higher priorities first; equal ones in order of arrival
  // Whom a process that serves several clients asks for: of those with equal priorities, who has used an exclusive device least
  // lately comes first. Empty: in order of arrival.
  std::string client = {};
  // nullopt: exclusive for devices that allow one process at a time, shared otherwise.
  std::optional<LeaseMode> mode = std::nullopt;
  std::stop_token cancel = {};
  // Called by the waiting thread when it has to wait and when its position changes.
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
  // Grows with every grant of the device to a process of this machine; 0 while another process has it or if it has no queue.
  std::uint64_t epoch() const noexcept;
  // True if another process waits and the quantum has expired: the device is yielded at the end of this operation.
  bool should_yield() const noexcept;
  void release() noexcept;

 private:
  friend class DeviceOwner;
  explicit Lease(std::shared_ptr<LeaseGrant> grant) noexcept : grant_(std::move(grant)) {}
  std::shared_ptr<LeaseGrant> grant_;
};

}  // namespace tenon
