#include "server/models/batching/batch_queue.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace tenon::server {

std::int64_t length_class(std::int64_t length) noexcept {
  const std::int64_t step = length <= 64 ? 8 : length <= 128 ? 16 : length <= 256 ? 32 : 64;
  return (length + step - 1) / step * step;
}

void BatchQueue::add(BatchItem item) { items_.push_back(std::move(item)); }

std::size_t BatchQueue::size_of(const std::string& client) const {
  return static_cast<std::size_t>(
      std::count_if(items_.begin(), items_.end(), [&](const BatchItem& item) { return item.client == client; }));
}

std::vector<BatchItem> BatchQueue::take_dead(Clock::time_point now) {
  std::vector<BatchItem> dead;
  for (auto at = items_.begin(); at != items_.end();) {
    if (at->cancel.stop_requested() || at->deadline <= now) {
      dead.push_back(std::move(*at));
      at = items_.erase(at);
    } else {
      ++at;
    }
  }
  return dead;
}

std::vector<BatchItem> BatchQueue::take_all() {
  std::vector<BatchItem> all;
  for (BatchItem& item : items_) all.push_back(std::move(item));
  items_.clear();
  return all;
}

std::vector<std::list<BatchItem>::iterator> BatchQueue::ordered() {
  struct Place {
    int priority;
    std::size_t turn, arrival;
    std::list<BatchItem>::iterator item;
  };
  std::vector<Place> places;
  std::unordered_map<std::string, std::size_t> turns;
  for (auto at = items_.begin(); at != items_.end(); ++at)
    places.push_back({-at->priority, turns[at->client]++, places.size(), at});
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
    return std::tie(a.priority, a.turn, a.arrival) < std::tie(b.priority, b.turn, b.arrival);
  });
  std::vector<std::list<BatchItem>::iterator> out;
  for (const Place& place : places) out.push_back(place.item);
  return out;
}

Batch BatchQueue::take(const BatchLimits& limits, const BatchProfile& profile, Clock::time_point now) {
  Batch batch;
  if (items_.empty()) return batch;
  const std::vector<std::list<BatchItem>::iterator> order = ordered();
  const BatchItem& first = *order.front();
  batch.length = first.length > 0 ? length_class(first.length) : 0;
  std::vector<std::list<BatchItem>::iterator> fitting;
  std::int64_t available = 0;
  for (const auto item : order) {
    const bool is_same = item->key == first.key && (item->length > 0 ? length_class(item->length) : 0) == batch.length;
    if (!is_same || available + item->rows > std::max(limits.rows, first.rows)) continue;
    fitting.push_back(item);
    available += item->rows;
  }
  const double waited = std::chrono::duration<double>(now - first.arrived).count();
  const std::int64_t wanted =
      std::max(profile.best_rows(available, batch.length, limits.latency_objective.count() - waited, now), first.rows);
  for (const auto item : fitting) {
    if (batch.rows + item->rows > wanted) continue;
    batch.rows += item->rows;
    batch.items.push_back(std::move(*item));
    items_.erase(item);
  }
  return batch;
}

}  // namespace tenon::server
