// HoldHistory: which other processes held the devices, and when, as far as it was looked.
//
// This server's own leases are events (EventHub); what other processes do is seen only by looking at the queues between
// processes, which the server does once a second. Shorter holds may be missed. Thread safety: all calls may run side by side.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "base/text/json_writer.h"
#include "tenon/lease/device_status.h"

namespace tenon::server {

class HoldHistory {
 public:
  using Time = std::chrono::system_clock::time_point;
  static constexpr std::size_t kKept = 1000;  // the oldest go first

  struct Hold {
    std::string device, who;
    Time begin;
    std::optional<Time> end = {};  // none while it lasts
  };

  void observe(std::span<const DeviceStatus> status, Time now);
  std::deque<Hold> holds() const;
  // [{"device", "who", "from", "until"}], in seconds since 1970, the oldest first; "until" is null while it lasts.
  void write(JsonWriter& json) const;

 private:
  mutable std::mutex mutex_;
  std::deque<Hold> holds_;
};

}  // namespace tenon::server
