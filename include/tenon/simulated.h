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
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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
  std::string id;            // "" takes the next free one: "tenstorrent:0", "tpu:0", "gpu:0" prefixed by "sim-"
  double open_seconds = 0, close_seconds = 0;
  std::uint64_t memory_bytes = 0;
  bool exclusive = true;
  bool virtual_time = false;  // latencies are reported, not waited for
  double compute_factor = 1;  // takes this many times as long as the CPU alone
  double hang_seconds = 5;
  FaultRates faults;
  std::uint64_t seed = 0;
  // The next calls go wrong in this order, before any probability: "open_fails", "ok", "lost_mid_run" ... one entry for each call
  // that could fail in that way, "ok" for one that does not.
  std::vector<std::string> script;

  // The latencies, memory and exclusivity typical of |architecture|. Throws not_found naming the architectures there are.
  static SimulatedDevice of_architecture(std::string_view architecture);
  friend bool operator==(const SimulatedDevice&, const SimulatedDevice&) = default;
};

}  // namespace tenon
