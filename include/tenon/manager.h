// DeviceManager: the one path of a computation, whatever front end it came from.
//
// run() picks a device, opens it or finds it open, compiles the graph or finds it compiled, moves inputs up and results down, and
// records each stage with its time.
// Thread safety: all calls may run side by side.
//
//   RunResult r = process_manager().run(graph, inputs);
//   print(r.outputs[0]); print(r.timeline);
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/backend.h"

namespace tenon {

// A stage of a run, in the order they happened.
struct Span {
  std::string stage;  // "opening", "compiling", "uploading", "computing", "downloading"
  double seconds = 0;
};
using Timeline = std::vector<Span>;

struct RunOptions {
  std::string device = "auto";  // "auto", a kind ("cpu"), or an id ("cpu:0")
  int repeat = 1;               // compute this many times; the timeline has the fastest
};

struct RunResult {
  std::vector<HostArray> outputs;
  DeviceInfo device;
  Timeline timeline;
};

class DeviceManager {
 public:
  DeviceManager();
  ~DeviceManager();
  DeviceManager(const DeviceManager&) = delete;
  DeviceManager& operator=(const DeviceManager&) = delete;

  // Every device of the machine, usable or not, looked for anew at each call; opens none of them. What cannot be used says why.
  std::vector<DeviceInfo> devices() const;
  // The same with the runtimes found and the notes of the detectors.
  Detection detect() const;
  // Devices of |detector| are found from now on, too.
  void add_detector(std::unique_ptr<Detector> detector);
  // The device a wish stands for: "auto", a kind, an id or an alias. Looks at the whole machine only when the backends' own
  // devices do not answer the wish. Throws not_found naming the devices there are.
  DeviceInfo find(std::string_view wish) const;
  // The open device; kept open by the manager.
  std::shared_ptr<OpenDevice> open(std::string_view wish);

  RunResult run(const Graph& graph, std::span<const HostArray> inputs, const RunOptions& options = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

DeviceManager& process_manager();

}  // namespace tenon
