#include "manager/device_owners.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/log.h"
#include "lease/device_environment.h"
#include "tenon/error.h"

namespace tenon {
namespace {

// Devices whose opening takes no time that was declared or measured still need a break-even above zero.
constexpr double kSmallestBreakEven = 1e-3;

KeepOpen policy_of(const Config& config, const DeviceInfo& device, double break_even) {
  if (is_host(device)) return KeepOpen::always(break_even);
  switch (config.keep_open) {
    case KeepOpenPolicy::on_demand: return KeepOpen::on_demand(break_even);
    case KeepOpenPolicy::linger: return KeepOpen::linger(break_even, config.linger_seconds);
    case KeepOpenPolicy::always: return KeepOpen::always(break_even);
    case KeepOpenPolicy::adaptive: break;
  }
  return KeepOpen::adaptive(break_even);
}

// Where a device can be shared anyhow, not having a place to queue in is no reason to do without it.
std::optional<Turnstile> turnstile_of(const DeviceInfo& device) {
  if (is_host(device)) return std::nullopt;
  try {
    Turnstile turnstile(RunDirectory::open(), device.id);
    const char* const lease = std::getenv("TENON_LEASE");
    const TicketKind kind = device.exclusive ? TicketKind::exclusive : TicketKind::shared;
    if (lease && is_leased_already(turnstile, lease, kind)) return std::nullopt;  // by the tenon exec around this process
    return turnstile;
  } catch (const Error& error) {
    if (device.exclusive) throw;
    logging::warn("{} is used without a queue between processes: {}", device.id, error.what());
    return std::nullopt;
  }
}

}  // namespace

bool is_host(const DeviceInfo& device) { return device.kind == DeviceKind::cpu && !device.exclusive; }

std::optional<std::uint64_t> memory_budget_of(const Config& config, const DeviceInfo& device) {
  if (!device.memory_total_bytes) return std::nullopt;
  return static_cast<std::uint64_t>(static_cast<double>(*device.memory_total_bytes) * config.budget_fraction());
}

std::shared_ptr<DeviceOwner> DeviceOwners::find(std::string_view id) const {
  const std::lock_guard lock(mutex_);
  const auto found = owners_.find(id);
  return found == owners_.end() ? nullptr : found->second;
}

std::shared_ptr<DeviceOwner> DeviceOwners::make(const DeviceInfo& device, const std::shared_ptr<Backend>& backend,
                                                const Latency& latency) {
  DeviceOwner::Options options;
  options.device = device;
  options.backend = backend;
  options.turnstile = turnstile_of(device);
  options.break_even = BreakEven(latency.open_seconds, latency.close_seconds, config_.worth);
  options.policy = policy_of(config_, device, std::max(kSmallestBreakEven, options.break_even.seconds()));
  options.quantum_seconds = config_.quantum_seconds;
  options.min_hold_seconds = config_.min_hold_seconds;
  if (const std::optional<std::uint64_t> bytes = memory_budget_of(config_, device))
    options.budget = MemoryBudget::make(device.id, *bytes, device.memory_total_bytes.value_or(0));
  options.fuse = config_.enable_jit;
  options.events = events_;
  const std::lock_guard lock(mutex_);
  if (is_shut_down_) throw Error(ErrorCode::failed_precondition, device.id + ": its DeviceManager was destroyed");
  std::shared_ptr<DeviceOwner>& owner = owners_[device.id];
  if (!owner) owner = DeviceOwner::make(std::move(options));
  return owner;
}

std::shared_ptr<DeviceOwner> DeviceOwners::held_by_this_thread() const {
  const std::lock_guard lock(mutex_);
  for (const auto& [id, owner] : owners_)
    if (owner->is_held_by_this_thread()) return owner;
  return nullptr;
}

std::vector<std::shared_ptr<DeviceOwner>> DeviceOwners::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<DeviceOwner>> all;
  for (const auto& [id, owner] : owners_) all.push_back(owner);
  return all;
}

void DeviceOwners::shut_down() {
  {
    const std::lock_guard lock(mutex_);
    is_shut_down_ = true;
  }
  for (const std::shared_ptr<DeviceOwner>& owner : all()) owner->shut_down();
}

}  // namespace tenon
