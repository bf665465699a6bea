#include "server/access/rate_limit.h"

#include <algorithm>
#include <cmath>

namespace tenon::server {

double RateLimit::take(const std::string& address, Time now) {
  if (!is_on()) return 0;
  const auto [found, is_new] = buckets_.try_emplace(address, Bucket{burst_, now});
  Bucket& bucket = found->second;
  bucket.tokens = std::min(burst_, bucket.tokens + per_second_ * std::chrono::duration<double>(now - bucket.filled).count());
  bucket.filled = now;
  if (bucket.tokens >= 1) {
    bucket.tokens -= 1;
    return 0;
  }
  return (1 - bucket.tokens) / per_second_;
}

RateLimit::Left RateLimit::left(const std::string& address) const {
  const auto found = buckets_.find(address);
  const double tokens = found == buckets_.end() ? burst_ : found->second.tokens;
  return {static_cast<int>(tokens), static_cast<int>(std::ceil((burst_ - tokens) / per_second_))};
}

void RateLimit::expire(Time now) {
  std::erase_if(buckets_, [&](const auto& entry) {
    return entry.second.tokens + per_second_ * std::chrono::duration<double>(now - entry.second.filled).count() >= burst_;
  });
}

}  // namespace tenon::server
