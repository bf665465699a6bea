// Programs that are planned for CUDA, run on this machine and compared with the reference.
//
//   Cases cases;
//   cases.add("softmax of rows", graph, inputs, card());
//   cases.check();
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "codegen/c/kernel.h"
#include "hal/kernel_plan.h"
#include "tenon/array.h"
#include "tenon/graph.h"

namespace tenon::emulated {

// A card with few multiprocessors, so that launches have few blocks; without matrix units.
KernelTarget card(int units = 4);

// Numbers that are the same in every run.
class Numbers {
 public:
  explicit Numbers(unsigned seed) : engine_(seed) {}
  HostArray normal(DType dtype, const Shape& shape, double scale = 1, double mean = 0);
  HostArray below(DType dtype, const Shape& shape, std::int64_t limit);

 private:
  std::mt19937 engine_;
};

struct Case {
  std::string name;
  Graph graph;
  std::vector<HostArray> inputs;
  KernelTarget target;
  double limit = 0;  // of an error, as a part of the largest value; integers are equal
};

class Cases {
 public:
  void add(std::string name, Graph graph, std::vector<HostArray> inputs, const KernelTarget& target = card(),
           double limit = 2e-6) {
    cases_.push_back({std::move(name), std::move(graph), std::move(inputs), target, limit});
  }
  // Compiles all kernels at once; one expectation of the test for each output of each case and each way to place temporaries.
  void check() const;

 private:
  std::vector<Case> cases_;
};

// Skips the test where no kernel can be compiled.
#define TENON_SKIP_WITHOUT_COMPILER() \
  if (const std::string reason = ::tenon::emulated::why_not(); !reason.empty()) GTEST_SKIP() << reason

}  // namespace tenon::emulated
