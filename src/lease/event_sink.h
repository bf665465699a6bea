// EventSink: where what happens to devices is told.
//
// Empty while nobody observes, so that events cost nothing then. Thread safety: all calls may run side by side; observers are
// called one at a time.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <mutex>

#include "tenon/device_status.h"

namespace tenon {

class EventSink : public std::enable_shared_from_this<EventSink> {
 public:
  using Observer = std::function<void(const DeviceEvent&)>;
  // Until the handle is dropped; dropping it waits for a call that runs.
  std::shared_ptr<void> add(Observer observer);
  bool has_observers() const noexcept { return count_.load(std::memory_order_relaxed) > 0; }
  // What an observer throws is logged.
  void send(const DeviceEvent& event) noexcept;

 private:
  std::atomic<int> count_{0};
  std::mutex mutex_;
  std::list<Observer> observers_;
};

}  // namespace tenon
