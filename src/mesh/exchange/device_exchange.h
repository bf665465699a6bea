// DeviceExchange: exchanges of a mesh from device memory to device memory, seen from one of its devices.
//
// Every device calls start() in the same order, as with Exchange, which they use to agree. A device may be closed between two
// operations, to give it to another process; its group is gone then. So before each exchange all devices say whether theirs is
// still open. If one is not, or a group cannot be made, values go through host memory from there to the end of the run.
//
// From its start to its landing an exchange is an operation on the device, which computes meanwhile. No device waits for another
// process while it is in one: all begin theirs after all have come, and only if that takes no waiting.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "hal/collectives.h"
#include "lease/owner/device_owner.h"
#include "mesh/exchange/exchange.h"
#include "mesh/plan/device_plan.h"
#include "tenon/manager.h"

namespace tenon::mesh {

// The backend of all devices of |mesh|, if they can exchange by themselves; else null. Opens nothing.
std::shared_ptr<const CollectiveBackend> backend_between(DeviceManager& manager, const Mesh& mesh);
// The bytes that the exchanges of a program have to move before a group is made for it: making one takes about a second.
inline constexpr std::uint64_t kLeastDeviceBytes = std::uint64_t{1} << 20;
std::uint64_t bytes_for_devices(const Graph& graph, const Mesh& mesh, const Partition& partition);

// An exchange that is under way. Destroying it before it has landed ends it, and its group.
class Flight {
 public:
  Flight(DeviceOwner::Operation operation, std::string key) : operation_(std::move(operation)), key_(std::move(key)) {}
  ~Flight();
  Flight(const Flight&) = delete;
  Flight& operator=(const Flight&) = delete;

  // Blocks until the exchange is done; what was received, in the order of DevicePlan::received. From any thread, once. Throws
  // what the device throws; cancelled; deadline_exceeded.
  std::vector<std::shared_ptr<Storage>> land(const std::stop_token& cancel);

 private:
  friend class DeviceExchange;
  DeviceGroup& group() const { return *operation_.groups().at(key_); }

  DeviceOwner::Operation operation_;
  const std::string key_;  // of the group
  std::vector<std::shared_ptr<const Buffer>> sent_;
  std::vector<std::shared_ptr<Buffer>> received_;
  bool has_landed_ = false;
};

// Not thread-safe.
class DeviceExchange {
 public:
  // |peers| and |mesh| outlive this.
  DeviceExchange(DeviceManager& manager, const Mesh& mesh, int rank, Exchange& peers);

  // Collective. Returns when all devices have started, so that nothing a device does later can keep another one from starting.
  // Null if the value has to go through host memory. The last flight must have landed.
  std::unique_ptr<Flight> start(const DevicePlan& plan, const std::vector<std::shared_ptr<Storage>>& sent);

 private:
  bool join(const DevicePlan& plan, DeviceOwner::Operation& operation, const std::string& key);
  bool all_say_nothing(const std::string& mine);

  const Mesh& mesh_;
  const int rank_;
  Exchange& peers_;
  std::shared_ptr<DeviceOwner> owner_;
  std::shared_ptr<Residency> residency_;  // the device as it was when it joined its first group
  bool is_given_up_ = false;              // the same on all devices
};

}  // namespace tenon::mesh
