// What a DeviceManager keeps.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "device/detect.h"
#include "hal/registry.h"
#include "lease/device_owner.h"
#include "manager/ledger/ledger.h"
#include "manager/routing/profile_store.h"
#include "tenon/manager.h"

namespace tenon {

// Other processes that hold or await a device this one has not used yet.
std::vector<DeviceUser> users_of_unused(const DeviceInfo& device);

struct DeviceManager::State {
  Config config;
  BackendRegistry registry;
  std::shared_ptr<EventSink> events = std::make_shared<EventSink>();
  std::shared_ptr<Ledger> ledger;
  std::shared_ptr<void> ledger_observer, profile_observer;
  std::shared_ptr<ProfileStore> profiles;  // what routing predicts from

  mutable std::mutex mutex;
  bool is_shut_down = false;
  Detectors detectors;  // the program's own
  std::string default_wish = "auto";
  std::map<std::string, std::shared_ptr<DeviceOwner>> owners;  // by id, of every device that was ever asked for
  // What "cuda:0" or "gpu" stood for when it was last looked up, so that a run need not look at the machine again: one device, or
  // several that do the same.
  std::map<std::string, std::vector<std::shared_ptr<DeviceOwner>>, std::less<>> resolved;
  std::optional<std::vector<DeviceInfo>> machine;  // as last detected

  // The device this thread holds already where any would do, else what the wish stands for.
  std::shared_ptr<DeviceOwner> resolve(const DeviceManager& manager, std::string_view wish);
  std::shared_ptr<DeviceOwner> look_up(const DeviceManager& manager, std::string_view wish);
  std::shared_ptr<DeviceOwner> owner_of(const DeviceInfo& device);
  // The device for a program: as resolve(), or by prediction where the configuration says so.
  std::shared_ptr<DeviceOwner> owner_for(const DeviceManager& manager, const Graph& graph, std::string_view wish);
  // Without a graph nothing is predicted.
  Decision decide(const DeviceManager& manager, std::string_view wish, const Graph* graph) const;
  Candidate candidate_of(const DeviceInfo& device, const Graph* graph, const std::string& text) const;
  std::shared_ptr<DeviceOwner> leased_by_this_thread() const;
  // A lease of this device; waits as long as the configuration says where |options| does not.
  Lease acquire(DeviceOwner& owner, const LeaseOptions& options) const;
  std::vector<std::shared_ptr<DeviceOwner>> all_owners() const;
};

}  // namespace tenon
