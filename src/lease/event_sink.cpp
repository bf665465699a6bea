#include "lease/event_sink.h"

#include "base/log.h"

namespace tenon {

std::shared_ptr<void> EventSink::add(Observer observer) {
  const std::lock_guard lock(mutex_);
  const auto position = observers_.insert(observers_.end(), std::move(observer));
  count_.store(static_cast<int>(observers_.size()), std::memory_order_relaxed);
  return std::shared_ptr<void>(nullptr, [sink = shared_from_this(), position](void*) {
    const std::lock_guard locked(sink->mutex_);
    sink->observers_.erase(position);
    sink->count_.store(static_cast<int>(sink->observers_.size()), std::memory_order_relaxed);
  });
}

void EventSink::send(const DeviceEvent& event) noexcept {
  const std::lock_guard lock(mutex_);
  for (const Observer& observer : observers_) {
    try {
      observer(event);
    } catch (const std::exception& error) {
      logging::error("an observer of {} failed: {}", event.device, error.what());
    }
  }
}

}  // namespace tenon
