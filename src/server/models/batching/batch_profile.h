// BatchProfile: how long a batch of a model takes, measured, by rows and length; and how many rows are worth taking.
//
// A measured shape is predicted by the least of its last few times: what is beyond is other people's work on the machine. Other
// shapes are predicted by a line through what was measured (a + b x rows x length). Measurements are forgotten after a while, so
// that a shape that was slow once is tried again.
// Thread safety: one thread at a time; Batcher holds its lock.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

namespace tenon::server {

class BatchProfile {
 public:
  using Clock = std::chrono::steady_clock;

  void add(std::int64_t rows, std::int64_t length, double seconds, Clock::time_point now);
  // nullopt: nothing is known yet.
  std::optional<double> predict(std::int64_t rows, std::int64_t length, Clock::time_point now) const;
  // The power of two, at most |available|, with the most rows a second among those predicted to end within |budget_seconds|; 1
  // if none does. While measurements do not tell what a batch costs besides its rows, twice the best size known is tried. The
  // smaller of two that are equal within a few per cent. A budget that is used up already does not limit: what is late is not
  // helped by small batches.
  std::int64_t best_rows(std::int64_t available, std::int64_t length, double budget_seconds, Clock::time_point now) const;

 private:
  static constexpr std::size_t kKept = 5;
  struct Cell {
    std::array<double, kKept> seconds{};
    std::size_t count = 0;
    Clock::time_point latest;
    double least() const;
  };
  struct Line {
    double start = 0, slope = 0;
    bool is_known = false;  // false: times are taken to be in proportion to the work, which says nothing about batches
  };
  std::optional<Line> line() const;
  bool is_measured(std::int64_t rows, std::int64_t length, Clock::time_point now) const;

  std::map<std::pair<std::int64_t, std::int64_t>, Cell> cells_;  // by length and rows
};

}  // namespace tenon::server
