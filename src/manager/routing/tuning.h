// Tuning: the batch size at which a device is busy, found by trying.
//
// The batch is doubled until a limit is met or nothing is gained. Small batches waste a device's time on starting; beyond some
// size every further row costs as much as the last. Between them is the knee: the smallest batch with nearly the best
// throughput. Choosing it costs little speed and saves latency and memory.
//
//   TuneResult found = find_batch_size({.measure = [&](std::int64_t batch) { return seconds_of(batch); },
//                                       .bytes_of = [&](std::int64_t batch) { return 4096 * batch; }}, {.latency_seconds =
//                                       0.01});
//   found.knee().batch
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace tenon {

struct TunePoint {
  std::int64_t batch = 0;
  double seconds = 0;       // for one batch, there and back
  std::uint64_t bytes = 0;  // of its tensors
  double rows_per_second() const noexcept { return seconds > 0 ? static_cast<double>(batch) / seconds : 0; }
};

struct TuneSubject {
  std::function<double(std::int64_t batch)> measure;  // seconds; may throw
  std::function<std::uint64_t(std::int64_t batch)> bytes_of;
  std::function<void(std::int64_t batch)> on_begin = {};  // before each measurement
};

struct TuneLimits {
  std::uint64_t memory_bytes = std::numeric_limits<std::uint64_t>::max();
  std::optional<double> latency_seconds = {};
  std::int64_t max_batch = std::int64_t{1} << 20;
  std::function<bool()> is_over = {};  // time is up
};

struct TuneResult {
  std::vector<TunePoint> points;  // that kept all limits, by growing batch
  std::size_t knee_index = 0;
  std::string stopped;  // why there is no larger one, in words

  const TunePoint& knee() const { return points.at(knee_index); }
  const TunePoint& fastest() const;
};

// Throws resource_exhausted when not even a batch of one keeps the limits, and what measuring a batch of one throws. Running out
// of memory with a larger one ends the search.
TuneResult find_batch_size(const TuneSubject& subject, const TuneLimits& limits);

// The first point with at least nine tenths of the best throughput.
std::size_t knee_of(const std::vector<TunePoint>& points);

}  // namespace tenon
