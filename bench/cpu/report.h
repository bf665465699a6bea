// The results as Markdown: what was measured on what, and the ratios the bars are about.
#pragma once

#include <string>
#include <vector>

#include "cpu/contender.h"

namespace bench {

struct Session {
  std::string date, cpu, command, isa;  // isa: of the hand-written loops
  int threads = 0, rounds = 0;
  double load = 0;  // of the machine before the run: tasks that wanted a core
  std::string peer_versions, missing;
  std::vector<std::string> peers;
  std::vector<Case> elementwise, matrices, float64, matmul, small;
  Case cold_start, copy_small, copy_large;
};

std::string markdown(const Session& session);

}  // namespace bench
