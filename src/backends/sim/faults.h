// Faults: decides which call of a simulated device fails next, first by script, then by chance.
//
// Thread safety: all calls may run concurrently; they are answered in order of arrival.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "tenon/device/simulated.h"

namespace tenon::sim {

enum class Call : std::uint8_t { open, close, allocate, upload, download, run };
enum class Fault : std::uint8_t {
  none,
  open_fails,
  open_hangs,
  close_fails,
  out_of_memory,
  dirty_refuses,
  lost_mid_run,
  run_hangs
};

class Faults {
 public:
  // |salt| makes devices of one seed differ. Throws invalid_argument for rates outside 0 to 1 and unknown script entries.
  Faults(const SimulatedDevice& device, std::string_view salt);

  // The fault of this call, if any. |is_dirty|: the device's last user crashed, so dirty_refuses may be drawn.
  Fault next(Call call, bool is_dirty = false);

 private:
  struct Entry {
    Fault fault = Fault::none;
    std::optional<Call> call;  // only this one
  };
  static Entry parse(std::string_view text);
  bool draw(double rate);

  std::mutex mutex_;
  FaultRates rates_;
  std::vector<Entry> script_;
  std::size_t done_ = 0;  // entries of the script
  std::uint64_t random_;
};

}  // namespace tenon::sim
