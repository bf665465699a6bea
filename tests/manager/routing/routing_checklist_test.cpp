// What users of a CPU / GPU / TPU layer expect, item by item: preference and fallback, batch rules, variables, reports.
#include <gtest/gtest.h>

#include <map>

#include "manager/config/settings.h"
#include "tenon/error.h"
#include "tenon/expression.h"
#include "tenon/manager.h"
#include "tenon/manager/batch.h"
#include "tenon/manager/placement.h"
#include "tenon/manager/routing.h"

namespace tenon {
namespace {

Candidate candidate(std::string id, DeviceKind kind, double dollars) {
  Candidate made;
  made.device.id = std::move(id);
  made.device.kind = kind;
  made.device.backends = {"some"};
  made.device.cost_per_hour = dollars;
  return made;
}

const Candidate kCpu = candidate("cpu:0", DeviceKind::cpu, 0);
const Candidate kGpu = candidate("cuda:0", DeviceKind::gpu, 0.5);
const Candidate kTpu = candidate("tpu:0", DeviceKind::tpu, 2.0);

Config of_variables(std::map<std::string, std::string> variables) {
  return load_config({.environment =
                          [variables = std::move(variables)](const char* name) {
                            const auto found = variables.find(name);
                            return found == variables.end() ? std::string() : found->second;
                          },
                      .system_file = ""})
      .config;
}

TEST(DeviceInfoOfALayer, HasTheDocumentedFieldsAndDefaults) {
  const DeviceInfo info;
  EXPECT_TRUE(info.available);
  EXPECT_EQ(info.memory_total_bytes, std::nullopt);
  EXPECT_TRUE(info.compute_capability.empty());
  EXPECT_EQ(info.cost_per_hour, std::nullopt);
  EXPECT_TRUE(info.details.empty());
}

TEST(TheProcessor, IsAlwaysThereAndCostsNothing) {
  const DeviceManager manager;
  const std::vector<DeviceInfo> processors = placement::cpu_devices(manager.devices());
  ASSERT_FALSE(processors.empty());
  EXPECT_EQ(processors[0].id, "cpu:0");
  EXPECT_EQ(processors[0].cost_per_hour, 0);
}

TEST(AutomaticChoice, IsTpuThenGpuThenCpu) {
  EXPECT_EQ(route({}, "auto", std::vector{kCpu, kGpu, kTpu}).device.id, "tpu:0");
  EXPECT_EQ(route({}, "auto", std::vector{kCpu, kGpu}).device.id, "cuda:0");
  EXPECT_EQ(route({}, "auto", std::vector{kCpu}).device.id, "cpu:0");
}

TEST(Preference, IsFollowedOrFallsBackToTheProcessorWithAWarning) {
  Config config;
  for (const auto& [prefer, id] : {std::pair("cpu", "cpu:0"), {"gpu", "cuda:0"}, {"tpu", "tpu:0"}}) {
    config.prefer = prefer;
    const Decision decision = route(config, "auto", std::vector{kCpu, kGpu, kTpu});
    EXPECT_EQ(decision.device.id, id);
    EXPECT_TRUE(decision.warning.empty());
  }
  const Decision fallback = route(config, "auto", std::vector{kCpu, kGpu});
  EXPECT_EQ(fallback.device.id, "cpu:0");
  EXPECT_EQ(fallback.warning, "tpu requested but none was found; using cpu:0");
}

TEST(Variables, OfTheLayerAreHonoured) {
  const Config config =
      of_variables({{"COMPUTE_PREFER", "gpu"}, {"COMPUTE_ALLOW_TPU", "false"}, {"COMPUTE_TPU_BATCH_FACTOR", "64"}});
  EXPECT_EQ(config.prefer, "gpu");
  EXPECT_FALSE(config.allow_tpu);
  EXPECT_EQ(batch_config(DeviceKind::tpu, 1, config).batch_size, 64);
  EXPECT_EQ(route(of_variables({{"COMPUTE_ALLOW_TPU", "false"}}), "auto", std::vector{kCpu, kGpu, kTpu}).device.id, "cuda:0");
  EXPECT_EQ(of_variables({}).tpu_batch_factor, 128);
}

TEST(BatchRule, IsOneFourAndAHundredTwentyEightTimes) {
  EXPECT_EQ(batch_config(DeviceKind::cpu, 5), (BatchConfig{5, 10, 1, 2}));
  EXPECT_EQ(batch_config(DeviceKind::gpu, 5), (BatchConfig{20, 160, 1, 2}));
  EXPECT_EQ(batch_config(DeviceKind::tpu, 5), (BatchConfig{512, 2048, 128, 2}));
  EXPECT_EQ(batch_config(DeviceKind::tpu, 1).batch_size, 128);
  EXPECT_EQ(batch_config(DeviceKind::tpu, 2).batch_size, 256);
  EXPECT_EQ(batch_config(DeviceKind::tpu, 3).batch_size, 256);
  EXPECT_EQ(batch_config(DeviceKind::cpu), (BatchConfig{1, 2, 1, 2}));
}

TEST(BatchRule, KeepsWithinTheConfiguredBounds) {
  Config config;
  config.batch_min = 4;
  config.batch_max = 100;
  config.prefetch = 3;
  EXPECT_EQ(batch_config(DeviceKind::cpu, 1, config), (BatchConfig{4, 4, 4, 3}));
  EXPECT_EQ(batch_config(DeviceKind::gpu, 10, config), (BatchConfig{40, 100, 4, 3}));
  EXPECT_EQ(batch_config(DeviceKind::tpu, 10, config), (BatchConfig{64, 100, 64, 3}));
  EXPECT_THROW(batch_config(DeviceKind::cpu, 0), Error);
}

TEST(BatchRule, HugeBasesDoNotOverflow) {
  const BatchConfig batch = batch_config(DeviceKind::tpu, std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(batch.batch_size, 4096);
  EXPECT_EQ(batch.max_batch_size, 4096);
}

TEST(ALargeTensor, GoesToTheProcessorWhereTheDevicesShareIsTooSmall) {
  DeviceInfo gpu = kGpu.device;
  gpu.memory_total_bytes = 1000;
  const std::vector<DeviceInfo> devices{kCpu.device, gpu};
  EXPECT_EQ(placement::device_for_bytes(750, gpu, devices).id, "cuda:0");
  EXPECT_EQ(placement::device_for_bytes(751, gpu, devices).id, "cpu:0");
  Config config;
  config.memory_strategy = MemoryStrategy::aggressive;
  EXPECT_EQ(placement::device_for_bytes(900, gpu, devices, config).id, "cuda:0");
  EXPECT_EQ(placement::device_for_bytes(1e9, kCpu.device, devices).id, "cpu:0");
}

TEST(AllDevices, AreACopyThatChangesNothing) {
  const DeviceManager manager;
  std::vector<DeviceInfo> devices = manager.devices();
  devices[0].id = "changed";
  EXPECT_NE(manager.devices()[0].id, "changed");
}

TEST(Tensors, AreCreatedAndComputedOnTheDeviceThatIsNamed) {
  DeviceManager manager;
  const Graph graph = parse_expression("x", {{"x", DType::f32, {4}}});
  const HostArray tensor = HostArray::from<float>({4}, {1, 2, 3, 4});
  const RunResult moved = manager.run(graph, std::span(&tensor, 1), {.device = "cpu:0"});
  EXPECT_EQ(moved.device->id, "cpu:0");
  EXPECT_EQ(moved.outputs[0].to_doubles(), tensor.to_doubles());
}

TEST(Decisions, CarryWhatAReportNeeds) {
  const DeviceManager manager;
  const Decision decision = manager.explain(parse_expression("1 + 1", {}));
  EXPECT_FALSE(decision.device.id.empty());
  EXPECT_FALSE(decision.reason.empty());
  ASSERT_FALSE(decision.considered.empty());
  EXPECT_EQ(decision.considered[0].candidate.device.id, decision.device.id);
  EXPECT_GT(decision.considered[0].predicted.total(), 0);
}

TEST(DefaultDevice, CanBeSetAndSetBack) {
  DeviceManager manager;
  manager.set_default_device("cpu:0");
  EXPECT_EQ(manager.default_device().id, "cpu:0");
  EXPECT_THROW(manager.set_default_device("toaster:0"), Error);
  manager.set_default_device("auto");
  EXPECT_FALSE(manager.default_device().id.empty());
}

}  // namespace
}  // namespace tenon
