// enable_jit: off, every node of a program is a step of its own, on whatever backend.
#include <gtest/gtest.h>

#include "backends/cpu/executable.h"
#include "base/threads/thread_pool.h"
#include "hal/kernel_plan.h"
#include "manager/simulated_machine.h"
#include "tenon/expression.h"

namespace tenon {
namespace {

Graph program() { return parse_expression("tanh(x * 2 + 1) * exp(x)", {{"x", DType::f32, {1000}}}); }

TEST(FusionSwitch, WithoutFusionTheProcessorKeepsTheValuesInBetween) {
  // Large enough that scratch memory of a step is small beside a value.
  const Graph large = parse_expression("tanh(x * 2 + 1) * exp(x)", {{"x", DType::f32, {1 << 22}}});
  const std::size_t one_value = std::size_t{4} << 22;
  EXPECT_LT(cpu::CpuExecutable(large, process_pool()).workspace_bytes(), one_value);
  EXPECT_GE(cpu::CpuExecutable(large, process_pool(), {.max_nodes = 1}).workspace_bytes(), one_value);
}

TEST(FusionSwitch, WithoutFusionEveryNodeIsAKernel) {
  const std::size_t fused = plan_kernels(program(), KernelTarget{}, {}).steps.size();
  const std::size_t single = plan_kernels(program(), KernelTarget{}, {.fuse = false}).steps.size();
  EXPECT_EQ(fused, 1u);
  EXPECT_GT(single, 3u);
}

// Says in its name how it was opened.
class Listening final : public Backend {
 public:
  explicit Listening(std::vector<bool>& opened) : opened_(opened) {}
  std::string_view name() const noexcept override { return "listening"; }
  std::vector<DeviceInfo> devices() override {
    DeviceInfo info;
    info.id = "listening:0";
    info.kind = DeviceKind::other;
    info.backends = {"listening"};
    return {info};
  }
  using Backend::open;
  std::unique_ptr<OpenDevice> open(const DeviceInfo&, const OpenOptions& options) override {
    opened_.push_back(options.fuse);
    throw Error(ErrorCode::permission_denied, "not today");
  }

 private:
  std::vector<bool>& opened_;
};

TEST(FusionSwitch, TheSettingReachesTheBackend) {
  for (const bool jit : {true, false}) {
    std::vector<bool> opened;
    test::SimulatedMachine machine({}, [&](Config& config) { config.enable_jit = jit; });
    machine.manager().add_backend(std::make_unique<Listening>(opened));
    EXPECT_THROW(machine.manager().lease({.device = "listening:0"}), Error);
    ASSERT_FALSE(opened.empty());
    EXPECT_EQ(opened.front(), jit);
  }
}

TEST(FusionSwitch, ResultsAreTheSame) {
  const HostArray x = HostArray::full(DType::f32, {1000}, 0.25);
  std::vector<double> results[2];
  for (const bool jit : {true, false}) {
    test::SimulatedMachine machine({}, [&](Config& config) { config.enable_jit = jit; });
    results[jit] = machine.manager().run(program(), std::span(&x, 1), {.device = "cpu:0"}).outputs.at(0).to_doubles();
  }
  EXPECT_EQ(results[0], results[1]);
}

}  // namespace
}  // namespace tenon
