// What a DeviceManager keeps: configuration, then the devices in use, then routing among them. Each knows those before it.
#pragma once

#include <memory>

#include "manager/device_owners.h"
#include "manager/ledger/ledger.h"
#include "manager/routing/routing.h"
#include "tenon/manager.h"

namespace tenon {

struct ManagerState {
  explicit ManagerState(Config wanted) : config(std::move(wanted)) {}
  // A lease of this device; waits as long as the configuration says where |options| does not.
  Lease acquire(DeviceOwner& owner, const LeaseOptions& options) const;

  const Config config;
  // The process was forked from one that used devices: none but the CPU can be used here.
  bool is_forked = false;
  DeviceOwners owners{config};
  Routing routing{config, owners};
  std::shared_ptr<Ledger> ledger;
  std::shared_ptr<void> ledger_observer, profile_observer;
};

// Of |manager|, for the rooms above that run programs over values only they know of.
ManagerState& state_of(DeviceManager& manager) noexcept;

}  // namespace tenon
