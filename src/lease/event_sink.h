// EventSink: delivers what happens to devices to observers.
//
// Events cost nothing while nobody observes. Thread safety: all calls may run concurrently; observers are called one at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <list>
#include <memory>
#include <mutex>

#include "tenon/lease/device_status.h"

namespace tenon {

class EventSink : public std::enable_shared_from_this<EventSink> {
 public:
  using Observer = std::function<void(const DeviceEvent&)>;
  using Kind = DeviceEvent::Kind;
  // Delivers the kinds in |wanted| until the handle is dropped, which waits for a call that is running. Events of the CPU, which
  // has one of most kinds for every run, need not be delivered if they are in |not_of_cpu|.
  std::shared_ptr<void> add(Observer observer, std::initializer_list<Kind> wanted = {},  // {}: all
                            std::initializer_list<Kind> not_of_cpu = {});
  // Whether anybody observes |kind|: an event without observers need not be made.
  bool is_wanted(Kind kind) const noexcept { return (wanted_.load(std::memory_order_relaxed) & bit(kind)) != 0; }
  bool is_wanted_of_cpu(Kind kind) const noexcept { return (wanted_of_cpu_.load(std::memory_order_relaxed) & bit(kind)) != 0; }
  // What an observer throws is logged.
  void send(const DeviceEvent& event) noexcept;

 private:
  using Kinds = std::uint32_t;
  static constexpr Kinds bit(DeviceEvent::Kind kind) { return Kinds{1} << static_cast<unsigned>(kind); }
  struct Entry {
    Observer observer;
    Kinds wanted, wanted_of_cpu;
  };
  void update() noexcept;

  std::atomic<Kinds> wanted_{0}, wanted_of_cpu_{0};
  std::mutex mutex_;
  std::list<Entry> observers_;
};

}  // namespace tenon
