// Routing: what device requests ("auto", a kind, an id, an alias) stand for on this machine, and why.
//
// Brings together what is known: the backends, the machine as detected, the devices in use with their queues, and what programs
// took before; route() then decides. A request that needs no prediction is decided once: the next one of its name takes the same
// device without looking at the machine, until a backend, a detector or the default device is set, or detect() finds that other
// devices can be used than before.
//
// Lifetime: the configuration and the owners must outlive it. Thread safety: all calls may run side by side.
//
//   Routing::Choice choice = routing.choose(graph, "gpu", false);
//   choice.owner->acquire(...);  choice.decision->reason;      // "gpu was asked for"
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "device/detect.h"
#include "hal/registry.h"
#include "manager/device_owners.h"
#include "manager/routing/profile_store.h"
#include "tenon/manager/routing.h"

namespace tenon {

// What one request says instead of the configuration; only "auto" asks for it.
struct RoutingPreference {
  std::optional<RoutingMode> routing = std::nullopt;
  std::string prefer = {};
  bool is_given() const noexcept { return routing.has_value() || !prefer.empty(); }
};

class Routing {
 public:
  // With all backends of this build.
  Routing(const Config& config, DeviceOwners& owners);

  struct Choice {
    std::shared_ptr<DeviceOwner> owner;
    std::shared_ptr<const Decision> decision;  // of the owner's device
  };
  // The device for a program. Where |explain|, the decision says what every device would take.
  Choice choose(const Graph& graph, std::string_view request, const RoutingPreference& preference, bool explain);
  // Whether choose() without an explanation takes an earlier decision, and so reads nothing of the machine.
  bool is_decided(std::string_view request) const;
  // What choose() would take for a thread without a lease, if that was decided before and is this CPU; else null.
  // |decision|, if there is one, receives the decision.
  std::shared_ptr<DeviceOwner> decided_host(std::string_view request, std::shared_ptr<const Decision>* decision) const;
  // The device for a lease without a program: nothing is predicted.
  std::shared_ptr<DeviceOwner> owner_for(std::string_view request);
  // What choose() would decide now, explained.
  Decision explain(const Graph& graph, std::string_view request, const RoutingPreference& preference = {}) const;
  // The device a request stands for, one that cannot be used included. Throws not_found.
  DeviceInfo find(std::string_view request) const;

  // The machine as it is now. Requests that were decided stay so unless devices came or went.
  Detection detect() const;
  // What the backends offer, without looking at the machine.
  std::vector<DeviceInfo> offered() const { return registry()->devices(); }
  void add_detector(std::unique_ptr<Detector> detector);
  void add_backend(std::unique_ptr<Backend> backend);
  // What "auto" stands for from now on. Throws not_found.
  void set_default(std::string_view request);

  // Counted once for each program.
  Work work_of(const Graph& graph) const;
  ProfileStore& profiles() const noexcept { return *profiles_; }

 private:
  // Without a graph nothing is predicted.
  Decision decide(std::string_view request, const Graph* graph, const RoutingPreference& preference = {}) const;
  Config config_with(const RoutingPreference& preference) const;
  // For a device that cannot be used: it, without a reason. Other programs may drive it, and it says itself what is wrong.
  Decision decide_or_describe(std::string_view request) const;
  Candidate candidate_of(const DeviceInfo& device, const Graph* graph) const;
  Choice of_this_thread();
  Choice look_up(std::string_view request);
  Choice decided(Decision decision);
  std::shared_ptr<DeviceOwner> owner_of(const DeviceInfo& device);
  std::shared_ptr<const BackendRegistry> registry() const;
  void forget();  // with mutex_ held

  const Config& config_;
  DeviceOwners& owners_;
  const std::shared_ptr<ProfileStore> profiles_;

  mutable std::mutex mutex_;
  std::shared_ptr<const BackendRegistry> registry_;  // replaced as a whole: others may be reading it
  std::vector<std::shared_ptr<const Detector>> detectors_;
  std::string default_ = "auto";
  // What a request stood for when it was decided: one device, or several that do the same.
  mutable std::map<std::string, std::vector<Choice>, std::less<>> decided_;
  std::map<std::string, std::shared_ptr<const Decision>, std::less<>> leased_;  // by id: what runs under a lease report
  mutable std::optional<std::vector<std::pair<std::string, bool>>> machine_;    // ids and whether they can be used, as last seen
  mutable std::unordered_map<GraphKey, Work> works_;
};

// Other processes that hold or await a device this one has not used yet.
std::vector<DeviceUser> users_of_unused(const DeviceInfo& device);

}  // namespace tenon
