#include "tenon/manager.h"

#include <algorithm>
#include <chrono>

#include "base/log.h"
#include "device/cost.h"
#include "device/naming.h"
#include "manager/config/settings.h"
#include "manager/manager_state.h"
#include "tenon/error.h"

namespace tenon {

DeviceManager::DeviceManager(Config config) {
  config.check();
  apply_environment(config);  // before a backend loads its runtime
  state_ = std::make_shared<ManagerState>(std::move(config));
  using Kind = DeviceEvent::Kind;
  const std::shared_ptr<EventSink>& events = state_->owners.events();
  state_->profile_observer = events->add(
      [state = state_.get()](const DeviceEvent& event) {
        const std::shared_ptr<DeviceOwner> owner = state->owners.find(event.device);
        if (!owner) return;
        ProfileStore& profiles = state->routing.profiles();
        profiles.record_close(owner->device(), event.seconds);
        if (const std::optional<double> hold = owner->usual_hold_seconds()) profiles.record_hold(owner->device(), *hold);
      },
      {Kind::closed});
  if (!state_->config.ledger) return;
  // The ledger asks from its own thread; by then the manager may be gone.
  Ledger::Options options;
  options.describe = [weak = std::weak_ptr(state_)](const std::string& id) {
    const std::shared_ptr<ManagerState> state = weak.lock();
    const std::shared_ptr<DeviceOwner> owner = state ? state->owners.find(id) : nullptr;
    return owner ? owner->device() : DeviceInfo();
  };
  options.prices = state_->config.prices;
  state_->ledger = std::make_shared<Ledger>(std::move(options));
  state_->ledger_observer =
      events->add([ledger = state_->ledger.get()](const DeviceEvent& event) { ledger->record(event); },
                  {Kind::opened, Kind::open_failed, Kind::closed, Kind::close_failed, Kind::lost, Kind::released, Kind::ran},
                  {Kind::released});  // a lease of the CPU says nothing that the run does not
}

ManagerState& state_of(DeviceManager& manager) noexcept { return *manager.state_; }

DeviceManager::~DeviceManager() { shut_down(); }

void DeviceManager::shut_down() {
  state_->owners.shut_down();
  state_->ledger_observer.reset();
  state_->profile_observer.reset();
  state_->ledger.reset();  // writes what is left
}

const Config& DeviceManager::config() const noexcept { return state_->config; }

Detection DeviceManager::detect() const { return state_->routing.detect(); }
std::vector<DeviceInfo> DeviceManager::devices() const { return detect().devices; }
void DeviceManager::add_detector(std::unique_ptr<Detector> detector) { state_->routing.add_detector(std::move(detector)); }
void DeviceManager::add_backend(std::unique_ptr<Backend> backend) { state_->routing.add_backend(std::move(backend)); }
DeviceInfo DeviceManager::find(std::string_view request) const { return state_->routing.find(request); }
Decision DeviceManager::explain(const Graph& graph, std::string_view request) const {
  return state_->routing.explain(graph, request);
}
Decision DeviceManager::explain(const Graph& graph, const RunOptions& options) const {
  return state_->routing.explain(graph, options.device, {options.routing, options.prefer});
}
void DeviceManager::set_default_device(std::string_view request) { state_->routing.set_default(request); }
DeviceInfo DeviceManager::default_device() const { return find("auto"); }

Lease ManagerState::acquire(DeviceOwner& owner, const LeaseOptions& options) const {
  if (is_forked && owner.device().kind != DeviceKind::cpu)
    throw Error(ErrorCode::failed_precondition, owner.device().id + ": this process was forked from a process that used devices",
                "use the CPU here, or start the process with exec");
  if (options.timeout || !config.lease_timeout_seconds) return owner.acquire(options);
  LeaseOptions limited = options;
  limited.timeout = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(std::min(*config.lease_timeout_seconds, 1e9)));
  return owner.acquire(limited);
}

Lease DeviceManager::lease(const LeaseOptions& options) {
  return state_->acquire(*state_->routing.owner_for(options.device), options);
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

std::shared_ptr<OpenDevice> DeviceManager::open(std::string_view requested) {
  LeaseOptions options;
  options.device = requested;
  return open(options);
}

void DeviceManager::close(std::string_view requested, std::optional<std::chrono::nanoseconds> patience) {
  std::string by_number;
  if (device_number(requested)) requested = by_number = find(requested).id;
  if (requested == "auto") {
    state_->routing.owner_for(requested)->close(patience);
    return;
  }
  for (const std::shared_ptr<DeviceOwner>& owner : state_->owners.all()) {
    const DeviceInfo& device = owner->device();
    if (is_named(device, requested) || name(device.kind) == requested) owner->close(patience);
  }
}

void DeviceManager::close_all() {
  std::exception_ptr first;
  for (const std::shared_ptr<DeviceOwner>& owner : state_->owners.all()) try {
      owner->close();
    } catch (const Error& error) {
      if (first) logging::error("{} could not be closed: {}", owner->device().id, error.what());
      if (!first) first = std::current_exception();
    }
  if (first) std::rethrow_exception(first);
}

void DeviceManager::close_after(RunResult& result) {
  if (is_host(*result.device)) return;
  const auto start = std::chrono::steady_clock::now();
  close(result.device->id);
  Span closing{"closing", std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()};
  if (!result.timeline.empty()) closing.start_seconds = result.timeline.back().start_seconds + result.timeline.back().seconds;
  result.timeline.push_back(std::move(closing));
}

std::optional<RunCost> cost_of(const RunResult& result, const Config& config) {
  DeviceInfo priced = *result.device;
  apply_prices(priced, config.prices);
  if (!is_simulated(priced)) estimate_cost(priced);
  if (!priced.cost_per_hour) return std::nullopt;
  double seconds = 0;
  for (const Span& span : result.timeline)
    if (span.stage != "queued") seconds += span.seconds;
  return RunCost{*priced.cost_per_hour / 3600 * seconds, priced.cost_is_estimate};
}

bool DeviceManager::holds_lease() const { return state_->owners.held_by_this_thread() != nullptr; }

bool DeviceManager::needs_closing() const {
  for (const std::shared_ptr<DeviceOwner>& owner : state_->owners.all()) {
    if (is_host(owner->device())) continue;
    const DeviceState state = owner->status().state;
    if (state != DeviceState::closed && state != DeviceState::failed && state != DeviceState::lost) return true;
  }
  return false;
}

std::vector<DeviceStatus> DeviceManager::used() const {
  std::vector<DeviceStatus> all;
  for (const std::shared_ptr<DeviceOwner>& owner : state_->owners.all()) all.push_back(owner->status());
  return all;
}

std::vector<DeviceStatus> DeviceManager::status() const {
  std::vector<DeviceStatus> all = used();
  for (const DeviceInfo& device : state_->routing.offered()) {
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
  return state_->owners.events()->add(std::move(observer), kinds);
}

}  // namespace tenon
