#define BENCH_VECTOR v4
#include "cpu/hand/vector_v4.h"

#include "cpu/hand/hand_loops.h"

namespace bench {

const HandLoops* hand_loops_v4() {
  static constexpr HandLoops kLoops = v4::loops("x86-64-v4");
  return &kLoops;
}

}  // namespace bench
