#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <string_view>
#include <thread>

#include "backends/cpu/backend.h"
#include "backends/opencl/backend.h"
#include "backends/opencl/context.h"
#include "backends/quantized_operands.h"
#include "base/threads/thread_pool.h"
#include "reference/reference.h"
#include "tenon/error.h"
#include "tenon/ops.h"

// Platforms keep what they have loaded until the process ends.
extern "C" const char* __lsan_default_suppressions() { return "leak:libpocl\nleak:libLLVM\nleak:libclang\nleak:libOpenCL\n"; }

namespace tenon {
namespace {

namespace fs = std::filesystem;

// Before anything loads a platform: compiled kernels of the tests stay with the build.
const bool kPrepared = [] {
  const std::string folder = (fs::current_path() / "opencl_cache").string();
  fs::create_directories(folder);
  setenv("POCL_CACHE_DIR", folder.c_str(), 0);
  setenv("TENON_CACHE_DIR", folder.c_str(), 0);
  return true;
}();

bool is_mapped(const std::string& library) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find(library) != std::string::npos) return true;
  return false;
}

std::size_t open_files() {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator()));
}

std::size_t running_threads() {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator("/proc/self/task"), fs::directory_iterator()));
}

// The CPU through a platform such as PoCL.
class OpenClTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(kPrepared);
    backend_ = opencl::make_backend();
    for (const DeviceInfo& device : backend_->devices())
      if (device.kind == DeviceKind::cpu) info_ = device;
    if (info_.id.empty()) GTEST_SKIP() << "no OpenCL platform for CPUs is installed (pocl-opencl-icd)";
  }
  std::unique_ptr<OpenDevice> open(std::shared_ptr<MemoryBudget> budget = nullptr) {
    return backend_->open(info_, {.budget = std::move(budget)});
  }

  std::unique_ptr<Backend> backend_;
  DeviceInfo info_;
};

Graph doubled(const Shape& shape) {
  Graph graph;
  const NodeId x = graph.input("x", DType::f32, shape);
  graph.set_outputs(apply(graph, "add", {x, x}));
  return graph;
}

HostArray run(OpenDevice& device, const Graph& graph, std::vector<HostArray> inputs) {
  const auto program = device.compile(graph);
  std::vector<std::unique_ptr<Buffer>> up;
  std::vector<const Buffer*> in;
  for (const HostArray& x : inputs) {
    up.push_back(device.upload(x));
    in.push_back(up.back().get());
  }
  const auto out = device.allocate(program->output_types()[0]);
  Buffer* const outs[] = {out.get()};
  program->run(in, outs);
  return device.download(*out);
}

TEST_F(OpenClTest, ProductsWithSmallIntegersHaveTheValuesOfTheirNodes) {
  const auto device = open();
  for (const QuantizedCase& c : quantized_cases({1, 19})) {
    const QuantizedOperands o = quantized_operands(c);
    std::vector<HostArray> inputs{o.x, o.codes, o.scales};
    if (c.has_minima) inputs.push_back(o.minima);
    const HostArray expected = reference_run(quantized_graph(o), inputs)[0], result = run(*device, quantized_graph(o), inputs);
    double largest = 0;
    for (const float value : expected.view<float>()) largest = std::max(largest, std::abs(static_cast<double>(value)));
    for (std::int64_t i = 0; i < result.elements(); ++i)
      ASSERT_NEAR(result.value(i), expected.value(i), 2e-5 * largest) << c << " at " << i;
  }
}

TEST_F(OpenClTest, FindingDevicesLoadsNoPlatform) {
  if (is_mapped("libpocl")) GTEST_SKIP() << "an earlier test of this process has loaded it";
  EXPECT_EQ(info_.id, "opencl:0");
  EXPECT_EQ(info_.backends, std::vector<std::string>{"opencl"});
  backend_->check(info_, doubled({3}));
  EXPECT_FALSE(is_mapped("libpocl"));
  EXPECT_FALSE(is_mapped("libOpenCL"));
}

TEST_F(OpenClTest, AProgramRunsAndItsInputStaysAsItWas) {
  const auto device = open();
  const HostArray x = HostArray::from<float>({5}, {1, -2, 3, 0.5f, 8});
  const HostArray y = run(*device, doubled({5}), {x});
  EXPECT_EQ(y.to_doubles(), (std::vector<double>{2, -4, 6, 1, 16}));
  EXPECT_EQ(x.to_doubles(), (std::vector<double>{1, -2, 3, 0.5, 8}));
  device->close();
}

TEST_F(OpenClTest, AResultTheHostHoldsIsNotOverwrittenByTheNextRun) {
  const auto device = open();
  const auto program = device->compile(doubled({3}));
  const auto first = device->upload(HostArray::from<float>({3}, {1, 2, 3})),
             second = device->upload(HostArray::from<float>({3}, {7, 8, 9}));
  const auto out = device->allocate(program->output_types()[0]);
  program->run({first.get()}, {out.get()});
  const HostArray kept = device->download(*out);
  program->run({second.get()}, {out.get()});
  EXPECT_EQ(kept.to_doubles(), (std::vector<double>{2, 4, 6}));
  EXPECT_EQ(device->download(*out).to_doubles(), (std::vector<double>{14, 16, 18}));
}

TEST_F(OpenClTest, AnIndexOutOfRangeIsAnErrorAndTheProgramStaysUsable) {
  const auto device = open();
  Graph graph;
  const NodeId x = graph.input("x", DType::f32, {4}), i = graph.input("i", DType::i64, {2});
  graph.set_outputs({graph.take(x, i, 0)});
  const HostArray values = HostArray::from<float>({4}, {1, 2, 3, 4});
  try {
    run(*device, graph, {values, HostArray::from<std::int64_t>({2}, {0, 4})});
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::out_of_range);
    EXPECT_NE(std::string(error.what()).find("index 4"), std::string::npos);
  }
  EXPECT_EQ(run(*device, graph, {values, HostArray::from<std::int64_t>({2}, {-1, 0})}).to_doubles(), (std::vector<double>{4, 1}));
  EXPECT_FALSE(device->is_lost());
}

TEST_F(OpenClTest, BuffersHoldTheirShareOfTheBudget) {
  const auto budget = MemoryBudget::make("opencl:0", 1000);
  const auto device = open(budget);
  auto buffer = device->allocate({DType::f32, {200}});
  EXPECT_EQ(budget->used_bytes(), 800u);
  try {
    device->allocate({DType::f32, {100}});
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::resource_exhausted);
  }
  buffer.reset();
  EXPECT_EQ(budget->used_bytes(), 0u);
}

TEST_F(OpenClTest, BuffersAndProgramsMayBeDroppedAfterTheDeviceIsClosed) {
  auto device = open();
  auto program = device->compile(doubled({3}));
  auto x = device->upload(HostArray::from<float>({3}, {1, 2, 3})), y = device->allocate(program->output_types()[0]);
  program->run({x.get()}, {y.get()});
  device->close();
  EXPECT_THROW(program->run({x.get()}, {y.get()}), Error);
  device.reset();
  x.reset();
  program.reset();
  y.reset();
}

TEST_F(OpenClTest, OneProgramRunsFromManyThreads) {
  const auto device = open();
  const std::shared_ptr<Executable> program = device->compile(doubled({1000}));
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const auto x = device->upload(HostArray::full(DType::f32, {1000}, t));
      const auto y = device->allocate(program->output_types()[0]);
      for (int i = 0; i < 20; ++i) {
        program->run({x.get()}, {y.get()});
        if (device->download(*y).value(999) != 2.0 * t) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(OpenClTest, ProgramsRunSideBySideAndWhileThePoolIsBusy) {
  const auto device = open();
  const Shape shape{1 << 17};
  const HostArray x = HostArray::full(DType::f32, shape, 3);
  std::atomic<int> wrong{0};
  const auto compute = [&](const std::string& op, double expected) {
    Graph graph;
    const NodeId in = graph.input("x", DType::f32, shape);
    graph.set_outputs(apply(graph, op, {in, in}));
    for (int i = 0; i < 20; ++i) {
      const HostArray y = run(*device, graph, {x});
      for (std::int64_t e = 0; e < shape.elements(); e += 1021) wrong += y.value(e) != expected;
    }
  };
  std::thread adding([&] { compute("add", 6); }), multiplying([&] { compute("mul", 9); });
  process_pool().for_each(process_pool().threads(), [&](std::int64_t, int) { compute("sub", 0); });
  adding.join();
  multiplying.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(OpenClTest, OpeningAndClosingLeavesNothingBehind) {
  Graph graph;
  graph.set_outputs(apply(graph, "neg", {graph.input("x", DType::f32, {1000})}));
  const auto cycle = [&] {
    const auto device = open();
    const auto program = device->compile(graph);
    const auto x = device->upload(HostArray::full(DType::f32, {1000}, 1)), y = device->allocate({DType::f32, {1000}});
    program->run({x.get()}, {y.get()});
    device->close();
  };
  cycle();
  const std::size_t files = open_files(), threads = running_threads();
  for (int i = 0; i < 100; ++i) cycle();
  EXPECT_EQ(open_files(), files);
  EXPECT_EQ(running_threads(), threads);
}

TEST_F(OpenClTest, SoftmaxOfManyRowsIsThatOfTheProcessorsOwnBackend) {
  const auto device = open();
  Graph graph;
  graph.set_outputs(apply(graph, "softmax", {graph.input("x", DType::f32, {37, 501})}));
  HostArray x = HostArray::empty(DType::f32, {37, 501});
  for (std::size_t i = 0; i < 37 * 501; ++i) x.mutable_view<float>()[i] = std::sin(static_cast<float>(i)) * 9;
  const HostArray y = run(*device, graph, {x});
  for (int row = 0; row < 37; ++row) {
    double sum = 0, expected = 0;
    for (int i = 0; i < 501; ++i) expected += std::exp(x.value(row * 501 + i));
    for (int i = 0; i < 501; ++i) {
      sum += y.value(row * 501 + i);
      EXPECT_NEAR(y.value(row * 501 + i), std::exp(x.value(row * 501 + i)) / expected, 1e-6);
    }
    EXPECT_NEAR(sum, 1, 1e-5);
  }
}

TEST_F(OpenClTest, LargeMapsHaveTheValuesOfTheProcessorsOwnBackend) {
  const auto device = open(), other = cpu::make_backend()->open(cpu::make_backend()->devices().at(0));
  for (const Shape& shape : {Shape{1, 16}, Shape{67, 130}, Shape{256, 192}, Shape{1600, 2051}}) {
    HostArray x = HostArray::empty(DType::f32, shape), y = HostArray::empty(DType::f32, {shape[1], shape[0]});
    float next = -6;
    for (float& v : x.mutable_view<float>()) v = next = next > 6 ? -6 : next + 0.001f;
    for (float& v : y.mutable_view<float>()) v = next = next > 6 ? -6 : next + 0.003f;
    for (const bool is_turned : {true, false}) {
      Graph graph;
      const NodeId a = graph.input("a", DType::f32, shape);
      const NodeId b = is_turned ? apply(graph, "transpose", {graph.input("b", DType::f32, {shape[1], shape[0]})})[0] : a;
      graph.set_outputs(apply(graph, "gelu", {apply(graph, "mul", {a, b})[0]}));
      const std::vector<HostArray> inputs = is_turned ? std::vector{x, y} : std::vector{x};
      const HostArray here = run(*device, graph, inputs), there = run(*other, graph, inputs);
      for (std::int64_t i = 0; i < shape.elements(); ++i)
        ASSERT_NEAR(here.value(i), there.value(i), 1e-6 * std::abs(there.value(i)) + 3e-45) << to_string(shape) << " at " << i;
    }
  }
}

HostArray varied(DType dtype, const Shape& shape) {
  HostArray array = HostArray::empty(DType::f64, shape);
  double x = 0.1;
  for (double& value : array.mutable_view<double>()) value = x = 3.9 * x * (1 - x);  // no two neighbours alike, in (0, 1)
  if (is_integer(dtype))
    for (double& value : array.mutable_view<double>()) value = std::floor(100 * value);
  return array.cast(dtype);
}
void expect_close(const HostArray& got, const HostArray& wanted, const std::string& what) {
  ASSERT_EQ(got.elements(), wanted.elements());
  for (std::int64_t i = 0; i < got.elements(); ++i) {
    const double x = got.value(i), y = wanted.value(i);
    ASSERT_TRUE(x == y || std::abs(x - y) <= 1e-12 * std::abs(y) || (std::isnan(x) && std::isnan(y)))
        << what << ", element " << i << ": " << x << ", not " << y;
  }
}

TEST_F(OpenClTest, TransposedOperandsOfEveryTypeAreReadAsTheCpuBackendReadsThem) {
  const auto device = open();
  const auto cpu = cpu::make_backend();
  const auto processor = cpu->open(cpu->devices().at(0));
  for (DType dtype : {DType::u8, DType::i16, DType::i32, DType::u64, DType::f64, DType::bf16, DType::boolean}) {
    Graph graph;
    const NodeId a = graph.input("a", dtype, {300, 581}), b = graph.input("b", dtype, {581, 300});
    graph.set_outputs(apply(graph, "maximum", {a, apply(graph, "transpose", {b})[0]}));
    const std::vector<HostArray> inputs{varied(dtype, {300, 581}), varied(dtype, {581, 300})};
    expect_close(run(*device, graph, inputs), run(*processor, graph, inputs), std::string(name(dtype)));
  }
}

TEST_F(OpenClTest, AnElementOfF64IsTheSameInEveryColumn) {
  const auto device = open();
  for (std::int64_t columns : {16, 77, 4099}) {
    Graph graph;
    const NodeId x = graph.input("x", DType::f64, {3, columns});
    const NodeId y = apply(graph, "tanh", {x})[0];
    const NodeId most = apply(graph, "max", {y}, {{"axis", std::int64_t{1}}, {"keepdims", true}})[0];
    graph.set_outputs(apply(graph, "sub", {y, most}));
    const HostArray result = run(*device, graph, {HostArray::full(DType::f64, {3, columns}, 0.7)});
    for (std::int64_t i = 0; i < result.elements(); ++i) ASSERT_EQ(result.value(i), 0) << "of " << columns << ", element " << i;
  }
}

TEST_F(OpenClTest, ReductionsOfF64AreThoseOfTheProcessorsOwnBackend) {
  const auto device = open();
  const auto cpu = cpu::make_backend();
  const auto processor = cpu->open(cpu->devices().at(0));
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const std::vector<double>& special :
       std::vector<std::vector<double>>{{}, {infinity}, {infinity, -infinity}, {std::nan("")}})
    for (std::int64_t columns : {5, 100, 100'003}) {
      HostArray x = varied(DType::f64, {2, columns});
      for (std::size_t i = 0; i < special.size(); ++i) x.mutable_view<double>()[i + 2] = special[i];
      for (const std::string op : {"sum", "max", "min", "prod"}) {
        Graph graph;
        const NodeId in = graph.input("x", DType::f64, {2, columns});
        const NodeId chain = apply(graph, "mul", {apply(graph, "exp", {in})[0], in})[0];
        graph.set_outputs(apply(graph, op, {chain}, {{"axis", std::int64_t{1}}}));
        expect_close(run(*device, graph, {x}), run(*processor, graph, {x}), op + " of " + std::to_string(columns));
      }
    }
}

TEST_F(OpenClTest, AMaskMayBeReducedBesideTheNumbersItChooses) {
  const auto device = open();
  for (DType dtype : {DType::f32, DType::f64}) {
    Graph graph;
    const NodeId x = graph.input("x", dtype, {5000});
    const NodeId mask = apply(graph, "gt", {x, graph.literal(0.5)})[0];
    const NodeId chosen = apply(graph, "where", {mask, apply(graph, "exp", {x})[0], x})[0];
    const NodeId sum = apply(graph, "sum", {chosen})[0], any = apply(graph, "max", {mask})[0];
    graph.set_outputs(apply(graph, "where", {any, sum, graph.literal(-1.0)}));
    const HostArray in = varied(dtype, {5000});
    double wanted = 0;
    for (std::int64_t i = 0; i < 5000; ++i) wanted += in.value(i) > 0.5 ? std::exp(in.value(i)) : in.value(i);
    EXPECT_NEAR(run(*device, graph, {in}).value(0), wanted, 1e-6 * wanted);
  }
}

TEST(OpenClApi, StatusesBecomeTheErrorsPeopleKnow) {
  const auto code_of = [](opencl::Int status) {
    try {
      opencl::check(status, "x");
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::internal;
  };
  EXPECT_EQ(code_of(opencl::kAllocationFailure), ErrorCode::resource_exhausted);
  EXPECT_EQ(code_of(opencl::kDeviceNotAvailable), ErrorCode::unavailable);
  EXPECT_TRUE(opencl::means_lost(opencl::kDeviceNotAvailable));
  EXPECT_FALSE(opencl::means_lost(opencl::kAllocationFailure));
}

}  // namespace
}  // namespace tenon
