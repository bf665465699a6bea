#include "hal/kernel_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "ops/elementwise/elementwise.h"
#include "tenon/error.h"
#include "tenon/ops.h"

namespace tenon {
namespace {

KernelTarget gpu(Dialect dialect = Dialect::opencl) {
  return {.dialect = dialect, .compute_units = 132, .max_group_size = 1024, .local_bytes = 48 * 1024};
}
KernelTarget processor() { return {.is_cpu = true, .compute_units = 2, .max_group_size = 4096}; }

Graph graph_of(std::string_view op, std::initializer_list<Shape> shapes, std::initializer_list<NamedValue> parameters = {}) {
  Graph graph;
  std::vector<NodeId> inputs;
  for (const Shape& shape : shapes) inputs.push_back(graph.input("x", DType::f32, shape));
  graph.set_outputs(apply(graph, find_op(op), inputs, std::vector<NamedValue>(parameters)));
  return graph;
}

std::vector<const Location*> locations(const PlanStep& step) {
  std::vector<const Location*> all;
  for (const KernelArgument& argument : std::get<KernelLaunch>(step).arguments)
    if (const auto* location = std::get_if<Location>(&argument)) all.push_back(location);
  return all;
}

TEST(KernelPlan, ShapesOfOneStructureShareTheirKernels) {
  for (const KernelTarget& target : {gpu(), gpu(Dialect::cuda), processor()}) {
    const KernelPlan a = plan_kernels(graph_of("softmax", {{100, 1000}}), target);
    const KernelPlan b = plan_kernels(graph_of("softmax", {{3, 20, 1000}}), target);
    EXPECT_EQ(a.kernels, b.kernels);
    EXPECT_NE(std::get<KernelLaunch>(a.steps[0]).arguments, std::get<KernelLaunch>(b.steps[0]).arguments);
  }
}

TEST(KernelPlan, SoftmaxAndLayerNormAreOneKernelWithoutMemoryBetween) {
  for (const char* op : {"softmax", "layer_norm", "rms_norm", "log_softmax"})
    for (const KernelTarget& target : {gpu(), processor()}) {
      const KernelPlan plan = plan_kernels(graph_of(op, {{64, 1024}}), target);
      EXPECT_EQ(plan.steps.size(), 1u) << op;
      EXPECT_EQ(plan.workspace_bytes, 0u) << op;
    }
}

TEST(KernelPlan, ALongSumTakesTwoKernelsWhereOneRowCannotFillTheDevice) {
  EXPECT_EQ(plan_kernels(graph_of("sum", {{1 << 24}}), gpu()).steps.size(), 2u);
  EXPECT_EQ(plan_kernels(graph_of("sum", {{1000}}), gpu()).steps.size(), 1u);
}

TEST(KernelPlan, BroadcastsSlicesAndTransposesAreReadInPlace) {
  Graph graph;
  const NodeId a = graph.input("a", DType::f32, {64, 32}), b = graph.input("b", DType::f32, {32, 64});
  const int transposed[] = {1, 0};
  const NodeId operands[] = {a, graph.transpose(b, transposed)};
  graph.set_outputs(apply(graph, find_op("add"), operands));
  const KernelPlan plan = plan_kernels(graph, gpu());
  EXPECT_EQ(plan.steps.size(), 1u);
  EXPECT_EQ(plan.workspace_bytes, 0u);
}

TEST(KernelPlan, IndicesAreAsWideAsTheTensorNeeds) {
  const KernelPlan small = plan_kernels(graph_of("exp", {{1 << 20}}), gpu());
  const KernelPlan large = plan_kernels(graph_of("exp", {{std::int64_t{1} << 33}}), gpu());
  EXPECT_NE(small.kernels[0].text.find("i32 i"), std::string::npos);
  EXPECT_NE(large.kernels[0].text.find("i64 i"), std::string::npos);
}

TEST(KernelPlan, TemporariesThatLiveAtOnceDoNotOverlap) {
  Graph graph;
  const NodeId x = graph.input("x", DType::f32, {300, 40}), y = graph.input("y", DType::f32, {40, 300});
  const NodeId product = graph.matmul(x, y);
  const NodeId sorted = graph.arg_sort(product, 1, false);
  const NodeId again = graph.arg_sort(graph.matmul(product, x), 0, true);
  graph.set_outputs({sorted, again});
  const KernelPlan plan = plan_kernels(graph, gpu());
  for (const PlanStep& step : plan.steps) {
    const auto all = locations(step);
    for (std::size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(all[i]->offset_bytes % kLocationAlignment, 0u);
      if (all[i]->space != Location::Space::workspace) continue;
      EXPECT_LE(all[i]->offset_bytes + all[i]->bytes, plan.workspace_bytes);
      for (std::size_t k = 0; k < i; ++k) {
        if (all[k]->space != Location::Space::workspace || *all[k] == *all[i]) continue;
        EXPECT_TRUE(all[k]->offset_bytes + all[k]->bytes <= all[i]->offset_bytes ||
                    all[i]->offset_bytes + all[i]->bytes <= all[k]->offset_bytes);
      }
    }
  }
}

TEST(KernelPlan, EveryOutputIsWrittenAlsoOneThatWasCopiedForAnotherStep) {
  // The indices are a slice that the lookup reads as dense memory.
  const KernelPlan plan = plan_kernels(graph_of("top_k", {{5, 33}}, {{"k", std::int64_t{4}}, {"largest", false}}), gpu());
  std::set<int> written;
  for (const PlanStep& step : plan.steps)
    for (const Location* location : locations(step))
      if (location->space == Location::Space::output) written.insert(location->index);
  EXPECT_EQ(written, (std::set<int>{0, 1}));
}

TEST(KernelPlan, AProductTheLibraryTakesIsAStepOfItsOwn) {
  Graph graph;
  const NodeId a = graph.input("a", DType::bf16, {8, 64, 32}), b = graph.input("b", DType::bf16, {48, 32});
  graph.set_outputs({graph.matmul(a, graph.broadcast(b, {8, 48, 32}), {.transpose_b = true})});
  int asked = 0;
  PlanOptions options;
  options.library_matmul = [&](const MatMulStep&) { return ++asked > 0; };
  const KernelPlan plan = plan_kernels(graph, gpu(Dialect::cuda), options);
  ASSERT_EQ(plan.steps.size(), 1u);
  const auto& step = std::get<MatMulStep>(plan.steps[0]);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(step.batches, 1) << "all are multiplied with one matrix";
  EXPECT_EQ(step.m, 8 * 64);
  EXPECT_EQ(step.n, 48);
  EXPECT_EQ(step.k, 32);
  EXPECT_EQ(step.compute, DType::f32);
  EXPECT_EQ(step.a.stored, DType::bf16);
  EXPECT_EQ(step.b.batch_stride, 0);
  EXPECT_EQ(step.b.row_stride, 1);
  EXPECT_EQ(step.b.column_stride, 32);
  EXPECT_EQ(step.result.stored, DType::bf16);
  EXPECT_EQ(step.result.where.space, Location::Space::output);
}

TEST(KernelPlan, FewRowsTimesAMatrixThatLiesAlongKNeedNoLibrary) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
    for (const std::int64_t rows : {1, 4, 5}) {
      Graph graph;
      const NodeId x = graph.input("x", dtype, {rows, 2048}), w = graph.input("w", dtype, {1000, 2048});
      graph.set_outputs({graph.matmul(x, w, {.transpose_b = true})});
      PlanOptions options;
      options.library_matmul = [](const MatMulStep&) { return true; };
      const KernelPlan plan = plan_kernels(graph, gpu(Dialect::cuda), options);
      ASSERT_EQ(plan.steps.size(), 1u);
      EXPECT_EQ(std::holds_alternative<KernelLaunch>(plan.steps[0]), rows <= 4) << rows << " rows of " << name(dtype);
    }
}

TEST(KernelPlan, SmallProductsOfSomeRowsNeedNoLibraryEither) {
  Graph graph;
  const NodeId x = graph.input("x", DType::f32, {16, 256}), w = graph.input("w", DType::f32, {256, 256});
  graph.set_outputs({graph.matmul(x, w, {.transpose_b = true})});
  const KernelPlan plan = plan_kernels(graph, gpu(Dialect::cuda));
  ASSERT_EQ(plan.kernels.size(), 1u);
  EXPECT_NE(plan.kernels[0].text.find("ROWS = 16"), std::string::npos);
}

TEST(KernelPlan, AMatrixTimesAColumnIsFewRowsToo) {
  Graph graph;
  const NodeId m = graph.input("m", DType::bf16, {4096, 1024}), x = graph.input("x", DType::bf16, {1024, 1});
  graph.set_outputs({graph.matmul(m, x)});
  PlanOptions options;
  options.library_matmul = [](const MatMulStep&) { return true; };
  EXPECT_TRUE(std::holds_alternative<KernelLaunch>(plan_kernels(graph, gpu(Dialect::cuda), options).steps.at(0)));
}

TEST(KernelPlan, TermsOfAProductWithFewResultsAreSharedByTheDevice) {
  const auto groups_of = [](const KernelPlan& plan) {
    std::uint32_t most = 0;
    for (const PlanStep& step : plan.steps) most = std::max(most, std::get<KernelLaunch>(step).groups[0]);
    return most;
  };
  for (const KernelTarget& target : {gpu(), gpu(Dialect::cuda)}) {
    const KernelPlan dot = plan_kernels(graph_of("dot", {{1 << 20}, {1 << 20}}), target);
    EXPECT_EQ(dot.steps.size(), 2u);
    EXPECT_GE(groups_of(dot), 32u);
    EXPECT_GE(groups_of(plan_kernels(graph_of("matmul", {{4, 4096}, {4096, 4}}), target)), 2u);
  }
}

TEST(KernelPlan, AttentionReadsTwoPartsOfKeysAndValuesWhereTheyAre) {
  const auto steps = [](bool reads_keys_elsewhere) {
    Graph graph;
    const NodeId q = graph.input("q", DType::f32, {1, 8, 1, 64});
    std::vector<NodeId> whole;
    for (const char* name : {"k", "v"}) {
      const NodeId old = graph.input(name, DType::f32, {1, 2, 256, 64}), latest = graph.input(name, DType::f32, {1, 2, 32, 64});
      whole.push_back(graph.concat(std::vector{old, latest}, 2));
    }
    std::vector<NodeId> outputs = apply(graph, "attention", {q, whole[0], whole[1]}, {});
    if (reads_keys_elsewhere) outputs.push_back(whole[0]);
    graph.set_outputs(outputs);
    return plan_kernels(graph, gpu(Dialect::cuda)).steps.size();
  };
  EXPECT_EQ(steps(false), 1u);
  EXPECT_GT(steps(true), 4u) << "the whole keys are wanted, so they are put together";
}

TEST(KernelPlan, ValuesOfSixteenBitsThatAreOnlyMovedStaySo) {
  Graph graph;
  const NodeId x = graph.input("x", DType::bf16, {32, 12, 128, 32}), w = graph.input("w", DType::bf16, {384, 384});
  const NodeId moved = graph.reshape(graph.transpose(x, std::array{0, 2, 1, 3}), {32 * 128, 384});
  graph.set_outputs({graph.matmul(moved, w)});
  PlanOptions options;
  DType stored = DType::f32;
  options.library_matmul = [&](const MatMulStep& step) {
    stored = step.a.stored;
    return true;
  };
  plan_kernels(graph, gpu(Dialect::cuda), options);
  EXPECT_EQ(stored, DType::bf16);
}

TEST(KernelPlan, EveryElementwiseOpHasKernelsInBothDialectsForEveryKindOfValue) {
  for (int i = 0; i < kElementwiseCount; ++i) {
    const auto op = static_cast<ElementwiseOp>(i);
    const ElementwiseTraits& t = traits(op);
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::i32, DType::u64, DType::boolean}) {
      const int kind = is_float(dtype) ? kFloats : dtype == DType::boolean ? kBools : kIntegers;
      if ((t.kinds & kind) == 0) continue;
      Graph graph;
      std::vector<NodeId> inputs;
      for (int k = 0; k < t.inputs; ++k) inputs.push_back(graph.input("x", t.condition && k == 0 ? DType::boolean : dtype, {5}));
      const std::vector<double> params(static_cast<std::size_t>(t.params), 1.0);
      graph.set_outputs({graph.elementwise(op, inputs, params)});
      for (const KernelTarget& target : {gpu(), gpu(Dialect::cuda), processor()}) {
        const KernelPlan plan = plan_kernels(graph, target);
        ASSERT_EQ(plan.kernels.size(), 1u) << name(op);
        const Kernel* const kernels[] = {&plan.kernels[0]};
        EXPECT_NE(module_text(target, kernels).find(kernels[0]->entry), std::string::npos) << name(op);
      }
    }
  }
}

TEST(KernelPlan, ADeviceWithoutDoublesRefusesThemBeforeAnythingIsOpened) {
  KernelTarget target = gpu();
  target.has_f64 = false;
  Graph doubles;
  doubles.set_outputs({apply(doubles, "exp", {doubles.input("x", DType::f64, {3})})[0]});
  try {
    check_kernels(doubles, target);
    FAIL() << "it was not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unimplemented);
  }
  // The ops that f32 evaluates in f64 elsewhere stay.
  EXPECT_NO_THROW(plan_kernels(graph_of("atan", {{100}}), target));
}

TEST(KernelPlan, ABadIndexIsToldByItsStatus) {
  const std::int64_t fine[4] = {}, bad[4] = {1, -9, 4, 0};
  EXPECT_NO_THROW(throw_status(fine));
  try {
    throw_status(bad);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::out_of_range);
    EXPECT_STREQ(error.what(), "index -9 is out of range for an axis of 4 elements");
  }
}

// gelu, relu or nothing behind a product with a bias.
Graph layer(std::string_view activation, bool product_is_read_twice = false) {
  Graph graph;
  const NodeId a = graph.input("a", DType::f32, {64, 32}), w = graph.input("w", DType::f32, {32, 48}),
               c = graph.input("c", DType::f32, {48});
  const NodeId product = apply(graph, "matmul", {a, w})[0];
  NodeId result = apply(graph, "add", {product, c})[0];
  if (!activation.empty()) result = apply(graph, activation, {result})[0];
  graph.set_outputs(product_is_read_twice ? std::vector{result, product} : std::vector{result});
  return graph;
}

TEST(KernelPlan, ABiasAndReluBehindALibraryProductAreTheProductsOwn) {
  PlanOptions options;
  options.library_matmul = [](const MatMulStep&) { return true; };
  for (const std::string_view activation : {"", "relu"}) {
    const KernelPlan plan = plan_kernels(layer(activation), gpu(Dialect::cuda), options);
    ASSERT_EQ(plan.steps.size(), 1u) << activation;
    const auto& step = std::get<MatMulStep>(plan.steps[0]);
    EXPECT_TRUE(step.has_bias);
    EXPECT_EQ(step.bias.where.space, Location::Space::input);
    EXPECT_EQ(step.bias.where.index, 2);
    EXPECT_EQ(step.result.where.space, Location::Space::output);
    EXPECT_EQ(step.activation, activation.empty() ? MatMulStep::Activation::none : MatMulStep::Activation::relu);
  }
}

TEST(KernelPlan, WhatTheLibraryDoesNotTakeBehindAProductIsAKernel) {
  PlanOptions options;
  options.library_matmul = [](const MatMulStep& step) { return !step.has_bias; };
  for (const Graph& graph : {layer("relu"), layer("gelu"), layer("relu", true)}) {
    const KernelPlan plan = plan_kernels(graph, gpu(Dialect::cuda), options);
    ASSERT_EQ(plan.steps.size(), 2u);
    EXPECT_FALSE(std::get<MatMulStep>(plan.steps[0]).has_bias);
    EXPECT_TRUE(std::holds_alternative<KernelLaunch>(plan.steps[1]));
  }
}

std::vector<MatMulStep> library_products(const Graph& graph) {
  PlanOptions options;
  options.library_matmul = [](const MatMulStep&) { return true; };
  std::vector<MatMulStep> products;
  for (const PlanStep& step : plan_kernels(graph, gpu(Dialect::cuda), options).steps)
    if (const auto* product = std::get_if<MatMulStep>(&step)) products.push_back(*product);
  return products;
}

TEST(KernelPlan, AProductOfAProductReadsSixteenBitsThatTheFirstOneWrote) {
  for (const bool has_cast : {false, true}) {
    Graph graph;
    const NodeId x = graph.input("x", DType::bf16, {64, 64});
    const NodeId first = has_cast ? graph.cast(graph.cast(graph.matmul(x, x), DType::f32), DType::bf16) : graph.matmul(x, x);
    graph.set_outputs({graph.matmul(first, x)});
    const std::vector<MatMulStep> products = library_products(graph);
    ASSERT_EQ(products.size(), 2u);
    if (!has_cast) {
      EXPECT_EQ(products[0].result.stored, DType::bf16);
      EXPECT_EQ(products[0].result.where, products[1].a.where);
    }
    EXPECT_EQ(products[1].a.stored, DType::bf16);
    EXPECT_EQ(products[1].b.stored, DType::bf16);
  }
}

TEST(KernelPlan, TheSecondLayerOfANetworkReadsSixteenBits) {
  for (const std::string_view activation : {"gelu", "relu"}) {
    Graph graph;
    const NodeId x = graph.input("x", DType::bf16, {64, 32}), w1 = graph.input("w1", DType::bf16, {128, 32});
    const NodeId b1 = graph.input("b1", DType::bf16, {128}), w2 = graph.input("w2", DType::bf16, {32, 128});
    const NodeId hidden = apply(graph, activation, {apply(graph, "linear", {x, w1, b1})[0]})[0];
    graph.set_outputs(apply(graph, "linear", {hidden, w2}));
    const std::vector<MatMulStep> products = library_products(graph);
    ASSERT_EQ(products.size(), 2u) << activation;
    EXPECT_EQ(products[1].a.stored, DType::bf16) << activation;
    EXPECT_EQ(products[0].has_bias, activation == "relu");
    EXPECT_EQ(products[0].result.stored, activation == "relu" ? DType::bf16 : DType::f32);
  }
}

TEST(KernelPlan, AValueThatAProductAndAnotherNodeReadKeepsItsPrecisionForTheOther) {
  Graph graph;
  const NodeId x = graph.input("x", DType::bf16, {64, 64});
  const NodeId product = graph.matmul(x, x);
  const NodeId operands[] = {product, graph.matmul(product, x)};
  graph.set_outputs({graph.elementwise(ElementwiseOp::Add, operands)});
  const std::vector<MatMulStep> products = library_products(graph);
  ASSERT_EQ(products.size(), 2u);
  EXPECT_EQ(products[0].result.stored, DType::f32);
  EXPECT_EQ(products[1].a.stored, DType::bf16);
}

// Between kernels a large product of 16 bits is a tensor of 16 bits; sums that a cast asks for, and small ones, are not rounded.
TEST(KernelPlan, ALargeProductOfSixteenBitsIsStoredInSixteenBits) {
  const auto stored = [](std::int64_t rows, bool widens) {
    Graph graph;
    const NodeId x = graph.input("x", DType::bf16, {rows, 512}), w = graph.input("w", DType::bf16, {512, 512});
    const NodeId product = widens ? graph.cast(graph.matmul(x, w), DType::f32) : graph.matmul(x, w);
    const NodeId b = graph.input("b", widens ? DType::f32 : DType::bf16, {512});
    graph.set_outputs(apply(graph, "gelu", {apply(graph, "add", {product, b})[0]}));
    return library_products(graph).at(0).result.stored;
  };
  EXPECT_EQ(stored(512, false), DType::bf16);
  EXPECT_EQ(stored(512, true), DType::f32);
  EXPECT_EQ(stored(64, false), DType::f32);
}

// |a|^2 + |b|^2 - 2 a.b cancels.
TEST(KernelPlan, DistancesOfSixteenBitsKeepTheSumsOfTheirProduct) {
  Graph graph;
  const NodeId a = graph.input("a", DType::bf16, {1024, 16}), b = graph.input("b", DType::bf16, {1024, 16});
  graph.set_outputs(apply(graph, "cdist", {a, b}));
  EXPECT_EQ(graph[graph.outputs()[0]].dtype, DType::bf16);
  EXPECT_EQ(library_products(graph).at(0).result.stored, DType::f32);
}

TEST(KernelPlan, ALargeProductThatIsReadAndReturnedIsStoredOnce) {
  Graph graph;
  const NodeId x = graph.input("x", DType::bf16, {512, 512});
  const NodeId product = graph.matmul(x, x);
  graph.set_outputs({product, apply(graph, "gelu", {product})[0]});
  const auto is_product = [](const PlanStep& step) { return std::holds_alternative<MatMulStep>(step); };
  PlanOptions options;
  options.library_matmul = [](const MatMulStep&) { return true; };
  const KernelPlan plan = plan_kernels(graph, gpu(Dialect::cuda), options);
  ASSERT_EQ(plan.steps.size(), 2u);
  EXPECT_TRUE(is_product(plan.steps[0]));
  EXPECT_EQ(std::get<MatMulStep>(plan.steps[0]).result.stored, DType::bf16);
}

TEST(KernelPlan, ALargeConvolutionIsAProductOfAllItsImages) {
  PlanOptions options;
  options.library_matmul = [](const MatMulStep&) { return true; };
  const KernelPlan plan = plan_kernels(graph_of("conv2d", {{8, 16, 30, 30}, {32, 16, 3, 3}}), gpu(Dialect::cuda), options);
  ASSERT_EQ(plan.steps.size(), 2u);
  EXPECT_TRUE(std::holds_alternative<KernelLaunch>(plan.steps[0]));
  const auto& product = std::get<MatMulStep>(plan.steps[1]);
  EXPECT_EQ(product.batches, 8);
  EXPECT_EQ(product.m, 32);
  EXPECT_EQ(product.n, 28 * 28);
  EXPECT_EQ(product.k, 16 * 9);
  EXPECT_EQ(product.a.batch_stride, 0);
  // One by one without padding x is what would be copied.
  const KernelPlan plain = plan_kernels(graph_of("conv2d", {{8, 16, 30, 30}, {32, 16, 1, 1}}), gpu(Dialect::cuda), options);
  ASSERT_EQ(plain.steps.size(), 1u);
  EXPECT_EQ(std::get<MatMulStep>(plain.steps[0]).b.where.space, Location::Space::input);
}

TEST(KernelPlan, AConvolutionTooLargeToUnfoldAtOnceTakesItsImagesInTurn) {
  const KernelPlan plan = plan_kernels(graph_of("conv2d", {{64, 64, 256, 256}, {16, 64, 3, 3}}), gpu(Dialect::cuda));
  EXPECT_GT(plan.steps.size(), 2u);
  EXPECT_LE(plan.workspace_bytes, std::uint64_t{512} << 20);
}

TEST(KernelPlan, AConvolutionOfSixteenBitsTakesTheMatrixUnitsWhereThereAreSome) {
  const auto helpers = [](DType dtype, const Shape& x, const Shape& w, bool has_matrix_units) {
    Graph graph;
    graph.set_outputs({graph.conv(graph.input("x", dtype, x), graph.input("w", dtype, w), {})});
    KernelTarget target = gpu(Dialect::cuda);
    target.has_matrix_units = has_matrix_units;
    std::set<std::string> all;
    for (const Kernel& kernel : plan_kernels(graph, target).kernels) all.insert(kernel.helpers.begin(), kernel.helpers.end());
    return all;
  };
  const Shape x{8, 16, 30, 30}, w{32, 16, 3, 3};
  EXPECT_TRUE(helpers(DType::bf16, x, w, true).contains("multiply_matrices_bf16"));
  EXPECT_TRUE(helpers(DType::f16, x, w, true).contains("multiply_matrices_f16"));
  EXPECT_TRUE(helpers(DType::f16, {8, 16, 300}, {32, 16, 3}, true).contains("multiply_matrices_f16"));
  EXPECT_TRUE(helpers(DType::bf16, {8, 64, 7, 7}, {32, 64, 1, 1}, true).contains("multiply_matrices_bf16")) << "odd rows";
  for (const auto& [dtype, few_channels, one_pixel, has_units] : {std::tuple{DType::bf16, false, false, false},
                                                                  {DType::f32, false, false, true},
                                                                  {DType::bf16, true, false, true},
                                                                  {DType::bf16, false, true, true}}) {
    const Shape window = one_pixel ? Shape{32, 16, 1, 1} : few_channels ? Shape{32, 8, 3, 3} : w;
    const Shape images = few_channels ? Shape{8, 8, 30, 30} : one_pixel ? Shape{8, 16, 28, 28} : x;
    for (const std::string& helper : helpers(dtype, images, window, has_units))
      EXPECT_EQ(helper.find("multiply_matrices"), std::string::npos) << name(dtype) << to_string(window);
  }
}

TEST(KernelPlan, AConvolutionWithManyChannelsAndPixelsTakesWarpgroupProducts) {
  const auto takes_them = [](DType dtype, const Shape& x, const Shape& w, bool has_products) {
    Graph graph;
    graph.set_outputs({graph.conv(graph.input("x", dtype, x), graph.input("w", dtype, w), {})});
    KernelTarget target = gpu(Dialect::cuda);
    target.has_matrix_units = true;
    target.has_warpgroup_products = has_products;
    target.compute_units = 132;
    return std::ranges::any_of(plan_kernels(graph, target).kernels, &Kernel::needs_warpgroup_products);
  };
  const Shape x{32, 128, 30, 30}, w{128, 128, 3, 3};
  EXPECT_TRUE(takes_them(DType::bf16, x, w, true));
  EXPECT_FALSE(takes_them(DType::bf16, x, w, false));
  EXPECT_FALSE(takes_them(DType::f32, x, w, true));
  EXPECT_FALSE(takes_them(DType::bf16, {32, 132, 30, 30}, {128, 132, 3, 3}, true)) << "rows of pixels are not aligned";
  EXPECT_FALSE(takes_them(DType::bf16, {1, 128, 14, 14}, w, true)) << "too few tiles";
}

// What a model in float32 with products in 16 bits asks for.
TEST(KernelPlan, AConvolutionWhoseSumsStayInFloat32TakesThemToo) {
  for (const std::int64_t window : {3, 1}) {
    Graph graph;
    const NodeId x = graph.cast(apply(graph, "relu", {graph.input("x", DType::f32, {64, 128, 15, 15})})[0], DType::bf16);
    const NodeId y = graph.cast(graph.conv(x, graph.input("w", DType::bf16, {128, 128, window, window}), {}), DType::f32);
    graph.set_outputs({apply(graph, "relu", {apply(graph, "mul", {y, graph.input("s", DType::f32, {128, 1, 1})})[0]})[0]});
    KernelTarget target = gpu(Dialect::cuda);
    target.has_matrix_units = target.has_warpgroup_products = true;
    target.compute_units = 132;
    EXPECT_TRUE(std::ranges::any_of(plan_kernels(graph, target).kernels, &Kernel::needs_warpgroup_products)) << window;
  }
}

TEST(KernelPlan, PartsOfATransposedConvolutionShareTheirCopyOfTheImages) {
  Graph graph;
  const NodeId x = graph.input("x", DType::bf16, {32, 128, 28, 28}), w = graph.input("w", DType::bf16, {128, 128, 4, 4});
  graph.set_outputs({apply(graph, "conv_transpose2d", {x, w}, {{"stride", 2}, {"padding", 1}})[0]});
  KernelTarget target = gpu(Dialect::cuda);
  target.has_matrix_units = target.has_warpgroup_products = true;
  target.compute_units = 132;
  const KernelPlan plan = plan_kernels(graph, target);
  std::ptrdiff_t readers = 0;
  for (const PlanStep& step : plan.steps) {
    const auto& arguments = std::get<KernelLaunch>(step).arguments;
    readers += std::ranges::count_if(arguments, [](const KernelArgument& argument) {
      const auto* where = std::get_if<Location>(&argument);
      return where != nullptr && where->space == Location::Space::input && where->index == 0;
    });
  }
  EXPECT_EQ(readers, 1);
}

// A layer of a language model for |rows| tokens: norm, gated product, product back, the sum with what came in, and the norm and
// product of the layer after it.
Graph gated_layer(std::int64_t rows, bool also_reads_gate = false) {
  Graph graph;
  const auto in = [&](DType dtype, const Shape& shape) { return graph.input("x", dtype, shape); };
  const auto normed = [&](NodeId x) {
    return graph.cast(apply(graph, find_op("rms_norm"), std::vector{x, in(DType::f32, {512})}, {})[0], DType::f16);
  };
  const auto product = [&](NodeId x, std::int64_t n) {
    return graph.matmul(x, in(DType::f16, {n, graph[x].shape[1]}), {.transpose_b = true});
  };
  const auto part = [&](NodeId x, std::int64_t first) {
    return graph.cast(graph.slice(x, std::array{std::int64_t{0}, first}, std::array{rows, std::int64_t{768}},
                                  std::array{std::int64_t{1}, std::int64_t{1}}),
                      DType::f32);
  };
  const NodeId x = in(DType::f32, {rows, 512});
  const NodeId both = product(normed(x), 2 * 768), gate = part(both, 0), up = part(both, 768);
  const NodeId gated =
      apply(graph, find_op("mul"), std::vector{apply(graph, find_op("silu"), std::vector{gate}, {})[0], up}, {})[0];
  const NodeId back = graph.cast(product(graph.cast(gated, DType::f16), 512), DType::f32);
  const NodeId sum = apply(graph, find_op("add"), std::vector{x, back}, {})[0];
  std::vector<NodeId> outputs{sum, graph.cast(product(normed(sum), 640), DType::f32)};
  if (also_reads_gate) outputs.push_back(gate);
  graph.set_outputs(outputs);
  return graph;
}

TEST(KernelPlan, ProductsOfFewRowsComputeWhatIsAroundThem) {
  const auto steps = [](const Graph& graph, const KernelTarget& target) { return plan_kernels(graph, target).steps.size(); };
  for (const std::int64_t rows : {1, 3}) EXPECT_EQ(steps(gated_layer(rows), gpu(Dialect::cuda)), 3u) << rows;
  EXPECT_GE(steps(gated_layer(64), gpu(Dialect::cuda)), 6u) << "many rows are no such products";
  EXPECT_GE(steps(gated_layer(1), gpu()), 6u);
  EXPECT_GT(steps(gated_layer(1, true), gpu(Dialect::cuda)), 3u) << "the product is needed for something else, too";
}

// Such numbers are in no memory that the kernel of the product could load them from.
TEST(KernelPlan, AProductOfFewRowsDoesNotAbsorbASumWithCountedNumbers) {
  Graph graph;
  const NodeId x = graph.input("x", DType::f32, {1, 256}), w = graph.input("w", DType::f32, {128, 256});
  const NodeId product = graph.matmul(x, w, {.transpose_b = true}), counted = graph.cast(graph.iota({1, 128}, 1), DType::f32);
  graph.set_outputs(apply(graph, find_op("add"), std::vector{product, counted}, {}));
  const KernelPlan plan = plan_kernels(graph, gpu(Dialect::cuda));
  ASSERT_EQ(plan.steps.size(), 2u);
  EXPECT_EQ(locations(plan.steps[0]).size(), 3u) << "two inputs and the product";
  EXPECT_EQ(locations(plan.steps[1]).size(), 2u) << "the product and the sum";
}

}  // namespace
}  // namespace tenon
