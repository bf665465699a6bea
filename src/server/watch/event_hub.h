// EventHub: what happens to devices, for dashboards: the latest events are kept, and sent to those who listen.
//
// Thread safety: record() from any thread; the rest in the I/O thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "server/http/body/event_stream.h"
#include "tenon/manager.h"

namespace tenon::server {

class EventHub {
 public:
  static constexpr std::size_t kKept = 4096;
  // Leases and runs recorded in one second at most: under load the rest would only push out what is worth seeing.
  static constexpr int kMaxASecond = 400;

  // Quick: it runs in the device's thread.
  void record(const DeviceEvent& event);

  // Events with a greater id, the oldest first.
  struct Recorded {
    std::uint64_t id = 0;
    DeviceEvent event;
  };
  std::vector<Recorded> since(std::uint64_t id) const;
  std::uint64_t last_id() const;

  // |after|: events the client has seen; those behind it are sent first.
  std::shared_ptr<EventStream> subscribe(std::uint64_t after);
  std::size_t subscribers() const noexcept { return streams_.size(); }
  // Sends what was recorded since the last call.
  void pump();
  // To everybody, and to those who come later; only if it differs from the last one.
  void snapshot(std::string json);
  // "shutdown" to everybody, and the end.
  void end();

 private:
  // Of the events that come with every run, only so many a second are kept.
  bool is_one_too_many(const DeviceEvent& event);

  mutable std::mutex mutex_;
  std::deque<Recorded> kept_;
  std::uint64_t next_id_ = 1;
  std::chrono::system_clock::time_point second_;
  int in_second_ = 0;
  std::uint64_t pumped_ = 0;
  std::string snapshot_;
  std::vector<std::shared_ptr<EventStream>> streams_;
};

}  // namespace tenon::server
