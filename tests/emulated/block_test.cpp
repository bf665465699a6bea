// What a run on this machine finds: kernels that are wrong, each in one way.
#include <gtest/gtest.h>

#include <cmath>

#include "emulated/cases.h"
#include "emulated/kernel_library.h"
#include "emulated/program.h"
#include "tenon/error.h"

namespace tenon::emulated {
namespace {

// A kernel of one block that reads |arg0|, 64 numbers, and writes |arg1|, as many.
KernelPlan plan_of(const std::string& statements, int threads = 64) {
  KernelPlan plan;
  plan.input_types = {{DType::f32, Shape{64}}};
  plan.output_types = {{DType::f32, Shape{64}}};
  Kernel kernel;
  kernel.entry = "tenon_test";
  kernel.group_size = {threads, 1, 1};
  kernel.text = "KERNEL(" + std::to_string(threads) +
                ", 1, 1) tenon_test(GLOBAL const f32* arg0, GLOBAL f32* arg1) {\nconst i32 t = local_id(0);\n" + statements +
                "}\n";
  plan.kernels = {kernel};
  const Location from{Location::Space::input, 0, 0, 256}, to{Location::Space::output, 0, 0, 256};
  plan.steps = {KernelLaunch{0, {1, 1, 1}, {from, to}}};
  return plan;
}

HostArray counted() {
  HostArray all = HostArray::empty(DType::f32, Shape{64});
  for (float next = 0; float& x : all.mutable_view<float>()) x = next++;
  return all;
}

HostArray run(const std::string& statements, int threads = 64) {
  const KernelPlan plan = plan_of(statements, threads);
  const Kernel* const kernels[] = {plan.kernels.data()};
  KernelLibrary library(card(), kernels);
  const HostArray inputs[] = {counted()};
  return run_plan(plan, library, inputs, Temporaries::apart)[0];
}

std::string error_of(const std::string& statements) {
  try {
    run(statements);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

TEST(EmulatedBlock, WorkItemsMeetAtBarriersAndInExchanges) {
  TENON_SKIP_WITHOUT_COMPILER();
  const HostArray y =
      run("STARTED;\nLOCAL f32 x[64];\nx[t] = arg0[t];\nBARRIER;\nf32 sum = x[63 - t];\n"
          "UNROLL for (i32 distance = 16; distance > 0; distance /= 2) sum += SHUFFLE(sum, distance);\n"
          "arg1[t] = sum + __popc(__ballot_sync(0xffffffffu, t % 4 == 0)) + (__syncthreads_or(t == 40) ? 0.5f : 0.0f);\n");
  EXPECT_EQ(y.value(0), (32 + 63) * 16 + 8 + 0.5);
  EXPECT_EQ(y.value(63), 31 * 16 + 8 + 0.5);
}

TEST(EmulatedBlock, AMissingBarrierLeavesWhatWasNotWritten) {
  TENON_SKIP_WITHOUT_COMPILER();
  const HostArray y = run("STARTED;\nLOCAL f32 x[64];\nx[t] = arg0[t];\narg1[t] = x[63 - t];\n");
  EXPECT_TRUE(std::isnan(y.value(1)));
}

TEST(EmulatedBlock, SaysWhereAWorkItemReadsAndWritesOutside) {
  TENON_SKIP_WITHOUT_COMPILER();
  EXPECT_NE(error_of("STARTED;\narg1[t] = arg0[t + 1];\n").find("work-item 63: memory at byte 256 of the 256 of input 0"),
            std::string::npos);
  EXPECT_NE(error_of("STARTED;\narg1[t - 1] = arg0[t];\n").find("beside output 0"), std::string::npos);
  EXPECT_NE(error_of("STARTED;\nLOCAL f32 x[64];\nx[t + 1] = 1;\narg1[t] = x[t];\n").find("failed check"), std::string::npos);
  EXPECT_NE(error_of("STARTED;\n((f32*)arg0)[t] = 1;\n").find("of input 0"), std::string::npos);
}

TEST(EmulatedBlock, SaysWhereWorkItemsWaitForOthers) {
  TENON_SKIP_WITHOUT_COMPILER();
  EXPECT_NE(error_of("STARTED;\nif (t < 32) BARRIER;\nelse SHUFFLE(t, t < 40 ? 1 : 2);\nif (t == 40) BARRIER;\nwhile (t == 41) "
                     "BARRIER;\n")
                .find("met"),
            std::string::npos);
  EXPECT_NE(error_of("STARTED;\nif (t % 32 < 16) SHUFFLE(t, 1);\n").find("a lane ends while others exchange"), std::string::npos);
  EXPECT_NE(error_of("STARTED;\nif (t % 2) SHUFFLE(t, 1);\nelse BARRIER;\n").find("do not come"), std::string::npos);
}

TEST(EmulatedBlock, WhatEarlierKernelsComputedIsThereAfterTheWait) {
  TENON_SKIP_WITHOUT_COMPILER();
  EXPECT_EQ(run("LET_NEXT_BEGIN;\nconst f32 x = arg0[t];\nWAIT_FOR_LAST;\narg1[t] = x;\n").value(5), 5);
  EXPECT_NE(error_of("LET_NEXT_BEGIN;\narg1[t] = arg0[t];\nWAIT_FOR_LAST;\n").find("of output 0"), std::string::npos);
  EXPECT_NE(error_of("LET_NEXT_BEGIN;\nconst f32 x = arg0[t];\n").find("without having waited"), std::string::npos);
}

TEST(EmulatedBlock, AssemblyBecomesCalls) {
  EXPECT_EQ(with_calls("f32 r; asm volatile(\"ex2.approx.ftz.f32 %0, %1;\" : \"=f\"(r) : \"f\"(g(x) - 1));"),
            "f32 r; ptx_ex2_approx_ftz_f32((r), (g(x) - 1));");
  EXPECT_EQ(with_calls("asm(\"griddepcontrol.wait;\" ::: \"memory\"); plasma(1)"), "ptx_griddepcontrol_wait(); plasma(1)");
}

}  // namespace
}  // namespace tenon::emulated
