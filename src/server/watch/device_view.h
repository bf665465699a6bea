// DeviceView: the devices of the machine as they were read last, for those who ask often.
//
// Looking for devices opens many files and may start a vendor's tool; /metrics and the status must answer while every core
// computes. So those who ask share one reading, which is repeated in the background while they do. States, users and counters are
// always as of now. Thread safety: all calls may run concurrently.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>

#include "server/watch/snapshot.h"

namespace tenon::server {

class DeviceView {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::seconds kOld{5};  // a reading that is repeated
  // Nobody has asked for this long: no more readings, and the last is dropped.
  static constexpr std::chrono::seconds kForgotten{60};

  explicit DeviceView(const DeviceManager& manager) : manager_(manager) {}

  // Reads the machine only where nobody has asked for a while.
  DeviceTable get(Time now);
  // Whether read() is due.
  bool is_stale(Time now) const;
  // Reads the machine: for a thread that may wait.
  void read();

 private:
  const DeviceManager& manager_;
  std::mutex reading_;  // before mutex_
  mutable std::mutex mutex_;
  std::shared_ptr<const DeviceTable> last_;
  Time read_at_{}, asked_at_{};
};

}  // namespace tenon::server
