#include "cpu/contender.h"

#include <thread>

namespace bench {

void run_rounds(std::vector<Case>& cases, int rounds, const std::function<void(int round)>& progress) {
  for (int round = 0; round < rounds; ++round) {
    progress(round);
    for (Case& c : cases)
      for (std::size_t i = 0; i < c.contenders.size(); ++i) {
        Contender& contender = c.contenders[(i + static_cast<std::size_t>(round)) % c.contenders.size()];
        contender.rounds.push_back(contender.measure());
        if (contender.rest_seconds > 0) std::this_thread::sleep_for(std::chrono::duration<double>(contender.rest_seconds));
      }
  }
}

}  // namespace bench
