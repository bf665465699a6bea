#include "backends/cpu/primitives/attention.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "backends/cpu/executable.h"
#include "backends/cpu/plain.h"
#include "tenon/ops.h"

namespace tenon::cpu {
namespace {

Graph attention_of(DType dtype, std::int64_t heads, std::int64_t rows, std::int64_t keys, std::int64_t width) {
  Graph graph;
  const NodeId q = graph.input("q", dtype, {1, heads, rows, width});
  const NodeId k = graph.input("k", dtype, {1, heads, keys, width}), v = graph.input("v", dtype, {1, heads, keys, width});
  graph.set_outputs(apply(graph, "attention", {q, k, v}));
  return graph;
}

TEST(Attention, NeedsMemoryThatIsLinearInItsRows) {
  ThreadPool pool(2);
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const CpuExecutable small(attention_of(dtype, 2, 2048, 2048, 64), pool), large(attention_of(dtype, 2, 8192, 8192, 64), pool);
    EXPECT_LT(large.workspace_bytes(), std::size_t{8192} * 8192 * 4 / 8);
    EXPECT_LE(large.workspace_bytes(), 5 * small.workspace_bytes());
  }
}

std::vector<double> by_definition(const AttentionOperands& x, const AttentionAttr& attr) {
  const Shape q = x.q.shape, v = x.v.shape;
  std::vector<double> result;
  for (std::int64_t n = 0; n < q[0]; ++n)
    for (std::int64_t h = 0; h < q[1]; ++h)
      for (std::int64_t i = 0; i < q[2]; ++i) {
        const std::int64_t group = h / (q[1] / v[1]);
        std::vector<double> weights;
        double total = 0;
        for (std::int64_t j = 0; j < v[2]; ++j) {
          double score = 0;
          for (std::int64_t e = 0; e < q[3]; ++e)
            score += static_cast<double>(plain::at<float>(x.q, {n, h, i, e})) *
                     static_cast<double>(plain::at<float>(x.k, {n, group, j, e}));
          score *= attr.scale;
          if (x.has_mask && plain::at<std::uint8_t>(x.mask, {n, h, i, j}) == 0) score = -INFINITY;
          if (attr.causal && j > i) score = -INFINITY;
          weights.push_back(std::exp(score));
          total += weights.back();
        }
        for (std::int64_t d = 0; d < v[3]; ++d) {
          double sum = 0;
          for (std::int64_t j = 0; j < v[2]; ++j)
            sum += weights[static_cast<std::size_t>(j)] * static_cast<double>(plain::at<float>(x.v, {n, group, j, d}));
          result.push_back(total == 0 ? 0 : sum / total);
        }
      }
  return result;
}

// Every way through it: tiles that do not divide the rows, heads that share keys, parts of the keys, one row.
TEST(Attention, IsTheSameForEveryDivisionAndNumberOfThreads) {
  struct Case {
    Shape q, k;
    bool causal, masked;
  };
  for (const Case& c : {Case{{1, 1, 1, 8}, {1, 1, 700, 8}, false, false}, Case{{1, 4, 2, 8}, {1, 2, 1500, 8}, false, true},
                        Case{{2, 6, 70, 5}, {2, 2, 300, 5}, false, false}, Case{{1, 2, 150, 16}, {1, 1, 150, 16}, true, false},
                        Case{{1, 1, 3, 1}, {1, 1, 2, 1}, true, true}, Case{{1, 1, 40, 64}, {1, 1, 2000, 64}, true, false}}) {
    const Shape v_shape = c.k.with(3, 7), out_shape = c.q.with(3, 7), scores = c.q.with(3, c.k[2]);
    const auto q = plain::numbers<float>(c.q.elements(), 1), k = plain::numbers<float>(c.k.elements(), 2),
               v = plain::numbers<float>(v_shape.elements(), 3);
    std::vector<std::uint8_t> mask(static_cast<std::size_t>(scores.elements()));
    for (std::size_t i = 0; i < mask.size(); ++i) mask[i] = static_cast<std::uint8_t>(i * 7 % 11 < 5);
    std::fill_n(mask.begin(), c.k[2], std::uint8_t{0});  // the first row sees nothing
    AttentionOperands x{plain::view(q, c.q), plain::view(k, c.k), plain::view(v, v_shape), {}, c.masked, DType::f32};
    if (c.masked) x.mask = dense_view(mask.data(), DType::boolean, scores);
    const AttentionAttr attr{1 / std::sqrt(static_cast<double>(c.q[3])), c.causal};
    const std::vector<double> expected = by_definition(x, attr);
    std::vector<float> first;
    plain::with_pools([&](ThreadPool& pool) {
      const std::size_t bytes = attention_scratch_bytes(pool, c.q, c.k, v_shape, x.rounded);
      std::vector<std::byte> scratch(bytes + 64);
      auto* aligned = reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(scratch.data()) + 63) / 64 * 64);
      std::vector<float> out;
      attention(pool, x, attr, plain::target(out, out_shape), {aligned, bytes});
      for (std::size_t i = 0; i < out.size(); ++i)
        ASSERT_NEAR(static_cast<double>(out[i]), expected[i], 2e-6) << to_string(c.q) << i;
      if (first.empty()) first = out;
      EXPECT_EQ(out, first) << pool.threads() << " threads";
    });
  }
}

// The matrix instructions of the CPU, where it has them: 16-bit operands beside the same numbers in f32.
TEST(Attention, OfBfloat16OperandsIsThatOfTheirValues) {
  const Shape q_shape{1, 2, 200, 40}, k_shape{1, 1, 600, 40}, v_shape{1, 1, 600, 24}, out_shape{1, 2, 200, 24};
  const auto narrow = [](std::vector<float>& values) {
    std::vector<std::uint16_t> bits;
    for (float& value : values) {
      bits.push_back(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16));
      value = std::bit_cast<float>(static_cast<std::uint32_t>(bits.back()) << 16);
    }
    return bits;
  };
  // Subnormal numbers alone in v need the f32 product, infinite ones too.
  for (const float special : {1.0f, 1e-39f, INFINITY}) {
    auto q = plain::numbers<float>(q_shape.elements(), 1), k = plain::numbers<float>(k_shape.elements(), 2),
         v = plain::numbers<float>(v_shape.elements(), 3);
    if (special == 1e-39f)
      for (float& each : v) each *= special;
    else
      v[5] = special;
    const auto q16 = narrow(q), k16 = narrow(k), v16 = narrow(v);
    const AttentionOperands wide{
        plain::view(q, q_shape), plain::view(k, k_shape), plain::view(v, v_shape), {}, false, DType::f32};
    const AttentionOperands x{dense_view(q16.data(), DType::bf16, q_shape),
                              dense_view(k16.data(), DType::bf16, k_shape),
                              dense_view(v16.data(), DType::bf16, v_shape),
                              {},
                              false,
                              DType::bf16};
    const AttentionAttr attr{0.2, false};
    const std::vector<double> expected = by_definition(wide, attr);
    plain::with_pools([&](ThreadPool& pool) {
      const std::size_t bytes = attention_scratch_bytes(pool, q_shape, k_shape, v_shape, x.rounded);
      std::vector<std::byte> scratch(bytes + 64);
      auto* aligned = reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(scratch.data()) + 63) / 64 * 64);
      std::vector<float> out;
      attention(pool, x, attr, plain::target(out, out_shape), {aligned, bytes});
      for (std::size_t i = 0; i < out.size(); ++i)
        if (std::isfinite(expected[i]))
          ASSERT_NEAR(static_cast<double>(out[i]), expected[i], special == 1e-39f ? 1e-41 : 2e-3) << special << " at " << i;
        else
          ASSERT_EQ(out[i], expected[i]) << i;
    });
  }
}

}  // namespace
}  // namespace tenon::cpu
