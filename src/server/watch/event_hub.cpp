#include "server/watch/event_hub.h"

#include <algorithm>

#include "base/text/json_writer.h"
#include "present/device/device_status.h"

namespace tenon::server {
namespace {

std::string event_text(const EventHub::Recorded& recorded) {
  std::string text;
  JsonWriter json(text);
  present::write_event(json, recorded.event, recorded.id);
  return text;
}

}  // namespace

bool EventHub::is_one_too_many(const DeviceEvent& event) {
  using Kind = DeviceEvent::Kind;
  if (event.kind != Kind::granted && event.kind != Kind::released && event.kind != Kind::ran) return false;
  const std::lock_guard lock(mutex_);
  if (event.when - second_ >= std::chrono::seconds(1) || event.when < second_) {
    second_ = event.when;
    in_second_ = 0;
  }
  return ++in_second_ > kMaxASecond;
}

void EventHub::record(const DeviceEvent& event) {
  if (is_one_too_many(event)) return;
  // Copied, and the oldest freed, outside the lock.
  Recorded made{0, event}, oldest;
  const std::lock_guard lock(mutex_);
  made.id = next_id_++;
  kept_.push_back(std::move(made));
  if (kept_.size() <= kKept) return;
  oldest = std::move(kept_.front());
  kept_.pop_front();
}

std::vector<EventHub::Recorded> EventHub::since(std::uint64_t id) const {
  const std::lock_guard lock(mutex_);
  const auto first =
      std::upper_bound(kept_.begin(), kept_.end(), id, [](std::uint64_t wanted, const Recorded& r) { return wanted < r.id; });
  return {first, kept_.end()};
}

std::uint64_t EventHub::last_id() const {
  const std::lock_guard lock(mutex_);
  return next_id_ - 1;
}

std::shared_ptr<EventStream> EventHub::subscribe(std::uint64_t after) {
  auto stream = std::make_shared<EventStream>();
  pump();
  if (!snapshot_.empty()) stream->send("snapshot", snapshot_);
  for (const Recorded& recorded : since(after)) stream->send("device", event_text(recorded), recorded.id);
  stream->on_gone = [this, weak = std::weak_ptr(stream)] {
    std::erase_if(streams_, [&](const auto& other) { return other == weak.lock(); });
  };
  streams_.push_back(stream);
  return stream;
}

void EventHub::pump() {
  if (streams_.empty()) {
    pumped_ = last_id();
    return;
  }
  for (const Recorded& recorded : since(pumped_)) {
    const std::string text = event_text(recorded);
    for (const auto& stream : streams_) stream->send("device", text, recorded.id);
    pumped_ = recorded.id;
  }
}

void EventHub::snapshot(std::string json) {
  if (json == snapshot_) return;
  snapshot_ = std::move(json);
  for (const auto& stream : streams_) stream->send("snapshot", snapshot_);
}

void EventHub::end() {
  for (const auto& stream : streams_) {
    stream->send("shutdown", "{}");
    stream->end();
  }
}

}  // namespace tenon::server
