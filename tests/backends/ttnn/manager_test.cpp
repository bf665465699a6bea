// The backend ttnn under the device manager: the simulator's chip, the tier in the result, tensors that outlive a closed chip.
// TTNN is the stand-in of the tests, the simulator's library an empty file: nothing here has run on a chip.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/text/json_writer.h"
#include "present/device/device.h"
#include "temporary_folder.h"
#include "tenon/device/simulated.h"
#include "tenon/manager.h"
#include "tenon/ops.h"
#include "tenon/tensor.h"
#include "tenon/tensor/device_library.h"
#include "tenon/tensor/functions.h"
#include "ttnn_testing.h"

namespace tenon::ttnn {
namespace {

class TtnnManager : public testing::Test {
 protected:
  void SetUp() override { TENON_NEEDS_NUMPY(); }

  test::TemporaryFolder folder_;
  const std::string library_ = folder_.write("libttsim.so", ""),
                    about_ = folder_.write("soc_descriptor.yaml", "arch_name: BLACKHOLE\n");
  StandIn stand_in_{"auto"};
  const Variable simulator_{"TT_METAL_SIMULATOR", library_}, python_{"TENON_TTNN_PYTHON", TENON_TEST_PYTHON};
};

Graph sum_of_two() {
  Graph graph;
  const NodeId a = graph.input("a", DType::f32, {3}), b = graph.input("b", DType::f32, {3});
  graph.set_outputs({apply(graph, "add", {a, b})[0]});
  return graph;
}

TEST_F(TtnnManager, ListsTheSimulatorsChipAndDoesNotChooseItByItself) {
  DeviceManager manager;
  const std::vector<DeviceInfo> devices = manager.devices();
  const auto chip = std::ranges::find(devices, "ttsim:0", &DeviceInfo::id);
  ASSERT_NE(chip, devices.end());
  EXPECT_TRUE(is_simulated(*chip));
  EXPECT_EQ(chip->backends.at(0), "ttnn");
  EXPECT_EQ(chip->architecture, "blackhole");
  EXPECT_NE(manager.explain(sum_of_two()).device.id, "ttsim:0");
}

TEST_F(TtnnManager, TheResultSaysWhichTierComputed) {
  DeviceManager manager;
  const std::vector<HostArray> inputs = {HostArray::from<float>({3}, {1, 2, 3}), HostArray::from<float>({3}, {4, 5, 6})};
  RunResult result = manager.run(sum_of_two(), inputs, {.device = "ttsim:0"});
  EXPECT_EQ(result.outputs[0].view<float>()[2], 9);
  EXPECT_EQ(result.device->details.at("tier"), "fast");
  EXPECT_EQ(result.device->name, "NumPy stand-in for TTNN (no chip)") << "what computed, not what was found";
  std::string text;
  JsonWriter json(text);
  present::write_device_brief(json, *result.device);
  EXPECT_NE(text.find(R"("tier":"fast","tiers":{"fast":["add"]},"architecture":"blackhole")"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("stand_in":"yes")"), std::string::npos) << text;

  Graph wide;
  const NodeId x = wide.input("x", DType::f64, {3});
  wide.set_outputs({apply(wide, "exp", {x})[0]});
  result = manager.run(wide, std::vector{HostArray::full(DType::f64, {3}, 0)}, {.device = "ttsim:0"});
  EXPECT_EQ(result.device->details.at("tier"), "exact");
  EXPECT_EQ(result.outputs[0].view<double>()[0], 1);
  manager.close_all();
}

TEST_F(TtnnManager, SaysThatKernelsAreCompiledWhenTheyAreNew) {
  const Variable slow("TENON_STAND_IN_FAILS", "slowly");  // as a function that is compiled
  Graph graph;
  const NodeId x = graph.input("x", DType::f32, {3});
  graph.set_outputs({apply(graph, "neg", {apply(graph, "exp", {x})[0]})[0]});
  DeviceManager manager;
  std::vector<std::string> stages;
  RunOptions options{.device = "ttsim:0"};
  options.on_progress = [&](const Progress& progress) { stages.push_back(progress.stage); };
  const std::vector<HostArray> inputs = {HostArray::from<float>({3}, {0, 0, 0})};
  manager.run(graph, inputs, options);
  EXPECT_EQ(std::ranges::count(stages, "compiling kernels (1 of 2)"), 1);
  stages.clear();
  EXPECT_EQ(manager.run(graph, inputs, options).outputs[0].view<float>()[0], -1);
  EXPECT_TRUE(std::ranges::none_of(stages, [](const std::string& s) { return s.starts_with("compiling kernels"); }))
      << "once they are there";
  manager.close_all();
}

TEST_F(TtnnManager, AnOpThatTtnnLacksIsNamedInTheResult) {
  Graph graph;
  const NodeId x = graph.input("x", DType::bf16, {4});
  graph.set_outputs({apply(graph, "exp", {apply(graph, "sort", {x})[0]})[0]});
  DeviceManager manager;
  const RunResult result = manager.run(graph, std::vector{HostArray::full(DType::bf16, {4}, 0)}, {.device = "ttsim:0"});
  EXPECT_EQ(result.device->details.at("tier"), "mixed");
  std::string text;
  JsonWriter json(text);
  present::write_device_brief(json, *result.device);
  EXPECT_NE(text.find(R"("tier":"mixed","tiers":{"fast":["exp"],"exact":["arg_sort","gather"]})"), std::string::npos) << text;
  manager.close_all();
}

TEST_F(TtnnManager, TheDeviceLibraryDrivesItAndTensorsOutliveTheChip) {
  DeviceManager manager;
  const UseManager use(manager);
  const device_library::Device device = device_library::create_device(device_library::Arch::blackhole, 0);
  EXPECT_EQ(device.info().id, "ttsim:0");
  device_library::initialize_device(device);
  const Tensor x = Tensor(HostArray::from<float>({3}, {1, 2, 3})).to(device);
  const Tensor y = square(x) + 1;
  y.eval();
  device_library::close_device(device);
  EXPECT_EQ(y.to_host().view<float>()[2], 10);
}

}  // namespace
}  // namespace tenon::ttnn
