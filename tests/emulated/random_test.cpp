// Random programs as CUDA kernels against the reference. TENON_RANDOM_PROGRAMS=N tries N of them, TENON_RANDOM_SEED=S those from
// S on.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "conformance/random/random_program.h"
#include "emulated/cases.h"
#include "emulated/kernel_library.h"
#include "emulated/program.h"
#include "tenon/error.h"

namespace tenon::emulated {
namespace {

using conformance::RandomProgram;

TEST(EmulatedRandomPrograms, GiveWhatTheReferenceGives) {
  TENON_SKIP_WITHOUT_COMPILER();
  constexpr std::size_t kTogether = 40;  // whose kernels are compiled at once
  const std::vector<std::uint32_t> seeds = conformance::random_seeds(kTogether);
  for (std::size_t first = 0; first < seeds.size(); first += kTogether) {
    std::vector<RandomProgram> programs;
    std::vector<KernelPlan> plans;
    for (std::size_t i = first; i < std::min(seeds.size(), first + kTogether); ++i) {
      programs.emplace_back(seeds[i], DType::f32);
      plans.push_back(plan_kernels(programs.back().graph(), card()));
    }
    std::vector<const Kernel*> kernels;
    std::set<std::string> entries;
    for (const KernelPlan& plan : plans)
      for (const Kernel& kernel : plan.kernels)
        if (entries.insert(kernel.entry).second) kernels.push_back(&kernel);
    KernelLibrary library(card(), kernels);
    for (std::size_t i = 0; i < programs.size(); ++i) {
      SCOPED_TRACE(fmt::format("seed {}: {}", seeds[first + i], programs[i].text()));
      const std::vector<conformance::Bounded> expected = conformance::bounded_run(programs[i].graph(), programs[i].inputs());
      for (const Temporaries temporaries : {Temporaries::apart, Temporaries::as_planned}) try {
          const std::vector<HostArray> results = run_plan(plans[i], library, programs[i].inputs(), temporaries);
          EXPECT_EQ(conformance::what_differs(results, expected), "") << programs[i].graph().text();
        } catch (const Error& error) {
          ADD_FAILURE() << error.what() << "\n" << programs[i].graph().text();
        }
    }
  }
}

}  // namespace
}  // namespace tenon::emulated
