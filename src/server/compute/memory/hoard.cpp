#include "server/compute/memory/hoard.h"

#include <algorithm>
#include <iterator>

namespace tenon::server {

void Hoard::add(const std::string& id, const std::string& owner, std::uint64_t bytes) {
  items_.push_back({id, owner, bytes});
  by_id_.emplace(id, std::prev(items_.end()));
  Total& total = by_owner_[owner];
  total.bytes += bytes;
  ++total.count;
  bytes_ += bytes;
}

void Hoard::remove(const std::string& id) noexcept {
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return;
  const auto owner = by_owner_.find(found->second->owner);
  owner->second.bytes -= found->second->bytes;
  bytes_ -= found->second->bytes;
  if (--owner->second.count == 0) by_owner_.erase(owner);
  items_.erase(found->second);
  by_id_.erase(found);
}

std::optional<std::string> Hoard::excess(std::uint64_t bytes) const {
  const bool by_count = items_.size() >= max_count_;
  if (items_.empty() || (!by_count && bytes_ + bytes <= max_bytes_)) return std::nullopt;
  const auto greediest = std::max_element(by_owner_.begin(), by_owner_.end(), [&](const auto& a, const auto& b) {
    return by_count ? a.second.count < b.second.count : a.second.bytes < b.second.bytes;
  });
  return oldest_of(greediest->first);
}

std::optional<std::string> Hoard::oldest_of(const std::string& owner) const {
  const auto found = std::find_if(items_.begin(), items_.end(), [&](const Item& item) { return item.owner == owner; });
  return found == items_.end() ? std::nullopt : std::optional(found->id);
}

std::size_t Hoard::count_of(const std::string& owner) const {
  const auto found = by_owner_.find(owner);
  return found == by_owner_.end() ? 0 : found->second.count;
}

}  // namespace tenon::server
