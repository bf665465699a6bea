#include "cli/measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

namespace tenon::cli {
namespace {

using Clock = std::chrono::steady_clock;

// Far above the cost of reading the clock.
constexpr double kShortestSample = 20e-6;
constexpr std::size_t kMaxSamples = 1'000'000;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double percentile(const std::vector<double>& sorted, double part) {
  const double at = part * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  const std::size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (sorted[high] - sorted[low]) * (at - static_cast<double>(low));
}

std::size_t calls_per_sample(const std::function<void()>& work) {
  std::size_t calls = 1;
  while (true) {
    const auto start = Clock::now();
    for (std::size_t i = 0; i < calls; ++i) work();
    if (since(start) >= kShortestSample || calls >= 1024) return calls;
    calls *= 2;
  }
}

}  // namespace

Measurement measure(const std::function<void()>& work, double seconds, const std::function<void(double)>& progress) {
  work();
  const std::size_t calls = calls_per_sample(work);
  std::vector<double> samples;
  const auto start = Clock::now();
  double told = -1;  // the beginning is told, too
  for (double elapsed = 0; samples.size() < kMaxSamples && (samples.size() < 3 || elapsed < seconds); elapsed = since(start)) {
    const auto begin = Clock::now();
    for (std::size_t i = 0; i < calls; ++i) work();
    samples.push_back(since(begin) / static_cast<double>(calls));
    if (progress && elapsed - told > 0.1) {
      told = elapsed;
      progress(std::min(1.0, elapsed / seconds));
    }
  }
  std::sort(samples.begin(), samples.end());
  return {percentile(samples, 0.5), percentile(samples, 0.1), percentile(samples, 0.9), samples.size(), samples.size() * calls};
}

}  // namespace tenon::cli
