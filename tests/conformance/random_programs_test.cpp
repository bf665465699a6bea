// Random programs on the CPU against the reference. TENON_RANDOM_PROGRAMS=N tries N of them, TENON_RANDOM_SEED=S those from S on.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "backends/cpu/backend.h"
#include "base/threads/thread_pool.h"
#include "conformance/judge/compare.h"
#include "conformance/random/random_program.h"

namespace tenon::conformance {
namespace {

struct Way {
  DType dtype;
  int threads;
};
std::string name_of(const testing::TestParamInfo<Way>& info) {
  return fmt::format("{}With{}", name(info.param.dtype), info.param.threads);
}

class RandomProgramsOnTheCpu : public testing::TestWithParam<Way> {};

TEST_P(RandomProgramsOnTheCpu, GiveWhatTheReferenceGives) {
  ThreadPool pool(GetParam().threads);
  const auto device = cpu::open_with(pool);
  for (const std::uint32_t seed : random_seeds(400)) {
    const RandomProgram program(seed, GetParam().dtype);
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, program.text()));
    const std::vector<Bounded> expected = bounded_run(program.graph(), program.inputs());
    ASSERT_EQ(what_differs(run_twice(*device, program), expected), "") << program.graph().text();
  }
}

// Bounds that say nothing would find nothing.
TEST(RandomPrograms, HaveBounds) {
  double known = 0, all = 0;
  for (const std::uint32_t seed : random_seeds(200)) {
    const RandomProgram program(seed, DType::f32);
    for (const Bounded& expected : bounded_run(program.graph(), program.inputs())) {
      const std::vector<double> values = expected.value.to_doubles();
      for (std::int64_t i = 0; i < expected.value.elements(); ++i)
        known += expected.error_at(i) <= 1e-2 * (1 + std::abs(values[static_cast<std::size_t>(i)])) ? 1 : 0;
      all += static_cast<double>(expected.value.elements());
    }
  }
  EXPECT_GT(known, 0.9 * all);
}

INSTANTIATE_TEST_SUITE_P(Ways, RandomProgramsOnTheCpu,
                         testing::Values(Way{DType::f32, 1}, Way{DType::f32, 2}, Way{DType::f64, 2}, Way{DType::bf16, 2},
                                         Way{DType::f16, 2}),
                         name_of);

}  // namespace
}  // namespace tenon::conformance
