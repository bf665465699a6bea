#include "server/watch/hold_history.h"

#include <algorithm>

namespace tenon::server {
namespace {

// The same process may hold a device again: that is another hold. Clocks and rounding may differ by this much.
constexpr std::chrono::seconds kSlack{2};

double seconds_of(HoldHistory::Time time) { return std::chrono::duration<double>(time.time_since_epoch()).count(); }

}  // namespace

void HoldHistory::observe(std::span<const DeviceStatus> status, Time now) {
  const std::lock_guard lock(mutex_);
  std::deque<Hold> seen;
  for (const DeviceStatus& device : status)
    for (const DeviceUser& user : device.users) {
      if (!user.is_holding || user.is_here) continue;
      const auto held = std::chrono::duration_cast<Time::duration>(std::chrono::duration<double>(user.seconds));
      seen.push_back({device.device.id, user.who, now - held});
    }
  const auto is_same = [](const Hold& a, const Hold& b) {
    const auto apart = a.begin > b.begin ? a.begin - b.begin : b.begin - a.begin;
    return a.device == b.device && a.who == b.who && apart < kSlack;
  };
  for (Hold& known : holds_) {
    if (known.end) continue;
    const auto still = std::ranges::find_if(seen, [&](const Hold& hold) { return is_same(hold, known); });
    if (still == seen.end())
      known.end = now;
    else
      seen.erase(still);
  }
  for (Hold& hold : seen) holds_.push_back(std::move(hold));
  while (holds_.size() > kKept) holds_.pop_front();
}

std::deque<HoldHistory::Hold> HoldHistory::holds() const {
  const std::lock_guard lock(mutex_);
  return holds_;
}

void HoldHistory::write(JsonWriter& json) const {
  json.begin_array();
  for (const Hold& hold : holds()) {
    json.begin_object();
    json.member("device", hold.device);
    json.member("who", hold.who);
    json.member("from", seconds_of(hold.begin));
    json.member("until", hold.end ? std::optional(seconds_of(*hold.end)) : std::nullopt);
    json.end_object();
  }
  json.end_array();
}

}  // namespace tenon::server
