// The accuracy promised for the CPU, measured directly: no error model in between (see docs/conformance.md for the limits).
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "backends/cpu/backend.h"
#include "conformance/cases/values.h"
#include "conformance/judge/limits.h"
#include "ops/elementwise/elementwise.h"
#include "reference/reference.h"
#include "tenon/ops.h"

namespace tenon::conformance {
namespace {

HostArray run_on(ThreadPool& pool, const Graph& graph, std::span<const HostArray> arrays) {
  const std::unique_ptr<OpenDevice> device = cpu::open_with(pool);
  const std::unique_ptr<Executable> program = device->compile(graph);
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<const Buffer*> inputs;
  for (const HostArray& x : arrays) {
    buffers.push_back(device->upload(x));
    inputs.push_back(buffers.back().get());
  }
  const std::unique_ptr<Buffer> output = device->allocate(program->output_types()[0]);
  Buffer* const outputs[] = {output.get()};
  program->run(inputs, outputs);
  return device->download(*output);
}

// --- Sums ---
class LongSum : public testing::TestWithParam<int> {};

// Exact to far beyond f32: integers of 2^-30.
double exact_sum(std::span<const float> values) {
  __extension__ using Wide = __int128;
  Wide total = 0;
  for (float v : values) total += static_cast<Wide>(std::ldexp(static_cast<double>(v), 30));
  return std::ldexp(static_cast<double>(total), -30);
}

TEST_P(LongSum, Of16MillionRandomFloatsIsWithinOneInAMillion) {
  constexpr std::int64_t n = 16 << 20;
  HostArray x = HostArray::empty(DType::f32, Shape{n});
  std::uint64_t state = 1;
  for (float& v : x.mutable_view<float>()) v = static_cast<float>(mix(++state, 7) >> 40) * 0x1p-24f;
  Graph graph;
  const NodeId in = graph.input("x", DType::f32, x.shape());
  graph.set_outputs(apply(graph, "sum", {in}));
  ThreadPool pool(GetParam());
  const HostArray arrays[] = {x};
  const double got = run_on(pool, graph, arrays).value(0), expected = exact_sum(x.view<float>());
  EXPECT_LT(std::abs(got - expected) / expected, 1e-6);
}

TEST_P(LongSum, OfBothSignsIsWithinOneInAMillionOfItsMagnitudes) {
  constexpr std::int64_t n = 16 << 20;
  HostArray x = HostArray::empty(DType::f32, Shape{n});
  std::uint64_t state = 1;
  double magnitudes = 0;
  for (float& v : x.mutable_view<float>()) {
    v = static_cast<float>(static_cast<std::int64_t>(mix(++state, 9) >> 40) - (1 << 23)) * 0x1p-23f;
    magnitudes += std::abs(v);
  }
  Graph graph;
  const NodeId in = graph.input("x", DType::f32, x.shape());
  graph.set_outputs(apply(graph, "sum", {in}));
  ThreadPool pool(GetParam());
  const HostArray arrays[] = {x};
  EXPECT_LT(std::abs(run_on(pool, graph, arrays).value(0) - exact_sum(x.view<float>())) / magnitudes, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Threads, LongSum, testing::Values(1, 2, 3),
                         [](const testing::TestParamInfo<int>& chosen) { return std::to_string(chosen.param); });

// --- Elementwise ops ---
struct Measured {
  double worst_ulp = 0;
  std::int64_t elements = 0, not_rounded = 0;
  bool classes_agree = true;  // NaN with NaN, infinities by sign
};

std::vector<HostArray> random_inputs(const OpInfo& op, DType dtype, std::int64_t n) {
  std::vector<HostArray> arrays;
  for (int i = 0; i < op.min_inputs; ++i) {
    const bool condition = i == 0 && traits(*op.elementwise).condition;
    const std::uint64_t seed = mix(static_cast<std::uint64_t>(*op.elementwise), static_cast<std::uint64_t>(i));
    arrays.push_back(filled({condition ? Values::mask : Values::mixed}, condition ? DType::boolean : dtype, Shape{n}, seed));
  }
  return arrays;
}

Measured measure(const OpInfo& op, DType dtype, std::int64_t n) {
  const std::vector<HostArray> arrays = random_inputs(op, dtype, n);
  Graph graph;
  std::vector<NodeId> nodes;
  for (const HostArray& x : arrays) nodes.push_back(graph.input("x", x.dtype(), x.shape()));
  graph.set_outputs(apply(graph, op, nodes));
  const DType out = graph[graph.outputs()[0]].dtype;
  const std::vector<double> got = run_on(process_pool(), graph, arrays).to_doubles();
  const std::vector<double> exact = reference_doubles(graph, arrays)[0];
  // What the nearest f32 rounds to.
  const HostArray nearest = HostArray::from<double>(Shape{n}, exact);
  const std::vector<double> rounded = (is_float(out) ? nearest.cast(DType::f32).cast(out) : nearest).to_doubles();
  Measured m{.elements = n};
  for (std::size_t i = 0; i < got.size(); ++i) {
    const bool same = got[i] == rounded[i] || (std::isnan(got[i]) && std::isnan(rounded[i]));
    if (same) continue;
    ++m.not_rounded;
    if (!is_float(out) || !std::isfinite(got[i]) || !std::isfinite(rounded[i])) {
      // Next to the largest number an infinity may be one rounding away.
      const bool edge = is_float(out) && !std::isnan(got[i]) && !std::isnan(exact[i]) && got[i] * exact[i] > 0 &&
                        std::abs(exact[i]) > 0.999 * (out == DType::f16 ? 65504.0 : 3.3e38) && std::abs(exact[i]) < 3.5e38;
      m.classes_agree = m.classes_agree && edge;
      continue;
    }
    const double target = out == DType::f32 ? exact[i] : rounded[i];
    m.worst_ulp = std::max(m.worst_ulp, std::abs(got[i] - target) / ulp(target, out));
  }
  return m;
}

TEST(Accuracy, EveryElementwiseOpInFloat32IsWithin4UlpOfTheReference) {
  for (const OpInfo& op : all_ops()) {
    if (!op.elementwise || (traits(*op.elementwise).kinds & kFloats) == 0) continue;
    const Measured m = measure(op, DType::f32, 20'011);
    EXPECT_TRUE(m.classes_agree) << op.name << ": NaN or an infinity where there should be none, or the other way round";
    EXPECT_LE(m.worst_ulp, 4) << op.name;
  }
}

TEST(Accuracy, HalfPrecisionIsTheRoundedResultIn999OutOf1000AndNeverMoreThanOneUlpOff) {
  for (DType dtype : {DType::bf16, DType::f16})
    for (const OpInfo& op : all_ops()) {
      if (!op.elementwise || (traits(*op.elementwise).kinds & kFloats) == 0) continue;
      const Measured m = measure(op, dtype, 20'011);
      EXPECT_TRUE(m.classes_agree) << op.name << " " << name(dtype);
      EXPECT_LE(m.worst_ulp, 1) << op.name << " " << name(dtype);
      EXPECT_LE(static_cast<double>(m.not_rounded), (1 - kRoundedShare) * static_cast<double>(m.elements))
          << op.name << " " << name(dtype);
    }
}

// --- Block formats ---
struct BlockVector {
  DType dtype;
  std::vector<float> values, stored;
};

TEST(Accuracy, BlockFormatsAreBitExactOnTheKnownVectors) {
  const float awkward = 0.50781256f;  // 0x3F020001: the shifted-out bit decides, and is lost
  const std::vector<BlockVector> vectors{
      {DType::bfloat8_b, {1, 0.008f}, {1, 0.015625f}},
      {DType::bfloat8_b, {1.9999999f, -0.3f, awkward}, {1.984375f, -0.296875f, 0.5f}},
      {DType::bfloat8_b, {3.14159f, 2.71828f, 1.41421f, 0.57721f}, {3.15625f, 2.71875f, 1.40625f, 0.5625f}},
      {DType::bfloat4_b, {1, 0.13f}, {1, 0.25f}},
      {DType::bfloat4_b, {3.14159f, 2.71828f, 1.41421f, 0.57721f}, {3, 2.5f, 1.5f, 0.5f}},
      {DType::bfloat4_b, {1.5f, -0.3f, 0.7f, 0.1f, 0.125f, 0.375f}, {1.5f, -0.25f, 0.75f, 0, 0, 0.5f}},
  };
  for (const BlockVector& v : vectors) {
    const Shape shape{static_cast<std::int64_t>(v.values.size())};
    const HostArray x = HostArray::from<float>(shape, v.values);
    Graph graph;
    const NodeId in = graph.input("x", DType::f32, shape);
    graph.set_outputs({graph.cast(in, v.dtype)});
    const HostArray arrays[] = {x};
    const HostArray got = run_on(process_pool(), graph, arrays);
    for (std::int64_t i = 0; i < got.elements(); ++i)
      EXPECT_EQ(got.value(i), v.stored[static_cast<std::size_t>(i)]) << name(v.dtype) << " element " << i;
    const HostArray host = x.cast(v.dtype);
    ASSERT_EQ(got.bytes(), host.bytes());
    EXPECT_EQ(std::memcmp(got.data(), host.data(), host.bytes()), 0);
  }
}

}  // namespace
}  // namespace tenon::conformance
