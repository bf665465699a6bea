// Products with packed weights, convolutions as panels, epilogues, products of 8-bit integers: each against plain loops in
// double, or exact integers, over shapes that reach every edge.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "backends/cpu/backend.h"
#include "backends/cpu/products/convolution/block_channels.h"
#include "backends/cpu/products/convolution/conv_packed.h"
#include "backends/cpu/products/gemm_packed.h"
#include "backends/cpu/products/integer/gemm_int8.h"
#include "backends/cpu/products/integer/kept_floats.h"
#include "graph/elementwise.h"
#include "tenon/backend.h"
#include "tenon/ops.h"

namespace tenon::cpu {
namespace {

std::vector<float> numbers(std::int64_t n, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> out(static_cast<std::size_t>(n));
  for (float& each : out) each = normal(random);
  return out;
}

HostArray array(const Shape& shape, unsigned seed = 1) {
  HostArray out = HostArray::empty(DType::f32, shape);
  const std::vector<float> values = numbers(shape.elements(), seed);
  std::copy(values.begin(), values.end(), reinterpret_cast<float*>(out.mutable_data()));
  return out;
}

TEST(PackedGemm, EqualsThePlainProductAtEveryEdge) {
  if (!has_packed_gemm()) GTEST_SKIP() << "the CPU has no AVX2";
  for (const std::int64_t m : {1, 2, 5, 11, 12, 13, 24, 31, 250})
    for (const std::int64_t n : {1, 8, 15, 16, 17, 32, 33, 70})
      for (const std::int64_t k : {1, 3, 64, 384, 385, 800}) {
        const std::vector<float> a = numbers(m * k), b = numbers(k * n, 2);
        std::vector<float> packed(static_cast<std::size_t>(packed_right_elements(k, n))), c(static_cast<std::size_t>(m * n), NAN);
        pack_right({b.data(), k, n, n, 1}, packed.data());
        gemm_packed_right({a.data(), m, k, k, 1}, packed.data(), n, 0, n, c.data(), n);
        for (std::int64_t i = 0; i < m; i += std::max<std::int64_t>(1, m / 3))
          for (std::int64_t j = 0; j < n; ++j) {
            double sum = 0;
            for (std::int64_t p = 0; p < k; ++p)
              sum += static_cast<double>(a[static_cast<std::size_t>(i * k + p)]) * b[static_cast<std::size_t>(p * n + j)];
            ASSERT_NEAR(c[static_cast<std::size_t>(i * n + j)], sum, 1e-5 * std::sqrt(static_cast<double>(k)) * 4)
                << m << " " << n << " " << k << " at " << i << " " << j;
          }
      }
}

TEST(PackedGemm, ARowDoesNotDependOnTheRowsBesideIt) {
  if (!has_packed_gemm()) GTEST_SKIP() << "the CPU has no AVX2";
  const std::int64_t m = 29, n = 40, k = 500;
  const std::vector<float> a = numbers(m * k), b = numbers(k * n, 2);
  std::vector<float> packed(static_cast<std::size_t>(packed_right_elements(k, n))), all(m * n), one(n);
  pack_right({b.data(), k, n, n, 1}, packed.data());
  gemm_packed_right({a.data(), m, k, k, 1}, packed.data(), n, 0, n, all.data(), n);
  for (std::int64_t i = 0; i < m; ++i) {
    gemm_packed_right({a.data() + i * k, 1, k, k, 1}, packed.data(), n, 0, n, one.data(), n);
    ASSERT_TRUE(std::equal(one.begin(), one.end(), all.begin() + i * n)) << i;
  }
}

struct ConvCase {
  Shape x, w;
  ConvAttr attr;
};

double conv_at(const ConvCase& c, const std::vector<float>& x, const std::vector<float>& w, const Shape& out,
               std::int64_t index) {
  const int axes = c.x.rank() - 2;
  Spatial place{0, 0, 0}, size{1, 1, 1}, in{1, 1, 1};
  std::int64_t rest = index;
  for (int i = axes - 1; i >= 0; --i) {
    const auto s = static_cast<std::size_t>(i);
    place[s] = rest % out[i + 2];
    rest /= out[i + 2];
    size[s] = c.w[i + 2];
    in[s] = c.x[i + 2];
  }
  const std::int64_t channel = rest % out[1], image = rest / out[1], group = channel / (out[1] / c.attr.groups);
  double sum = 0;
  for (std::int64_t ic = 0; ic < c.w[1]; ++ic)
    for (std::int64_t t0 = 0; t0 < size[0]; ++t0)
      for (std::int64_t t1 = 0; t1 < size[1]; ++t1)
        for (std::int64_t t2 = 0; t2 < size[2]; ++t2) {
          const Spatial tap{t0, t1, t2};
          std::int64_t from = image * c.x[1] + group * c.w[1] + ic, at = channel * c.w[1] + ic;
          bool inside = true;
          for (int i = 0; i < axes; ++i) {
            const auto s = static_cast<std::size_t>(i);
            const std::int64_t p = place[s] * c.attr.stride[s] - c.attr.pad_low[s] + tap[s] * c.attr.dilation[s];
            inside = inside && p >= 0 && p < in[s];
            from = from * in[s] + p;
            at = at * size[s] + tap[s];
          }
          if (inside) sum += static_cast<double>(x[static_cast<std::size_t>(from)]) * w[static_cast<std::size_t>(at)];
        }
  return sum;
}

TEST(PackedConv, EqualsTheDefinition) {
  if (!has_packed_gemm()) GTEST_SKIP() << "the CPU has no AVX2";
  std::vector<ConvCase> cases;
  const auto add = [&](Shape x, Shape w, Spatial stride, Spatial pad, Spatial dilation = {1, 1, 1}, std::int64_t groups = 1) {
    ConvCase each{x, w, {}};
    each.attr = {stride, dilation, pad, pad, groups};
    cases.push_back(each);
  };
  add({1, 3, 20, 21}, {7, 3, 3, 3}, {1, 1, 1}, {1, 1, 0});
  add({2, 16, 14, 14}, {20, 16, 1, 1}, {1, 1, 1}, {0, 0, 0});
  add({3, 5, 7, 7}, {33, 5, 3, 3}, {1, 1, 1}, {1, 1, 0});
  add({1, 4, 33, 40}, {13, 4, 5, 3}, {2, 2, 1}, {2, 1, 0});
  add({1, 4, 30, 31}, {13, 4, 3, 3}, {3, 3, 1}, {0, 2, 0}, {2, 2, 1});
  add({2, 8, 50}, {9, 8, 5}, {1, 1, 1}, {2, 0, 0});
  add({2, 8, 50, 1}, {9, 8, 5, 1}, {1, 1, 1}, {2, 0, 0});
  add({1, 100, 12, 12}, {24, 100, 3, 3}, {1, 1, 1}, {1, 1, 0});
  add({2, 12, 9, 9}, {8, 3, 3, 3}, {1, 1, 1}, {1, 1, 0}, {1, 1, 1}, 4);
  add({1, 3, 6, 7, 8}, {4, 3, 2, 3, 2}, {1, 2, 1}, {1, 1, 1});
  add({2, 5, 6, 7, 16}, {9, 5, 3, 3, 3}, {1, 1, 1}, {1, 1, 1});
  add({1, 6, 9, 12, 27}, {20, 6, 2, 3, 3}, {2, 2, 2}, {2, 1, 1}, {3, 1, 1});
  // Depthwise.
  add({2, 6, 30, 29}, {6, 1, 3, 3}, {1, 1, 1}, {1, 1, 0}, {1, 1, 1}, 6);
  add({1, 6, 31, 30}, {6, 1, 5, 5}, {2, 2, 1}, {2, 2, 0}, {1, 1, 1}, 6);
  add({1, 5, 112, 100}, {5, 1, 3, 3}, {2, 1, 1}, {1, 1, 0}, {1, 1, 1}, 5);
  add({1, 4, 20, 20}, {4, 1, 3, 3}, {1, 1, 1}, {2, 2, 0}, {2, 2, 1}, 4);
  add({1, 4, 20, 20}, {4, 1, 3, 3}, {2, 2, 1}, {3, 3, 0}, {3, 3, 1}, 4);
  add({1, 4, 64}, {4, 1, 31}, {1, 1, 1}, {15, 0, 0}, {1, 1, 1}, 4);
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    for (const ConvCase& each : cases) {
      std::vector<std::int64_t> dims{each.x[0], each.w[0]};
      for (int i = 0; i < each.x.rank() - 2; ++i) {
        const auto s = static_cast<std::size_t>(i);
        const std::int64_t reach = (each.w[i + 2] - 1) * each.attr.dilation[s] + 1;
        dims.push_back((each.x[i + 2] + 2 * each.attr.pad_low[s] - reach) / each.attr.stride[s] + 1);
      }
      const Shape out(dims);
      const std::vector<float> x = numbers(each.x.elements()), w = numbers(each.w.elements(), 2), shift = numbers(out[1], 3);
      std::vector<float> y(static_cast<std::size_t>(out.elements()), NAN);
      ASSERT_TRUE(has_packed_conv(each.w, each.attr));
      std::vector<float> packed(static_cast<std::size_t>(packed_conv_elements(each.w, each.attr)));
      if (!is_depthwise(each.w, each.attr)) pack_conv(w.data(), each.w, each.attr, packed.data());
      const View from = dense_view(x.data(), DType::f32, each.x);
      std::vector<std::byte> scratch(packed_conv_scratch_bytes(pool, from, each.w, each.attr, out));
      Epilogue epilogue;
      epilogue.steps.push_back({.op = ElementwiseOp::Add, .operand = EpilogueStep::Operand::per_channel, .index = 0});
      epilogue.steps.push_back({.op = ElementwiseOp::Relu});
      epilogue.steps.push_back(
          {.op = ElementwiseOp::Sub, .operand = EpilogueStep::Operand::scalar, .operand_is_first = true, .value = 2});
      const float* operands[] = {shift.data()};
      const Finish finish{&epilogue, operands, out[1], out.elements() / (out[0] * out[1])};
      packed_conv(pool, from, is_depthwise(each.w, each.attr) ? w.data() : packed.data(), each.w, each.attr,
                  dense_target(y.data(), DType::f32, out), finish, scratch);
      const std::int64_t plane = out.elements() / (out[0] * out[1]);
      for (std::int64_t i = 0; i < out.elements(); ++i) {
        const double sum = conv_at(each, x, w, out, i) + shift[static_cast<std::size_t>(i / plane % out[1])];
        ASSERT_NEAR(y[static_cast<std::size_t>(i)], 2 - std::max(sum, 0.0), 3e-4)
            << to_string(each.x) << " " << to_string(each.w) << " at " << i;
      }
    }
  }
}

TEST(Int8Gemm, IsExactForSignedAndUnsignedOperands) {
  if (!has_int8_gemm()) GTEST_SKIP() << "the CPU has no AVX2";
  std::mt19937 random(1);
  for (const std::int64_t m : {1, 3, 12, 25})
    for (const std::int64_t n : {1, 31, 32, 65})
      for (const std::int64_t k : {1, 4, 7, 130})
        for (const int signs : {0, 1, 2, 3}) {
          const bool a_signed = signs & 1, b_signed = signs & 2;
          std::vector<std::uint8_t> a(static_cast<std::size_t>(m * k)), b(static_cast<std::size_t>(k * n));
          for (std::uint8_t& each : a) each = static_cast<std::uint8_t>(random());
          for (std::uint8_t& each : b) each = static_cast<std::uint8_t>(random());
          std::vector<std::int32_t> a_zero(static_cast<std::size_t>(m)), b_zero(static_cast<std::size_t>(n)),
              c(static_cast<std::size_t>(m * n));
          for (std::int32_t& each : a_zero) each = static_cast<std::int32_t>(random() % 256) - (a_signed ? 128 : 0);
          for (std::int32_t& each : b_zero) each = static_cast<std::int32_t>(random() % 256) - (b_signed ? 128 : 0);
          std::vector<std::byte> packed(packed_int8_bytes(k, n)), scratch(int8_scratch_bytes(m, k));
          pack_int8({b.data(), b_signed, k, n, n, 1}, packed.data());
          gemm_int8({a.data(), a_signed, m, k, k, 1}, packed.data(), b_signed, n, {a_zero.data(), false}, {b_zero.data(), false},
                    c.data(), n, scratch);
          const auto value = [](std::uint8_t bits, bool is_signed) {
            return is_signed ? static_cast<int>(static_cast<std::int8_t>(bits)) : static_cast<int>(bits);
          };
          for (std::int64_t i = 0; i < m; ++i)
            for (std::int64_t j = 0; j < n; ++j) {
              int sum = 0;
              for (std::int64_t p = 0; p < k; ++p)
                sum += (value(a[static_cast<std::size_t>(i * k + p)], a_signed) - a_zero[static_cast<std::size_t>(i)]) *
                       (value(b[static_cast<std::size_t>(p * n + j)], b_signed) - b_zero[static_cast<std::size_t>(j)]);
              ASSERT_EQ(c[static_cast<std::size_t>(i * n + j)], sum) << m << " " << n << " " << k << " " << signs;
            }
        }
}

// The outputs of |graph| with ops one by one, and three times fused on the same buffers: packed copies come into use.
void expect_same_fused(const Graph& graph, const std::vector<HostArray>& inputs, double tolerance) {
  const std::unique_ptr<Backend> backend = make_backend();
  const DeviceInfo device = backend->devices()[0];
  const auto run = [&](bool fuse, int times) {
    OpenOptions options;
    options.fuse = fuse;
    const std::unique_ptr<OpenDevice> open = backend->open(device, options);
    const std::unique_ptr<Executable> program = open->compile(graph);
    std::vector<std::unique_ptr<Buffer>> buffers;
    std::vector<const Buffer*> in;
    for (const HostArray& each : inputs) {
      buffers.push_back(open->upload(each));
      in.push_back(buffers.back().get());
    }
    std::vector<HostArray> results;
    for (int i = 0; i < times; ++i) {
      const std::unique_ptr<Buffer> out = open->allocate(program->output_types()[0]);
      Buffer* outs[] = {out.get()};
      program->run(in, outs);
      results.push_back(open->download(*out));
    }
    return results;
  };
  const std::vector<double> plain = run(false, 1)[0].to_doubles();
  const std::vector<HostArray> fused = run(true, 3);
  for (const HostArray& each : fused) {
    const std::vector<double> values = each.to_doubles();
    EXPECT_EQ(values, fused[0].to_doubles()) << "runs differ";
    for (std::size_t i = 0; i < plain.size(); ++i) ASSERT_NEAR(values[i], plain[i], tolerance) << i;
  }
}

TEST(FusedProducts, LinearWithGeluAndResidual) {
  Graph g;
  const NodeId x = g.input("x", DType::f32, {3, 5, 64}), w = g.input("w", DType::f32, {64, 96}),
               b = g.input("b", DType::f32, {96}), r = g.input("r", DType::f32, {3, 5, 96});
  const NodeId h = apply(g, "add", {g.matmul(x, w), b})[0];
  // As exporters write gelu.
  const NodeId erf = apply(g, "erf", {apply(g, "div", {h, g.literal(1.41421354)})[0]})[0];
  const NodeId gelu = apply(g, "mul", {apply(g, "mul", {h, apply(g, "add", {erf, g.literal(1.0)})[0]})[0], g.literal(0.5)})[0];
  g.set_outputs({apply(g, "add", {gelu, r})[0]});
  expect_same_fused(g, {array({3, 5, 64}), array({64, 96}, 2), array({96}, 3), array({3, 5, 96}, 4)}, 3e-5);
}

TEST(FusedProducts, ConvolutionWithScaleShiftAndResidual) {
  Graph g;
  const NodeId x = g.input("x", DType::f32, {2, 8, 13, 13}), w = g.input("w", DType::f32, {20, 8, 3, 3}),
               s = g.input("s", DType::f32, {1, 20, 1, 1}), b = g.input("b", DType::f32, {1, 20, 1, 1}),
               r = g.input("r", DType::f32, {2, 20, 13, 13});
  ConvAttr attr;
  attr.pad_low = attr.pad_high = {1, 1, 0};
  const NodeId y = apply(g, "add", {apply(g, "mul", {g.conv(x, w, attr), s})[0], b})[0];
  const NodeId silu = apply(g, "mul", {y, apply(g, "sigmoid", {y})[0]})[0];
  g.set_outputs({apply(g, "relu", {apply(g, "add", {r, silu})[0]})[0]});
  expect_same_fused(g,
                    {array({2, 8, 13, 13}), array({20, 8, 3, 3}, 2), array({1, 20, 1, 1}, 3), array({1, 20, 1, 1}, 4),
                     array({2, 20, 13, 13}, 5)},
                    1e-4);
}

TEST(FusedProducts, InfiniteWeightsDoNotMeetThePadding) {
  Graph g;
  const NodeId x = g.input("x", DType::f32, {1, 2, 4, 4}), w = g.input("w", DType::f32, {3, 2, 3, 3});
  ConvAttr attr;
  attr.pad_low = attr.pad_high = {1, 1, 0};
  g.set_outputs({g.conv(x, w, attr)});
  HostArray weights = HostArray::full(DType::f32, {3, 2, 3, 3}, 1);
  reinterpret_cast<float*>(weights.mutable_data())[0] = INFINITY;
  const std::unique_ptr<Backend> backend = make_backend();
  const std::unique_ptr<OpenDevice> open = backend->open(backend->devices()[0]);
  const std::unique_ptr<Executable> program = open->compile(g);
  const std::unique_ptr<Buffer> a = open->upload(HostArray::full(DType::f32, {1, 2, 4, 4}, 1)), b = open->upload(weights);
  const std::unique_ptr<Buffer> out = open->allocate(program->output_types()[0]);
  program->run({a.get(), b.get()}, {out.get()});
  const std::vector<double> values = open->download(*out).to_doubles();
  EXPECT_EQ(values[0], 8);         // the corner: the infinite weight is outside
  EXPECT_EQ(values[5], INFINITY);  // inside
}

// --- Channels in blocks of 16 ---

// [n, c, h, w] as [n, c / 16, h, w, 16].
// Lanes that no channel has are |fill|.
std::vector<float> in_blocks(const std::vector<float>& x, const Shape& shape, float fill = 0) {
  const std::int64_t places = shape[2] * shape[3], blocks = channel_blocks(shape[1]);
  std::vector<float> out(static_cast<std::size_t>(shape[0] * blocks * places * kChannelBlock), fill);
  for (std::int64_t i = 0; i < shape.elements(); ++i) {
    const std::int64_t place = i % places, channel = i / places % shape[1], image = i / places / shape[1];
    const std::int64_t block = image * blocks + channel / kChannelBlock;
    out[static_cast<std::size_t>((block * places + place) * kChannelBlock + channel % kChannelBlock)] =
        x[static_cast<std::size_t>(i)];
  }
  return out;
}

// The sums of a transposed convolution: every element of the image adds the kernel, times itself, to the result.
std::vector<double> transposed_sums(const ConvCase& c, const std::vector<float>& x, const std::vector<float>& w,
                                    const Shape& out) {
  std::vector<double> sums(static_cast<std::size_t>(out.elements()), 0);
  const std::int64_t ins = c.w[0] / c.attr.groups;
  for (std::int64_t i = 0; i < c.x.elements(); ++i) {
    const std::int64_t from_x = i % c.x[3], from_y = i / c.x[3] % c.x[2], in = i / (c.x[2] * c.x[3]) % c.x[1],
                       image = i / (c.x[1] * c.x[2] * c.x[3]);
    for (std::int64_t k = 0; k < c.w[1] * c.w[2] * c.w[3]; ++k) {
      const std::int64_t out_channel = in / ins * c.w[1] + k / (c.w[2] * c.w[3]);
      const std::int64_t to_y = from_y * c.attr.stride[0] + k / c.w[3] % c.w[2] * c.attr.dilation[0] - c.attr.pad_low[0];
      const std::int64_t to_x = from_x * c.attr.stride[1] + k % c.w[3] * c.attr.dilation[1] - c.attr.pad_low[1];
      if (to_y < 0 || to_y >= out[2] || to_x < 0 || to_x >= out[3]) continue;
      sums[static_cast<std::size_t>(((image * out[1] + out_channel) * out[2] + to_y) * out[3] + to_x)] +=
          static_cast<double>(x[static_cast<std::size_t>(i)]) *
          static_cast<double>(w[static_cast<std::size_t>(in * c.w[1] * c.w[2] * c.w[3] + k)]);
    }
  }
  return sums;
}

void expect_blocked_conv(const ConvCase& each, bool infinite, int threads, bool is_transposed = false) {
  using Operand = EpilogueStep::Operand;
  ThreadPool pool(threads);
  const auto places = [&](int i) {
    const auto s = static_cast<std::size_t>(i);
    const std::int64_t pads = each.attr.pad_low[s] + each.attr.pad_high[s],
                       reach = (each.w[i + 2] - 1) * each.attr.dilation[s] + 1;
    return is_transposed ? (each.x[i + 2] - 1) * each.attr.stride[s] + reach - pads
                         : (each.x[i + 2] + pads - reach) / each.attr.stride[s] + 1;
  };
  const BlockedConv conv{each.attr, each.w, !is_transposed && each.x[1] < kChannelBlock && each.attr.groups == 1, is_transposed};
  const Shape out{each.x[0], conv.outs(), places(0), places(1)};
  const Shape blocks{out[0], channel_blocks(out[1]), out[2], out[3], kChannelBlock};
  ASSERT_TRUE(can_block(conv));
  const std::vector<float> x = numbers(each.x.elements()), scale = numbers(out[1], 3), shift = numbers(out[1], 4),
                           added = numbers(out.elements(), 5);
  std::vector<float> w = numbers(each.w.elements(), 2);
  if (infinite) w[0] = INFINITY;
  std::vector<float> packed(static_cast<std::size_t>(blocked_weight_elements(conv)));
  pack_blocked_weights(w.data(), conv, packed.data());
  // What is in the lanes that no channel has must not matter.
  const std::vector<float> from = conv.is_plain ? x : in_blocks(x, each.x, NAN), blocked_added = in_blocks(added, out);
  const Shape from_shape =
      conv.is_plain ? each.x : Shape{each.x[0], channel_blocks(each.x[1]), each.x[2], each.x[3], kChannelBlock};
  std::vector<float> y(static_cast<std::size_t>(blocks.elements()), NAN);
  std::vector<std::byte> scratch(blocked_conv_scratch_bytes(pool, conv, from_shape, blocks));
  Epilogue epilogue;
  epilogue.steps.push_back({.op = ElementwiseOp::Mul, .operand = Operand::per_channel, .index = 0});
  epilogue.steps.push_back({.op = ElementwiseOp::Add, .operand = Operand::per_channel, .index = 1});
  epilogue.steps.push_back({.op = ElementwiseOp::Add, .operand = Operand::full, .index = 2});
  epilogue.steps.push_back({.op = ElementwiseOp::Relu});
  epilogue.steps.push_back({.op = ElementwiseOp::Sub, .operand = Operand::scalar, .operand_is_first = true, .value = 2});
  ASSERT_TRUE(can_block(epilogue));
  const float* operands[] = {scale.data(), shift.data(), blocked_added.data()};
  const Finish finish{&epilogue, operands, blocks[1], out[2] * out[3] * kChannelBlock};
  blocked_conv(pool, conv, dense_view(from.data(), DType::f32, from_shape), packed.data(),
               dense_target(y.data(), DType::f32, blocks), finish, scratch);
  const std::vector<double> sums = is_transposed ? transposed_sums(each, x, w, out) : std::vector<double>();
  std::vector<float> expected(static_cast<std::size_t>(out.elements()));
  for (std::int64_t i = 0; i < out.elements(); ++i) {
    const auto channel = static_cast<std::size_t>(i / (out[2] * out[3]) % out[1]);
    const double of_kernel = is_transposed ? sums[static_cast<std::size_t>(i)] : conv_at(each, x, w, out, i);
    const double sum = of_kernel * scale[channel] + shift[channel] + added[static_cast<std::size_t>(i)];
    expected[static_cast<std::size_t>(i)] = static_cast<float>(2 - (sum < 0 ? 0 : sum));
  }
  expected = in_blocks(expected, out);
  for (std::size_t i = 0; i < y.size(); ++i) {
    const std::int64_t block = static_cast<std::int64_t>(i) / (kChannelBlock * out[2] * out[3]) % blocks[1];
    if (block * kChannelBlock + static_cast<std::int64_t>(i) % kChannelBlock >= out[1]) continue;
    if (std::isfinite(expected[i]))
      ASSERT_NEAR(y[i], expected[i], 5e-4) << to_string(each.x) << " " << to_string(each.w) << " at " << i;
    else
      ASSERT_EQ(std::isnan(y[i]), std::isnan(expected[i])) << to_string(each.x) << " " << to_string(each.w) << " at " << i;
  }
}

TEST(BlockedConv, EqualsTheDefinition) {
  if (!has_blocked_conv()) GTEST_SKIP() << "the CPU has no AVX-512";
  std::vector<ConvCase> cases;
  const auto add = [&](Shape x, Shape w, Spatial stride, Spatial pad, Spatial dilation = {1, 1, 1}, std::int64_t groups = 1) {
    ConvCase each{x, w, {}};
    each.attr = {stride, dilation, pad, pad, groups};
    cases.push_back(each);
  };
  add({1, 3, 20, 21}, {16, 3, 3, 3}, {2, 2, 1}, {1, 1, 0});
  add({2, 16, 14, 14}, {32, 16, 1, 1}, {1, 1, 1}, {0, 0, 0});
  add({1, 32, 7, 7}, {64, 32, 3, 3}, {1, 1, 1}, {1, 1, 0});
  add({1, 16, 9, 31}, {48, 16, 5, 3}, {2, 1, 1}, {2, 1, 0});
  add({1, 16, 30, 31}, {16, 16, 3, 3}, {3, 2, 1}, {0, 2, 0}, {2, 2, 1});
  add({1, 64, 12, 12}, {80, 64, 3, 3}, {1, 1, 1}, {0, 0, 0});
  add({1, 448, 3, 5}, {32, 448, 1, 1}, {2, 2, 1}, {0, 0, 0});
  add({3, 64, 1, 1}, {48, 64, 1, 1}, {1, 1, 1}, {0, 0, 0});
  add({2, 64, 9, 10}, {32, 32, 3, 3}, {1, 1, 1}, {1, 1, 0}, {1, 1, 1}, 2);
  // A window larger than the image.
  add({1, 16, 2, 1}, {16, 16, 5, 7}, {1, 1, 1}, {2, 3, 0});
  // Depthwise.
  add({2, 32, 30, 29}, {32, 1, 3, 3}, {1, 1, 1}, {1, 1, 0}, {1, 1, 1}, 32);
  add({1, 16, 31, 30}, {16, 1, 5, 5}, {2, 2, 1}, {2, 2, 0}, {1, 1, 1}, 16);
  add({1, 16, 112, 40}, {16, 1, 3, 3}, {2, 1, 1}, {0, 0, 0}, {1, 1, 1}, 16);
  // Channels that do not fill their blocks.
  add({2, 24, 9, 10}, {40, 24, 3, 3}, {1, 1, 1}, {1, 1, 0});
  add({1, 3, 12, 12}, {24, 3, 3, 3}, {2, 2, 1}, {1, 1, 0});
  add({1, 20, 5, 40}, {9, 20, 1, 1}, {1, 1, 1}, {0, 0, 0});
  add({1, 400, 4, 4}, {18, 400, 1, 1}, {1, 1, 1}, {0, 0, 0});
  add({2, 40, 11, 12}, {40, 1, 5, 5}, {2, 2, 1}, {2, 2, 0}, {1, 1, 1}, 40);
  // Kernels that are often outside the image.
  add({2, 40, 9, 12}, {32, 40, 3, 3}, {1, 1, 1}, {4, 5, 0}, {4, 5, 1});
  add({1, 16, 8, 7}, {48, 16, 3, 5}, {1, 2, 1}, {12, 6, 0}, {12, 3, 1});
  add({1, 32, 10, 9}, {32, 1, 3, 3}, {2, 1, 1}, {6, 6, 0}, {6, 6, 1}, 32);
  add({1, 3, 6, 20}, {16, 3, 3, 3}, {1, 1, 1}, {5, 2, 0}, {5, 2, 1});
  add({1, 16, 3, 3}, {16, 16, 1, 1}, {2, 2, 1}, {3, 3, 0});
  for (const int threads : {1, 3})
    for (const ConvCase& each : cases) expect_blocked_conv(each, false, threads);
  for (const ConvCase& each : cases) expect_blocked_conv(each, true, 1);
}

TEST(BlockedConv, TransposedEqualsTheDefinition) {
  if (!has_blocked_conv()) GTEST_SKIP() << "the CPU has no AVX-512";
  std::vector<ConvCase> cases;
  const auto add = [&](Shape x, Shape w, Spatial stride, Spatial low, Spatial high, Spatial dilation = {1, 1, 1},
                       std::int64_t groups = 1) {
    ConvCase each{x, w, {}};
    each.attr = {stride, dilation, low, high, groups};
    cases.push_back(each);
  };
  add({2, 32, 7, 9}, {32, 16, 4, 4}, {2, 2, 1}, {1, 1, 0}, {1, 1, 0});
  add({1, 16, 6, 5}, {16, 32, 2, 2}, {2, 2, 1}, {0, 0, 0}, {0, 0, 0});
  add({2, 24, 5, 6}, {24, 20, 3, 3}, {2, 2, 1}, {1, 1, 0}, {0, 0, 0});
  // Steps without an element of the kernel, zeros that are added, and more that is cut off than there is of a phase.
  add({1, 16, 4, 5}, {16, 16, 2, 1}, {3, 4, 1}, {0, 0, 0}, {-2, -3, 0});
  add({1, 16, 6, 6}, {16, 16, 5, 5}, {2, 1, 1}, {3, 4, 0}, {4, 3, 0});
  add({1, 16, 3, 3}, {16, 16, 2, 2}, {2, 2, 1}, {3, 1, 0}, {0, 1, 0});
  // Dilations that share a factor with the step, and that do not.
  add({1, 16, 6, 7}, {16, 16, 3, 3}, {2, 3, 1}, {1, 2, 0}, {2, 1, 0}, {2, 2, 1});
  add({1, 16, 6, 7}, {16, 16, 3, 3}, {1, 4, 1}, {1, 2, 0}, {2, 1, 0}, {3, 6, 1});
  // Groups, depthwise.
  add({2, 32, 5, 5}, {32, 16, 3, 3}, {2, 2, 1}, {1, 1, 0}, {1, 1, 0}, {1, 1, 1}, 2);
  add({1, 24, 6, 5}, {24, 1, 4, 4}, {2, 2, 1}, {1, 1, 0}, {1, 1, 0}, {1, 1, 1}, 24);
  for (const int threads : {1, 3})
    for (const ConvCase& each : cases) expect_blocked_conv(each, false, threads, true);
  for (const ConvCase& each : cases) expect_blocked_conv(each, true, 1, true);
}

// A net with what keeps blocks, what reads them in another form, and what cannot be blocked.
Graph small_net(std::int64_t images) {
  Graph g;
  int count = 0;
  const auto weight = [&](const Shape& shape) { return g.input("w" + std::to_string(count++), DType::f32, shape); };
  const auto conv = [&](NodeId x, std::int64_t outs, std::int64_t size, std::int64_t stride, std::int64_t groups) {
    ConvAttr attr;
    attr.stride = {stride, stride, 1};
    attr.pad_low = attr.pad_high = {size / 2, size / 2, 0};
    attr.groups = groups;
    const NodeId y = g.conv(x, weight({outs, g[x].shape[1] / groups, size, size}), attr);
    return apply(g, "add", {y, weight({1, outs, 1, 1})})[0];
  };
  const NodeId x = g.input("x", DType::f32, {images, 3, 30, 34});
  const NodeId first = apply(g, "relu", {conv(x, 16, 3, 2, 1)})[0];
  WindowAttr pooling;
  pooling.size = {3, 3, 1};
  pooling.pad_low = pooling.pad_high = {1, 1, 0};
  const NodeId pooled = g.window(first, pooling);
  pooling.max = false;
  const NodeId deep = apply(g, "hardswish", {conv(g.window(pooled, pooling), 16, 5, 1, 16)})[0];
  const NodeId sum = apply(g, "relu", {apply(g, "add", {conv(deep, 16, 1, 1, 1), pooled})[0]})[0];
  const NodeId mean = g.reduce(ReduceKind::sum, sum, 0b1100);
  const NodeId gate = apply(g, "sigmoid", {conv(conv(mean, 32, 1, 1, 1), 16, 1, 1, 1)})[0];
  const NodeId gated = apply(g, "mul", {sum, gate})[0];
  const NodeId parts[] = {gated, apply(g, "tanh", {first})[0]};
  const NodeId joined = g.concat(parts, 1);
  const NodeId odd = conv(joined, 20, 3, 1, 1);
  const NodeId last = conv(odd, 32, 3, 2, 1);
  g.set_outputs({apply(g, "add", {last, apply(g, "mul", {conv(joined, 32, 3, 2, 1), g.literal(2.0)})[0]})[0]});
  return g;
}

// Channels that do not fill their blocks, a transposed convolution, and what is cut, padded and repeated along places and
// channels.
Graph uneven_net(std::int64_t images) {
  Graph g;
  int count = 0;
  const auto weight = [&](const Shape& shape) { return g.input("w" + std::to_string(count++), DType::f32, shape); };
  const auto biased = [&](NodeId y) { return apply(g, "add", {y, weight({1, g[y].shape[1], 1, 1})})[0]; };
  const auto conv = [&](NodeId x, std::int64_t outs, std::int64_t size, std::int64_t groups) {
    ConvAttr attr;
    attr.pad_low = attr.pad_high = {size / 2, size / 2, 0};
    attr.groups = groups;
    return biased(g.conv(x, weight({outs, g[x].shape[1] / groups, size, size}), attr));
  };
  const NodeId x = g.input("x", DType::f32, {images, 3, 14, 15});
  const NodeId first = apply(g, "sigmoid", {conv(x, 24, 3, 1)})[0];
  const NodeId deep = apply(g, "hardswish", {conv(first, 24, 5, 24)})[0];
  const NodeId mean = g.reduce(ReduceKind::sum, deep, 0b1100);
  const NodeId gate = apply(g, "sigmoid", {conv(apply(g, "relu", {conv(mean, 9, 1, 1)})[0], 24, 1, 1)})[0];
  const NodeId wide = apply(g, "log", {conv(apply(g, "mul", {deep, gate})[0], 40, 1, 1)})[0];  // NaN and more in unused lanes
  const NodeId some = apply(g, "where", {apply(g, "isfinite", {wide})[0], wide, g.literal(0.5)})[0];
  const std::int64_t start[] = {0, 16, 1, 0}, extent[] = {images, 24, 13, 15}, step[] = {1, 1, 1, 1};
  const NodeId cut = g.slice(some, start, extent, step);
  const std::int64_t low[] = {0, 0, 1, 0}, high[] = {0, 0, 0, 0};
  const NodeId padded = g.pad(cut, low, high, 0.25);
  const NodeId places = g.constant(HostArray::from<std::int64_t>(Shape{6}, {0, 3, 3, 7, 13, 14}));
  const NodeId narrow = g.take(apply(g, "mul", {padded, weight({14, 15})})[0], places, 3);
  const NodeId up = apply(g, "conv_transpose2d", {conv(narrow, 20, 3, 1), weight({20, 24, 4, 4}), weight({24})},
                          {{"stride", std::int64_t{2}}, {"padding", std::int64_t{1}}})[0];
  const NodeId parts[] = {apply(g, "tanh", {up})[0], conv(apply(g, "relu", {up})[0], 32, 3, 1)};
  const NodeId reversed[] = {parts[1], parts[0]};
  const NodeId results[] = {g.concat(parts, 1), conv(g.concat(reversed, 1), 17, 3, 1)};
  g.set_outputs({g.concat(results, 1)});
  return g;
}

std::vector<HostArray> net_inputs(const Graph& g) {
  std::vector<HostArray> inputs;
  unsigned seed = 1;
  for (const NodeId id : g.inputs()) inputs.push_back(array(g[id].shape, seed++));
  for (HostArray& each : inputs)  // sums of many terms stay near 1
    for (std::int64_t i = 0; i < each.shape().elements(); ++i) reinterpret_cast<float*>(each.mutable_data())[i] *= 0.2f;
  return inputs;
}

TEST(FusedProducts, AChainOfConvolutionsInBlocksEqualsThePlainOne) {
  const Graph g = small_net(2);
  expect_same_fused(g, net_inputs(g), 2e-4);
  const Graph uneven = uneven_net(2);
  expect_same_fused(uneven, net_inputs(uneven), 2e-4);
}

TEST(FusedProducts, AnImageInBlocksDoesNotDependOnThoseBesideIt) {
  const Graph one = small_net(1), three = small_net(3);
  std::vector<HostArray> inputs = net_inputs(three);
  const auto is_images = [&](std::size_t i) { return one[one.inputs()[i]].shape != three[three.inputs()[i]].shape; };
  const std::unique_ptr<Backend> backend = make_backend();
  const std::unique_ptr<OpenDevice> open = backend->open(backend->devices()[0]);
  const auto run = [&](const Graph& g, const std::vector<HostArray>& values) {
    const std::unique_ptr<Executable> program = open->compile(g);
    std::vector<std::unique_ptr<Buffer>> buffers;
    std::vector<const Buffer*> in;
    for (const HostArray& each : values) {
      buffers.push_back(open->upload(each));
      in.push_back(buffers.back().get());
    }
    const std::unique_ptr<Buffer> out = open->allocate(program->output_types()[0]);
    Buffer* outs[] = {out.get()};
    program->run(in, outs);
    return open->download(*out).to_doubles();
  };
  const std::vector<double> all = run(three, inputs);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (is_images(i)) {
      HostArray last = HostArray::empty(DType::f32, one[one.inputs()[i]].shape);
      std::copy_n(inputs[i].data() + 2 * last.bytes(), last.bytes(), last.mutable_data());
      inputs[i] = last;
    }
  const std::vector<double> alone = run(one, inputs);
  EXPECT_TRUE(std::equal(alone.begin(), alone.end(), all.end() - static_cast<std::ptrdiff_t>(alone.size())));
}

TEST(FusedProducts, OnlyConvolutionsThatMeetAnotherAreBlocked) {
  if (!has_blocked_conv()) GTEST_SKIP() << "the CPU has no AVX-512";
  const auto blocked = [](int convs) {
    Graph g;
    NodeId x = g.input("x", DType::f32, {1, 16, 8, 8});
    const NodeId w = g.input("w", DType::f32, {16, 16, 1, 1});
    for (int i = 0; i < convs; ++i) x = apply(g, "relu", {g.conv(x, w, {})})[0];
    g.set_outputs({x});
    return block_channels({g, {}, {}}).convs.size();
  };
  EXPECT_EQ(blocked(1), 0u);
  EXPECT_EQ(blocked(2), 2u);
}

// x in steps of 8 bits, as exporters of quantised models write it.
NodeId in_steps(Graph& g, NodeId x, double scale, double zero, bool is_signed, double low) {
  const auto op = [&](const char* name, NodeId a, double b) { return apply(g, name, {a, g.literal(b)})[0]; };
  const NodeId whole = op("add", apply(g, "round", {op("div", x, scale)})[0], zero);
  const NodeId within = op("minimum", op("maximum", whole, low), is_signed ? 127 : 255);
  const NodeId bytes = g.cast(within, is_signed ? DType::i8 : DType::u8);
  return op("mul", op("sub", g.cast(bytes, DType::f32), zero), scale);
}

TEST(FusedProducts, FloatsInStepsOfBytesStayFloats) {
  Graph g;
  NodeId x = g.input("x", DType::f32, {2, 3, 9, 10});
  for (int i = 0; i < 3; ++i) {
    ConvAttr attr;
    attr.pad_low = attr.pad_high = {1, 1, 0};
    x = g.conv(in_steps(g, x, 0.1, i, i % 2 == 0, i % 2 == 0 ? -128 : 0),
               g.input("w" + std::to_string(i), DType::f32, {24, g[x].shape[1], 3, 3}), attr);
    x = apply(g, "add", {x, g.input("b" + std::to_string(i), DType::f32, {1, 24, 1, 1})})[0];
  }
  g.set_outputs({x});
  expect_same_fused(g, net_inputs(g), 2e-4);
  const Graph kept = keep_floats(g);
  const auto reads_bytes = [](const Graph& graph) {
    int count = 0;
    for (NodeId id = 0; id < graph.size(); ++id)
      for (const NodeId in : graph[id].inputs) count += graph[in].dtype == DType::i8 || graph[in].dtype == DType::u8;
    return count;
  };
  EXPECT_EQ(reads_bytes(g), 3);
  EXPECT_EQ(reads_bytes(kept), 0);
  // A bound beyond the range of the bytes still has to be cut off.
  Graph other;
  other.set_outputs({in_steps(other, other.input("x", DType::f32, {4}), 0.5, 1, true, -200)});
  EXPECT_EQ(reads_bytes(keep_floats(other)), 1);
}

TEST(FusedProducts, NotANumberInStepsOfBytesIsZero) {
  Graph g;
  g.set_outputs({in_steps(g, g.input("x", DType::f32, {5}), 0.5, 3, true, -128)});
  const std::unique_ptr<Backend> backend = make_backend();
  const std::unique_ptr<OpenDevice> open = backend->open(backend->devices()[0]);
  const std::unique_ptr<Executable> program = open->compile(g);
  const std::unique_ptr<Buffer> x = open->upload(HostArray::from<float>(Shape{5}, {NAN, INFINITY, -INFINITY, 0.3f, 7.0f}));
  const std::unique_ptr<Buffer> out = open->allocate(program->output_types()[0]);
  const Buffer* in[] = {x.get()};
  Buffer* outs[] = {out.get()};
  program->run(in, outs);
  EXPECT_EQ(open->download(*out).to_doubles(), (std::vector<double>{-1.5, 62, -65.5, 0.5, 7}));
}

TEST(FusedProducts, ProductsOfBytesAreExact) {
  Graph g;
  const NodeId a = g.input("a", DType::u8, {2, 7, 600}), b = g.input("b", DType::i8, {600, 40}), z = g.input("z", DType::u8, {});
  const NodeId x = apply(g, "sub", {g.cast(a, DType::f32), g.cast(z, DType::f32)})[0], y = g.cast(b, DType::f32);
  NodeId sum = -1;
  for (const std::int64_t start : {0, 300}) {
    const std::int64_t starts[] = {0, 0, start}, extents[] = {2, 7, 300}, steps[] = {1, 1, 1};
    const std::int64_t b_starts[] = {start, 0}, b_extents[] = {300, 40};
    const NodeId part = g.cast(
        g.matmul(g.slice(x, starts, extents, steps), g.slice(y, b_starts, b_extents, std::span(steps).first(2))), DType::i32);
    sum = sum < 0 ? part : apply(g, "add", {sum, part})[0];
  }
  g.set_outputs({sum});
  HostArray left = HostArray::empty(DType::u8, {2, 7, 600}), right = HostArray::empty(DType::i8, {600, 40});
  std::mt19937 random(1);
  for (HostArray* each : {&left, &right})
    for (std::size_t i = 0; i < each->bytes(); ++i) each->mutable_data()[i] = static_cast<std::byte>(random());
  expect_same_fused(g, {left, right, HostArray::full(DType::u8, {}, 131)}, 0);
}

}  // namespace
}  // namespace tenon::cpu
