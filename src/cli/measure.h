// Measuring how long something takes, again and again, for a given time.
#pragma once

#include <cstddef>
#include <functional>

namespace tenon::cli {

struct Measurement {
  double median_seconds = 0;
  double p10_seconds = 0, p90_seconds = 0;  // the spread: a tenth of the samples is faster, a tenth slower
  std::size_t samples = 0;
  std::size_t calls = 0;  // a sample is the mean of several calls where one is too short to time
};

// Calls |work| once untimed, then for about |seconds|, at least three times. |progress| hears the part done, 0 to 1, at once and
// a few times a second at most; it may be empty.
Measurement measure(const std::function<void()>& work, double seconds, const std::function<void(double)>& progress);

}  // namespace tenon::cli
