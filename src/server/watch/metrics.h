// Metrics: what requests did, counted by route; and everything the server knows as Prometheus text.
// Thread safety: all calls may run side by side; count() is called by one thread, which waits for no other.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "server/routes/routes.h"
#include "tenon/manager.h"

namespace tenon::server {

struct DeviceTable;
struct Services;

class Metrics {
 public:
  static constexpr std::array<double, 12> kSeconds{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1, 5, 30};

  void count(const Route* route, int status, double seconds, std::size_t bytes_in, std::size_t bytes_out);
  std::uint64_t requests() const;
  // Prometheus text 0.0.4 of the requests.
  void write(std::string& out) const;

 private:
  struct OfRoute {
    std::map<int, std::uint64_t> by_status;
    std::array<std::uint64_t, kSeconds.size()> buckets{};
    std::uint64_t count = 0;
    double seconds = 0;
  };
  struct Answered {
    const Route* route;
    int status;
    double seconds;
    std::size_t bytes_in, bytes_out;
  };
  void add(const Answered& answered);  // with mutex_ held

  std::vector<Answered> uncounted_;  // of the thread that counts
  mutable std::mutex mutex_;
  std::map<const Route*, OfRoute> routes_;
  std::uint64_t requests_ = 0, bytes_in_ = 0, bytes_out_ = 0;
};

// All of /metrics.
std::string prometheus_text(Services& services, const DeviceTable& devices);

}  // namespace tenon::server
