// Contender: one way of doing one piece of work, timed. Case: the ways compared with each other, round by round.
//
// Noise on a shared machine is one-sided: it only ever adds time. So each round keeps the fastest of several calls, and figures
// are compared within a round or as the best of all rounds.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace bench {

inline double seconds_now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Seconds of the fastest of |calls| calls, after one that is not counted.
template <class F>
double fastest(int calls, F&& call) {
  call();
  double best = 1e300;
  for (int i = 0; i < calls; ++i) {
    const double begin = seconds_now();
    call();
    best = std::min(best, seconds_now() - begin);
  }
  return best;
}

struct Contender {
  std::string name;
  std::function<double()> measure;  // seconds of one call, the fastest of a round; negative when it cannot do this work
  double rest_seconds = 0;          // for its threads to stop spinning before the next one is measured
  std::vector<double> rounds{};

  double best() const { return *std::min_element(rounds.begin(), rounds.end()); }
  double median() const {
    std::vector<double> sorted = rounds;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
  bool measured() const { return !rounds.empty() && best() >= 0; }
};

struct Case {
  std::string name;       // "exp"
  std::int64_t size = 0;  // elements, or the side of a matrix
  std::vector<Contender> contenders;

  const Contender* find(const std::string& name_wanted) const {
    for (const Contender& c : contenders)
      if (c.name == name_wanted && c.measured()) return &c;
    return nullptr;
  }
};

// Measures every contender of every case once a round, starting with another one each round.
void run_rounds(std::vector<Case>& cases, int rounds, const std::function<void(int round)>& progress);

}  // namespace bench
