// Values of a mesh that go from device to device, on devices of the tests that can (grouped_backend.h).
#include "mesh/exchange/device_exchange.h"

#include <gtest/gtest.h>

#include <thread>

#include "eventually.h"
#include "mesh/grouped_backend.h"
#include "mesh/simulated_mesh.h"
#include "tenon/expression.h"

namespace tenon {
namespace {

using namespace std::chrono_literals;
using Kind = GroupCall::Kind;

HostArray numbers(DType dtype, const Shape& shape) {
  HostArray array = HostArray::empty(DType::f32, shape);
  std::span<float> values = array.mutable_view<float>();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(static_cast<int>(i * 37 % 41) - 20) / 64;
  return array.cast(dtype);
}

struct Case {
  std::string name, expression;
  std::vector<NamedType> types;
  std::map<std::string, std::string> shardings = {};
  std::vector<double> speeds = {};

  Graph graph() const { return parse_expression(expression, types); }
  std::vector<HostArray> inputs() const {
    std::vector<HostArray> arrays;
    for (const NamedType& type : types) arrays.push_back(numbers(type.dtype, type.shape));
    return arrays;
  }
  MeshOptions options() const {
    MeshOptions result;
    for (const auto& [input, axes] : shardings) result.inputs[input] = Sharding::parse(axes);
    result.speeds = speeds;
    return result;
  }
};

class DeviceExchanges : public testing::Test {
 protected:
  void make(const std::string& axes) {
    manager.reset();
    Config config;
    config.ledger = false;
    config.keep_open = KeepOpenPolicy::always;
    manager = std::make_unique<DeviceManager>(config);
    const int count = SimulatedMesh::places(axes);
    manager->add_backend(std::make_unique<GroupedBackend>(count, grouping));
    std::vector<std::string> ids;
    for (int i = 0; i < count; ++i) ids.push_back("grp:" + std::to_string(i));
    mesh.emplace(Mesh::parse(axes, ids));
  }
  MeshResult run(const Case& one) {
    const std::vector<HostArray> inputs = one.inputs();
    return run_on_mesh(*manager, one.graph(), inputs, *mesh, one.options());
  }
  // As the same mesh of simulated devices, which exchange through host memory.
  static std::vector<HostArray> through_host(const Case& one, const std::string& axes) {
    SimulatedMesh simulated(axes);
    const std::vector<HostArray> inputs = one.inputs();
    const MeshResult result = run_on_mesh(simulated.manager, one.graph(), inputs, simulated.mesh, one.options());
    for (const Collective& collective : result.collectives) EXPECT_EQ(collective.through, "host memory");
    return result.outputs;
  }
  void expect_as_through_host(const Case& one, const std::string& axes) {
    make(axes);
    const MeshResult result = run(one);
    const std::vector<HostArray> wanted = through_host(one, axes);
    ASSERT_EQ(result.outputs.size(), wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      ASSERT_EQ(result.outputs[i].bytes(), wanted[i].bytes());
      EXPECT_EQ(std::memcmp(result.outputs[i].data(), wanted[i].data(), wanted[i].bytes()), 0) << one.name << " on " << axes;
    }
    for (const Collective& collective : result.collectives) EXPECT_EQ(collective.through, "GRP") << one.name;
    const MeshPlan plan = explain_mesh(one.graph(), *mesh, one.options());
    for (std::size_t i = 0; i < plan.collectives.size(); ++i) EXPECT_EQ(result.collectives[i].bytes, plan.collectives[i].bytes);
  }

  std::shared_ptr<Grouping> grouping = std::make_shared<Grouping>();
  std::unique_ptr<DeviceManager> manager;
  std::optional<Mesh> mesh;
};

// Large enough to be worth a group.
const Case kSum{"sum", "x @ w", {{"x", DType::f32, {512, 1600}}, {"w", DType::f32, {1600, 640}}}, {{"x", "-,m"}, {"w", "m,-"}}};
const Case kColumns{"columns", "cumsum(x, axis=1)", {{"x", DType::f32, {600, 601}}}, {{"x", "-,m"}}};
const Case kOtherAxis{"other axis", "cumsum(cumsum(x, axis=0), axis=1)", {{"x", DType::f32, {600, 603}}}, {{"x", "m,-"}}};
const Case kScattered{"scattered",
                      "(x @ w) * y",
                      {{"x", DType::f32, {600, 1600}}, {"w", DType::f32, {1600, 603}}, {"y", DType::f32, {600, 603}}},
                      {{"x", "-,m"}, {"w", "m,-"}, {"y", "m,-"}}};

TEST_F(DeviceExchanges, GiveTheSameBitsAsThoseThroughHostMemory) {
  Case other_part = kScattered;
  other_part.shardings["y"] = "-,m";
  Case unequal = kScattered;
  for (const std::string axes : {"m=2", "m=3", "m=4"})
    for (const Case& one : {kSum, kColumns, kOtherAxis, kScattered, other_part}) expect_as_through_host(one, axes);
  unequal.speeds = {3, 1};
  expect_as_through_host(unequal, "m=2");
  Case narrow = kSum;
  for (NamedType& type : narrow.types) type.dtype = DType::bf16;
  expect_as_through_host(narrow, "m=2");
}

TEST_F(DeviceExchanges, HaveAGroupForEachLineOfAGrid) {
  const Case grid{"grid",
                  "(x @ w) * y",
                  {{"x", DType::f32, {600, 1600}}, {"w", DType::f32, {1600, 602}}, {"y", DType::f32, {600, 602}}},
                  {{"x", "d,m"}, {"w", "m,-"}, {"y", "d+m,-"}}};
  expect_as_through_host(grid, "d=2,m=2");
  Case both = kSum;
  both.shardings = {{"x", "-,d+m"}, {"w", "d+m,-"}};
  expect_as_through_host(both, "d=2,m=2");
  const Case block{"block", "cumsum(x, axis=0)", {{"x", DType::f32, {601, 602}}}, {{"x", "d,m"}}};
  expect_as_through_host(block, "d=2,m=2");
}

TEST_F(DeviceExchanges, TakeTheCallThatFits) {
  make("m=2");
  run(kSum);
  EXPECT_EQ(grouping->calls[Kind::all_reduce], 2);
  run(kScattered);
  EXPECT_EQ(grouping->calls[Kind::reduce_scatter], 2);
  Case columns = kScattered;
  columns.shardings["y"] = "-,m";
  run(columns);
  EXPECT_EQ(grouping->calls[Kind::reduce], 4) << "parts that are not rows, and not equal";
  const Case rows{"all rows", "cumsum(x, axis=0)", {{"x", DType::f32, {600, 602}}}, {{"x", "m,-"}}};
  run(rows);
  EXPECT_EQ(grouping->calls[Kind::all_gather], 2);
}

TEST_F(DeviceExchanges, ThatWouldLoseNanOrAreSmallGoThroughHostMemory) {
  make("m=2");
  const Case most{"max", "max(x, axis=0)", {{"x", DType::f32, {8, 300000}}}, {{"x", "m,-"}}};
  EXPECT_EQ(run(most).collectives.at(0).through, "host memory");
  EXPECT_EQ(explain_mesh(*manager, most.graph(), *mesh, most.options()).collectives.at(0).through, "host memory");
  const Case small{"small", "sum(x, axis=0)", {{"x", DType::f32, {8, 3}}}, {{"x", "m,-"}}};
  EXPECT_EQ(run(small).collectives.at(0).through, "host memory");
  const MeshPlan plan = explain_mesh(*manager, small.graph(), *mesh, small.options());
  EXPECT_NE(plan.text().find("GRP is not used: less than"), std::string::npos) << plan.text();
  EXPECT_EQ(grouping->joined, 0);
}

TEST_F(DeviceExchanges, AreExplained) {
  make("m=2");
  const std::string text = explain_mesh(*manager, kSum.graph(), *mesh, kSum.options()).text();
  EXPECT_NE(text.find("bytes through GRP\n"), std::string::npos) << text;
  EXPECT_NE(text.find("GRP 1.0 exchanges values between the devices"), std::string::npos) << text;
  grouping->on_make = [](const std::string&) { throw Error(ErrorCode::unavailable, "no library", "install it"); };
  const std::string without = explain_mesh(*manager, kSum.graph(), *mesh, kSum.options()).text();
  EXPECT_NE(without.find("bytes through host memory\n"), std::string::npos) << without;
  EXPECT_NE(without.find("GRP is not used: no library; install it"), std::string::npos) << without;
}

TEST_F(DeviceExchanges, KeepTheirGroupsForTheNextRunUntilADeviceCloses) {
  make("m=2");
  run(kSum);
  run(kSum);
  EXPECT_EQ(grouping->joined, 2) << "one each";
  manager->close("grp:1");
  EXPECT_EQ(grouping->groups, 1);
  EXPECT_EQ(run(kSum).collectives.at(0).through, "GRP");
  EXPECT_EQ(grouping->joined, 4) << "both again: one of them would be alone in its old group";
  manager->close("grp:0");
  manager->close("grp:1");
  EXPECT_EQ(grouping->groups, 0);
}

TEST_F(DeviceExchanges, WithoutALibraryOrAGroupGoThroughHostMemory) {
  make("m=2");
  const std::vector<HostArray> wanted = through_host(kSum, "m=2");
  const auto expect_host = [&] {
    const MeshResult result = run(kSum);
    EXPECT_EQ(result.collectives.at(0).through, "host memory");
    EXPECT_EQ(std::memcmp(result.outputs[0].data(), wanted[0].data(), wanted[0].bytes()), 0);
    EXPECT_EQ(grouping->groups, 0);
  };
  grouping->on_make = [](const std::string&) { throw Error(ErrorCode::unavailable, "no library"); };
  expect_host();
  grouping->on_make = {};
  grouping->on_join = [](const std::string& device) {
    if (device == "grp:1") throw Error(ErrorCode::deadline_exceeded, "nobody came");
  };
  expect_host();
  grouping->on_join = {};
  EXPECT_EQ(run(kSum).collectives.at(0).through, "GRP");
}

TEST_F(DeviceExchanges, ThatFailEndTheRunOnAllDevicesAndTheNextOneWorks) {
  make("m=3");
  grouping->on_start = [](const std::string& device) {
    if (device == "grp:1") throw Error(ErrorCode::unavailable, "the link is down");
  };
  try {
    run(kSum);
    FAIL() << "it cannot work";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unavailable);
    EXPECT_EQ(std::string(error.what()), "grp:1: the link is down");
  }
  EXPECT_EQ(grouping->groups, 0) << "those that started are given up";
  grouping->on_start = {};
  EXPECT_EQ(run(kSum).collectives.at(0).through, "GRP");
}

TEST_F(DeviceExchanges, ThatDoNotEndAreGivenUpWhenTheRunIsCancelled) {
  make("m=2");
  std::atomic<bool> is_waiting{false};
  grouping->is_held_up = [&] { return is_waiting = true; };
  std::stop_source stop;
  std::jthread canceller([&] {
    EXPECT_TRUE(test::eventually(60s, [&] { return is_waiting.load(); }));
    stop.request_stop();
  });
  MeshOptions options = kSum.options();
  options.run.cancel = stop.get_token();
  const std::vector<HostArray> inputs = kSum.inputs();
  try {
    run_on_mesh(*manager, kSum.graph(), inputs, *mesh, options);
    FAIL() << "it cannot end";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::cancelled);
  }
  EXPECT_EQ(grouping->groups, 0);
}

TEST_F(DeviceExchanges, GoOnWhileTheirDevicesCompute) {
  make("m=2");
  const Case overlapped{"overlapped",
                        "tanh(x @ w), y @ y",
                        {{"x", DType::f32, {512, 1600}}, {"w", DType::f32, {1600, 640}}, {"y", DType::f32, {512, 512}}},
                        {{"x", "-,m"}, {"w", "m,-"}}};
  ASSERT_EQ(explain_mesh(overlapped.graph(), *mesh, overlapped.options()).stages, 3);
  // Done only when both devices have begun their second program.
  grouping->is_held_up = [this] { return grouping->runs < 4; };
  EXPECT_EQ(run(overlapped).collectives.at(0).through, "GRP");
}

TEST_F(DeviceExchanges, OfTwoRunsAtOnceOnlyOneIsBetweenDevices) {
  make("m=2");
  std::atomic<bool> is_waiting{false}, may_end{false};
  grouping->is_held_up = [&] {
    is_waiting = true;
    return !may_end;
  };
  MeshResult first;
  {
    std::jthread other([&] { first = run(kSum); });
    EXPECT_TRUE(test::eventually(60s, [&] { return is_waiting.load(); }));
    EXPECT_EQ(run(kSum).collectives.at(0).through, "host memory");
    may_end = true;
  }
  EXPECT_EQ(first.collectives.at(0).through, "GRP");
}

}  // namespace
}  // namespace tenon
