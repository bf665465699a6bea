#include "tenon/manager.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <tuple>

#include "backends/all.h"
#include "base/log.h"
#include "device/cost.h"
#include "lease/device_environment.h"
#include "manager/config/settings.h"
#include "manager/inventory.h"
#include "manager/manager_state.h"
#include "tenon/error.h"

namespace tenon {
namespace {

// Devices whose opening takes no time that was declared or measured still need a break-even above zero.
constexpr double kSmallestBreakEven = 1e-3;

KeepOpen policy_of(const Config& config, const DeviceInfo& device, double break_even) {
  if (device.kind == DeviceKind::cpu && !device.exclusive) return KeepOpen::always(break_even);
  switch (config.keep_open) {
    case KeepOpenPolicy::on_demand: return KeepOpen::on_demand(break_even);
    case KeepOpenPolicy::linger: return KeepOpen::linger(break_even, config.linger_seconds);
    case KeepOpenPolicy::always: return KeepOpen::always(break_even);
    case KeepOpenPolicy::adaptive: break;
  }
  return KeepOpen::adaptive(break_even);
}

// The processor is shared by the operating system; every other device has a queue of processes. Where a device can be shared
// anyhow, not having a place to queue in is no reason to do without it.
std::optional<Turnstile> turnstile_of(const DeviceInfo& device) {
  if (device.kind == DeviceKind::cpu && !device.exclusive) return std::nullopt;
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

// Of several devices that do the same: one that is open and free, the one used last first, so that the rest go cold; else one
// that is closed and free; else the one with the shortest queue.
std::shared_ptr<DeviceOwner> best_of(const std::vector<std::shared_ptr<DeviceOwner>>& owners) {
  if (owners.size() == 1) return owners.front();
  std::shared_ptr<DeviceOwner> best;
  std::tuple<int, bool, Clock::Time> best_rank;
  for (const std::shared_ptr<DeviceOwner>& owner : owners) {
    const bool is_open = owner->is_open();
    const std::tuple rank(is_open ? -owner->queue_length() : -owner->queue_length() - owner->users_elsewhere(), is_open,
                          owner->last_used());
    if (!best || rank > best_rank) {
      best = owner;
      best_rank = rank;
    }
  }
  return best;
}

}  // namespace

std::shared_ptr<DeviceOwner> DeviceManager::State::owner_of(const DeviceInfo& device) {
  {
    const std::lock_guard lock(mutex);
    if (const auto found = owners.find(device.id); found != owners.end()) return found->second;
  }
  if (!device.available)
    throw Error(ErrorCode::unavailable, fmt::format("{} cannot be used: {}", device.id, device.reason), device.remedy);
  DeviceOwner::Options options;
  options.device = device;
  options.backend = registry.find(device.backends.at(0));
  if (!options.backend)
    throw Error(ErrorCode::unavailable, fmt::format("{}: no backend called {}", device.id, device.backends[0]));
  options.turnstile = turnstile_of(device);
  const Latency latency = profiles->latency(device, options.backend->latency(device));
  options.break_even = BreakEven(latency.open_seconds, latency.close_seconds, config.worth);
  options.policy = policy_of(config, device, std::max(kSmallestBreakEven, options.break_even.seconds()));
  options.quantum_seconds = config.quantum_seconds;
  options.min_hold_seconds = config.min_hold_seconds;
  if (device.memory_total_bytes)
    options.budget = MemoryBudget::make(
        device.id, static_cast<std::uint64_t>(static_cast<double>(*device.memory_total_bytes) * config.budget_fraction()));
  options.fuse = config.enable_jit;
  options.events = events;
  const std::lock_guard lock(mutex);
  if (is_shut_down) throw Error(ErrorCode::failed_precondition, device.id + ": its manager is gone");
  std::shared_ptr<DeviceOwner>& owner = owners[device.id];
  if (!owner) owner = DeviceOwner::make(std::move(options));
  return owner;
}

std::vector<std::shared_ptr<DeviceOwner>> DeviceManager::State::all_owners() const {
  const std::lock_guard lock(mutex);
  std::vector<std::shared_ptr<DeviceOwner>> all;
  for (const auto& [id, owner] : owners) all.push_back(owner);
  return all;
}

std::shared_ptr<DeviceOwner> DeviceManager::State::leased_by_this_thread() const {
  const std::lock_guard lock(mutex);
  for (const auto& [id, owner] : owners)
    if (owner->is_held_by_this_thread()) return owner;
  return nullptr;
}

std::shared_ptr<DeviceOwner> DeviceManager::State::resolve(const DeviceManager& manager, std::string_view wish) {
  if (wish == "auto")
    if (std::shared_ptr<DeviceOwner> leased = leased_by_this_thread()) return leased;
  return look_up(manager, wish);
}

std::shared_ptr<DeviceOwner> DeviceManager::State::look_up(const DeviceManager& manager, std::string_view wish) {
  {
    const std::lock_guard lock(mutex);
    if (const auto found = resolved.find(wish); found != resolved.end()) return best_of(found->second);
  }
  const DeviceInfo first = manager.find(wish);
  std::vector<std::shared_ptr<DeviceOwner>> meant{owner_of(first)};
  // Cards of one model do the same work: whoever asks for a kind gets the one that has it done soonest.
  if (wish == name(first.kind) && first.kind != DeviceKind::cpu)
    for (const DeviceInfo& other : registry.devices())
      if (other.available && other.kind == first.kind && other.name == first.name && other.id != first.id)
        meant.push_back(owner_of(other));
  const std::lock_guard lock(mutex);
  return best_of(resolved.insert_or_assign(std::string(wish), std::move(meant)).first->second);
}

DeviceManager::DeviceManager(Config config) : state_(std::make_shared<State>()) {
  config.check();
  state_->config = std::move(config);
  apply_environment(state_->config);
  state_->profiles = state_->config.profile ? ProfileStore::of_process() : std::make_shared<ProfileStore>("");
  register_all_backends(state_->registry, state_->config.simulated, state_->config.isolate);
  using Kind = DeviceEvent::Kind;
  state_->profile_observer = state_->events->add(
      [state = state_.get()](const DeviceEvent& event) {
        const std::lock_guard lock(state->mutex);
        const auto found = state->owners.find(event.device);
        if (found == state->owners.end()) return;
        const DeviceOwner& owner = *found->second;
        state->profiles->record_close(owner.device(), event.seconds);
        if (const std::optional<double> hold = owner.usual_hold_seconds()) state->profiles->record_hold(owner.device(), *hold);
      },
      {Kind::closed});
  if (!state_->config.ledger) return;
  // The ledger asks from its own thread; by then the manager may be gone.
  Ledger::Options options;
  options.describe = [weak = std::weak_ptr(state_)](const std::string& id) {
    const std::shared_ptr<State> state = weak.lock();
    if (!state) return DeviceInfo();
    const std::lock_guard lock(state->mutex);
    const auto found = state->owners.find(id);
    return found == state->owners.end() ? DeviceInfo() : found->second->device();
  };
  options.prices = state_->config.prices;
  state_->ledger = std::make_shared<Ledger>(std::move(options));
  state_->ledger_observer = state_->events->add(
      [ledger = state_->ledger.get()](const DeviceEvent& event) { ledger->record(event); },
      {Kind::opened, Kind::open_failed, Kind::closed, Kind::close_failed, Kind::lost, Kind::released, Kind::ran});
}

DeviceManager::~DeviceManager() { shut_down(); }

void DeviceManager::shut_down() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->is_shut_down = true;
  }
  for (const std::shared_ptr<DeviceOwner>& owner : state_->all_owners()) owner->shut_down();
  state_->ledger_observer.reset();
  state_->profile_observer.reset();
  state_->ledger.reset();  // writes what is left
}

const Config& DeviceManager::config() const noexcept { return state_->config; }

Detection DeviceManager::detect() const {
  std::vector<const Detector*> own;
  {
    const std::lock_guard lock(state_->mutex);
    for (const auto& detector : state_->detectors) own.push_back(detector.get());
  }
  Detection found = tenon::detect({}, own);
  found.devices = inventory(std::move(found.devices), state_->registry);
  for (DeviceInfo& device : found.devices) apply_prices(device, state_->config.prices);
  const std::lock_guard lock(state_->mutex);
  state_->machine = found.devices;
  state_->resolved.clear();
  return found;
}

std::vector<DeviceInfo> DeviceManager::devices() const { return detect().devices; }

void DeviceManager::add_detector(std::unique_ptr<Detector> detector) {
  const std::lock_guard lock(state_->mutex);
  state_->detectors.push_back(std::move(detector));
  state_->machine.reset();
  state_->resolved.clear();
}

void DeviceManager::add_backend(std::unique_ptr<Backend> backend) {
  const std::lock_guard lock(state_->mutex);
  state_->registry.add(std::move(backend));
  state_->machine.reset();
  state_->resolved.clear();
}

DeviceInfo DeviceManager::find(std::string_view wish) const {
  try {
    const Decision decision = state_->decide(*this, wish, nullptr);
    if (!decision.warning.empty()) logging::warn("{}", decision.warning);
    return decision.device;
  } catch (const Error& error) {
    // A device that cannot be used is found all the same: it has a reason, and other programs may drive it.
    if (error.code() != ErrorCode::unavailable) throw;
    const std::lock_guard lock(state_->mutex);
    if (!state_->machine) throw;
    if (const DeviceInfo* device = find_device(*state_->machine, wish)) return *device;
    throw;
  }
}

void DeviceManager::set_default_device(std::string_view wish) {
  if (wish != "auto") find(wish);
  const std::lock_guard lock(state_->mutex);
  state_->default_wish = wish;
  state_->resolved.clear();
}

DeviceInfo DeviceManager::default_device() const { return find("auto"); }

Lease DeviceManager::State::acquire(DeviceOwner& owner, const LeaseOptions& options) const {
  if (options.timeout || !config.lease_timeout_seconds) return owner.acquire(options);
  LeaseOptions limited = options;
  limited.timeout = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(std::min(*config.lease_timeout_seconds, 1e9)));
  return owner.acquire(limited);
}

Lease DeviceManager::lease(const LeaseOptions& options) {
  return state_->acquire(*state_->resolve(*this, options.device), options);
}

std::shared_ptr<OpenDevice> DeviceManager::open(const LeaseOptions& options) {
  struct Use {
    Lease lease;
    DeviceOwner::Operation operation;
  };
  Lease lease = this->lease(options);
  DeviceOwner::Operation operation = DeviceOwner::grant_of(lease).owner->begin(DeviceOwner::grant_of(lease), options.cancel);
  const auto use = std::make_shared<Use>(Use{std::move(lease), std::move(operation)});
  return {use, &use->operation.device()};
}

std::shared_ptr<OpenDevice> DeviceManager::open(std::string_view wish) {
  LeaseOptions options;
  options.device = wish;
  return open(options);
}

void DeviceManager::close(std::string_view wish) {
  if (wish == "auto") {
    state_->resolve(*this, wish)->close();
    return;
  }
  for (const std::shared_ptr<DeviceOwner>& owner : state_->all_owners()) {
    const DeviceInfo& device = owner->device();
    if (device.id == wish || name(device.kind) == wish ||
        std::find(device.aliases.begin(), device.aliases.end(), wish) != device.aliases.end())
      owner->close();
  }
}

void DeviceManager::close_all() {
  for (const std::shared_ptr<DeviceOwner>& owner : state_->all_owners()) owner->close();
}

bool DeviceManager::holds_lease() const {
  for (const std::shared_ptr<DeviceOwner>& owner : state_->all_owners())
    if (owner->is_held_by_this_thread()) return true;
  return false;
}

std::vector<DeviceStatus> DeviceManager::status() const {
  std::vector<DeviceStatus> all;
  for (const std::shared_ptr<DeviceOwner>& owner : state_->all_owners()) all.push_back(owner->status());
  for (const DeviceInfo& device : state_->registry.devices()) {
    const bool is_there =
        std::any_of(all.begin(), all.end(), [&](const DeviceStatus& status) { return status.device.id == device.id; });
    if (is_there) continue;
    DeviceStatus status;
    status.device = device;
    status.reason = device.available ? "not used yet" : device.reason;
    status.users = users_of_unused(device);
    all.push_back(std::move(status));
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.device.id < b.device.id; });
  return all;
}

std::shared_ptr<void> DeviceManager::observe(std::function<void(const DeviceEvent&)> observer,
                                             std::initializer_list<DeviceEvent::Kind> kinds) {
  return state_->events->add(std::move(observer), kinds);
}

}  // namespace tenon
