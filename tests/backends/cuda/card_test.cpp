// On a real card: skipped where there is none.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <thread>

#include "backends/cpu/backend.h"
#include "backends/cuda/backend.h"
#include "backends/cuda/libraries.h"
#include "reference/reference.h"
#include "tenon/error.h"
#include "tenon/expression.h"

namespace tenon::cuda {
namespace {

class CardTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::vector<DeviceInfo> cards = make_backend()->devices();
    if (cards.empty() || !cards[0].available) GTEST_SKIP() << "there is no usable NVIDIA card here";
    info_ = cards[0];
  }
  std::unique_ptr<OpenDevice> open(const ExecutableOptions& programs = {}) {
    DriverOptions how;
    how.programs = programs;
    return open_with(driver(), info_, {}, how);
  }
  static HostArray random(DType dtype, const Shape& shape, std::uint64_t seed) {
    Graph graph;
    graph.set_outputs({graph.cast(graph.random(shape, DType::f32, true, seed), dtype)});
    return reference_run(graph, {})[0];
  }
  static std::vector<HostArray> run(OpenDevice& device, const Graph& graph, const std::vector<HostArray>& inputs) {
    const auto program = device.compile(graph);
    std::vector<std::unique_ptr<Buffer>> held;
    std::vector<const Buffer*> in;
    std::vector<Buffer*> out;
    for (const HostArray& input : inputs) in.push_back(held.emplace_back(device.upload(input)).get());
    for (const TensorType& type : program->output_types()) out.push_back(held.emplace_back(device.allocate(type)).get());
    program->run(in, out);
    std::vector<HostArray> results;
    for (Buffer* buffer : out) results.push_back(device.download(*buffer));
    return results;
  }
  // Of the largest value.
  static double worst_error(const HostArray& got, const HostArray& wanted) {
    double worst = 0, largest = 1e-30;
    const std::vector<double> a = got.to_doubles(), b = wanted.to_doubles();
    for (std::size_t i = 0; i < b.size(); ++i) {
      if (std::isnan(a[i]) != std::isnan(b[i])) return std::numeric_limits<double>::infinity();
      worst = std::max(worst, std::abs(a[i] - b[i]));
      largest = std::max(largest, std::abs(b[i]));
    }
    return worst / largest;
  }
  void expect_as_reference(OpenDevice& device, const std::string& expression, const std::vector<NamedType>& types, double bound) {
    const Graph graph = parse_expression(expression, types);
    std::vector<HostArray> inputs;
    for (const NamedType& type : types) inputs.push_back(random(type.dtype, type.shape, inputs.size() + 1));
    const HostArray got = run(device, graph, inputs)[0];
    EXPECT_LE(worst_error(got, reference_run(graph, inputs)[0]), bound) << expression;
  }

  DeviceInfo info_;
};

TEST_F(CardTest, AFusedChainHasTheValuesOfTheReference) {
  const auto device = open();
  expect_as_reference(*device, "gelu(a * b + 0.5)", {{"a", DType::f32, {1000}}, {"b", DType::f32, {1000}}}, 1e-6);
  expect_as_reference(*device, "softmax(a)", {{"a", DType::f32, {33, 1000}}}, 1e-6);
  expect_as_reference(*device, "transpose(a)", {{"a", DType::f32, {77, 130}}}, 0);
  expect_as_reference(*device, "sum(a)", {{"a", DType::f32, {100'000}}}, 1e-5);
}

// Shapes at which rows are fetched ahead, sums have many segments and copies many tiles: too many elements for the reference.
TEST_F(CardTest, LargeProgramsHaveTheValuesOfTheProcessor) {
  const auto device = open();
  const std::unique_ptr<Backend> processors = cpu::make_backend();
  const auto processor = processors->open(processors->devices().at(0));
  struct Program {
    std::string expression;
    std::vector<NamedType> inputs;
    double bound;
  };
  const std::vector<Program> programs{
      {"softmax(a)", {{"a", DType::f32, {1100, 16384}}}, 2e-6},
      {"softmax(a)", {{"a", DType::f32, {4400, 4096}}}, 2e-6},
      {"softmax(a)", {{"a", DType::f32, {17000, 1000}}}, 2e-6},
      {"log_softmax(a)", {{"a", DType::f32, {2200, 5000}}}, 2e-6},
      {"softmax(a + b)", {{"a", DType::f32, {1100, 8192}}, {"b", DType::f32, {1100, 8192}}}, 2e-6},
      {"softmax(a)", {{"a", DType::bf16, {4400, 2048}}}, 8e-3},
      {"softmax(a)", {{"a", DType::f64, {2200, 1024}}}, 1e-14},
      {"layer_norm(a, g, b)", {{"a", DType::f32, {4400, 4096}}, {"g", DType::f32, {4096}}, {"b", DType::f32, {4096}}}, 4e-6},
      {"layer_norm(a, g, b)", {{"a", DType::f32, {17000, 768}}, {"g", DType::f32, {768}}, {"b", DType::f32, {768}}}, 4e-6},
      {"sum(a)", {{"a", DType::f32, {10'000'019}}}, 1e-5},
      {"sum(abs(a), axis=0)", {{"a", DType::f32, {5001, 1003}}}, 1e-5},
      {"max(a)", {{"a", DType::f32, {10'000'019}}}, 0},
      {"transpose(a)", {{"a", DType::f32, {3001, 2003}}}, 0},
      {"transpose(a, [0, 2, 1])", {{"a", DType::bf16, {7, 300, 1001}}}, 0},
      {"sum(a, axis=1)", {{"a", DType::f32, {700, 16384}}}, 1e-5},
      {"cumsum(a, axis=1)", {{"a", DType::f32, {3000, 4096}}}, 1e-6},
      {"cumsum(a, axis=1)", {{"a", DType::f32, {3, 1'000'003}}}, 1e-6},
      {"cumsum(a, axis=0)", {{"a", DType::f32, {3001, 1003}}}, 1e-6},
      {"argmax(a, axis=1)", {{"a", DType::f32, {3000, 4096}}}, 0},
      {"argmin(a, axis=1)", {{"a", DType::f32, {3, 1'000'003}}}, 0},
      {"scatter(a, argsort(b), b)", {{"a", DType::f32, {1'000'003}}, {"b", DType::f32, {1'000'003}}}, 0},
      {"scatter_add(a, argsort(b) - argsort(b) % 7, b)", {{"a", DType::f32, {100'003}}, {"b", DType::f32, {100'003}}}, 1e-6},
      {"scatter(a, argsort(b) - argsort(b) % 7, b)", {{"a", DType::f32, {100'003}}, {"b", DType::f32, {100'003}}}, 0},
      {"attention(q, k, v)",
       {{"q", DType::bf16, {2, 4, 300, 64}}, {"k", DType::bf16, {2, 4, 300, 64}}, {"v", DType::bf16, {2, 4, 300, 64}}},
       2e-2},
      {"attention(q, k, v, causal=true)",
       {{"q", DType::bf16, {2, 4, 300, 64}}, {"k", DType::bf16, {2, 4, 300, 64}}, {"v", DType::bf16, {2, 4, 300, 64}}},
       2e-2},
      {"attention(q, k, v)",
       {{"q", DType::bf16, {1, 8, 257, 128}}, {"k", DType::bf16, {1, 2, 513, 128}}, {"v", DType::bf16, {1, 2, 513, 128}}},
       2e-2},
      {"attention(q, k, v, causal=true)",
       {{"q", DType::bf16, {1, 8, 257, 128}}, {"k", DType::bf16, {1, 2, 513, 128}}, {"v", DType::bf16, {1, 2, 513, 128}}},
       2e-2},
      {"attention(q, k, v)",
       {{"q", DType::bf16, {2, 2, 100, 80}}, {"k", DType::bf16, {2, 2, 77, 80}}, {"v", DType::bf16, {2, 2, 77, 96}}},
       2e-2},
      {"attention(q, k, v, causal=true)",
       {{"q", DType::bf16, {2, 2, 100, 80}}, {"k", DType::bf16, {2, 2, 77, 80}}, {"v", DType::bf16, {2, 2, 77, 96}}},
       2e-2},
      {"attention(q, k, v)",
       {{"q", DType::bf16, {1, 2, 200, 256}}, {"k", DType::bf16, {1, 2, 190, 256}}, {"v", DType::bf16, {1, 2, 190, 256}}},
       2e-2},
      {"attention(q, k, v, causal=true)",
       {{"q", DType::bf16, {1, 2, 200, 256}}, {"k", DType::bf16, {1, 2, 190, 256}}, {"v", DType::bf16, {1, 2, 190, 256}}},
       2e-2},
      {"attention(q, k, v)",
       {{"q", DType::bf16, {1, 2, 70, 33}}, {"k", DType::bf16, {1, 2, 65, 33}}, {"v", DType::bf16, {1, 2, 65, 20}}},
       2e-2},
      {"attention(q, k, v, causal=true)",
       {{"q", DType::bf16, {1, 2, 70, 33}}, {"k", DType::bf16, {1, 2, 65, 33}}, {"v", DType::bf16, {1, 2, 65, 20}}},
       2e-2},
      {"attention(q, k, v)",
       {{"q", DType::f16, {2, 4, 300, 64}}, {"k", DType::f16, {2, 4, 300, 64}}, {"v", DType::f16, {2, 4, 300, 64}}},
       2e-2},
      {"attention(q, k, v, causal=true)",
       {{"q", DType::f16, {2, 4, 300, 64}}, {"k", DType::f16, {2, 4, 300, 64}}, {"v", DType::f16, {2, 4, 300, 64}}},
       2e-2},
      {"attention(q, k, v)",
       {{"q", DType::f16, {1, 8, 257, 128}}, {"k", DType::f16, {1, 2, 513, 128}}, {"v", DType::f16, {1, 2, 513, 128}}},
       2e-2},
      {"attention(q, k, v, causal=true)",
       {{"q", DType::f16, {1, 8, 257, 128}}, {"k", DType::f16, {1, 2, 513, 128}}, {"v", DType::f16, {1, 2, 513, 128}}},
       2e-2},
      {"attention(q, k, v)",
       {{"q", DType::f16, {2, 2, 100, 80}}, {"k", DType::f16, {2, 2, 77, 80}}, {"v", DType::f16, {2, 2, 77, 96}}},
       2e-2},
      {"attention(q, k, v, causal=true)",
       {{"q", DType::f16, {2, 2, 100, 80}}, {"k", DType::f16, {2, 2, 77, 80}}, {"v", DType::f16, {2, 2, 77, 96}}},
       2e-2},
      {"attention(q, k, v)",
       {{"q", DType::f16, {1, 2, 200, 256}}, {"k", DType::f16, {1, 2, 190, 256}}, {"v", DType::f16, {1, 2, 190, 256}}},
       2e-2},
      {"attention(q, k, v, causal=true)",
       {{"q", DType::f16, {1, 2, 200, 256}}, {"k", DType::f16, {1, 2, 190, 256}}, {"v", DType::f16, {1, 2, 190, 256}}},
       2e-2},
      {"attention(q, k, v)",
       {{"q", DType::f16, {1, 2, 70, 33}}, {"k", DType::f16, {1, 2, 65, 33}}, {"v", DType::f16, {1, 2, 65, 20}}},
       2e-2},
      {"attention(q, k, v, causal=true)",
       {{"q", DType::f16, {1, 2, 70, 33}}, {"k", DType::f16, {1, 2, 65, 33}}, {"v", DType::f16, {1, 2, 65, 20}}},
       2e-2},
      {"attention(q, k, v, m > -1)",
       {{"q", DType::bf16, {2, 4, 150, 64}},
        {"k", DType::bf16, {2, 4, 130, 64}},
        {"v", DType::bf16, {2, 4, 130, 64}},
        {"m", DType::f32, {150, 130}}},
       2e-2},
      {"attention(q, k, v, m)",
       {{"q", DType::bf16, {2, 4, 150, 64}},
        {"k", DType::bf16, {2, 4, 130, 64}},
        {"v", DType::bf16, {2, 4, 130, 64}},
        {"m", DType::bf16, {2, 1, 150, 130}}},
       2e-2},
      {"attention(transpose(q, [0, 2, 1, 3]), k, v)",
       {{"q", DType::bf16, {2, 150, 4, 64}}, {"k", DType::bf16, {2, 4, 130, 64}}, {"v", DType::bf16, {2, 4, 130, 64}}},
       2e-2},
      {"attention(q, k, v)",
       {{"q", DType::f32, {2, 8, 1, 128}}, {"k", DType::f32, {2, 8, 4096, 128}}, {"v", DType::f32, {2, 8, 4096, 128}}},
       2e-5},
      {"attention(q, k, v)",
       {{"q", DType::f32, {2, 8, 1, 64}}, {"k", DType::f32, {2, 2, 1000, 64}}, {"v", DType::f32, {2, 2, 1000, 64}}},
       2e-5},
      {"attention(q, k, v)",
       {{"q", DType::f32, {2, 4, 3, 32}}, {"k", DType::f32, {2, 4, 257, 32}}, {"v", DType::f32, {2, 4, 257, 32}}},
       2e-5},
      {"attention(q, k, v)",
       {{"q", DType::f32, {2, 16, 2, 128}}, {"k", DType::f32, {2, 4, 333, 128}}, {"v", DType::f32, {2, 4, 333, 128}}},
       2e-5},
      {"attention(q, k, v, m > 0, causal=true)",
       {{"q", DType::f32, {2, 4, 5, 64}},
        {"k", DType::f32, {2, 4, 400, 64}},
        {"v", DType::f32, {2, 4, 400, 64}},
        {"m", DType::f32, {5, 400}}},
       2e-5},
      {"attention(q, k, v)",
       {{"q", DType::bf16, {2, 8, 1, 128}}, {"k", DType::bf16, {2, 8, 4096, 128}}, {"v", DType::bf16, {2, 8, 4096, 128}}},
       2e-2},
      {"attention(q, k, v)",
       {{"q", DType::bf16, {2, 8, 1, 64}}, {"k", DType::bf16, {2, 2, 1000, 64}}, {"v", DType::bf16, {2, 2, 1000, 64}}},
       2e-2},
      {"attention(q, k, v)",
       {{"q", DType::bf16, {2, 4, 3, 32}}, {"k", DType::bf16, {2, 4, 257, 32}}, {"v", DType::bf16, {2, 4, 257, 32}}},
       2e-2},
      {"attention(q, k, v)",
       {{"q", DType::bf16, {2, 16, 2, 128}}, {"k", DType::bf16, {2, 4, 333, 128}}, {"v", DType::bf16, {2, 4, 333, 128}}},
       2e-2},
      {"attention(q, k, v, m > 0, causal=true)",
       {{"q", DType::bf16, {2, 4, 5, 64}},
        {"k", DType::bf16, {2, 4, 400, 64}},
        {"v", DType::bf16, {2, 4, 400, 64}},
        {"m", DType::f32, {5, 400}}},
       2e-2},
      {"sort(a)", {{"a", DType::f32, {1'000'003}}}, 0},
      {"sort(a, descending=true)", {{"a", DType::f32, {300, 5000}}}, 0},
      {"sort(a)", {{"a", DType::f32, {3000, 1024}}}, 0},
      {"sort(a, axis=0)", {{"a", DType::f32, {900, 301}}}, 0},
      {"sort(a)", {{"a", DType::f64, {10, 20'001}}}, 0},
      {"sort(a)", {{"a", DType::bf16, {70, 9000}}}, 0},
      {"argsort(round(a * 3))", {{"a", DType::f32, {500'009}}}, 0},
      {"argsort(round(a * 3), descending=true)", {{"a", DType::f32, {77, 3000}}}, 0},
      {"argsort(cast(a * 100, int64))", {{"a", DType::f32, {50'000}}}, 0},
      {"argsort(where(a > 1, nan, where(a < -1, -0.0, a * 0)))", {{"a", DType::f32, {20'000}}}, 0},
      {"top_k(a, k=50)", {{"a", DType::f32, {300, 32000}}}, 0},
      {"top_k(round(a * 4), k=700, largest=false)", {{"a", DType::f32, {30, 32000}}}, 0},
      {"median(a, axis=1)", {{"a", DType::f32, {100, 4096}}}, 0},
      {"median(round(a), axis=1)", {{"a", DType::f32, {100, 30001}}}, 0},
      {"quantile(a, 0.3)", {{"a", DType::f32, {1'000'000}}}, 1e-6},
      {"scatter_add(a, expand(reshape(cast(abs(b) * 300, int64) % 1000, [5000, 1]), [5000, 64]), c, axis=0)",
       {{"a", DType::f32, {1000, 64}}, {"b", DType::f32, {5000}}, {"c", DType::f32, {5000, 64}}},
       1e-6},
      {"scatter(a, expand(reshape(cast(abs(b) * 300, int64) % 1000, [5000, 1]), [5000, 36]), c, axis=0)",
       {{"a", DType::f32, {1000, 36}}, {"b", DType::f32, {5000}}, {"c", DType::f32, {5000, 36}}},
       0},
      {"scatter_add(a, cast(abs(b) * 300, int64) % 1000, c, axis=0)",
       {{"a", DType::f32, {1000, 64}}, {"b", DType::f32, {5000, 64}}, {"c", DType::f32, {5000, 64}}},
       1e-6},
      {"take(a, cast(abs(b) * 300, int64) % 1000)", {{"a", DType::bf16, {1000, 96}}, {"b", DType::f32, {7000}}}, 0},
      {"rand([1000, 1001], seed=5) + a", {{"a", DType::f32, {1}}}, 0},
      {"conv2d(x, w, padding=1, groups=64)", {{"x", DType::f32, {16, 64, 57, 55}}, {"w", DType::f32, {128, 1, 3, 3}}}, 2e-6},
      {"conv2d(x, w, padding=2, stride=2, groups=64)",
       {{"x", DType::bf16, {16, 64, 56, 56}}, {"w", DType::bf16, {64, 1, 5, 5}}},
       8e-3},
      {"max_pool2d(x, 3, stride=2, padding=1)", {{"x", DType::f32, {16, 64, 57, 55}}}, 0},
      {"avg_pool2d(x, 3, stride=2, padding=1)", {{"x", DType::f32, {16, 64, 56, 56}}}, 1e-6},
      {"conv2d(x, w, padding=1)", {{"x", DType::f32, {16, 64, 56, 56}}, {"w", DType::f32, {64, 64, 3, 3}}}, 2e-6},
      {"conv2d(x, w, padding=1, stride=2, groups=4)",
       {{"x", DType::f32, {16, 64, 56, 56}}, {"w", DType::f32, {64, 16, 3, 3}}},
       2e-6},
      {"conv2d(x, w)", {{"x", DType::bf16, {16, 64, 56, 56}}, {"w", DType::bf16, {128, 64, 1, 1}}}, 8e-3},
      {"gelu(a * b + 0.5)", {{"a", DType::f32, {3'000'001}}, {"b", DType::f32, {3'000'001}}}, 1e-6},
  };
  for (const Program& program : programs) {
    const Graph graph = parse_expression(program.expression, program.inputs);
    std::vector<HostArray> inputs;
    for (const NamedType& type : program.inputs) {
      Graph fill;
      fill.set_outputs({fill.cast(fill.random(type.shape, DType::f32, true, inputs.size() + 1), type.dtype)});
      inputs.push_back(run(*processor, fill, {})[0]);
    }
    const HostArray got = run(*device, graph, inputs)[0], wanted = run(*processor, graph, inputs)[0];
    EXPECT_LE(worst_error(got, wanted), program.bound)
        << program.expression << " of " << to_string(program.inputs[0].shape) << " " << name(program.inputs[0].dtype);
  }
}

// On the matrix units where they take it (not the window of 7 x 7, nor three axes); of small integers, whose sums are exact, so
// that only the last rounding is left.
TEST_F(CardTest, ConvolutionsOfSixteenBitsAreRightToTheLastBit) {
  const auto device = open();
  const std::unique_ptr<Backend> processors = cpu::make_backend();
  const auto processor = processors->open(processors->devices().at(0));
  struct Convolution {
    std::string expression;
    Shape x, w;
  };
  const std::vector<Convolution> convolutions{
      {"conv2d(x, w, padding=1)", {4, 64, 56, 56}, {64, 64, 3, 3}},
      {"conv2d(x, w, padding=1)", {2, 48, 27, 31}, {80, 48, 3, 3}},
      {"conv2d(x, w)", {3, 17, 19, 33}, {9, 17, 5, 2}},
      {"conv2d(x, w, padding=1, stride=2)", {2, 64, 56, 56}, {130, 64, 3, 3}},
      {"conv2d(x, w, padding=[2, 0], stride=[1, 2], dilation=[2, 3])", {2, 33, 40, 38}, {24, 33, 3, 3}},
      {"conv2d(x, w, padding=1, groups=4)", {2, 128, 15, 14}, {64, 32, 3, 3}},
      {"conv2d(x, w, stride=2)", {2, 32, 28, 28}, {64, 32, 1, 1}},
      {"conv2d(x, w, padding=3, stride=2)", {1, 16, 112, 112}, {64, 16, 7, 7}},
      {"conv2d(x, w)", {1, 64, 1, 300}, {32, 64, 1, 3}},
      {"conv2d(x, w, padding=1)", {16, 72, 31, 33}, {100, 72, 3, 3}},
      {"conv2d(x, w, padding=[2, 0], stride=[1, 2], dilation=[2, 3])", {24, 64, 40, 38}, {136, 64, 3, 3}},
      {"conv_transpose2d(x, w, stride=2, padding=1)", {32, 128, 28, 28}, {128, 96, 4, 4}},
      {"conv1d(x, w, padding=2)", {3, 40, 1001}, {72, 40, 5}},
      {"conv3d(x, w)", {1, 16, 8, 9, 10}, {16, 16, 3, 3, 3}},
  };
  for (const DType dtype : {DType::bf16, DType::f16})
    for (const Convolution& convolution : convolutions) {
      const Graph graph = parse_expression(convolution.expression, {{"x", dtype, convolution.x}, {"w", dtype, convolution.w}});
      std::vector<HostArray> inputs;
      for (const Shape& shape : {convolution.x, convolution.w}) {
        const Graph fill = parse_expression("clip(round(a), -3, 3)", {{"a", dtype, shape}});
        Graph noise;
        noise.set_outputs({noise.cast(noise.random(shape, DType::f32, true, inputs.size() + 1), dtype)});
        inputs.push_back(run(*processor, fill, {run(*processor, noise, {})[0]})[0]);
      }
      EXPECT_EQ(worst_error(run(*device, graph, inputs)[0], run(*processor, graph, inputs)[0]), 0)
          << convolution.expression << " of " << to_string(convolution.x) << " and " << to_string(convolution.w) << " "
          << name(dtype);
    }
}

TEST_F(CardTest, ProductsOfTheLibraryHaveTheValuesOfTheReferenceInEveryLayout) {
  if (!blas_library()) GTEST_SKIP() << "cuBLASLt is not installed";
  const auto device = open({.library_from = 0});
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f64}) {
    const double bound = dtype == DType::f64 ? 1e-14 : dtype == DType::f32 ? 2e-6 : dtype == DType::f16 ? 1e-3 : 8e-3;
    expect_as_reference(*device, "matmul(a, b)", {{"a", dtype, {40, 72}}, {"b", dtype, {72, 56}}}, bound);
    expect_as_reference(*device, "matmul(transpose(a), b)", {{"a", dtype, {72, 40}}, {"b", dtype, {72, 56}}}, bound);
    expect_as_reference(*device, "matmul(a, transpose(b))", {{"a", dtype, {40, 72}}, {"b", dtype, {56, 72}}}, bound);
    expect_as_reference(*device, "matmul(transpose(a), transpose(b))", {{"a", dtype, {72, 40}}, {"b", dtype, {56, 72}}}, bound);
    expect_as_reference(*device, "matmul(a, b)", {{"a", dtype, {3, 17, 5}}, {"b", dtype, {3, 5, 9}}}, bound);
    expect_as_reference(*device, "matmul(a, b)", {{"a", dtype, {3, 17, 5}}, {"b", dtype, {5, 9}}}, bound);
    expect_as_reference(*device, "matmul(a, b)", {{"a", dtype, {1, 33}}, {"b", dtype, {33, 1}}}, bound);
    expect_as_reference(*device, "gelu(matmul(a, b) + c)", {{"a", dtype, {40, 72}}, {"b", dtype, {72, 56}}, {"c", dtype, {56}}},
                        bound);
  }
}

TEST_F(CardTest, ABiasAndAnActivationBehindALibraryProductHaveTheValuesOfTheReference) {
  if (!blas_library()) GTEST_SKIP() << "cuBLASLt is not installed";
  const auto device = open({.library_from = 0});
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    const double bound = dtype == DType::f32 ? 2e-6 : dtype == DType::f16 ? 1e-3 : 8e-3;
    const std::vector<NamedType> types{{"a", dtype, {96, 72}}, {"b", dtype, {72, 64}}, {"c", dtype, {64}}};
    for (const char* expression : {"matmul(a, b) + c", "relu(matmul(a, b) + c)", "relu(matmul(a, b))", "c + matmul(a, b)",
                                   "gelu(matmul(a, b) + c, approximate=\"tanh\")", "gelu(matmul(a, b) + c)",
                                   "sum(relu(matmul(a, b) + c), axis=0)", "relu(linear(a, transpose(b), c))"})
      expect_as_reference(*device, expression, types, bound);
    expect_as_reference(*device, "relu(matmul(a, b) + c)",
                        {{"a", dtype, {3, 40, 72}}, {"b", dtype, {3, 72, 64}}, {"c", dtype, {64}}}, bound);
  }
}

TEST_F(CardTest, ResultsOfAProductInSixteenBitsAreRoundedOnceAlsoBehindAnActivation) {
  if (!blas_library()) GTEST_SKIP() << "cuBLASLt is not installed";
  const auto device = open({.library_from = 0});
  for (const char* expression :
       {"relu(matmul(a, b) + c)", "gelu(matmul(a, b) + c)", "gelu(matmul(a, b) + c, approximate=\"tanh\")"}) {
    const std::vector<NamedType> types{{"a", DType::bf16, {256, 64}}, {"b", DType::bf16, {64, 256}}, {"c", DType::bf16, {256}}};
    const Graph graph = parse_expression(expression, types);
    std::vector<HostArray> inputs;
    for (const NamedType& type : types) inputs.push_back(random(type.dtype, type.shape, inputs.size() + 1));
    const std::vector<double> got = run(*device, graph, inputs)[0].to_doubles(),
                              wanted = reference_run(graph, inputs)[0].to_doubles();
    std::size_t different = 0;
    for (std::size_t i = 0; i < got.size(); ++i) different += got[i] != wanted[i];
    EXPECT_LE(different, got.size() / 1000) << expression;
  }
}

TEST_F(CardTest, NotANumberPassesThroughAnActivationBehindALibraryProduct) {
  if (!blas_library()) GTEST_SKIP() << "cuBLASLt is not installed";
  const auto device = open({.library_from = 0});
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const std::vector<NamedType> types{{"a", dtype, {64, 64}}, {"b", dtype, {64, 64}}, {"c", dtype, {64}}};
    for (const char* expression : {"relu(matmul(a, b) + c)", "gelu(matmul(a, b) + c, approximate=\"tanh\")"}) {
      const HostArray got =
          run(*device, parse_expression(expression, types),
              {HostArray::full(dtype, {64, 64}, NAN), HostArray::full(dtype, {64, 64}, 1), HostArray::zeros(dtype, {64})})[0];
      EXPECT_TRUE(std::isnan(got.value(5))) << expression << " " << name(dtype);
    }
  }
}

TEST_F(CardTest, ProductsInF32AreNotRoundedToTf32) {
  const auto device = open({.library_from = 0});
  const HostArray a = HostArray::full(DType::f32, {64, 64}, 1 + std::ldexp(1.0, -20)),
                  b = HostArray::full(DType::f32, {64, 64}, 1);
  const HostArray product =
      run(*device, parse_expression("matmul(a, b)", {{"a", DType::f32, {64, 64}}, {"b", DType::f32, {64, 64}}}), {a, b})[0];
  EXPECT_NEAR(product.value(0), 64 * (1 + std::ldexp(1.0, -20)), 1e-6 * 64);
  EXPECT_GT(product.value(0), 64);
}

TEST_F(CardTest, LargeArraysComeBackAsTheyWere) {
  const auto device = open();
  for (const std::int64_t count : {1, 16'384, 16'385, 300'000, 50'000'001}) {
    const HostArray array = HostArray::full(DType::f32, {count}, 0.75);
    const HostArray back = device->download(*device->upload(array));
    ASSERT_EQ(back.bytes(), array.bytes());
    EXPECT_EQ(std::memcmp(back.data(), array.data(), array.bytes()), 0);
  }
}

TEST_F(CardTest, SeveralThreadsMayUseItAtOnce) {
  const auto device = open();
  const auto program =
      device->compile(parse_expression("cumsum(a, axis=0) * b", {{"a", DType::f32, {5000}}, {"b", DType::f32, {1}}}));
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 1; t <= 4; ++t)
    threads.emplace_back([&, t] {
      const auto a = device->upload(HostArray::full(DType::f32, {5000}, 1)),
                 b = device->upload(HostArray::full(DType::f32, {1}, t));
      const auto c = device->allocate({DType::f32, {5000}});
      for (int i = 0; i < 50; ++i) {
        program->run({a.get(), b.get()}, {c.get()});
        if (device->download(*c).value(4999) != 5000.0 * t) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(CardTest, ABadIndexIsOutOfRange) {
  const auto device = open();
  const Graph graph = parse_expression("take(a, i, axis=0)", {{"a", DType::f32, {10}}, {"i", DType::i64, {2}}});
  const HostArray a = HostArray::zeros(DType::f32, {10}), bad = HostArray::full(DType::i64, {2}, 10);
  try {
    run(*device, graph, {a, bad});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::out_of_range) << error.what();
  }
  EXPECT_FALSE(device->is_lost());
}

TEST_F(CardTest, ALibraryProductWorksAfterClosingAndOpeningAgain) {
  if (!blas_library()) GTEST_SKIP() << "cuBLASLt is not installed";
  for (int i = 0; i < 2; ++i) {
    const auto device = open({.library_from = 0});
    expect_as_reference(*device, "matmul(a, b)", {{"a", DType::f32, {64, 64}}, {"b", DType::f32, {64, 64}}}, 2e-6);
    device->close();
  }
}

// In a process of its own: it can never use the card itself again.
TEST_F(CardTest, ALostCardSaysSoAndOpensAgain) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto lose_and_open = [&] {
    {
      Context context(driver(), info_, nullptr, {});
      const std::vector<std::byte> binary =
          compile(nvrtc(), "extern \"C\" __global__ void broken(int* p) { p[threadIdx.x] = 1; }", "", context.card().capability);
      RawModule module = nullptr;
      RawFunction function = nullptr;
      context.check(driver().module_load(&module, binary.data()), "loading");
      context.check(driver().module_function(&function, module, "broken"), "finding");
      std::uint64_t nowhere = 16;
      void* arguments[] = {&nowhere};
      context.check(driver().launch(function, 1, 1, 1, 1, 1, 1, 0, context.stream(), arguments, nullptr), "launching");
      EXPECT_THROW(context.wait(), Error);
      EXPECT_TRUE(context.is_lost());
      EXPECT_THROW(context.enter(), Error);
      context.close();
    }
    const auto device = make_backend()->open(info_, {});
    expect_as_reference(*device, "a + 1", {{"a", DType::f32, {100}}}, 1e-6);
    device->close();
    std::exit(HasFailure() ? 1 : 0);
  };
  EXPECT_EXIT(lose_and_open(), testing::ExitedWithCode(0), "");
}

TEST_F(CardTest, TwoHundredCyclesOfOpeningAndClosingLeaveTheCardsMemoryAsItWas) {
  const auto free_bytes = [&] {
    Context context(driver(), info_, nullptr, {});
    std::size_t free = 0, total = 0;
    driver().memory_info(&free, &total);
    return free;
  };
  const std::size_t before = free_bytes();
  for (int i = 0; i < 200; ++i) {
    const auto device = open();
    expect_as_reference(*device, "a + 1", {{"a", DType::f32, {100}}}, 1e-6);
    device->close();
  }
  EXPECT_GE(free_bytes() + (std::size_t{16} << 20), before);
}

}  // namespace
}  // namespace tenon::cuda
