// What users of Python device managers expect, item by item: capabilities, lists of devices, distribution, batch sizes,
// configuration. Machines are made up.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <type_traits>

#include "base/log.h"
#include "manager/config/settings.h"
#include "tenon/error.h"
#include "tenon/manager.h"
#include "tenon/manager/batch.h"
#include "tenon/manager/placement.h"
#include "tenon/manager/prefetch.h"

namespace tenon {
namespace {

using namespace placement;

DeviceInfo device(std::string id, DeviceKind kind, std::string model = "model") {
  DeviceInfo info;
  info.id = std::move(id);
  info.kind = kind;
  info.name = std::move(model);
  info.backends = {"made_up"};
  return info;
}

DeviceInfo gpu(int index) {
  DeviceInfo info = device("cuda:" + std::to_string(index), DeviceKind::gpu, "NVIDIA H100");
  info.memory_total_bytes = std::uint64_t{80} << 30;
  info.compute_capability = "9.0";
  info.runtime_version = "CUDA 12.4";
  info.driver_version = "550.54";
  return info;
}

const DeviceInfo kCpu = device("cpu:0", DeviceKind::cpu, "Processor");
const DeviceInfo kTpu = device("tpu:0", DeviceKind::tpu, "TPU v4");

std::vector<std::string> ids(const std::vector<DeviceInfo>& devices) {
  std::vector<std::string> all;
  for (const DeviceInfo& one : devices) all.push_back(one.id);
  return all;
}

std::vector<std::int64_t> sizes(const std::vector<Shard>& shards) {
  std::vector<std::int64_t> all;
  for (const Shard& shard : shards) all.push_back(shard.end - shard.begin);
  return all;
}

std::vector<DeviceInfo> gpus(int count) {
  std::vector<DeviceInfo> all;
  for (int i = 0; i < count; ++i) all.push_back(gpu(i));
  return all;
}

template <class Work>
std::string refusal(Work&& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// --- Capabilities ---
TEST(CapabilitiesOfAMachine, HaveTheDocumentedDefaults) {
  const Capabilities none;
  EXPECT_EQ(none.device_type, DeviceKind::cpu);
  EXPECT_EQ(none.device_count, 0u);
  EXPECT_EQ(none.default_backend, std::nullopt);
  EXPECT_TRUE(none.visible_devices.empty());
  EXPECT_EQ(none.total_memory_mb, std::nullopt);
  EXPECT_EQ(none.compute_capability, std::nullopt);
  EXPECT_EQ(none.cuda_version, std::nullopt);
  EXPECT_EQ(none.driver_version, std::nullopt);
  EXPECT_FALSE(none.supports_mixed_precision);
  EXPECT_FALSE(none.supports_distributed);
  EXPECT_EQ(none.error, std::nullopt);
}

TEST(CapabilitiesOfAMachine, AreReadFromTheFirstDeviceOfThePrimaryKind) {
  const Capabilities known = capabilities_of(std::vector{kCpu, gpu(0), gpu(1)});
  EXPECT_EQ(known.device_type, DeviceKind::gpu);
  EXPECT_EQ(known.device_count, 2u);
  EXPECT_EQ(known.default_backend, "made_up");
  EXPECT_EQ(known.total_memory_mb, 80u * 1024);
  EXPECT_EQ(known.compute_capability, "9.0");
  EXPECT_EQ(known.cuda_version, "12.4");
  EXPECT_EQ(known.driver_version, "550.54");
  EXPECT_TRUE(known.supports_mixed_precision);
  EXPECT_TRUE(known.supports_distributed);
  EXPECT_EQ(known.visible_devices,
            (std::vector<std::string>{"cpu:Processor (cpu:0)", "gpu:NVIDIA H100 (cuda:0)", "gpu:NVIDIA H100 (cuda:1)"}));
}

TEST(CapabilitiesOfAMachine, OneDeviceIsNotDistributedAndAProcessorNotMixed) {
  EXPECT_FALSE(capabilities_of(std::vector{kCpu, gpu(0)}).supports_distributed);
  EXPECT_TRUE(capabilities_of(std::vector{kCpu, kTpu}).supports_mixed_precision);
  const Capabilities plain = capabilities_of(std::vector{kCpu});
  EXPECT_EQ(plain.device_type, DeviceKind::cpu);
  EXPECT_FALSE(plain.supports_mixed_precision);
}

TEST(CapabilitiesOfAMachine, AreAValueThatNobodyElseCanChange) {
  const std::vector<DeviceInfo> devices{kCpu, gpu(0)};
  const Capabilities first = capabilities_of(devices);
  Capabilities copy = first;
  copy.device_count = 99;
  EXPECT_EQ(first.device_count, 1u);
  EXPECT_EQ(capabilities_of(devices), first);
}

TEST(CapabilitiesOfAMachine, AFailingRuntimeIsATextAndNotAnException) {
  const Capabilities failed = collect_capabilities([]() -> std::vector<DeviceInfo> { throw std::runtime_error("no runtime"); });
  EXPECT_EQ(failed.device_type, DeviceKind::cpu);
  EXPECT_EQ(failed.device_count, 0u);
  EXPECT_EQ(failed.error, "no runtime");
  EXPECT_EQ(collect_capabilities([]() -> std::vector<DeviceInfo> { throw 7; }).device_count, 0u);
  EXPECT_EQ(collect_capabilities([] { return std::vector{kCpu}; }).error, std::nullopt);
}

TEST(CapabilitiesOfAMachine, ThePrimaryKindIsGpuThenTpuThenCpu) {
  EXPECT_EQ(primary_kind(std::vector{kTpu, gpu(0), kCpu}), DeviceKind::gpu);
  EXPECT_EQ(primary_kind(std::vector{kCpu, kTpu}), DeviceKind::tpu);
  EXPECT_EQ(primary_kind(std::vector{kCpu}), DeviceKind::cpu);
  EXPECT_EQ(primary_kind({}), DeviceKind::cpu);
}

// --- Lists ---
TEST(ListsOfDevices, AreByKindAndCounted) {
  const std::vector<DeviceInfo> all{kCpu, gpu(0), kTpu, gpu(1)};
  EXPECT_EQ(ids(visible_devices(all)), ids(all));
  EXPECT_EQ(ids(gpu_devices(all)), (std::vector<std::string>{"cuda:0", "cuda:1"}));
  EXPECT_EQ(ids(cpu_devices(all)), (std::vector<std::string>{"cpu:0"}));
  EXPECT_EQ(ids(tpu_devices(all)), (std::vector<std::string>{"tpu:0"}));
  EXPECT_TRUE(has_gpu(all));
  EXPECT_FALSE(has_gpu(std::vector{kCpu, kTpu}));
  EXPECT_EQ(device_count(all), 4u);
  EXPECT_EQ(gpu_count(all), 2u);
}

TEST(ListsOfDevices, LeaveOutWhatCannotBeUsed) {
  DeviceInfo broken = gpu(0);
  broken.available = false;
  EXPECT_FALSE(has_gpu(std::vector{kCpu, broken}));
  EXPECT_EQ(device_count(std::vector{kCpu, broken}), 1u);
}

TEST(ListsOfDevices, LabelsSayPlatformModelAndId) { EXPECT_EQ(label(gpu(3)), "gpu:NVIDIA H100 (cuda:3)"); }

TEST(ListsOfDevices, TheDefaultIsTheFirstGpuElseTheFirst) {
  EXPECT_EQ(default_device(std::vector{kCpu, kTpu, gpu(0), gpu(1)}).id, "cuda:0");
  EXPECT_EQ(default_device(std::vector{kTpu, kCpu}).id, "tpu:0");
  EXPECT_NE(refusal([] { default_device({}); }).find("No devices are visible"), std::string::npos);
}

TEST(ListsOfDevices, TheSummaryHasEveryPart) {
  const DeviceSummary summary = summarize(std::vector{kCpu, gpu(0), kTpu});
  EXPECT_EQ(summary.backend, "made_up");
  EXPECT_EQ(summary.capabilities.device_type, DeviceKind::gpu);
  EXPECT_EQ(summary.devices.size(), 3u);
  EXPECT_EQ(summary.gpu_devices.size(), 1u);
  EXPECT_EQ(summary.cpu_devices.size(), 1u);
  EXPECT_EQ(summary.tpu_devices.size(), 1u);
  EXPECT_EQ(summary.default_device, "gpu:NVIDIA H100 (cuda:0)");
  EXPECT_EQ(summarize({}).default_device, std::nullopt);
}

// --- Distribution ---
TEST(Distribution, TheRemainderGoesToTheLastShard) {
  EXPECT_EQ(sizes(distribute_rows(10, gpus(4))), (std::vector<std::int64_t>{2, 2, 2, 4}));
  EXPECT_EQ(sizes(distribute_rows(8, gpus(4))), (std::vector<std::int64_t>{2, 2, 2, 2}));
}

TEST(Distribution, OrIsBalanced) {
  EXPECT_EQ(sizes(distribute_rows(10, gpus(4), Remainder::balanced)), (std::vector<std::int64_t>{3, 3, 2, 2}));
  EXPECT_EQ(sizes(distribute_rows(3, gpus(4), Remainder::balanced)), (std::vector<std::int64_t>{1, 1, 1, 0}));
}

TEST(Distribution, FewerRowsThanDevicesGiveEmptyShards) {
  EXPECT_EQ(sizes(distribute_rows(3, gpus(4))), (std::vector<std::int64_t>{0, 0, 0, 3}));
  EXPECT_EQ(sizes(distribute_rows(0, gpus(2))), (std::vector<std::int64_t>{0, 0}));
}

TEST(Distribution, OneTargetGetsOneShard) { EXPECT_EQ(distribute_rows(10, gpus(1)), (std::vector<Shard>{{"cuda:0", 0, 10}})); }

TEST(Distribution, NoTargetIsAnError) {
  EXPECT_NE(refusal([] { distribute_rows(10, {}); }).find("No devices are visible"), std::string::npos);
  EXPECT_NE(refusal([] { replicate(HostArray(), {}); }).find("No devices are visible"), std::string::npos);
}

TEST(Distribution, TargetsAreTheGpusElseAll) {
  EXPECT_EQ(ids(distribution_targets(std::vector{kCpu, gpu(0), gpu(1)})), (std::vector<std::string>{"cuda:0", "cuda:1"}));
  EXPECT_EQ(ids(distribution_targets(std::vector{kCpu, kTpu})), (std::vector<std::string>{"cpu:0", "tpu:0"}));
}

TEST(Distribution, DataIsCutByRowsWithoutCopyingAndJoinedAgain) {
  std::vector<float> values(30);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const HostArray batch = HostArray::from<float>({10, 3}, values);
  const std::vector<Placed> shards = distribute_data(batch, gpus(4));
  ASSERT_EQ(shards.size(), 4u);
  EXPECT_EQ(shards[3].device, "cuda:3");
  EXPECT_EQ(shards[3].array.shape(), (Shape{4, 3}));
  EXPECT_EQ(shards[1].array.view<float>()[0], 6);
  EXPECT_EQ(shards[1].array.data(), batch.data() + 6 * sizeof(float));
  EXPECT_EQ(gather_data(shards).to_doubles(), batch.to_doubles());
}

TEST(Distribution, BlockFormatsAreCutToo) {
  std::vector<float> values(40 * 32);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 7);
  const HostArray batch = HostArray::from<float>({40, 32}, values).cast(DType::bfloat8_b);
  const std::vector<Placed> shards = distribute_data(batch, gpus(3));
  EXPECT_EQ(shards[2].array.shape(), (Shape{14, 32}));
  EXPECT_EQ(gather_data(shards).to_doubles(), batch.to_doubles());
}

TEST(Distribution, ReplicasAreTheWholeForEach) {
  const HostArray array = HostArray::full(DType::f32, {5}, 2);
  const std::vector<Placed> copies = replicate(array, gpus(3));
  ASSERT_EQ(copies.size(), 3u);
  EXPECT_EQ(copies[2].device, "cuda:2");
  EXPECT_EQ(copies[2].array.data(), array.data());
}

TEST(Distribution, ShardsThatDoNotFitAreNotJoined) {
  const std::vector<Placed> odd{{"a", HostArray::zeros(DType::f32, {2, 3})}, {"b", HostArray::zeros(DType::f32, {2, 4})}};
  EXPECT_THROW(gather_data(odd), Error);
  EXPECT_THROW(gather_data({}), Error);
  EXPECT_THROW(distribute_data(HostArray::full(DType::f32, {}, 1), gpus(2)), Error);
  EXPECT_THROW(rows(HostArray::zeros(DType::f32, {2}), 1, 3), Error);
}

// --- Prefetch ---
TEST(Prefetching, GivesEveryValueInOrderAndEnds) {
  int next = 0;
  Prefetch<int> ahead([&]() -> std::optional<int> { return next < 5 ? std::optional(next++) : std::nullopt; });
  for (int i = 0; i < 5; ++i) EXPECT_EQ(ahead.take(), i);
  EXPECT_EQ(ahead.take(), std::nullopt);
  EXPECT_EQ(ahead.take(), std::nullopt);
}

TEST(Prefetching, PreparesNoMoreThanTheBuffer) {
  std::atomic<int> made = 0;
  Prefetch<int> ahead([&]() -> std::optional<int> { return ++made; }, 2);
  EXPECT_EQ(ahead.take(), 1);
  EXPECT_EQ(ahead.take(), 2);
  // Two wait at most, and one is being made.
  EXPECT_LE(made.load(), 5);
}

TEST(Prefetching, AnErrorComesAfterTheValuesBeforeIt) {
  int next = 0;
  Prefetch<int> ahead([&]() -> std::optional<int> {
    if (next == 2) throw std::runtime_error("bad file");
    return next++;
  });
  EXPECT_EQ(ahead.take(), 0);
  EXPECT_EQ(ahead.take(), 1);
  EXPECT_THROW(ahead.take(), std::runtime_error);
  EXPECT_EQ(ahead.take(), std::nullopt);
}

TEST(Prefetching, MayBeDroppedInTheMiddle) {
  Prefetch<int> ahead([]() -> std::optional<int> { return 1; });
  EXPECT_EQ(ahead.take(), 1);
}

// --- Managers ---
TEST(FreshManagers, AreIndependentOfEachOtherAndOfTheProcess) {
  Config config;
  config.prefetch = 7;
  const DeviceManager one(config), other;
  EXPECT_EQ(one.config().prefetch, 7);
  EXPECT_EQ(other.config().prefetch, 2);
}

TEST(FreshManagers, SetNoVariablesUnlessToldTo) {
  unsetenv("XLA_PYTHON_CLIENT_PREALLOCATE");
  {
    const DeviceManager manager;
  }
  EXPECT_EQ(getenv("XLA_PYTHON_CLIENT_PREALLOCATE"), nullptr);
  {
    const DeviceManager manager(configure_for_generative_models());
  }
  EXPECT_STREQ(getenv("XLA_PYTHON_CLIENT_PREALLOCATE"), "false");
  unsetenv("XLA_PYTHON_CLIENT_PREALLOCATE");
  unsetenv("XLA_PYTHON_CLIENT_MEM_FRACTION");
}

TEST(TheProcessManager, IsOneUntilItIsConfiguredAnew) {
  DeviceManager& first = process_manager();
  EXPECT_EQ(&process_manager(), &first);
  set_process_config(first.config());
  EXPECT_EQ(&process_manager(), &first);
  Config config = first.config();
  config.prefetch += 5;
  set_process_config(config);
  EXPECT_NE(&process_manager(), &first);
  EXPECT_EQ(process_manager().config().prefetch, config.prefetch);
  EXPECT_NO_THROW(first.devices());
}

TEST(FreshManagers, FindDevicesOfADetectorOfOnesOwn) {
  struct MadeUp final : Detector {
    std::string_view name() const noexcept override { return "made_up"; }
    Detection detect(const SystemRoot&) const override {
      DeviceInfo found = device("made_up:0", DeviceKind::gpu, "Made up");
      found.backends.clear();
      return {.devices = {found}};
    }
  };
  DeviceManager manager;
  manager.add_detector(std::make_unique<MadeUp>());
  const std::vector<DeviceInfo> found = manager.devices();
  EXPECT_TRUE(std::any_of(found.begin(), found.end(), [](const DeviceInfo& one) { return one.id == "made_up:0"; }));
}

TEST(FreshManagers, WarnWhenThePreferredKindIsNotThere) {
  Config config;
  config.prefer = "tpu";
  const DeviceManager manager(config);
  if (!tpu_devices(manager.devices()).empty()) GTEST_SKIP() << "this machine has a TPU";
  logging::Capture lines;
  EXPECT_EQ(manager.default_device().kind, DeviceKind::cpu);
  ASSERT_EQ(lines.messages().size(), 1u);
  EXPECT_NE(lines.messages()[0].find("tpu requested but"), std::string::npos) << lines.messages()[0];
}

// --- Batches ---
TEST(RecommendedBatchSize, FollowsParametersAndGpu) {
  EXPECT_EQ(recommended_batch_size(1e5, true), 64);
  EXPECT_EQ(recommended_batch_size(2e8, true), 16);
  EXPECT_EQ(recommended_batch_size(1e6, false, 64), 16);
  EXPECT_EQ(recommended_batch_size(1e7, true), 32);
  EXPECT_EQ(recommended_batch_size(1e7, false), 8);
  EXPECT_EQ(recommended_batch_size(1e9, false, 1), 1);
}

TEST(HardwareTable, IsAsDocumented) {
  using H = HardwareType;
  EXPECT_EQ(batch_recommendation(H::tpu_v5e), (BatchSizeRecommendation{64, 256, 240}));
  EXPECT_EQ(batch_recommendation(H::tpu_v5p), (BatchSizeRecommendation{128, 512, 480}));
  EXPECT_EQ(batch_recommendation(H::tpu_v4), (BatchSizeRecommendation{64, 256, 192}));
  EXPECT_EQ(batch_recommendation(H::h100), (BatchSizeRecommendation{64, 320, 298}));
  EXPECT_EQ(batch_recommendation(H::a100), (BatchSizeRecommendation{32, 256, 240}));
  EXPECT_EQ(batch_recommendation(H::v100), (BatchSizeRecommendation{16, 128, 96}));
  EXPECT_EQ(batch_recommendation(H::cpu), (BatchSizeRecommendation{1, 32, 16}));
  EXPECT_EQ(batch_recommendation(H::unknown), (BatchSizeRecommendation{32, 128, 64}));
}

TEST(HardwareTable, DevicesAreRecognised) {
  const auto type = [](DeviceKind kind, std::string model) { return hardware_type(device("x:0", kind, std::move(model))); };
  EXPECT_EQ(type(DeviceKind::gpu, "NVIDIA H100 80GB HBM3"), HardwareType::h100);
  EXPECT_EQ(type(DeviceKind::gpu, "NVIDIA H200"), HardwareType::h100);
  EXPECT_EQ(type(DeviceKind::gpu, "NVIDIA A100-SXM4-40GB"), HardwareType::a100);
  EXPECT_EQ(type(DeviceKind::gpu, "Tesla V100"), HardwareType::v100);
  EXPECT_EQ(type(DeviceKind::gpu, "Some other card"), HardwareType::unknown);
  EXPECT_EQ(type(DeviceKind::tpu, "TPU v5e"), HardwareType::tpu_v5e);
  EXPECT_EQ(type(DeviceKind::tpu, "TPU v5 lite"), HardwareType::tpu_v5e);
  EXPECT_EQ(type(DeviceKind::tpu, "TPU v5p"), HardwareType::tpu_v5p);
  EXPECT_EQ(type(DeviceKind::tpu, "TPU v4"), HardwareType::tpu_v4);
  EXPECT_EQ(type(DeviceKind::cpu, "Xeon"), HardwareType::cpu);
  EXPECT_EQ(type(DeviceKind::tenstorrent, "n300"), HardwareType::unknown);
}

TEST(HardwareTable, ABatchIsValidatedWithAMessage) {
  const BatchVerdict small = validate_batch_size(32, HardwareType::h100);
  EXPECT_FALSE(small.ok);
  EXPECT_EQ(small.message, "a batch of 32 is below the minimum of 64 for H100; use 320");
  const BatchVerdict fair = validate_batch_size(128, HardwareType::h100);
  EXPECT_TRUE(fair.ok);
  EXPECT_NE(fair.message.find("needs at least 298"), std::string::npos);
  const BatchVerdict good = validate_batch_size(320, HardwareType::h100);
  EXPECT_TRUE(good.ok);
  EXPECT_EQ(good.message, "a batch of 320 keeps H100 busy");
  EXPECT_TRUE(validate_batch_size(1, HardwareType::cpu).ok);
  EXPECT_FALSE(validate_batch_size(0, HardwareType::cpu).ok);
}

// --- Configuration ---
TEST(OlderConfiguration, MemoryStrategiesAreFractions) {
  for (const auto& [strategy, fraction] : {std::pair(MemoryStrategy::conservative, 0.6),
                                           {MemoryStrategy::balanced, 0.75},
                                           {MemoryStrategy::aggressive, 0.9},
                                           {MemoryStrategy::custom, 0.75}}) {
    Config config;
    config.memory_strategy = strategy;
    EXPECT_EQ(config.budget_fraction(), fraction) << name(strategy);
  }
}

TEST(OlderConfiguration, AFractionOutsideATenthToOneIsAnError) {
  for (const double fraction : {0.05, 1.5}) {
    Config config;
    config.memory_strategy = MemoryStrategy::custom;
    config.memory_fraction = fraction;
    EXPECT_THROW(DeviceManager{config}, Error) << fraction;
  }
}

TEST(OlderConfiguration, TheModelsSizeChoosesTheStrategy) {
  EXPECT_EQ(optimize_for_model_size({}, 999'999).memory_strategy, MemoryStrategy::conservative);
  EXPECT_EQ(optimize_for_model_size({}, 1e6).memory_strategy, MemoryStrategy::balanced);
  EXPECT_EQ(optimize_for_model_size({}, 99'999'999).memory_strategy, MemoryStrategy::balanced);
  EXPECT_EQ(optimize_for_model_size({}, 1e8).memory_strategy, MemoryStrategy::aggressive);
  EXPECT_EQ(optimize_for_model_size({}, 150e6).memory_strategy, MemoryStrategy::aggressive);
  EXPECT_THROW(optimize_for_model_size({}, -1), Error);
  Config base;
  base.prefetch = 9;
  EXPECT_EQ(optimize_for_model_size(base, 1).prefetch, 9);
}

TEST(OlderConfiguration, GenerativeModelsGetMixedPrecisionAndNoPreallocation) {
  const Config config = configure_for_generative_models();
  EXPECT_EQ(config.memory_strategy, MemoryStrategy::balanced);
  EXPECT_FALSE(config.enable_x64);
  EXPECT_TRUE(config.enable_jit);
  EXPECT_EQ(config.environment.at("XLA_PYTHON_CLIENT_PREALLOCATE"), "false");
  EXPECT_EQ(config.environment.at("XLA_PYTHON_CLIENT_MEM_FRACTION"), "0.75");
  EXPECT_TRUE(configure_for_generative_models({}, MemoryStrategy::aggressive, false).enable_x64);
  Config base;
  base.environment["XLA_PYTHON_CLIENT_PREALLOCATE"] = "true";
  EXPECT_EQ(configure_for_generative_models(base).environment.at("XLA_PYTHON_CLIENT_PREALLOCATE"), "true");
}

}  // namespace
}  // namespace tenon
