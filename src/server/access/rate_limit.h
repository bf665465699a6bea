// RateLimit: requests a second from one address, with room for a burst. Thread safety: everything in the I/O thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <string>
#include <unordered_map>

namespace tenon::server {

class RateLimit {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // |per_second| 0: none. A burst may have twice as many, at least 10.
  explicit RateLimit(double per_second) : per_second_(per_second), burst_(std::max(10.0, 2 * per_second)) {}

  bool is_on() const noexcept { return per_second_ > 0; }
  // Seconds to wait before the next one is allowed; 0: this one is, and counts.
  double take(const std::string& address, Time now);
  // How many more are allowed now, and the seconds until all of a burst are.
  struct Left {
    int requests = 0;
    int reset_seconds = 0;
  };
  Left left(const std::string& address) const;
  double per_second() const noexcept { return per_second_; }
  double burst() const noexcept { return burst_; }
  void expire(Time now);

 private:
  struct Bucket {
    double tokens = 0;
    Time filled;
  };
  const double per_second_, burst_;
  std::unordered_map<std::string, Bucket> buckets_;
};

}  // namespace tenon::server
