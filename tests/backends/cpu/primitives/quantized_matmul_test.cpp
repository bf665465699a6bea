#include "backends/cpu/primitives/matmul/quantized_matmul.h"

#include <gtest/gtest.h>

#include <cmath>

#include "backends/quantized_operands.h"
#include "base/threads/thread_pool.h"
#include "reference/reference.h"
#include "tenon/backend.h"

namespace tenon::cpu {
namespace {

class QuantizedMatMul : public testing::TestWithParam<QuantizedCase> {};

TEST_P(QuantizedMatMul, EqualsItsNodesOnEveryUnit) {
  const QuantizedOperands o = quantized_operands(GetParam());
  std::vector<HostArray> inputs{o.x, o.codes, o.scales};
  if (GetParam().has_minima) inputs.push_back(o.minima);
  const HostArray expected = reference_run(quantized_graph(o), inputs)[0];
  double largest = 0;
  for (const float value : expected.view<float>()) largest = std::max(largest, std::abs(static_cast<double>(value)));
  ThreadPool pool(2);
  std::vector<float> by_vnni;
  for (const IntegerUnit unit : {IntegerUnit::base, IntegerUnit::avx2, IntegerUnit::vnni, IntegerUnit::amx}) {
    if (!has_integer_unit(unit)) continue;
    HostArray out = HostArray::empty(DType::f32, Shape{GetParam().m, kQuantizedRows});
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

INSTANTIATE_TEST_SUITE_P(AllForms, QuantizedMatMul, testing::ValuesIn(quantized_cases({1, 2, 7, 19, 32})));

TEST(QuantizedMatMulOfNan, IsNan) {
  QuantizedOperands o = quantized_operands({4, 32, true, true, 1});
  o.x.mutable_view<float>()[50] = std::nanf("");
  const auto run = [&](const Graph& graph) {
    return reference_run(graph, std::vector<HostArray>{o.x, o.codes, o.scales, o.minima})[0];
  };
  EXPECT_TRUE(std::isnan(run(quantized_graph(o)).value(0)));
  ThreadPool pool(1);
  HostArray out = HostArray::zeros(DType::f32, Shape{1, kQuantizedRows});
  std::vector<std::byte> scratch(quantized_matmul_scratch_bytes(o.x.shape(), o.attr));
  quantized_matmul(pool, dense_view(o.x.data(), DType::f32, o.x.shape()),
                   {o.codes.view<std::uint8_t>().data(), o.scales.data(), o.minima.data(), true}, o.attr,
                   dense_target(out.mutable_data(), DType::f32, out.shape()), scratch);
  EXPECT_TRUE(std::isnan(out.value(0)));
}

}  // namespace
}  // namespace tenon::cpu
