// SimulatedDevice: a device that does not exist, described so that it behaves like one that does.
//
// The `sim` backend computes with the CPU's kernels and adds what makes an accelerator difficult: time to open and close, little
// memory, one user at a time, and faults. It is for tests, for demonstrations without hardware, and for studies of keep-open
// policies; it is called simulated wherever it is shown. Faults are drawn from |seed|: the same seed and the same order of calls
// give the same faults.
//
//   SimulatedDevice card = SimulatedDevice::of_architecture("wormhole");
//   card.faults.lost_mid_run = 0.05;
//   Config config;
//   config.simulated.push_back(card);
//   config.simulated.push_back(parse_simulated("gpu,open=50ms,memory=2GiB,seed=7"));
//
// What a lost device does: the call that loses it and every later one but close() throw unavailable, and all its buffers are
// gone. Opened anew, it works again. A device that was lost, dropped without close(), or whose close() failed counts as one whose
// last user crashed: dirty_refuses is drawn at its next open().
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/device.h"

namespace tenon {

// How likely each call goes wrong, 0 to 1.
struct FaultRates {
  double open_fails = 0;     // unavailable
  double open_hangs = 0;     // opens |hang_seconds| late, then fails with deadline_exceeded
  double close_fails = 0;    // close() throws; the device is closed
  double out_of_memory = 0;  // allocate and upload: resource_exhausted
  double dirty_refuses = 0;  // open() after a crash fails until recover() was called
  double lost_mid_run = 0;   // run, upload or download: the device is lost
  friend bool operator==(const FaultRates&, const FaultRates&) = default;
};

struct SimulatedDevice {
  std::string architecture;  // grayskull, wormhole, blackhole, tpu, gpu
  std::string id;            // "" takes the next free one of "sim:0", "sim:1", ...
  double open_seconds = 0, close_seconds = 0;
  std::uint64_t memory_bytes = 0;  // 0: typical of the architecture
  bool exclusive = true;
  bool virtual_time = false;  // latencies are reported, not waited for
  double compute_factor = 1;  // takes this many times as long as the CPU alone, at least 1
  double hang_seconds = 5;
  FaultRates faults;
  std::uint64_t seed = 0;
  // The next calls go wrong in this order, and nothing else does until the script is over. An entry is the name of a fault, or
  // "ok"; it waits for the first call it can strike, "ok" for any call. ":CALL" behind it makes it wait for that one of open,
  // close, allocate, upload, download, run: {"ok:run", "lost_mid_run:run"} loses the device in the second run.
  std::vector<std::string> script;

  // The latencies, memory and exclusivity typical of |architecture|. Throws not_found naming the architectures there are.
  static SimulatedDevice of_architecture(std::string_view architecture);
  // Sets what |key| stands for, from text: id, open, close, hang (seconds: "0.1", "100ms"), memory ("8GiB"), exclusive, shared,
  // virtual ("true", "false"; "" is true), factor, seed, script (entries joined by "+"), each fault by its name, and faults for
  // all of them. Throws invalid_argument naming the key; for an unknown one the keys there are.
  void set(std::string_view key, std::string_view value);

  friend bool operator==(const SimulatedDevice&, const SimulatedDevice&) = default;
};

// "wormhole", or "wormhole,open=0.1,memory=8GiB,shared,lost_mid_run=0.05,seed=7": the architecture, then what set() knows.
SimulatedDevice parse_simulated(std::string_view text);

// Whether |device| is of the sim backend: never a choice of "auto", unless it is the only one asked for.
bool is_simulated(const DeviceInfo& device);

}  // namespace tenon
