#define BENCH_VECTOR v3
#include "cpu/hand/vector_v3.h"

#include "cpu/hand/hand_loops.h"

namespace bench {

const HandLoops* hand_loops_v3() {
  static constexpr HandLoops kLoops = v3::loops("x86-64-v3");
  return &kLoops;
}

}  // namespace bench
