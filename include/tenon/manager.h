// DeviceManager: runs computations; every front end uses it.
//
// run() chooses a device, takes a lease, opens the device unless it is open, compiles the graph unless it is cached, uploads
// inputs, downloads results, and records the time of each stage. Lifetime: the manager's devices close when it is destroyed;
// leases and tensors may outlive it. Thread safety: all calls may run concurrently.
//
//   RunResult r = process_manager().run(graph, inputs);
//   print(r.outputs[0]); print(r.timeline);
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/backend.h"
#include "tenon/lease.h"
#include "tenon/manager/config.h"
#include "tenon/manager/routing.h"

namespace tenon {

// The progress of a run: reported at the start of each stage and, while queued, whenever the position changes.
struct Progress {
  std::string stage;
  std::string device;
  QueuePlace place;  // while "queued"
};

struct RunOptions {
  // "auto", a kind ("cpu"), an id ("cpu:0"), an alias, the number in the list of devices, a uuid, a PCI address or a /dev path.
  std::string device = "auto";
  // For "auto": instead of Config::routing and Config::prefer. Pinned needs a preference.
  std::optional<RoutingMode> routing = std::nullopt;
  std::string prefer = {};
  int repeat = 1;                                                  // compute this many times; the timeline is that of the fastest
  std::optional<std::chrono::nanoseconds> timeout = std::nullopt;  // to wait for the device
  int priority = 0;
  // On whose behalf a server computes (LeaseOptions::client). On an exclusive device, a run of one client makes room for others
  // of equal priority that have used it less, where the backend can: between tiles, or repetitions. Empty: it runs to its end.
  std::string client = {};
  // Checked while waiting, between stages and, where the backend can, between the tiles of a computation; throws cancelled.
  std::stop_token cancel = {};
  // Wall-clock limit from the grant of the device to the results; throws deadline_exceeded. A device that does not stop is
  // given up: it is lost, and the next run opens it again.
  std::optional<std::chrono::nanoseconds> limit = std::nullopt;
  // Throw unavailable unless the run can begin now: a CPU that is open, free and has the program compiled.
  bool at_once = false;
  std::function<void(const Progress&)> on_progress = {};
  std::string program = {};  // its name in the ledger; "": the name of the process
  // Include predictions for every device in the decision. If false, repeated requests reuse the earlier decision.
  bool explain = false;
  std::function<void(const Decision&)> on_decision = {};  // called once, before waiting for the device
};

struct RunResult {
  std::vector<HostArray> outputs;
  std::shared_ptr<const DeviceInfo> device;  // it ran on this one, described as it was then; never null
  Timeline timeline;
  std::shared_ptr<const Decision> decision;  // why this device was chosen; never null
};

// What a run cost: the price of the device for the time it was held, from opening to downloading. nullopt: it has no price.
struct RunCost {
  double dollars = 0;
  bool is_estimate = false;
};
std::optional<RunCost> cost_of(const RunResult& result, const Config& config);

struct ManagerState;  // src/manager/

class DeviceManager {
 public:
  explicit DeviceManager(Config config = {});
  ~DeviceManager();
  DeviceManager(const DeviceManager&) = delete;
  DeviceManager& operator=(const DeviceManager&) = delete;

  const Config& config() const noexcept;

  // Every device of the machine, usable or not, with the reason if it is not. Detects again at each call; opens nothing.
  std::vector<DeviceInfo> devices() const;
  // The same, with the installed runtimes and the notes of the detectors.
  Detection detect() const;
  // Adds a detector for further devices.
  void add_detector(std::unique_ptr<Detector> detector);
  // Adds a backend. Throws already_exists if a backend with its name exists.
  void add_backend(std::unique_ptr<Backend> backend);
  // The device for a request, in any form that RunOptions::device may have. Detects devices only if no device of the backends
  // matches the request. Throws not_found listing the existing devices.
  DeviceInfo find(std::string_view request) const;

  // The device that run() would choose for |graph| now, the reason, and the predicted time on each device. Opens nothing.
  Decision explain(const Graph& graph, std::string_view request = "auto") const;
  // The same with the device, the routing mode and the preference of |options|.
  Decision explain(const Graph& graph, const RunOptions& options) const;

  // Sets the device that "auto" stands for; "auto" restores the configured choice. Throws not_found.
  void set_default_device(std::string_view request);
  DeviceInfo default_device() const;

  // Blocks until the lease is granted. Throws not_found, unavailable, deadline_exceeded, cancelled.
  Lease lease(const LeaseOptions& options = {});

  RunResult run(const Graph& graph, std::span<const HostArray> inputs, const RunOptions& options = {});

  // The open device, for callers that drive it themselves: leased, and not yielded, until the pointer is released.
  std::shared_ptr<OpenDevice> open(const LeaseOptions& options);
  std::shared_ptr<OpenDevice> open(std::string_view request);

  // Closes a device as soon as no operation runs on it, whatever the policy; its tensors move to host memory. The next lease
  // opens it again. Does nothing if it is not open. Returns when it is closed. A device whose operations still run after
  // |patience| is given up: it is lost, and they fail.
  void close(std::string_view request, std::optional<std::chrono::nanoseconds> patience = std::nullopt);
  // Tries to close every device, then throws the first error.
  void close_all();
  // Closes the device that computed |result| and adds the time of closing to the timeline. Does nothing for the CPU, which is
  // never closed.
  void close_after(RunResult& result);
  // Closes all devices permanently: cancels waiters and refuses further leases. Called by the destructor.
  void shut_down();

  // Whether the calling thread holds a lease on any device.
  bool holds_lease() const;
  // Whether a device is open, being opened, or waited for, so that killing the process now would leave it dirty for the next
  // user. The CPU does not count. May be called while other threads compute.
  bool needs_closing() const;

  // The state, users, memory and counters of every device that this manager has used or its backends have. Touches no hardware.
  std::vector<DeviceStatus> status() const;
  // The same for the devices that this manager has used. Does not look for others, so it takes microseconds.
  std::vector<DeviceStatus> used() const;

  // Calls |observer| for events of these kinds (all kinds if none are given) until the returned handle is released. Observing
  // granted and released leases makes leases slower.
  std::shared_ptr<void> observe(std::function<void(const DeviceEvent&)> observer,
                                std::initializer_list<DeviceEvent::Kind> kinds = {});

 private:
  friend ManagerState& state_of(DeviceManager& manager) noexcept;
  std::shared_ptr<ManagerState> state_;
};

// The manager of the process, created on first use with the configuration of set_process_config(), else of Config::load().
// Never destroyed.
DeviceManager& process_manager();
// Sets the configuration of process_manager(). If it already exists with another configuration, the next call creates a new one;
// references to the earlier one stay valid.
void set_process_config(Config config);

}  // namespace tenon
