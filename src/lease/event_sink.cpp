#include "lease/event_sink.h"

#include "base/log.h"

namespace tenon {

std::shared_ptr<void> EventSink::add(Observer observer, std::initializer_list<DeviceEvent::Kind> wanted) {
  Kinds kinds = wanted.size() == 0 ? ~Kinds{0} : 0;
  for (const DeviceEvent::Kind kind : wanted) kinds |= bit(kind);
  const std::lock_guard lock(mutex_);
  const auto position = observers_.insert(observers_.end(), {std::move(observer), kinds});
  update();
  return std::shared_ptr<void>(nullptr, [sink = shared_from_this(), position](void*) {
    const std::lock_guard locked(sink->mutex_);
    sink->observers_.erase(position);
    sink->update();
  });
}

void EventSink::update() noexcept {
  Kinds all = 0;
  for (const Entry& entry : observers_) all |= entry.wanted;
  wanted_.store(all, std::memory_order_relaxed);
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
