// Programs on several simulated devices: layouts, exchanges and their bytes, errors, leases.
#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "mesh/simulated_mesh.h"
#include "tenon/error.h"
#include "tenon/expression.h"
#include "tenon/manager/placement.h"
#include "tenon/mesh.h"

namespace tenon {
namespace {

HostArray numbers(const Shape& shape, int seed = 1) {
  HostArray array = HostArray::empty(DType::f32, shape);
  std::span<float> values = array.mutable_view<float>();
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>((static_cast<int>(i) * 37 + seed * 11) % 41 - 20) / 8;
  return array;
}

MeshOptions shardings(std::initializer_list<std::pair<const char*, const char*>> list) {
  MeshOptions options;
  for (const auto& [input, sharding] : list) options.inputs[input] = Sharding::parse(sharding);
  return options;
}

void expect_close(const HostArray& got, const HostArray& expected) {
  ASSERT_EQ(got.shape(), expected.shape());
  for (std::int64_t i = 0; i < got.elements(); ++i)
    EXPECT_NEAR(got.value(i), expected.value(i), 1e-5 * (1 + std::abs(expected.value(i)))) << i;
}

TEST(Mesh, IsWrittenAsAxesWithSizes) {
  const Mesh mesh = Mesh::parse("data=2, model=3", std::vector<std::string>{"a", "b", "c", "d", "e", "f"});
  EXPECT_EQ(mesh.text(), "data=2,model=3");
  EXPECT_EQ(mesh.coordinate(4, 0), 1);
  EXPECT_EQ(mesh.coordinate(4, 1), 1);
  EXPECT_EQ(mesh.axis("model"), 1);
  EXPECT_THROW(mesh.axis("rows"), Error);
  EXPECT_THROW(Mesh::parse("data", std::vector<std::string>{"a"}), Error);
  EXPECT_THROW(Mesh::parse("data=0", std::vector<std::string>{}), Error);
  EXPECT_THROW(Mesh::parse("data=2x", std::vector<std::string>{"a", "b"}), Error);
  EXPECT_THROW(Mesh::parse("data=2,data=1", std::vector<std::string>{"a", "b"}), Error);
  EXPECT_THROW(Mesh::parse("data=2", std::vector<std::string>{"a", "a"}), Error);
  EXPECT_THROW(Mesh::parse("data=2", std::vector<std::string>{"a"}), Error);
  EXPECT_EQ(Sharding::parse("data,-,a+b").text(), "data,-,a+b");
  EXPECT_EQ(Sharding::parse("").axes.size(), 0U);
  EXPECT_THROW(Sharding::parse("data,,"), Error);
}

TEST(Mesh, NamesWhatDoesNotFit) {
  SimulatedMesh devices("m=2");
  const Graph graph = parse_expression("x + 1", {{"x", DType::f32, {4, 4}}});
  const auto refused = [&](std::initializer_list<std::pair<const char*, const char*>> list, const char* part) {
    try {
      explain_mesh(graph, devices.mesh, shardings(list));
      ADD_FAILURE() << "not refused: " << part;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  };
  refused({{"y", "m"}}, "no input of that name");
  refused({{"x", "-,-,m"}}, "3 axes");
  refused({{"x", "m,m"}}, "twice");
  refused({{"x", "rows"}}, "no axis rows");
  MeshOptions wrong;
  wrong.speeds = {1};
  EXPECT_THROW(explain_mesh(graph, devices.mesh, wrong), Error);
  EXPECT_THROW(run_on_mesh(devices.manager, graph, {}, devices.mesh), Error);
}

// Two products with an activation between them: columns of the first weight, rows of the second, and one sum at the end.
TEST(Mesh, MlpNeedsOneAllReduce) {
  SimulatedMesh devices("model=4");
  const Graph graph = parse_expression(
      "gelu(x @ w + b) @ v",
      {{"x", DType::f32, {6, 16}}, {"w", DType::f32, {16, 32}}, {"b", DType::f32, {32}}, {"v", DType::f32, {32, 16}}});
  const MeshOptions options = shardings({{"w", "-,model"}, {"b", "model"}, {"v", "model,-"}});
  const MeshPlan plan = explain_mesh(graph, devices.mesh, options);
  ASSERT_EQ(plan.collectives.size(), 1U) << plan.text();
  EXPECT_EQ(plan.collectives[0].kind, Collective::Kind::all_reduce);
  constexpr std::uint64_t kResult = 6 * 16 * 4;
  EXPECT_EQ(plan.bytes(), 2 * kResult * 3) << "each of 4 devices sends 2n(k-1)/k bytes";
  const std::vector<HostArray> inputs{numbers({6, 16}), numbers({16, 32}, 2), numbers({32}, 3), numbers({32, 16}, 4)};
  const MeshResult result = run_on_mesh(devices.manager, graph, inputs, devices.mesh, options);
  ASSERT_EQ(result.collectives.size(), 1U);
  EXPECT_EQ(result.collectives[0].bytes, plan.bytes()) << "counted as they were exchanged";
  expect_close(result.outputs[0], devices.manager.run(graph, inputs, {.device = "cpu"}).outputs[0]);
  EXPECT_EQ(result.devices.size(), 4U);
  EXPECT_FALSE(result.timelines[3].empty());
}

TEST(Mesh, DataParallelWorkMovesNothing) {
  SimulatedMesh devices("data=4");
  const Graph graph = parse_expression("softmax(relu(x @ w), axis=-1)", {{"x", DType::f32, {10, 8}}, {"w", DType::f32, {8, 5}}});
  const MeshOptions options = shardings({{"x", "data,-"}});
  EXPECT_EQ(explain_mesh(graph, devices.mesh, options).bytes(), 0U);
  const std::vector<HostArray> inputs{numbers({10, 8}), numbers({8, 5}, 2)};
  const MeshResult result = run_on_mesh(devices.manager, graph, inputs, devices.mesh, options);
  expect_close(result.outputs[0], devices.manager.run(graph, inputs, {.device = "cpu"}).outputs[0]);
}

TEST(Mesh, ABatchIsDistributedAndTheModelReplicated) {
  SimulatedMesh devices("data=3");
  const Graph graph = parse_expression("relu(x @ w), sum(x)", {{"x", DType::f32, {10, 8}}, {"w", DType::f32, {8, 5}}});
  const std::vector<HostArray> inputs{numbers({10, 8}), numbers({8, 5}, 2)};
  const std::vector<DeviceInfo> targets = placement::distribution_targets(SimulatedMesh::simulated_of(devices.manager));
  const std::vector<std::string> batched{"x"};
  const MeshResult result = run_data_parallel(devices.manager, graph, inputs, targets, batched);
  const std::vector<HostArray> expected = devices.manager.run(graph, inputs, {.device = "cpu"}).outputs;
  for (std::size_t i = 0; i < expected.size(); ++i) expect_close(result.outputs[i], expected[i]);
  EXPECT_EQ(result.devices.size(), 3U);
  ASSERT_EQ(result.collectives.size(), 1U) << "the sum alone goes over devices";
  EXPECT_THROW(run_data_parallel(devices.manager, graph, inputs, {}, batched), Error);
}

TEST(Mesh, RowsOfAnEmbeddingMayLieOnSeveralDevices) {
  SimulatedMesh devices("model=4");
  const Graph graph = parse_expression("take(table, ids, axis=0)", {{"table", DType::f32, {10, 3}}, {"ids", DType::i64, {5}}});
  const MeshOptions options = shardings({{"table", "model,-"}});
  const MeshPlan plan = explain_mesh(graph, devices.mesh, options);
  ASSERT_EQ(plan.collectives.size(), 1U) << plan.text();
  EXPECT_EQ(plan.collectives[0].kind, Collective::Kind::all_reduce) << "the result, not the table";
  std::vector<HostArray> inputs{numbers({10, 3}), HostArray::from<std::int64_t>({5}, {9, 0, -1, 4, -10})};
  EXPECT_EQ(run_on_mesh(devices.manager, graph, inputs, devices.mesh, options).outputs[0].to_doubles(),
            devices.manager.run(graph, inputs, {.device = "cpu"}).outputs[0].to_doubles());
  inputs[1] = HostArray::from<std::int64_t>({5}, {9, 0, 10, 4, -10});
  EXPECT_THROW(run_on_mesh(devices.manager, graph, inputs, devices.mesh, options), Error) << "an index that no device has";
}

TEST(Mesh, AttentionSplitsItsHeads) {
  SimulatedMesh devices("data=2,model=2");
  const Graph graph =
      parse_expression("softmax(q @ permute(k, [0, 1, 3, 2]) / 4, axis=-1) @ v",
                       {{"q", DType::f32, {2, 4, 6, 8}}, {"k", DType::f32, {2, 4, 6, 8}}, {"v", DType::f32, {2, 4, 6, 8}}});
  const MeshOptions options = shardings({{"q", "data,model"}, {"k", "data,model"}, {"v", "data,model"}});
  EXPECT_EQ(explain_mesh(graph, devices.mesh, options).bytes(), 0U);
}

TEST(Mesh, SumsOverASplitAxisStayPartialThroughLinearSteps) {
  SimulatedMesh devices("m=2");
  const Graph graph = parse_expression("relu((-(x @ w) * 2).T)", {{"x", DType::f32, {4, 8}}, {"w", DType::f32, {8, 6}}});
  const MeshPlan plan = explain_mesh(graph, devices.mesh, shardings({{"x", "-,m"}, {"w", "m,-"}}));
  ASSERT_EQ(plan.collectives.size(), 1U) << plan.text();
  EXPECT_EQ(plan.collectives[0].to, "[-, -]");
}

TEST(Mesh, SmallAxesAreNotSplit) {
  SimulatedMesh devices("m=4");
  const Graph graph = parse_expression("x * 2", {{"x", DType::f32, {3, 4}}});
  const MeshPlan plan = explain_mesh(graph, devices.mesh, shardings({{"x", "m,-"}}));
  ASSERT_EQ(plan.notes.size(), 1U);
  EXPECT_EQ(plan.outputs[0], "[-, -]");
}

TEST(Mesh, FasterDevicesGetLargerParts) {
  SimulatedMesh devices("data=2");
  const Graph graph = parse_expression("x * 2", {{"x", DType::f32, {8, 2}}});
  MeshOptions options = shardings({{"x", "data,-"}});
  options.speeds = {3, 1};
  const std::vector<HostArray> inputs{numbers({8, 2})};
  EXPECT_EQ(run_on_mesh(devices.manager, graph, inputs, devices.mesh, options).outputs[0].to_doubles(),
            devices.manager.run(graph, inputs, {.device = "cpu"}).outputs[0].to_doubles());
}

TEST(Mesh, SpeedsAreEqualUntilEveryDeviceWasMeasured) {
  SimulatedMesh devices("data=2");
  const Graph graph = parse_expression("x @ x", {{"x", DType::f32, {64, 64}}});
  const std::vector<HostArray> inputs{numbers({64, 64})};
  EXPECT_EQ(measured_speeds(devices.manager, graph, devices.mesh), (std::vector<double>{1, 1}));
  for (const std::string& id : devices.mesh.devices())
    for (int i = 0; i < 3; ++i) devices.manager.run(graph, inputs, {.device = id});
  const std::vector<double> speeds = measured_speeds(devices.manager, graph, devices.mesh);
  ASSERT_EQ(speeds.size(), 2U);
  for (const double speed : speeds) EXPECT_GT(speed, 1) << "products per second";
}

// A program that is too large for one device was never measured as a whole.
TEST(Mesh, SpeedsFollowFromRunsWithEqualShares) {
  SimulatedMesh devices("data=2", "virtual=false,open=0,close=0,compute=50ms");
  const Graph graph = parse_expression("x @ w", {{"x", DType::f32, {256, 256}}, {"w", DType::f32, {256, 256}}});
  const std::vector<HostArray> inputs{numbers({256, 256}), numbers({256, 256})};
  MeshOptions options = shardings({{"x", "data,-"}});
  EXPECT_EQ(measured_speeds(devices.manager, graph, devices.mesh, options), (std::vector<double>{1, 1}));
  for (int i = 0; i < 3; ++i) run_on_mesh(devices.manager, graph, inputs, devices.mesh, options);
  options.speeds = measured_speeds(devices.manager, graph, devices.mesh, options);
  ASSERT_EQ(options.speeds.size(), 2U);
  EXPECT_GT(options.speeds[0], options.speeds[1]) << "the second device takes 50 ms for anything";
  const MeshPlan plan = explain_mesh(graph, devices.mesh, options);
  ASSERT_EQ(plan.shares.size(), 2U);
  EXPECT_NE(plan.text().find("shares of the devices"), std::string::npos) << plan.text();
}

TEST(Mesh, SpeedsAreWrittenAsNumbers) {
  EXPECT_EQ(parse_speeds("4,1"), (std::vector<double>{4, 1}));
  EXPECT_EQ(parse_speeds("0.5"), (std::vector<double>{0.5}));
  for (const char* wrong : {"", "1,", ",1", "1;2", "-1,2", "0,1", "fast", "nan"})
    EXPECT_THROW(parse_speeds(wrong), Error) << wrong;
}

TEST(Mesh, ADeviceWithTwoDriversIsTakenOnce) {
  std::vector<DeviceInfo> devices(3);
  devices[0].id = "cpu:0";
  devices[1].id = "opencl:0";
  devices[1].same_as = "cpu:0";
  devices[2].id = "cuda:0";
  devices[2].kind = DeviceKind::gpu;
  EXPECT_EQ(Mesh::parse("m=2", devices).devices(), (std::vector<std::string>{"cuda:0", "cpu:0"}));
  EXPECT_THROW(Mesh::parse("m=3", devices), Error);
}

TEST(Mesh, ALostDeviceEndsTheRunAndEveryLease) {
  SimulatedMesh devices("m=2", "script=lost_mid_run:run");
  const Graph graph = parse_expression("sum(x @ w, axis=1) ** 2", {{"x", DType::f32, {4, 8}}, {"w", DType::f32, {8, 6}}});
  const MeshOptions options = shardings({{"x", "-,m"}, {"w", "m,-"}});
  const std::vector<HostArray> inputs{numbers({4, 8}), numbers({8, 6})};
  try {
    run_on_mesh(devices.manager, graph, inputs, devices.mesh, options);
    ADD_FAILURE() << "the device was not lost";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unavailable) << error.what();
    EXPECT_NE(std::string(error.what()).find("sim:"), std::string::npos) << error.what();
  }
  for (const std::string& id : devices.mesh.devices())
    EXPECT_NO_THROW(devices.manager.lease({.device = id, .timeout = std::chrono::nanoseconds(0)}));
}

// Meshes over the same devices in opposite order, from several threads: leases are taken in one order, so all end.
TEST(Mesh, OverlappingMeshesDoNotBlockEachOther) {
  SimulatedMesh devices("m=3");
  const Graph graph = parse_expression("sum(x)", {{"x", DType::f32, {12}}});
  const std::vector<HostArray> inputs{numbers({12})};
  const double expected = devices.manager.run(graph, inputs, {.device = "cpu"}).outputs[0].value(0);
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::vector<std::string> ids = devices.mesh.devices();
      for (int i = 0; i < 20; ++i) {
        std::next_permutation(ids.begin(), ids.end());
        const std::vector<std::string> some(ids.begin(), ids.begin() + 2 + (t + i) % 2);
        const Mesh mesh({{"m", static_cast<int>(some.size())}}, some);
        EXPECT_NEAR(run_on_mesh(devices.manager, graph, inputs, mesh, shardings({{"x", "m"}})).outputs[0].value(0), expected,
                    1e-3);
      }
    });
}

TEST(Mesh, CanBeCancelled) {
  SimulatedMesh devices("m=2");
  std::stop_source stop;
  stop.request_stop();
  MeshOptions options = shardings({{"x", "m"}});
  options.run.cancel = stop.get_token();
  const Graph graph = parse_expression("sum(x)", {{"x", DType::f32, {12}}});
  EXPECT_THROW(run_on_mesh(devices.manager, graph, std::vector<HostArray>{numbers({12})}, devices.mesh, options), Error);
}

}  // namespace
}  // namespace tenon
