// The real plugin, in a worker.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "backends/pjrt/backend.h"
#include "backends/pjrt/environment.h"
#include "backends/pjrt/pjrt_testing.h"
#include "reference/reference.h"
#include "temporary_folder.h"
#include "tenon/backend.h"
#include "tenon/error.h"
#include "tenon/ops.h"

namespace tenon::pjrt {
namespace {

class Pjrt : public testing::Test {
 protected:
  void SetUp() override { TENON_NEEDS_PLUGIN(); }
  std::unique_ptr<OpenDevice> open() { return make_backend()->open(plugin_device()); }

  static HostArray run(OpenDevice& device, const Graph& graph, std::span<const HostArray> inputs) {
    const auto program = device.compile(graph);
    std::vector<std::unique_ptr<Buffer>> buffers;
    std::vector<const Buffer*> in;
    for (const HostArray& input : inputs) in.push_back(buffers.emplace_back(device.upload(input)).get());
    const auto y = device.allocate(program->output_types()[0]);
    Buffer* out[] = {y.get()};
    program->run(in, out);
    return device.download(*y);
  }
};

TEST_F(Pjrt, ComputesAFusedExpressionAsTheReferenceDoes) {
  const auto device = open();
  Graph graph;
  const NodeId a = graph.input("a", DType::f32, {4, 5}), b = graph.input("b", DType::f32, {5});
  graph.set_outputs(apply(graph, "softmax", {apply(graph, "mul", {a, b})[0]}, {{"axis", std::int64_t{-1}}}));
  const HostArray inputs[] = {HostArray::full(DType::f32, {4, 5}, 0.5), HostArray::from<float>({5}, {1, 2, 3, 4, 5})};
  const HostArray got = run(*device, graph, inputs), expected = reference_run(graph, inputs)[0];
  for (std::int64_t i = 0; i < got.elements(); ++i) EXPECT_NEAR(got.value(i), expected.value(i), 1e-7);
}

TEST_F(Pjrt, TellsWhatItIs) {
  const auto device = open();
  EXPECT_EQ(device->info().details.at("platform"), "cpu");
  EXPECT_TRUE(device->info().details.contains("flushes subnormals"));
}

TEST_F(Pjrt, RandomNumbersAreThoseOfEveryBackend) {
  const auto device = open();
  for (const DType dtype : {DType::f32, DType::f64}) {
    Graph graph;
    graph.set_outputs({graph.random({3, 7}, dtype, false, 0x123456789abcdef0u)});
    EXPECT_EQ(run(*device, graph, {}).to_doubles(), reference_run(graph, {})[0].to_doubles());
  }
}

TEST_F(Pjrt, BlockFormatsAreConvertedOnTheWay) {
  const auto device = open();
  Graph graph;
  const NodeId x = graph.input("x", DType::bfloat8_b, {2, 40});
  graph.set_outputs({graph.cast(apply(graph, "mul", {x, x})[0], DType::bfloat4_b)});
  std::vector<float> values;
  for (int i = 0; i < 80; ++i) values.push_back(static_cast<float>(i - 40) * 0.37f);
  const HostArray inputs[] = {HostArray::from<float>({2, 40}, std::span<const float>(values)).cast(DType::bfloat8_b)};
  EXPECT_EQ(run(*device, graph, inputs).to_doubles(), reference_run(graph, inputs)[0].to_doubles());
}

TEST_F(Pjrt, AnIndexOutOfRangeIsAnError) {
  const auto device = open();
  Graph graph;
  const NodeId x = graph.input("x", DType::f32, {3}), i = graph.input("i", DType::i64, {2});
  graph.set_outputs({graph.take(x, i, 0)});
  const HostArray good[] = {HostArray::from<float>({3}, {5, 6, 7}), HostArray::from<std::int64_t>({2}, {-1, 0})};
  EXPECT_EQ(run(*device, graph, good).to_doubles(), (std::vector<double>{7, 5}));
  const HostArray bad[] = {good[0], HostArray::from<std::int64_t>({2}, {0, 3})};
  try {
    run(*device, graph, bad);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::out_of_range);
  }
  EXPECT_FALSE(device->is_lost());
}

TEST_F(Pjrt, OneBufferMayBeWrittenAndReadManyTimes) {
  const auto device = open();
  Graph graph;
  const NodeId x = graph.input("x", DType::i32, {2});
  graph.set_outputs(apply(graph, "add", {x, graph.literal(std::int64_t{1})}));
  const auto program = device->compile(graph);
  auto a = device->upload(HostArray::from<std::int32_t>({2}, {0, 10}));
  auto b = device->allocate({DType::i32, {2}});
  for (int i = 0; i < 10; ++i) {
    program->run({a.get()}, {b.get()});
    std::swap(a, b);
  }
  EXPECT_EQ(device->download(*a).to_doubles(), (std::vector<double>{10, 20}));
}

TEST_F(Pjrt, AFlagThePluginDoesNotKnowIsAnErrorNotTheEnd) {
  setenv("XLA_FLAGS", "--xla_no_such_flag=1", 1);
  try {
    open();
    FAIL() << "the plugin ends over an unknown flag";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unavailable);
  }
  unsetenv("XLA_FLAGS");
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST(PjrtBackend, AFileThatIsNoPluginIsUnavailable) {
  for (const std::string& file : {std::string("/nowhere/plugin.so"), std::string("libm.so.6")}) {
    DeviceInfo device = plugin_device();
    device.details["plugin"] = file;
    try {
      make_backend()->open(device);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unavailable);
    }
  }
}

TEST(PjrtBackend, ADeviceWithoutAPluginSaysWhatToDo) {
  DeviceInfo device;
  device.id = "tpu:0";
  device.kind = DeviceKind::tpu;
  try {
    make_backend()->open(device);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unavailable);
    EXPECT_NE(error.hint().find("PJRT_NAMES_AND_LIBRARY_PATHS"), std::string::npos);
  }
}

TEST(PjrtBackend, ListsPluginsForProcessorsWithoutLoadingThem) {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("pjrt_plugin_cpu.so", "no library at all");
  setenv("PJRT_NAMES_AND_LIBRARY_PATHS", ("cpu:" + file).c_str(), 1);
  const std::vector<DeviceInfo> devices = make_backend()->devices();
  unsetenv("PJRT_NAMES_AND_LIBRARY_PATHS");
  ASSERT_FALSE(devices.empty());
  EXPECT_EQ(devices[0].id, "pjrt:0");
  EXPECT_EQ(devices[0].kind, DeviceKind::cpu);
  EXPECT_EQ(devices[0].details.at("plugin"), file);
}

TEST(PjrtBackend, RefusesDoublesWhereThereAreNone) {
  Graph graph;
  const NodeId x = graph.input("x", DType::f64, {2});
  graph.set_outputs(apply(graph, "neg", {x}));
  DeviceInfo card = plugin_device();
  make_backend()->check(card, graph);
  card.kind = DeviceKind::tpu;
  EXPECT_THROW(make_backend()->check(card, graph), Error);
}

TEST(PjrtEnvironment, PinsOneCard) {
  DeviceInfo card;
  card.id = "tenstorrent:1";
  card.kind = DeviceKind::tenstorrent;
  card.pci_address = "0000:41:00.0";
  EXPECT_EQ(pinning_variables(card).at("TT_VISIBLE_DEVICES"), "0000:41:00.0");
  card.pci_address.clear();
  EXPECT_EQ(pinning_variables(card).at("TT_VISIBLE_DEVICES"), "1");
  card = {.id = "tpu:2", .kind = DeviceKind::tpu};
  EXPECT_EQ(pinning_variables(card).at("TPU_VISIBLE_CHIPS"), "2");
  card = {.id = "cuda:0", .kind = DeviceKind::gpu, .vendor = "NVIDIA", .uuid = "GPU-1234"};
  EXPECT_EQ(pinning_variables(card).at("CUDA_VISIBLE_DEVICES"), "GPU-1234");
  EXPECT_TRUE(pinning_variables(plugin_device()).empty());
}

TEST(PjrtEnvironment, FlagsOfTheUserStay) {
  EXPECT_EQ(xla_flags("pjrt_plugin_tt.so", ""), "");
  EXPECT_TRUE(xla_flags("xla_cpu_pjrt.so", "--a=1").starts_with("--a=1 --xla"));
}

}  // namespace
}  // namespace tenon::pjrt
