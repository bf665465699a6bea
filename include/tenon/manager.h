// DeviceManager: the one path of a computation, whatever front end it came from.
//
// run() picks a device, takes a lease, opens the device or finds it open, compiles the graph or finds it compiled, moves inputs
// up and results down, and records each stage with its time. Lifetime: leases and tensors may outlive their manager; its devices
// close with it. Thread safety: all calls may run side by side.
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
#include "tenon/config.h"
#include "tenon/lease.h"
#include "tenon/routing.h"

namespace tenon {

// What a run is doing: called at the beginning of each stage, and while it is queued whenever its place changes.
struct Progress {
  std::string stage;
  std::string device;
  QueuePlace place;  // while "queued"
};

struct RunOptions {
  std::string device = "auto";                                     // "auto", a kind ("cpu"), or an id ("cpu:0")
  int repeat = 1;                                                  // compute this many times; the timeline has the fastest
  std::optional<std::chrono::nanoseconds> timeout = std::nullopt;  // to wait for the device
  int priority = 0;
  std::stop_token cancel = {};  // checked while waiting and between stages; throws cancelled
  std::function<void(const Progress&)> on_progress = {};
  std::string program = {};  // what the ledger calls it; "": the process's name
  // Say in the decision what every device would take. Off: requests that were decided before are not decided again.
  bool explain = false;
  std::function<void(const Decision&)> on_decision = {};  // called once, before waiting for the device
};

struct RunResult {
  std::vector<HostArray> outputs;
  DeviceInfo device;
  Timeline timeline;
  std::shared_ptr<const Decision> decision;  // why that device; never null
};

struct ManagerState;  // src/manager/

class DeviceManager {
 public:
  explicit DeviceManager(Config config = {});
  ~DeviceManager();
  DeviceManager(const DeviceManager&) = delete;
  DeviceManager& operator=(const DeviceManager&) = delete;

  const Config& config() const noexcept;

  // Every device of the machine, usable or not, looked for again at each call; opens none of them. What cannot be used says why.
  std::vector<DeviceInfo> devices() const;
  // The same with the runtimes found and the notes of the detectors.
  Detection detect() const;
  // Devices of |detector| are found from now on, too.
  void add_detector(std::unique_ptr<Detector> detector);
  // A way of driving devices of the program's own. Throws already_exists for a second one of its name.
  void add_backend(std::unique_ptr<Backend> backend);
  // The device a wish stands for: "auto", a kind, an id or an alias. Looks at the whole machine only when the backends' own
  // devices do not answer the wish. Throws not_found naming the devices there are.
  DeviceInfo find(std::string_view wish) const;

  // The device run() would take for |graph| now, why, and what each is expected to take. Opens nothing.
  Decision explain(const Graph& graph, std::string_view wish = "auto") const;

  // The device that "auto" means from now on; "auto" for the configured choice again. Throws not_found.
  void set_default_device(std::string_view wish);
  DeviceInfo default_device() const;

  // Blocks until the device is this caller's. Throws not_found, unavailable, deadline_exceeded, cancelled.
  Lease lease(const LeaseOptions& options = {});

  RunResult run(const Graph& graph, std::span<const HostArray> inputs, const RunOptions& options = {});

  // The open device, for those who drive it themselves: leased until the pointer is dropped, and not given away meanwhile.
  std::shared_ptr<OpenDevice> open(const LeaseOptions& options);
  std::shared_ptr<OpenDevice> open(std::string_view wish);

  // Closes a device as soon as no operation runs on it, whatever the policy; its tensors move to host memory. The next lease
  // opens it again. Nothing for one that is not open. Returns when it is closed.
  void close(std::string_view wish);
  void close_all();
  // Closes the device that |result| came from, for whoever needs it no more, and adds the time that took to the timeline. Nothing
  // for the CPU, which is never closed.
  void close_after(RunResult& result);
  // Closes everything for good: whoever waits is cancelled, further leases are refused. What the destructor does.
  void shut_down();

  // Whether the calling thread holds a lease of any device.
  bool holds_lease() const;
  // Whether a device is open, about to be, or waited for: if the process were killed now, the next user would find it in doubt.
  // The CPU does not count. May be called while other threads compute.
  bool needs_closing() const;

  // Every device this manager has used or its backends offer, with state, users, memory and counters. Touches no hardware.
  std::vector<DeviceStatus> status() const;

  // |observer| hears of the events of these kinds, of all if none are named, until the returned handle is dropped. Hearing of
  // every lease that is granted and released makes leases slower.
  std::shared_ptr<void> observe(std::function<void(const DeviceEvent&)> observer,
                                std::initializer_list<DeviceEvent::Kind> kinds = {});

 private:
  friend ManagerState& state_of(DeviceManager& manager) noexcept;
  std::shared_ptr<ManagerState> state_;
};

// One manager for the whole process, made when first asked for: with what set_process_config() said, else with Config::load().
// Never destroyed.
DeviceManager& process_manager();
// What process_manager() is made with. Where it was made already with another configuration, the next call makes a new one; who
// has a reference to the earlier one may go on using it.
void set_process_config(Config config);

}  // namespace tenon
