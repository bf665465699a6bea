// SimulatedDevice: the description of a simulated device.
//
// The `sim` backend computes with the CPU kernels and adds what makes an accelerator difficult: time to open and close, limited
// memory, one user at a time, and faults. It is for tests, for demonstrations without hardware, and for studies of keep-open
// policies; it is labelled as simulated wherever it is shown. Faults are drawn from |seed|: the same seed and the same order of
// calls give the same faults.
//
//   SimulatedDevice card = SimulatedDevice::of_architecture("wormhole");
//   card.faults.lost_mid_run = 0.05;
//   Config config;
//   config.simulated.push_back(card);
//   config.simulated.push_back(parse_simulated("gpu,open=50ms,memory=2GiB,seed=7"));
//
// A lost device: the call that loses it and every later call except close() throw unavailable, and all its buffers are lost. It
// works again after it is reopened. A device that was lost, destroyed without close(), or whose close() failed counts as one
// whose last user crashed: dirty_refuses is drawn at its next open().
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/device.h"

namespace tenon {

// The probability of each fault per call, 0 to 1.
struct FaultRates {
  double open_fails = 0;     // unavailable
  double open_hangs = 0;     // blocks for |hang_seconds|, then fails with deadline_exceeded
  double close_fails = 0;    // close() throws; the device is closed
  double out_of_memory = 0;  // allocate and upload: resource_exhausted
  double dirty_refuses = 0;  // open() after a crash fails until recover() is called
  double lost_mid_run = 0;   // run, upload or download: the device is lost
  double run_hangs = 0;      // run blocks for |hang_seconds| or until the device is given up; then the device is lost
  friend bool operator==(const FaultRates&, const FaultRates&) = default;
};

struct SimulatedDevice {
  std::string architecture;  // grayskull, wormhole, blackhole, tpu, gpu
  std::string id;            // "": the next free one of "sim:0", "sim:1", ...
  double open_seconds = 0, close_seconds = 0;
  std::uint64_t memory_bytes = 0;  // 0: typical of the architecture
  bool exclusive = true;
  bool virtual_time = false;   // latencies are reported, not waited for
  double compute_factor = 1;   // computing takes this many times as long as on the CPU; at least 1
  double compute_seconds = 0;  // each run takes at least this long
  std::string unplug;          // while a file of this name exists, the device is lost and cannot be opened; "": never
  double hang_seconds = 5;
  FaultRates faults;
  std::uint64_t seed = 0;
  // Determines the next faults in this order; no other faults occur until the script ends. An entry is the name of a fault or
  // "ok". A fault waits for the first call it can affect, "ok" for any call; ":CALL" after the name waits for that call (open,
  // close, allocate, upload, download, run). {"ok:run", "lost_mid_run:run"} loses the device in the second run.
  std::vector<std::string> script;

  // The latencies, memory and exclusivity typical of |architecture|. Throws not_found listing the known architectures.
  static SimulatedDevice of_architecture(std::string_view architecture);
  // Sets the property |key| from text: id, open, close, compute, hang (seconds: "0.1", "100ms"), memory ("8GiB"), exclusive,
  // shared, virtual ("true", "false"; "" is true), factor, unplug, seed, script (entries joined by "+"), each fault by its name,
  // and faults for all of them except run_hangs. Throws invalid_argument naming the key; for an unknown key it lists the known
  // ones.
  void set(std::string_view key, std::string_view value);

  friend bool operator==(const SimulatedDevice&, const SimulatedDevice&) = default;
};

// Parses "wormhole" or "wormhole,open=0.1,memory=8GiB,shared,lost_mid_run=0.05,seed=7": an architecture, then keys of set().
SimulatedDevice parse_simulated(std::string_view text);

// Whether |device| belongs to the sim backend; "auto" does not choose such devices unless Config::allow_simulated is set.
bool is_simulated(const DeviceInfo& device);

}  // namespace tenon
