// Tuning: finds, by measuring, the batch size that keeps a device busy.
//
// The batch is doubled until a limit is reached or throughput stops growing. Small batches waste time on overhead; beyond some
// size every further row costs as much as the previous one. The knee is the smallest batch with nearly the best throughput.
// Choosing it costs little speed and saves latency and memory.
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
  double seconds = 0;       // for one batch, including transfers
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
  std::function<bool()> is_over = {};  // whether the time is used up
};

struct TuneResult {
  std::vector<TunePoint> points;  // within all limits, by growing batch
  std::size_t knee_index = 0;
  std::string stopped;  // why the search stopped

  const TunePoint& knee() const { return points.at(knee_index); }
  const TunePoint& fastest() const;
};

// Throws resource_exhausted if not even a batch of one is within the limits, and the errors of measuring a batch of one. Running
// out of memory with a larger one ends the search.
TuneResult find_batch_size(const TuneSubject& subject, const TuneLimits& limits);

// The first point with at least 90 % of the best throughput.
std::size_t knee_of(const std::vector<TunePoint>& points);

}  // namespace tenon
