// DeviceOwners: the devices that a manager was asked for, each with the one owner that queues, opens and closes it.
//
// Lifetime: the configuration must outlive it; owners live as long as their leases. Thread safety: all calls may run side by
// side.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lease/event_sink.h"
#include "lease/owner/device_owner.h"
#include "tenon/backend.h"
#include "tenon/manager/config.h"

namespace tenon {

// The CPU under this process: the operating system shares it, so it has no queue of processes, nothing to open or close, and
// no later user finds it dirty.
bool is_host(const DeviceInfo& device);

// The bytes of |device| that the configured memory strategy allows; none where its memory is not known.
std::optional<std::uint64_t> memory_budget_of(const Config& config, const DeviceInfo& device);

class DeviceOwners {
 public:
  explicit DeviceOwners(const Config& config) : config_(config) {}
  DeviceOwners(const DeviceOwners&) = delete;
  DeviceOwners& operator=(const DeviceOwners&) = delete;

  // nullptr for a device that was never asked for.
  std::shared_ptr<DeviceOwner> find(std::string_view id) const;
  // The owner of |device|, made if there is none. |latency| is what the keep-open policy starts from. Opens nothing. Throws
  // failed_precondition after shut_down().
  std::shared_ptr<DeviceOwner> make(const DeviceInfo& device, const std::shared_ptr<Backend>& backend, const Latency& latency);
  // The one of which the calling thread holds a lease; nullptr for none.
  std::shared_ptr<DeviceOwner> held_by_this_thread() const;
  std::vector<std::shared_ptr<DeviceOwner>> all() const;  // by id

  // Closes all devices; makes no more.
  void shut_down();
  const std::shared_ptr<EventSink>& events() const noexcept { return events_; }

 private:
  const Config& config_;
  const std::shared_ptr<EventSink> events_ = std::make_shared<EventSink>();
  mutable std::mutex mutex_;
  bool is_shut_down_ = false;
  std::map<std::string, std::shared_ptr<DeviceOwner>, std::less<>> owners_;
};

}  // namespace tenon
