#include "server/watch/device_view.h"

#include <algorithm>

#include "manager/routing/routing.h"

namespace tenon::server {

void DeviceView::read() {
  const std::lock_guard one_at_a_time(reading_);
  auto table = std::make_shared<const DeviceTable>(DeviceTable::read(manager_));
  const std::lock_guard lock(mutex_);
  last_ = std::move(table);
  read_at_ = std::chrono::steady_clock::now();
}

bool DeviceView::is_stale(Time now) const {
  const std::lock_guard lock(mutex_);
  return last_ && now - read_at_ >= kOld && now - asked_at_ < kForgotten;
}

DeviceTable DeviceView::get(Time now) {
  const auto last = [&]() -> std::shared_ptr<const DeviceTable> {
    const std::lock_guard lock(mutex_);
    asked_at_ = std::max(asked_at_, now);
    return now - read_at_ < kForgotten ? last_ : nullptr;
  };
  std::shared_ptr<const DeviceTable> known = last();
  if (!known) {
    read();
    now = std::max(now, std::chrono::steady_clock::now());
    known = last();
  }
  DeviceTable table{known->found, manager_.used()};
  for (const DeviceStatus& status : known->status) {
    if (table.status_of(status.device.id) != nullptr) continue;
    table.status.push_back(status);
    table.status.back().users = users_of_unused(status.device);
  }
  std::sort(table.status.begin(), table.status.end(), [](const auto& a, const auto& b) { return a.device.id < b.device.id; });
  return table;
}

}  // namespace tenon::server
