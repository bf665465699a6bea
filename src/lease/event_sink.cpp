#include "lease/event_sink.h"

#include "base/log.h"

namespace tenon {

std::shared_ptr<void> EventSink::add(Observer observer, std::initializer_list<Kind> wanted,
                                     std::initializer_list<Kind> not_of_cpu) {
  Kinds kinds = wanted.size() == 0 ? ~Kinds{0} : 0;
  for (const Kind kind : wanted) kinds |= bit(kind);
  Kinds of_cpu = kinds;
  for (const Kind kind : not_of_cpu) of_cpu &= ~bit(kind);
  const std::lock_guard lock(mutex_);
  const auto position = observers_.insert(observers_.end(), {std::move(observer), kinds, of_cpu});
  update();
  return std::shared_ptr<void>(nullptr, [sink = shared_from_this(), position](void*) {
    const std::lock_guard locked(sink->mutex_);
    sink->observers_.erase(position);
    sink->update();
  });
}

void EventSink::update() noexcept {
  Kinds all = 0, of_cpu = 0;
  for (const Entry& entry : observers_) {
    all |= entry.wanted;
    of_cpu |= entry.wanted_of_cpu;
  }
  wanted_.store(all, std::memory_order_relaxed);
  wanted_of_cpu_.store(of_cpu, std::memory_order_relaxed);
}

void EventSink::send(const DeviceEvent& event) noexcept {
  const std::lock_guard lock(mutex_);
  for (const Entry& entry : observers_) {
    if ((entry.wanted & bit(event.kind)) == 0) continue;
    try {
      entry.observer(event);
    } catch (const std::exception& error) {
      logging::error("an observer of {} failed: {}", event.device, error.what());
    }
  }
}

}  // namespace tenon
