#include "manager/routing/routing.h"

#include <algorithm>
#include <tuple>

#include "backends/all.h"
#include "base/log.h"
#include "device/cost.h"
#include "device/naming.h"
#include "lease/turnstile/queue_text.h"
#include "manager/inventory.h"
#include "tenon/error.h"

namespace tenon {
namespace {

constexpr std::size_t kMaxWorks = 1024;
constexpr double kAsideSeconds = 2;  // after a device failed, others are preferred for so long
constexpr const char* kIsLeased = "this thread holds a lease of it";

bool is_auto(std::string_view request) { return request.empty() || request == "auto"; }

bool is_by_measure(RoutingMode mode) { return mode == RoutingMode::fastest || mode == RoutingMode::cheapest; }

bool has_failed_lately(const DeviceOwner& owner) {
  const std::optional<double> since = owner.seconds_since_failure();
  return since && *since < kAsideSeconds;
}

// Of several devices that do the same, those that did not just fail: one that is open and free, the one used last first, so that
// the rest go cold; else one that is closed and free; else the one with the shortest queue.
const Routing::Choice& best_of(const std::vector<Routing::Choice>& choices) {
  if (choices.size() == 1) return choices.front();
  const Routing::Choice* best = nullptr;
  std::tuple<bool, int, bool, Clock::Time> best_rank;
  for (const Routing::Choice& choice : choices) {
    const DeviceOwner& owner = *choice.owner;
    const bool is_open = owner.is_open();
    const std::tuple rank(!has_failed_lately(owner),
                          is_open ? -owner.queue_length() : -owner.queue_length() - owner.users_elsewhere(), is_open,
                          owner.last_used());
    if (best == nullptr || rank > best_rank) {
      best = &choice;
      best_rank = rank;
    }
  }
  return *best;
}

// |decision| with another device in the place of the chosen one.
Decision instead(Decision decision, const DeviceInfo& device) {
  const auto other = std::ranges::find(decision.considered, device.id, [](const Considered& c) { return c.candidate.device.id; });
  if (other != decision.considered.end()) {
    std::swap(decision.considered.front().remark, other->remark);
    std::rotate(decision.considered.begin(), other, other + 1);
  }
  decision.device = device;
  return decision;
}

std::vector<std::pair<std::string, bool>> usable(const std::vector<DeviceInfo>& devices) {
  std::vector<std::pair<std::string, bool>> all;
  for (const DeviceInfo& device : devices) all.emplace_back(device.id, device.available);
  return all;
}

}  // namespace

std::vector<DeviceUser> users_of_unused(const DeviceInfo& device) {
  std::vector<DeviceUser> users;
  try {
    const std::optional<RunDirectory> directory = RunDirectory::open_existing();
    if (!directory || !directory->open_file_to_read(device.id + ".turnstile")) return users;
    for (const Turnstile::Position& place : Turnstile(*directory, device.id).queue().places)
      users.push_back({who_in_short(place), place.is_holding, false, place.is_known ? seconds_since(place) : 0});
  } catch (const Error&) {
    // Whoever then takes the device is told.
  }
  return users;
}

namespace {

Hosting hosting(Isolate isolate) {
  switch (isolate) {
    case Isolate::automatic: return Hosting::as_needed;
    case Isolate::drivers: return Hosting::drivers;
    case Isolate::always: return Hosting::workers;
    case Isolate::never: return Hosting::here;
  }
  return Hosting::here;
}

}  // namespace

Routing::Routing(const Config& config, DeviceOwners& owners)
    : config_(config),
      owners_(owners),
      profiles_(config.profile ? ProfileStore::of_process() : std::make_shared<ProfileStore>("")) {
  auto registry = std::make_shared<BackendRegistry>();
  register_all_backends(*registry, config.simulated, hosting(config.isolate));
  registry_ = std::move(registry);
}

std::shared_ptr<const BackendRegistry> Routing::registry() const {
  const std::lock_guard lock(mutex_);
  return registry_;
}

void Routing::forget() {
  decided_.clear();
  machine_.reset();
}

void Routing::add_detector(std::unique_ptr<Detector> detector) {
  const std::lock_guard lock(mutex_);
  detectors_.push_back(std::move(detector));
  forget();
}

void Routing::add_backend(std::unique_ptr<Backend> backend) {
  const std::lock_guard lock(mutex_);
  auto more = std::make_shared<BackendRegistry>(*registry_);
  more->add(std::move(backend));
  registry_ = std::move(more);
  forget();
}

void Routing::set_default(std::string_view request) {
  if (!is_auto(request)) find(request);
  const std::lock_guard lock(mutex_);
  default_ = request;
  forget();
}

Detection Routing::detect() const {
  std::vector<std::shared_ptr<const Detector>> held;
  {
    const std::lock_guard lock(mutex_);
    held = detectors_;
  }
  std::vector<const Detector*> own;
  for (const auto& detector : held) own.push_back(detector.get());
  Detection found = tenon::detect({}, own);
  found.devices = inventory(std::move(found.devices), *registry());
  for (DeviceInfo& device : found.devices) apply_prices(device, config_.prices);
  std::vector<std::pair<std::string, bool>> seen = usable(found.devices);
  const std::lock_guard lock(mutex_);
  if (machine_ && *machine_ != seen) decided_.clear();
  machine_ = std::move(seen);
  return found;
}

DeviceInfo Routing::find(std::string_view request) const { return decide_or_describe(request).device; }

Decision Routing::decide_or_describe(std::string_view request) const {
  try {
    Decision decision = decide(request, nullptr);
    if (!decision.warning.empty()) logging::warn("{}", decision.warning);
    return decision;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unavailable) throw;
    const std::vector<DeviceInfo> devices = detect().devices;
    const DeviceInfo* const device = find_device(devices, request);
    if (device == nullptr) throw;
    Decision decision;
    decision.device = *device;
    return decision;
  }
}

Work Routing::work_of(const Graph& graph) const {
  const GraphKey key = graph.key();
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = works_.find(key); known != works_.end()) return known->second;
  }
  const Work work = tenon::work_of(graph);
  const std::lock_guard lock(mutex_);
  if (works_.size() >= kMaxWorks) works_.clear();
  works_.emplace(key, work);
  return work;
}

Candidate Routing::candidate_of(const DeviceInfo& device, const Graph* graph) const {
  Candidate candidate;
  candidate.device = device;
  const std::shared_ptr<Backend> backend = device.backends.empty() ? nullptr : registry()->find(device.backends.front());
  if (!device.available || !backend) return candidate;
  candidate.latency = backend->latency(device);
  if (graph != nullptr) {
    try {
      backend->check(device, *graph);
    } catch (const Error& error) {
      candidate.refusal = error.what();
    }
  }
  const std::shared_ptr<DeviceOwner> owner = owners_.find(device.id);
  if (owner) {
    candidate.is_open = owner->is_open();
    candidate.is_compiled = graph != nullptr && owner->has_compiled(graph->key());
    candidate.has_failed = has_failed_lately(*owner);
  }
  if (!device.exclusive) return candidate;
  candidate.ahead = owner ? owner->queue_length() + owner->users_elsewhere() : static_cast<int>(users_of_unused(device).size());
  if (owner)
    if (const std::optional<double> hold = owner->usual_hold_seconds()) candidate.queue_seconds = candidate.ahead * *hold;
  return candidate;
}

Config Routing::config_with(const RoutingPreference& preference) const {
  Config config = config_;
  if (preference.routing) config.routing = *preference.routing;
  if (!preference.prefer.empty()) config.prefer = preference.prefer;
  if (config.routing == RoutingMode::pinned && config.prefer == "auto")
    throw Error(ErrorCode::invalid_argument, "routing is pinned, but prefer names no device",
                "set prefer to a kind or an id, or use another routing mode");
  return config;
}

Decision Routing::decide(std::string_view request, const Graph* graph, const RoutingPreference& preference) const {
  std::string meant(request);
  // A preference that comes with the request replaces the default device, too.
  if (is_auto(request) && preference.prefer.empty()) {
    const std::lock_guard lock(mutex_);
    meant = default_;
  }
  Predictor predict;
  if (graph != nullptr)
    predict = [this, work = work_of(*graph)](const Candidate& candidate) { return profiles_->predict(candidate, work); };
  const std::optional<Config> own =
      is_auto(request) && preference.is_given() ? std::optional(config_with(preference)) : std::nullopt;
  const Config& config = own ? *own : config_;
  const auto among = [&](const std::vector<DeviceInfo>& devices) {
    std::vector<Candidate> candidates;
    for (const DeviceInfo& device : devices) candidates.push_back(candidate_of(device, graph));
    return route(config, meant, candidates, predict);
  };
  // Numbers count the devices of the whole machine.
  if (device_number(meant)) return among(detect().devices);
  // Looking at the whole machine takes milliseconds, which a run on the CPU should not pay; it is worth it to say why a device is
  // not there.
  try {
    Decision decision = among(inventory({}, *registry()));
    if (decision.warning.empty()) return decision;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::not_found && error.code() != ErrorCode::unavailable) throw;
  }
  return among(detect().devices);
}

Decision Routing::explain(const Graph& graph, std::string_view request, const RoutingPreference& preference) const {
  if (is_auto(request))
    if (const std::shared_ptr<DeviceOwner> held = owners_.held_by_this_thread()) {
      Decision decision = decide(held->device().id, &graph);
      decision.reason = decision.considered.front().remark = kIsLeased;
      return decision;
    }
  return decide(request, &graph, preference);
}

std::shared_ptr<DeviceOwner> Routing::owner_of(const DeviceInfo& device) {
  if (std::shared_ptr<DeviceOwner> known = owners_.find(device.id)) return known;
  if (!device.available) throw Error(ErrorCode::unavailable, device.id + " cannot be used: " + device.reason, device.remedy);
  const std::shared_ptr<Backend> backend = registry()->find(device.backends.at(0));
  if (!backend) throw Error(ErrorCode::unavailable, device.id + ": no backend called " + device.backends[0]);
  return owners_.make(device, backend, profiles_->latency(device, backend->latency(device)));
}

Routing::Choice Routing::decided(Decision decision) {
  std::shared_ptr<DeviceOwner> owner = owner_of(decision.device);
  return {std::move(owner), std::make_shared<const Decision>(std::move(decision))};
}

Routing::Choice Routing::of_this_thread() {
  std::shared_ptr<DeviceOwner> held = owners_.held_by_this_thread();
  if (!held) return {};
  const std::lock_guard lock(mutex_);
  std::shared_ptr<const Decision>& decision = leased_[held->device().id];
  if (!decision) {
    Decision made;
    made.device = held->device();
    made.reason = kIsLeased;
    decision = std::make_shared<const Decision>(std::move(made));
  }
  return {std::move(held), decision};
}

Routing::Choice Routing::look_up(std::string_view request) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = decided_.find(request); found != decided_.end()) return best_of(found->second);
  }
  const Decision decision = decide_or_describe(request);
  const DeviceInfo& first = decision.device;
  std::vector<Choice> meant{decided(decision)};
  // Cards of one model do the same work: whoever asks for a kind gets the one that has it done soonest.
  if (request == name(first.kind) && first.kind != DeviceKind::cpu)
    for (const DeviceInfo& other : offered())
      if (other.available && other.kind == first.kind && other.name == first.name && other.id != first.id)
        meant.push_back(decided(instead(decision, other)));
  const std::lock_guard lock(mutex_);
  return best_of(decided_.insert_or_assign(std::string(request), std::move(meant)).first->second);
}

std::shared_ptr<DeviceOwner> Routing::owner_for(std::string_view request) {
  if (is_auto(request)) {
    if (Choice held = of_this_thread(); held.owner) return held.owner;
    request = "auto";
  }
  return look_up(request).owner;
}

bool Routing::is_decided(std::string_view request) const {
  if (is_by_measure(config_.routing)) return false;
  const std::lock_guard lock(mutex_);
  return decided_.contains(is_auto(request) ? "auto" : request);
}

std::shared_ptr<DeviceOwner> Routing::decided_host(std::string_view request, std::shared_ptr<const Decision>* decision) const {
  if (is_by_measure(config_.routing)) return nullptr;
  const std::lock_guard lock(mutex_);
  const auto found = decided_.find(is_auto(request) ? "auto" : request);
  if (found == decided_.end() || found->second.size() != 1) return nullptr;
  const Choice& choice = found->second.front();
  if (!is_host(choice.owner->device()) || has_failed_lately(*choice.owner)) return nullptr;
  if (decision) *decision = choice.decision;
  return choice.owner;
}

Routing::Choice Routing::choose(const Graph& graph, std::string_view request, const RoutingPreference& preference, bool explain) {
  if (explain) return decided(this->explain(graph, request, preference));
  if (is_auto(request)) {
    if (Choice held = of_this_thread(); held.owner) return held;
    request = "auto";
  }
  const bool has_preference = request == "auto" && preference.is_given();
  if (!has_preference && !is_by_measure(config_.routing)) {
    Choice choice = look_up(request);
    // What was decided once is decided again while it has just failed: another device may do.
    const bool is_aside = has_failed_lately(*choice.owner) && !is_named(choice.owner->device(), request);
    if (!is_aside) try {
        choice.owner->backend()->check(choice.owner->device(), graph);
        return choice;
      } catch (const Error& error) {
        // What was chosen for the caller may be replaced by what can run the program; what the caller chose may not.
        if (request != "auto" || error.code() != ErrorCode::unimplemented) throw;
      }
  }
  Decision decision = decide(request, &graph, preference);
  if (!decision.warning.empty()) logging::warn("{}", decision.warning);
  return decided(std::move(decision));
}

}  // namespace tenon
