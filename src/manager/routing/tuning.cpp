#include "manager/routing/tuning.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/units.h"
#include "tenon/error.h"

namespace tenon {
namespace {

constexpr double kNearlyBest = 0.9;
// The search ends after this many doublings in a row without this gain.
constexpr double kWorthwhile = 1.05;
constexpr int kPatience = 3;

bool by_throughput(const TunePoint& a, const TunePoint& b) { return a.rows_per_second() < b.rows_per_second(); }

std::string over_memory(std::int64_t batch, std::uint64_t bytes, const TuneLimits& limits) {
  return fmt::format("a batch of {} needs {}, more than the limit of {}", batch, format_bytes(static_cast<double>(bytes)),
                     format_bytes(static_cast<double>(limits.memory_bytes)));
}

}  // namespace

const TunePoint& TuneResult::fastest() const { return *std::max_element(points.begin(), points.end(), by_throughput); }

std::size_t knee_of(const std::vector<TunePoint>& points) {
  if (points.empty()) return 0;
  const double enough = kNearlyBest * std::max_element(points.begin(), points.end(), by_throughput)->rows_per_second();
  const auto first =
      std::find_if(points.begin(), points.end(), [&](const TunePoint& p) { return p.rows_per_second() >= enough; });
  return static_cast<std::size_t>(first - points.begin());
}

TuneResult find_batch_size(const TuneSubject& subject, const TuneLimits& limits) {
  TuneResult result;
  double best = 0;
  int without_gain = 0;
  for (std::int64_t batch = 1;; batch *= 2) {
    const bool is_first = batch == 1;
    if (batch > limits.max_batch) {
      result.stopped = fmt::format("{} is the largest requested batch", limits.max_batch);
      break;
    }
    if (!is_first && limits.is_over && limits.is_over()) {
      result.stopped = "the measuring time is used up";
      break;
    }
    const std::uint64_t bytes = subject.bytes_of(batch);
    if (bytes > limits.memory_bytes) {
      result.stopped = over_memory(batch, bytes, limits);
      break;
    }
    if (subject.on_begin) subject.on_begin(batch);
    TunePoint point{batch, 0, bytes};
    try {
      point.seconds = subject.measure(batch);
    } catch (const Error& error) {
      if (is_first || error.code() != ErrorCode::resource_exhausted) throw;
      result.stopped = error.what();
      break;
    }
    if (limits.latency_seconds && point.seconds > *limits.latency_seconds) {
      result.stopped = fmt::format("a batch of {} takes {}, longer than the limit of {}", batch, format_seconds(point.seconds),
                                   format_seconds(*limits.latency_seconds));
      break;
    }
    result.points.push_back(point);
    without_gain = point.rows_per_second() > kWorthwhile * best ? 0 : without_gain + 1;
    best = std::max(best, point.rows_per_second());
    if (without_gain >= kPatience) {
      result.stopped = "larger batches do not improve throughput";
      break;
    }
  }
  if (result.points.empty())
    throw Error(ErrorCode::resource_exhausted, fmt::format("no batch is within the limits: {}", result.stopped),
                "raise the limit");
  result.knee_index = knee_of(result.points);
  return result;
}

}  // namespace tenon
