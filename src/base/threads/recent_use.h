// RecentUse: how much each client has used of something lately, so that who has used little can go first.
//
// What a client uses adds up, to a second at most, and a fiftieth of the time that passes is taken off again: whoever uses less
// than that counts as having used next to nothing. "" is nobody, who uses nothing.
//
// Thread safety: none of its own.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace tenon {

class RecentUse {
 public:
  using Duration = std::chrono::nanoseconds;
  using Time = std::chrono::steady_clock::time_point;
  static constexpr Duration kMost = std::chrono::seconds(1);
  static constexpr int kForgotten = 50;  // one part of so many of the time that passes

  void add(std::string_view client, Duration used, Time now) {
    if (used <= Duration::zero() || client.empty()) return;
    if (clients_.size() >= look_at_) forget(now);
    auto found = clients_.find(client);
    if (found == clients_.end()) found = clients_.emplace(client, Entry{Duration::zero(), now}).first;
    Entry& entry = found->second;
    entry = {std::min(entry.at(now) + used, kMost), now};
  }
  Duration of(std::string_view client, Time now) const {
    const auto found = clients_.find(client);
    return found == clients_.end() ? Duration::zero() : found->second.at(now);
  }
  std::size_t clients() const noexcept { return clients_.size(); }

 private:
  struct Entry {
    Duration used;
    Time when;
    Duration at(Time now) const { return std::max(used - std::max(now - when, Duration::zero()) / kForgotten, Duration::zero()); }
  };
  void forget(Time now) {
    std::erase_if(clients_, [now](const auto& each) { return each.second.at(now) == Duration::zero(); });
    look_at_ = std::max<std::size_t>(2 * clients_.size(), 64);
  }

  std::map<std::string, Entry, std::less<>> clients_;
  std::size_t look_at_ = 64;  // this many, to drop those of whom nothing is left
};

}  // namespace tenon
