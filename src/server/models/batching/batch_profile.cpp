#include "server/models/batching/batch_profile.h"

#include <algorithm>

namespace tenon::server {
namespace {

constexpr auto kMemory = std::chrono::seconds(60);
constexpr double kNoBetter = 1.03;
constexpr std::size_t kMaxCells = 512;

double work_of(std::int64_t rows, std::int64_t length) {
  return static_cast<double>(rows) * static_cast<double>(std::max<std::int64_t>(length, 1));
}

}  // namespace

double BatchProfile::Cell::least() const {
  return *std::min_element(seconds.begin(), seconds.begin() + static_cast<std::ptrdiff_t>(std::min(count, kKept)));
}

void BatchProfile::add(std::int64_t rows, std::int64_t length, double seconds, Clock::time_point now) {
  if (cells_.size() >= kMaxCells) cells_.clear();
  Cell& cell = cells_[{length, rows}];
  if (cell.count > 0 && now - cell.latest > kMemory) cell = {};
  cell.seconds[cell.count++ % kKept] = seconds;
  cell.latest = now;
}

std::optional<BatchProfile::Line> BatchProfile::line() const {
  if (cells_.empty()) return std::nullopt;
  double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (const auto& [shape, cell] : cells_) {
    const double x = work_of(shape.second, shape.first), y = cell.least();
    n += 1, sx += x, sy += y, sxx += x * x, sxy += x * y;
  }
  const double spread = n * sxx - sx * sx;
  Line line{.start = 0, .slope = sy / sx};
  if (spread > 1e-9 * n * sxx) {
    const double slope = (n * sxy - sx * sy) / spread, start = (sy - slope * sx) / n;
    // Noise can make either negative; then times are taken to be in proportion to the work.
    if (slope > 0 && start >= 0) line = {start, slope, true};
  }
  return line;
}

bool BatchProfile::is_measured(std::int64_t rows, std::int64_t length, Clock::time_point now) const {
  const auto found = cells_.find({length, rows});
  return found != cells_.end() && now - found->second.latest <= kMemory;
}

std::optional<double> BatchProfile::predict(std::int64_t rows, std::int64_t length, Clock::time_point now) const {
  if (is_measured(rows, length, now)) return cells_.at({length, rows}).least();
  const std::optional<Line> fit = line();
  if (!fit) return std::nullopt;
  return fit->start + fit->slope * work_of(rows, length);
}

std::int64_t BatchProfile::best_rows(std::int64_t available, std::int64_t length, double budget_seconds,
                                     Clock::time_point now) const {
  std::int64_t best = 1;
  double best_rate = 0;
  for (std::int64_t rows = 1; rows <= available; rows *= 2) {
    const std::optional<double> seconds = predict(rows, length, now);
    if (!seconds || *seconds <= 0) {
      best = rows;  // nothing is known: as many as there are
      continue;
    }
    if (rows > 1 && budget_seconds > 0 && *seconds > budget_seconds) break;
    if (!is_measured(rows, length, now) && !line()->is_known) {
      if (best_rate > 0) return rows == 2 * best ? rows : best;
      best = rows;
      continue;
    }
    const double rate = static_cast<double>(rows) / *seconds;
    if (rate < best_rate * kNoBetter) continue;
    best = rows;
    best_rate = rate;
  }
  return best;
}

}  // namespace tenon::server
