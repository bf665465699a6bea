// Devices compute while values are exchanged.
#include "mesh/plan/overlap.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>

#include "mesh/member.h"
#include "mesh/simulated_mesh.h"
#include "tenon/error.h"
#include "tenon/expression.h"

namespace tenon::mesh {
namespace {

constexpr std::chrono::minutes kPatience{1};

HostArray numbers(const Shape& shape) {
  HostArray array = HostArray::empty(DType::f32, shape);
  std::span<float> values = array.mutable_view<float>();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(static_cast<int>(i * 37 % 41) - 20) / 64;
  return array;
}

// A sum over two devices, and a product that does not need it.
struct Case {
  explicit Case(std::int64_t extent)
      : graph(parse_expression("tanh(x @ w), y @ y",
                               {{"x", DType::f32, {4, 8}}, {"w", DType::f32, {8, 6}}, {"y", DType::f32, {extent, extent}}})),
        inputs{numbers({4, 8}), numbers({8, 6}), numbers({extent, extent})} {
    options.inputs["x"] = Sharding::parse("-,m");
    options.inputs["w"] = Sharding::parse("m,-");
  }
  Graph graph;
  std::vector<HostArray> inputs;
  MeshOptions options;
};

TEST(Overlap, AValueIsExchangedBeforeTheWorkThatDoesNotNeedIt) {
  const Mesh mesh({{"m", 2}}, {"a", "b"});
  const Case large(256);
  const Partition partition = mesh::partition(large.graph, mesh, large.options);
  ASSERT_EQ(partition.stages, 3);
  for (const Value& value : partition.values) {
    if (value.is_exchange()) EXPECT_EQ(value.stage, 0);
    if (value.kind == Value::Kind::node && large.graph[value.origin].shape == Shape{256, 256} && !value.inputs.empty())
      EXPECT_EQ(value.stage, 1) << "the product runs while the sum is exchanged";
  }
  EXPECT_EQ(explain_mesh(large.graph, mesh, large.options).stages, 3);
}

TEST(Overlap, ProgramsAreNotCutForLittleWork) {
  const Mesh mesh({{"m", 2}}, {"a", "b"});
  const Case small(8);
  EXPECT_EQ(mesh::partition(small.graph, mesh, small.options).stages, 2);
}

// As in a backward pass: each sum begins as soon as its terms are known.
TEST(Overlap, SumsOfSeveralLayersBeginOneAfterTheOther) {
  const Mesh mesh({{"m", 2}}, {"a", "b"});
  const Graph graph = parse_expression("h = x @ w; x.T @ x, h.T @ h, tanh(h).T @ h",
                                       {{"x", DType::f32, {128, 128}}, {"w", DType::f32, {128, 128}}});
  MeshOptions options;
  options.inputs["x"] = Sharding::parse("m,-");
  const Partition partition = mesh::partition(graph, mesh, options);
  std::vector<int> stages;
  for (const Value& value : partition.values)
    if (value.is_exchange()) stages.push_back(value.stage);
  EXPECT_EQ(stages, (std::vector<int>{0, 1, 2}));
}

// Stands for the other devices: an exchange does what |during| says.
class FakeExchange final : public Exchange {
 public:
  explicit FakeExchange(std::function<void()> during) : during_(std::move(during)) {}
  HostArray reduce(const HostArray& mine, const Layout&, const Layout&, const Shape&) override {
    during_();
    return mine;
  }
  HostArray move(const HostArray& mine, const Layout&, const Layout&, const Shape&) override { return mine; }
  std::vector<std::string> gather(const std::string& text) override { return {text}; }
  std::uint64_t take_bytes() override { return 0; }
  void stop() noexcept override {}

 private:
  const std::function<void()> during_;
};

// Counts the programs that a device has begun to compute.
struct Watch {
  void operator()(const Progress& progress) {
    if (progress.stage != "computing") return;
    {
      const std::lock_guard lock(mutex);
      ++programs;
    }
    changed.notify_all();
  }
  bool wait_for_programs(int wanted) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, kPatience, [&] { return programs >= wanted; });
  }
  std::mutex mutex;
  std::condition_variable changed;
  int programs = 0;
};

TEST(Overlap, TheDeviceComputesWhileAnExchangeWaits) {
  SimulatedMesh devices("m=2");
  const Case large(256);
  Watch watch;
  bool has_overlapped = false;
  RunOptions run;
  run.on_progress = [&](const Progress& progress) { watch(progress); };
  const Prepared prepared(large.graph, large.inputs, devices.mesh, large.options);
  // The exchange ends only when the second program has begun: if exchanges were waited for, this would never be.
  Member member(devices.manager, prepared, 0, devices.mesh.devices()[0], run,
                std::make_unique<FakeExchange>([&] { has_overlapped = watch.wait_for_programs(2); }));
  {
    const Lease lease = member.lease();
    member.run();
  }
  EXPECT_TRUE(has_overlapped);
  EXPECT_EQ(member.outputs.size(), 2U);
  EXPECT_EQ(member.bytes.size(), 1U);
  EXPECT_EQ(watch.programs, 3);
}

TEST(Overlap, AnExchangeThatFailsStopsTheProgramAndSaysWhy) {
  SimulatedMesh devices("m=2");
  const Case large(256);
  const Prepared prepared(large.graph, large.inputs, devices.mesh, large.options);
  Member member(devices.manager, prepared, 0, devices.mesh.devices()[0], {}, std::make_unique<FakeExchange>([] {
                  throw Error(ErrorCode::deadline_exceeded, "rank 1 on tn2 did not answer");
                }));
  const Lease lease = member.lease();
  try {
    member.run();
    ADD_FAILURE() << "the exchange did not fail";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::deadline_exceeded) << error.what();
  }
}

std::uint64_t bytes_of(const std::vector<Collective>& collectives) {
  std::uint64_t bytes = 0;
  for (const Collective& collective : collectives) bytes += collective.bytes;
  return bytes;
}

TEST(Overlap, ResultsAreThoseOfOneDevice) {
  SimulatedMesh devices("a=2,b=2");
  const Graph graph = parse_expression("h = x @ w; g = tanh(h); p = y @ y; q = sum(g) + p; r = (q @ y); g, q, r, h.T @ g",
                                       {{"x", DType::f32, {64, 96}}, {"w", DType::f32, {96, 64}}, {"y", DType::f32, {160, 160}}});
  const std::vector<HostArray> inputs{numbers({64, 96}), numbers({96, 64}), numbers({160, 160})};
  MeshOptions options;
  options.inputs["x"] = Sharding::parse("b,a");
  options.inputs["w"] = Sharding::parse("a,-");
  options.inputs["y"] = Sharding::parse("b,a");
  const MeshPlan plan = explain_mesh(graph, devices.mesh, options);
  const std::vector<HostArray> expected = devices.manager.run(graph, inputs, {.device = "cpu"}).outputs;
  for (int round = 0; round < 20; ++round) {
    const MeshResult result = run_on_mesh(devices.manager, graph, inputs, devices.mesh, options);
    ASSERT_EQ(result.collectives.size(), plan.collectives.size());
    EXPECT_EQ(bytes_of(result.collectives), plan.bytes());
    for (std::size_t i = 0; i < expected.size(); ++i)
      for (std::int64_t at = 0; at < expected[i].elements(); ++at)
        ASSERT_NEAR(result.outputs[i].value(at), expected[i].value(at), 1e-4 * (1 + std::abs(expected[i].value(at)))) << i;
  }
}

}  // namespace
}  // namespace tenon::mesh
