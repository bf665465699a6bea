// What a graph means: rounding, wrapping, NaN, indices, random numbers, and the bound on memory.
#include "reference/reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "graph/random.h"
#include "tenon/error.h"
#include "tenon/ops.h"

namespace tenon {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// One op on constants.
template <class F>
HostArray evaluate(F&& build) {
  Graph graph;
  graph.set_outputs({build(graph)});
  return reference_run(graph, {})[0];
}

HostArray doubles(const Shape& shape, std::vector<double> values) {
  return HostArray::from<double>(shape, std::span<const double>(values));
}

template <class F>
ErrorCode code_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_FALSE(std::string(error.what()).empty());
    return error.code();
  }
  return ErrorCode::ok;
}

TEST(Reference, RoundsToTheOutputsTypeOnce) {
  // 1 + 2^-8 + 2^-8 in bf16: rounded after each step it would stay 1, rounded once it is 1 + 2^-7.
  Graph graph;
  const NodeId x = graph.input("x", DType::bf16, {});
  const NodeId step = graph.input("step", DType::bf16, {});
  const NodeId once = apply(graph, "add", {x, step})[0];
  graph.set_outputs({apply(graph, "add", {once, step})[0]});
  const HostArray inputs[] = {HostArray::full(DType::bf16, {}, 1), HostArray::full(DType::bf16, {}, 0x1p-8)};
  const HostArray y = reference_run(graph, inputs)[0];
  EXPECT_EQ(y.dtype(), DType::bf16);
  EXPECT_EQ(y.value(0), 1 + 0x1p-7);
}

TEST(Reference, CastsInTheMiddleRoundWhereTheyStand) {
  Graph graph;
  const NodeId x = graph.input("x", DType::f64, {3});
  const NodeId half = graph.cast(graph.cast(x, DType::bf16), DType::f64);
  const NodeId single = graph.cast(graph.cast(x, DType::f32), DType::f64);
  graph.set_outputs({half, single});
  const HostArray inputs[] = {doubles({3}, {1.001, 0.1, 1e300})};
  const auto y = reference_doubles(graph, inputs);
  EXPECT_EQ(y[0][0], 1.0);
  EXPECT_EQ(y[1][0], static_cast<double>(1.001f));
  EXPECT_EQ(y[1][1], static_cast<double>(0.1f));
  EXPECT_TRUE(std::isinf(y[1][2]));
}

TEST(Reference, ABlockFormatCastSharesExponentsAlongRows) {
  Graph graph;
  const NodeId x = graph.input("x", DType::f32, {2});
  graph.set_outputs({graph.cast(graph.cast(x, DType::bfloat4_b), DType::f32)});
  const HostArray inputs[] = {HostArray::from<float>({2}, {8.0f, 0.01f})};
  const HostArray y = reference_run(graph, inputs)[0];
  EXPECT_EQ(y.value(0), 8.0);
  EXPECT_EQ(y.value(1), 0.0);
}

TEST(Reference, LiteralsBesideHalfFloatsKeepSinglePrecision) {
  // In bf16 4095 would be 4096, and the mean of 4095 ones not 1.
  Graph graph;
  const NodeId x = graph.input("x", DType::bf16, {4095});
  graph.set_outputs({apply(graph, "mean", {x})[0]});
  const HostArray inputs[] = {HostArray::full(DType::bf16, {4095}, 1)};
  EXPECT_EQ(reference_doubles(graph, inputs)[0][0], 1.0);
}

TEST(Reference, IntegersWrapInTheirType) {
  const HostArray y = evaluate([](Graph& g) { return apply(g, "add", {g.scalar(127, DType::i8), g.scalar(1, DType::i8)})[0]; });
  EXPECT_EQ(y.dtype(), DType::i8);
  EXPECT_EQ(y.value(0), -128);
  const HostArray product = evaluate([](Graph& g) {
    const std::int64_t big = std::int64_t{1} << 62;
    return g.reduce(ReduceKind::prod, g.constant(HostArray::from<std::int64_t>({2}, {big, 2})), 1);
  });
  EXPECT_EQ(product.view<std::int64_t>()[0], std::numeric_limits<std::int64_t>::min());
}

TEST(Reference, SixtyFourBitIntegersStayExact) {
  const HostArray y = evaluate([](Graph& g) {
    return g.reduce(ReduceKind::sum, g.constant(HostArray::from<std::uint64_t>({2}, {0xFFFFFFFFFFFFFFF0u, 0xFu})), 1);
  });
  EXPECT_EQ(y.dtype(), DType::u64);
  EXPECT_EQ(y.view<std::uint64_t>()[0], 0xFFFFFFFFFFFFFFFFu);
}

TEST(Reference, SumsAreCompensated) {
  const HostArray y =
      evaluate([](Graph& g) { return g.reduce(ReduceKind::sum, g.constant(doubles({4}, {1, 1e100, 1, -1e100})), 1); });
  EXPECT_EQ(y.value(0), 2.0);
}

TEST(Reference, SumsWithInfinitiesAreInfiniteOrNaN) {
  const auto sum = [](std::vector<double> values) {
    const Shape shape{static_cast<std::int64_t>(values.size())};
    return evaluate([&](Graph& g) { return g.reduce(ReduceKind::sum, g.constant(doubles(shape, values)), 1); }).value(0);
  };
  EXPECT_EQ(sum({1, HUGE_VAL, 2}), HUGE_VAL);
  EXPECT_TRUE(std::isnan(sum({HUGE_VAL, -HUGE_VAL})));
  EXPECT_TRUE(std::isnan(sum({1, kNaN})));
}

TEST(Reference, SortingPutsNaNLastInBothDirectionsAndIsStable) {
  const auto order = [](bool descending) {
    const HostArray y =
        evaluate([&](Graph& g) { return g.arg_sort(g.constant(doubles({5}, {2, kNaN, 1, 2, kNaN})), 0, descending); });
    return y.to_doubles();
  };
  EXPECT_EQ(order(false), (std::vector<double>{2, 0, 3, 1, 4}));
  EXPECT_EQ(order(true), (std::vector<double>{0, 3, 2, 1, 4}));
}

TEST(Reference, AnIndexPastTheEndIsRefused) {
  const auto take = [](std::int64_t i) {
    return evaluate([&](Graph& g) {
      return g.take(g.constant(doubles({3}, {1, 2, 3})), g.constant(HostArray::from<std::int64_t>({1}, {i})), 0);
    });
  };
  EXPECT_EQ(take(-3).value(0), 1);
  EXPECT_EQ(code_of([&] { take(3); }), ErrorCode::out_of_range);
  EXPECT_EQ(code_of([&] { take(-4); }), ErrorCode::out_of_range);
}

TEST(Reference, OfSeveralUpdatesToOnePlaceTheLastStaysOrTheyAddUp) {
  const auto scatter = [](bool add) {
    return evaluate([&](Graph& g) {
             return g.scatter(g.constant(doubles({2}, {10, 20})), g.constant(HostArray::from<std::int64_t>({3}, {1, 1, -1})),
                              g.constant(doubles({3}, {1, 2, 3})), 0, add);
           })
        .to_doubles();
  };
  EXPECT_EQ(scatter(false), (std::vector<double>{10, 3}));
  EXPECT_EQ(scatter(true), (std::vector<double>{10, 26}));
}

TEST(Reference, InputsMustFitTheProgram) {
  Graph graph;
  graph.set_outputs({graph.input("x", DType::f32, {2})});
  const HostArray wrong_shape[] = {HostArray::zeros(DType::f32, {3})};
  const HostArray wrong_type[] = {HostArray::zeros(DType::f64, {2})};
  EXPECT_EQ(code_of([&] { reference_run(graph, wrong_shape); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([&] { reference_run(graph, wrong_type); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([&] { reference_run(graph, {}); }), ErrorCode::invalid_argument);
}

TEST(Reference, TooLargeAProgramIsRefusedBeforeItAllocates) {
  Graph graph;
  const NodeId wide = graph.broadcast(graph.scalar(1, DType::f32), {std::int64_t{1} << 36});
  graph.set_outputs({graph.reduce(ReduceKind::sum, wide, 1)});
  EXPECT_EQ(code_of([&] { reference_run(graph, {}); }), ErrorCode::resource_exhausted);
}

TEST(Reference, NodesNoOutputNeedsAreNotComputed) {
  Graph graph;
  graph.broadcast(graph.scalar(1, DType::f32), {std::int64_t{1} << 36});
  graph.set_outputs({graph.scalar(2, DType::f32)});
  EXPECT_EQ(reference_run(graph, {})[0].value(0), 2);
}

TEST(Reference, ALongChainHoldsOnlyWhatIsStillNeeded) {
  Graph graph;
  NodeId x = graph.broadcast(graph.scalar(1, DType::f64), {1 << 20});
  for (int i = 0; i < 1000; ++i) x = apply(graph, "neg", {x})[0];  // 8 GiB in all, 16 MiB at a time
  graph.set_outputs({graph.reduce(ReduceKind::sum, x, 1)});
  EXPECT_EQ(reference_run(graph, {})[0].value(0), 1 << 20);
}

TEST(Random, PhiloxGivesThePublishedVector) {
  EXPECT_EQ(philox4x32(0, 0, 0), (PhiloxWords{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32(0x123456789abcdef0, (std::uint64_t{7} << 32) + 5, 2),
            (PhiloxWords{0x66e5c73f, 0xac5e8073, 0xfa2d3e2a, 0x02cc03ea}));
}

TEST(Random, ElementsDependOnSeedAndIndexAlone) {
  const auto uniform = [](const Shape& shape, std::uint64_t seed) {
    return evaluate([&](Graph& g) { return g.random(shape, DType::f32, false, seed); }).to_doubles();
  };
  const std::vector<double> few = uniform({5}, 7), many = uniform({3, 4}, 7);
  for (std::size_t i = 0; i < few.size(); ++i) EXPECT_EQ(few[i], many[i]);
  EXPECT_NE(uniform({5}, 8), few);
  EXPECT_EQ(few[0], random_uniform_f32(7, 0));
}

TEST(Random, UniformNumbersFillTheUnitInterval) {
  const std::vector<double> u = evaluate([](Graph& g) { return g.random({100000}, DType::f32, false, 1); }).to_doubles();
  double sum = 0, squares = 0;
  for (double x : u) {
    ASSERT_GE(x, 0);
    ASSERT_LT(x, 1);
    EXPECT_EQ(x * 0x1p24, std::floor(x * 0x1p24));
    sum += x;
    squares += x * x;
  }
  const double n = static_cast<double>(u.size());
  EXPECT_NEAR(sum / n, 0.5, 0.005);
  EXPECT_NEAR(squares / n, 1.0 / 3, 0.005);
}

TEST(Random, NormalNumbersHaveTheMomentsOfANormal) {
  const std::vector<double> z = evaluate([](Graph& g) { return g.random({100000}, DType::f64, true, 1); }).to_doubles();
  double m1 = 0, m2 = 0, m3 = 0, m4 = 0;
  for (double x : z) {
    m1 += x;
    m2 += x * x;
    m3 += x * x * x;
    m4 += x * x * x * x;
  }
  const double n = static_cast<double>(z.size());
  EXPECT_NEAR(m1 / n, 0, 0.015);
  EXPECT_NEAR(m2 / n, 1, 0.02);
  EXPECT_NEAR(m3 / n, 0, 0.05);
  EXPECT_NEAR(m4 / n, 3, 0.15);
}

}  // namespace
}  // namespace tenon
