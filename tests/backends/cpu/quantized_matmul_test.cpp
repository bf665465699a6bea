#include "backends/cpu/primitives/quantized_matmul.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/thread_pool.h"
#include "ops/quantized_matmul.h"
#include "reference/reference.h"
#include "tenon/backend.h"

namespace tenon::cpu {
namespace {

struct Case {
  int bits;
  std::int64_t group;
  bool has_minima, has_half_scales;
  std::int64_t m;
};
std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.bits << " bits, groups of " << c.group << (c.has_minima ? ", minima" : "")
             << (c.has_half_scales ? ", half scales" : "") << ", " << c.m << " rows";
}

constexpr std::int64_t kColumns = 96, kRows = 48;

struct Operands {
  HostArray x, codes, scales, minima;
  QuantizedMatMulAttr attr;
};

Operands operands_of(const Case& c) {
  std::mt19937 random(static_cast<unsigned>(c.bits * 100 + c.group + c.m));
  std::normal_distribution<float> normal;
  const auto floats = [&](const Shape& shape, float scale) {
    HostArray out = HostArray::empty(DType::f32, shape);
    for (float& value : out.mutable_view<float>()) value = normal(random) * scale;
    return out;
  };
  Operands o;
  o.attr = {c.bits, c.group, c.bits == 8 ? 128 : c.has_minima ? 0 : 8};
  o.x = floats(Shape{c.m, kColumns}, 3);
  // A block of zeros has no step, and a row of very different sizes tests the steps.
  for (int i = 0; i < 32; ++i) o.x.mutable_view<float>()[static_cast<std::size_t>(i)] = 0;
  o.x.mutable_view<float>()[40] = 1000;
  o.codes = HostArray::empty(DType::u8, Shape{kRows / 16, kColumns / c.group, c.group * c.bits / 32, 16, 4});
  for (std::uint8_t& code : o.codes.mutable_view<std::uint8_t>()) code = static_cast<std::uint8_t>(random());
  const DType dtype = c.has_half_scales ? DType::f16 : DType::f32;
  const Shape scales{kRows / 16, kColumns / c.group, 16};
  o.scales = floats(scales, 0.02f).cast(dtype);
  if (c.has_minima) o.minima = floats(scales, 0.1f).cast(dtype);
  return o;
}

Graph graph_of(const Operands& o) {
  Graph graph;
  const NodeId x = graph.input("x", DType::f32, o.x.shape());
  std::vector<NodeId> matrix{graph.input("codes", DType::u8, o.codes.shape()),
                             graph.input("scales", o.scales.dtype(), o.scales.shape())};
  if (o.minima.elements() > 0) matrix.push_back(graph.input("minima", o.minima.dtype(), o.minima.shape()));
  graph.set_outputs({tenon::quantized_matmul(graph, x, matrix, o.attr)});
  return graph;
}

class QuantizedMatMul : public testing::TestWithParam<Case> {};

TEST_P(QuantizedMatMul, EqualsItsNodesOnEveryUnit) {
  const Operands o = operands_of(GetParam());
  std::vector<HostArray> inputs{o.x, o.codes, o.scales};
  if (GetParam().has_minima) inputs.push_back(o.minima);
  const HostArray expected = reference_run(graph_of(o), inputs)[0];
  double largest = 0;
  for (const float value : expected.view<float>()) largest = std::max(largest, std::abs(static_cast<double>(value)));
  ThreadPool pool(2);
  std::vector<float> by_vnni;
  for (const IntegerUnit unit : {IntegerUnit::base, IntegerUnit::avx2, IntegerUnit::vnni, IntegerUnit::amx}) {
    if (!has_integer_unit(unit)) continue;
    HostArray out = HostArray::empty(DType::f32, Shape{GetParam().m, kRows});
    std::vector<std::byte> scratch(quantized_matmul_scratch_bytes(o.x.shape(), o.attr) + 64);
    auto* aligned = reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(scratch.data()) + 63) / 64 * 64);
    const QuantizedMatrix matrix{o.codes.view<std::uint8_t>().data(), o.scales.data(),
                                 GetParam().has_minima ? o.minima.data() : nullptr, GetParam().has_half_scales};
    quantized_matmul(pool, dense_view(o.x.data(), DType::f32, o.x.shape()), matrix, o.attr,
                     dense_target(out.mutable_data(), DType::f32, out.shape()),
                     {aligned, quantized_matmul_scratch_bytes(o.x.shape(), o.attr)}, unit);
    for (std::int64_t i = 0; i < out.elements(); ++i)
      ASSERT_NEAR(out.value(i), expected.value(i), 2e-5 * largest)
          << GetParam() << ", unit " << static_cast<int>(unit) << " at " << i;
    // A row of a prompt, which fills tiles, is to have the bits of a row alone.
    const std::vector<float> values(out.view<float>().begin(), out.view<float>().end());
    if (unit == IntegerUnit::vnni) by_vnni = values;
    if (unit == IntegerUnit::amx) {
      EXPECT_EQ(values, by_vnni) << GetParam();
    }
  }
}

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const int bits : {4, 8})
    for (const std::int64_t group : {16, 32})
      for (const bool minima : {false, true})
        for (const bool half : {false, true})
          for (const std::int64_t m : {1, 2, 7, 19, 32}) out.push_back({bits, group, minima, half, m});
  return out;
}
INSTANTIATE_TEST_SUITE_P(AllForms, QuantizedMatMul, testing::ValuesIn(cases()));

TEST(QuantizedMatMulOfNan, IsNan) {
  Operands o = operands_of({4, 32, true, true, 1});
  o.x.mutable_view<float>()[50] = std::nanf("");
  const auto run = [&](const Graph& graph) {
    return reference_run(graph, std::vector<HostArray>{o.x, o.codes, o.scales, o.minima})[0];
  };
  EXPECT_TRUE(std::isnan(run(graph_of(o)).value(0)));
  ThreadPool pool(1);
  HostArray out = HostArray::zeros(DType::f32, Shape{1, kRows});
  std::vector<std::byte> scratch(quantized_matmul_scratch_bytes(o.x.shape(), o.attr));
  quantized_matmul(pool, dense_view(o.x.data(), DType::f32, o.x.shape()),
                   {o.codes.view<std::uint8_t>().data(), o.scales.data(), o.minima.data(), true}, o.attr,
                   dense_target(out.mutable_data(), DType::f32, out.shape()), scratch);
  EXPECT_TRUE(std::isnan(out.value(0)));
}

}  // namespace
}  // namespace tenon::cpu
