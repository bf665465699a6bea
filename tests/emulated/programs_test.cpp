// Programs of all kinds, for breadth: the ways in which kernels are written, at sizes that reach their ends.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "emulated/cases.h"
#include "emulated/kernel_library.h"
#include "tenon/error.h"
#include "tenon/ops.h"

namespace tenon::emulated {
namespace {

using Attributes = std::vector<NamedValue>;

class Programs {
 public:
  explicit Programs(unsigned seed) : numbers_(seed) {}

  // An op of f32 inputs of these shapes.
  void add(const char* op, std::initializer_list<Shape> shapes, Attributes attributes = {}, double limit = 4e-6) {
    add_of(DType::f32, op, shapes, std::move(attributes), limit);
  }
  void add_of(DType dtype, const char* op, std::initializer_list<Shape> shapes, Attributes attributes = {}, double limit = 4e-6) {
    std::vector<HostArray> inputs;
    for (const Shape& shape : shapes) inputs.push_back(numbers_.normal(dtype, shape));
    add(op, std::move(inputs), std::move(attributes), limit);
  }
  void add(const char* op, std::vector<HostArray> inputs, Attributes attributes = {}, double limit = 4e-6) {
    Graph graph;
    std::vector<NodeId> operands;
    for (const HostArray& input : inputs) operands.push_back(graph.input("x", input.dtype(), input.shape()));
    graph.set_outputs(apply(graph, find_op(op), operands, attributes));
    std::string name = op;
    for (const HostArray& input : inputs) name += fmt::format(" {}", to_string(input.shape()));
    cases_.add(std::move(name), std::move(graph), std::move(inputs), card(), limit);
  }
  void add(std::string name, Graph graph, std::vector<HostArray> inputs, double limit) {
    cases_.add(std::move(name), std::move(graph), std::move(inputs), card(), limit);
  }

  Numbers& numbers() { return numbers_; }
  void check() const { cases_.check(); }

 private:
  Numbers numbers_;
  Cases cases_;
};

TEST(EmulatedPrograms, ElementwiseAndMovedAreThoseOfTheReference) {
  TENON_SKIP_WITHOUT_COMPILER();
  Programs programs(1);
  for (const char* op : {"gelu", "exp", "tanh", "sin", "log1p", "erf"}) programs.add(op, {Shape{7, 129}});
  programs.add("add", {Shape{33, 65}, Shape{65}});
  programs.add("mul", {Shape{5, 1, 7}, Shape{3, 1}});
  programs.add_of(DType::f16, "silu", {Shape{1003}}, {}, 1e-3);
  programs.add_of(DType::bf16, "sigmoid", {Shape{1003}}, {}, 8e-3);
  for (const char* op : {"logaddexp", "logaddexp2"}) {
    programs.add_of(DType::bf16, op, {Shape{1003}, Shape{1003}}, {}, 8e-3);
    const double infinity = std::numeric_limits<double>::infinity();
    const std::vector<double> x = {0, 1, -0.69, infinity, infinity, -infinity, -infinity, NAN, 3, -80},
                              y = {-30, 1, -0.695, infinity, -infinity, 2, -infinity, 1, 3, -0.0001};
    const auto numbers = [](const std::vector<double>& values) {
      return HostArray::from<double>(Shape{std::ssize(values)}, values).cast(DType::bf16);
    };
    programs.add(op, {numbers(x), numbers(y)}, {}, 8e-3);
  }
  programs.add("tril", {Shape{3, 70, 65}}, {{"diagonal", std::int64_t{-2}}});
  programs.add("transpose", {Shape{67, 131}});
  programs.check();
}

// Rows that do not begin at a whole word, rows of which every few elements are read, and rows that are stored and hardly read.
TEST(EmulatedPrograms, RowsOfEveryAlignmentAreThoseOfTheReference) {
  TENON_SKIP_WITHOUT_COMPILER();
  Programs programs(18);
  for (const DType dtype : {DType::f32, DType::bf16, DType::f64}) {
    const double limit = dtype == DType::bf16 ? 8e-3 : 4e-6;
    programs.add_of(dtype, "add", {Shape{17, 1027}, Shape{1027}}, {}, limit);
    programs.add_of(dtype, "mul", {Shape{9, 2051}, Shape{9, 1}}, {}, limit);
    for (const std::int64_t step : {2, 3, 4, 5})
      for (const std::int64_t extent : {1025, 64, 50}) {
        Graph graph;
        const NodeId x = graph.input("x", dtype, Shape{20, extent * step + 3});
        const std::int64_t start[] = {1, 3}, extents[] = {18, extent}, steps[] = {1, step};
        const NodeId part = graph.slice(x, start, extents, steps);
        graph.set_outputs({part, apply(graph, "neg", {apply(graph, "flip", {part})[0]})[0]});
        programs.add(fmt::format("{} every {} of {}", name(dtype), step, extent), std::move(graph),
                     {programs.numbers().normal(dtype, Shape{20, extent * step + 3})}, 0);
      }
    programs.add_of(dtype, "diag", {Shape{260}}, {}, 0);
    programs.add_of(dtype, "outer", {Shape{300}, Shape{130}}, {}, limit);
    programs.add_of(dtype, "pixel_unshuffle", {Shape{2, 3, 32, 56}}, {{"factor", std::int64_t{2}}}, 0);
  }
  programs.add("eye", std::vector<HostArray>{}, {{"n", std::int64_t{515}}}, 0);
  programs.check();
}

TEST(EmulatedPrograms, ReductionsAndNormsAreThoseOfTheReference) {
  TENON_SKIP_WITHOUT_COMPILER();
  Programs programs(2);
  for (const std::int64_t axis : {0, 1}) {
    programs.add("sum", {Shape{130, 257}}, {{"axis", axis}});
    programs.add("max", {Shape{33, 1025}}, {{"axis", axis}});
    programs.add("argmax", {Shape{65, 300}}, {{"axis", axis}});
    programs.add("softmax", {Shape{37, 515}}, {{"axis", axis}});
    programs.add("var", {Shape{40, 90}}, {{"axis", axis}});
  }
  programs.add("sum", {Shape{100000}}, {}, 1e-5);
  // What follows a sum is computed where that is stored, unless something else reads it.
  programs.add("mean", {Shape{100003}}, {}, 1e-5);
  programs.add("mean", {Shape{300, 40}}, {{"axis", std::int64_t{0}}}, 1e-5);
  programs.add("mean", {Shape{3, 5, 7}}, {{"axis", std::int64_t{1}}}, 1e-5);
  for (const bool is_read_twice : {false, true}) {
    Graph graph;
    const auto one = [&](const char* op, NodeId x) { return apply(graph, op, {x})[0]; };
    const NodeId x = graph.input("x", DType::f32, Shape{900, 70});
    const NodeId sum = graph.reduce(ReduceKind::sum, x, 1), flat = graph.reshape(sum, Shape{7, 10});
    const NodeId root = one("sqrt", one("abs", one("neg", flat)));
    graph.set_outputs(is_read_twice ? std::vector<NodeId>{root, sum} : std::vector<NodeId>{root, one("exp", root)});
    programs.add("group after a sum", std::move(graph), {programs.numbers().normal(DType::f32, Shape{900, 70}, 0.1)}, 1e-5);
  }
  programs.add("layer_norm", {Shape{9, 1000}, Shape{1000}, Shape{1000}});
  programs.add("rms_norm", {Shape{3, 4096}, Shape{4096}});
  programs.add("group_norm", {Shape{2, 12, 5, 7}}, {{"groups", std::int64_t{3}}});
  programs.add_of(DType::bf16, "softmax", {Shape{5, 3000}}, {}, 8e-3);
  programs.check();
}

// Several of them a load, with ends that are no whole load, and rows that do not begin at one.
TEST(EmulatedPrograms, ReductionsOfNarrowElementsAreThoseOfTheReference) {
  TENON_SKIP_WITHOUT_COMPILER();
  Programs programs(15);
  for (const DType dtype : {DType::bf16, DType::f16}) {
    for (const std::int64_t count : {70003, 65544, 300, 5}) {
      programs.add_of(dtype, "sum", {Shape{count}}, {}, 8e-3);
      programs.add_of(dtype, "dot", {Shape{count}, Shape{count}}, {}, 2e-2);
      programs.add_of(dtype, "mse_loss", {Shape{count}, Shape{count}}, {}, 8e-3);
    }
    for (const std::int64_t columns : {70000, 70003}) {
      programs.add_of(dtype, "max", {Shape{2, columns}}, {{"axis", std::int64_t{1}}}, 0);
      Graph graph;
      const NodeId x = graph.input("x", dtype, Shape{2, columns}), row = graph.input("row", dtype, Shape{columns}),
                   column = graph.input("column", dtype, Shape{2, 1});
      const NodeId scaled = apply(graph, "mul", {apply(graph, "sub", {x, column})[0], row})[0];
      graph.set_outputs({graph.reduce(ReduceKind::sum, scaled, 2)});
      std::vector<HostArray> inputs;
      for (const NodeId id : {x, row, column}) inputs.push_back(programs.numbers().normal(dtype, graph[id].shape));
      programs.add(fmt::format("scaled sums {} {}", name(dtype), columns), std::move(graph), std::move(inputs), 8e-3);
    }
    programs.add_of(dtype, "matmul", {Shape{2, 3, 300}, Shape{2, 300, 5}}, {}, 2e-2);
  }
  Graph mixed;
  const NodeId x = mixed.input("x", DType::bf16, Shape{3, 400}), y = mixed.input("y", DType::f16, Shape{400, 2});
  mixed.set_outputs(apply(mixed, "matmul", {x, y}));
  programs.add("mixed product", std::move(mixed),
               {programs.numbers().normal(DType::bf16, Shape{3, 400}), programs.numbers().normal(DType::f16, Shape{400, 2})},
               1e-5);
  programs.add("all", {programs.numbers().below(DType::boolean, Shape{70003}, 2)}, {});
  programs.check();
}

TEST(EmulatedPrograms, ProductsOfFewResultsAreThoseOfTheReference) {
  TENON_SKIP_WITHOUT_COMPILER();
  Programs programs(7);
  programs.add("dot", {Shape{100003}, Shape{100003}}, {}, 1e-5);
  programs.add_of(DType::bf16, "dot", {Shape{5000}, Shape{5000}}, {}, 8e-3);
  programs.add("matmul", {Shape{3, 700}, Shape{700, 5}}, {}, 1e-5);
  programs.add_of(DType::f16, "matmul", {Shape{2, 4, 300}, Shape{300, 6}}, {}, 2e-3);
  programs.add("matmul", {Shape{4, 1, 300}, Shape{1, 300, 1}}, {}, 1e-5);
  programs.add("linear", {Shape{3, 512}, Shape{7, 512}, Shape{7}}, {}, 1e-5);
  programs.check();
}

TEST(EmulatedPrograms, SortsScansAndLookupsAreThoseOfTheReference) {
  TENON_SKIP_WITHOUT_COMPILER();
  Programs programs(3);
  Numbers& numbers = programs.numbers();
  programs.add("sort", {Shape{3, 5000}});
  programs.add("sort", {Shape{700, 9}}, {{"axis", std::int64_t{0}}, {"descending", true}});
  programs.add("top_k", {Shape{4, 3000}}, {{"k", std::int64_t{7}}});
  programs.add("top_k", {Shape{2, 40000}}, {{"k", std::int64_t{100}}, {"largest", false}});
  programs.add("cumsum", {Shape{5, 3001}}, {}, 1e-5);
  programs.add("cumsum", {Shape{300, 20}}, {{"axis", std::int64_t{0}}}, 1e-5);
  programs.add("take", {numbers.normal(DType::f32, Shape{50, 64}), numbers.below(DType::i64, Shape{300}, 50)},
               {{"axis", std::int64_t{0}}});
  programs.add("gather", {numbers.normal(DType::f32, Shape{50, 64}), numbers.below(DType::i64, Shape{30, 64}, 50)});
  programs.add("scatter_add", {numbers.normal(DType::f32, Shape{40, 33}), numbers.below(DType::i64, Shape{200, 33}, 40),
                               numbers.normal(DType::f32, Shape{200, 33})});
  programs.add("scatter", {numbers.normal(DType::f32, Shape{40, 33}), numbers.below(DType::i64, Shape{90, 33}, 40),
                           numbers.normal(DType::f32, Shape{90, 33})});
  programs.check();
}

// Sums of rows: in few places and in many, of one element and of several, with places that many updates share.
TEST(EmulatedPrograms, SumsOfScatteredRowsAreThoseOfTheReference) {
  TENON_SKIP_WITHOUT_COMPILER();
  Programs programs(17);
  Numbers& numbers = programs.numbers();
  const auto add = [&](DType dtype, std::int64_t places, std::int64_t length, std::int64_t count, double limit, bool repeats) {
    Graph graph;
    const Shape rows{places, length}, all{count, length};
    const NodeId start = repeats ? graph.broadcast(graph.cast(graph.literal(2.0), dtype), rows) : graph.input("x", dtype, rows);
    const NodeId index = graph.input("i", DType::i32, Shape{2 * count, 1}), update = graph.input("u", dtype, all);
    const std::int64_t first[] = {1, 0}, extent[] = {count, 1}, step[] = {2, 1};
    const NodeId places_of_rows = graph.broadcast(graph.slice(index, first, extent, step), all);
    graph.set_outputs({graph.scatter(start, places_of_rows, update, 0, true)});
    std::vector<HostArray> inputs;
    if (!repeats) inputs.push_back(numbers.normal(dtype, rows));
    inputs.push_back(numbers.below(DType::i32, Shape{2 * count, 1}, places));
    inputs.push_back(is_float(dtype) ? numbers.normal(dtype, all) : numbers.below(dtype, all, 100));
    if (!repeats && !is_float(dtype)) inputs[0] = numbers.below(dtype, rows, 100);
    programs.add(fmt::format("{} {} of {} into {}", name(dtype), count, length, places), std::move(graph), std::move(inputs),
                 limit);
  };
  for (const bool repeats : {false, true}) {
    add(DType::f32, 5, 16, 3001, 1e-5, repeats);
    add(DType::f32, 64, 33, 700, 1e-5, repeats);
    add(DType::bf16, 17, 3, 1000, 8e-3, repeats);
    add(DType::f64, 3, 1, 5000, 1e-12, repeats);
    add(DType::i64, 7, 2, 900, 0, repeats);
    // By sorting.
    add(DType::f32, 100, 12, 700, 1e-5, repeats);
    add(DType::f16, 90, 7, 400, 2e-3, repeats);
  }
  programs.add(
      "scatter_add",
      {numbers.normal(DType::f32, Shape{9}), numbers.below(DType::i64, Shape{4000}, 9), numbers.normal(DType::f32, Shape{4000})},
      {{"axis", std::int64_t{0}}}, 1e-5);
  programs.check();
}

// Lines that several work-groups share, with equal elements in different parts, and with what is read of the result.
TEST(EmulatedPrograms, SelectionsFromFewLinesAreThoseOfTheReference) {
  TENON_SKIP_WITHOUT_COMPILER();
  Programs programs(16);
  Numbers& numbers = programs.numbers();
  for (const bool largest : {false, true})
    for (const std::int64_t k : {std::int64_t{30}, std::int64_t{400}, std::int64_t{1000}}) {
      const Attributes attributes{{"k", k}, {"largest", largest}};
      programs.add("top_k", {numbers.below(DType::i32, Shape{1, 30011}, 50)}, attributes, 0);
      programs.add("top_k", {numbers.normal(DType::bf16, Shape{2, 17001})}, attributes, 0);
      programs.add("top_k", {numbers.below(DType::i64, Shape{12345}, 3)}, attributes, 0);
    }
  programs.add("top_k", {Shape{70000}}, {{"k", std::int64_t{22}}}, 0);
  for (const int result : {0, 1}) {
    Graph graph;
    const NodeId x = graph.input("x", DType::f32, Shape{2, 20000});
    graph.set_outputs({apply(graph, find_op("top_k"), std::vector<NodeId>{x}, Attributes{{"k", std::int64_t{40}}})[result]});
    programs.add(fmt::format("result {} of top_k", result), std::move(graph), {numbers.normal(DType::f32, Shape{2, 20000})}, 0);
  }
  programs.check();
}

TEST(EmulatedPrograms, ProductsAndPlanesAreThoseOfTheReference) {
  TENON_SKIP_WITHOUT_COMPILER();
  Programs programs(4);
  programs.add("matmul", {Shape{70, 50}, Shape{50, 90}});
  programs.add("matmul", {Shape{3, 33, 40}, Shape{3, 40, 17}});
  programs.add("matmul", {Shape{1, 512}, Shape{512, 300}});
  programs.add("conv2d", {Shape{2, 5, 13, 11}, Shape{7, 5, 3, 3}}, {{"padding", std::int64_t{1}}}, 1e-5);
  programs.add("conv_transpose2d", {Shape{1, 6, 7, 9}, Shape{6, 4, 3, 3}}, {{"stride", std::int64_t{2}}}, 1e-5);
  programs.add("adaptive_avg_pool2d", {Shape{2, 6, 13, 17}}, {{"output_size", std::int64_t{5}}});
  programs.add("adaptive_max_pool2d", {Shape{1, 70, 9, 7}}, {{"output_size", std::int64_t{3}}});
  programs.add("max_pool2d", {Shape{2, 3, 15, 17}}, {{"kernel", std::int64_t{3}}, {"stride", std::int64_t{2}}});
  for (const bool is_normal : {false, true}) {
    Graph graph;
    graph.set_outputs({graph.random(Shape{1003}, DType::f32, is_normal, 42)});
    programs.add(is_normal ? "normal" : "uniform", std::move(graph), {}, 4e-6);
  }
  programs.check();
}

// By a convolution for all phases of the stride, and by one for each where these differ.
TEST(EmulatedPrograms, TransposedConvolutionsAreThoseOfTheReference) {
  TENON_SKIP_WITHOUT_COMPILER();
  Programs programs(20);
  const auto with = [](std::int64_t stride, std::int64_t padding, std::int64_t more = 0) {
    return Attributes{{"stride", stride}, {"padding", padding}, {"output_padding", more}};
  };
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const double limit = dtype == DType::f32 ? 1e-5 : 1e-2;
    programs.add_of(dtype, "conv_transpose1d", {Shape{2, 32, 301}, Shape{32, 16, 4}}, with(2, 1), limit);
    programs.add_of(dtype, "conv_transpose1d", {Shape{1, 32, 200}, Shape{32, 16, 6}}, with(3, 2, 1), limit);
    programs.add_of(dtype, "conv_transpose2d", {Shape{1, 16, 24, 25}, Shape{16, 8, 4, 4}}, with(2, 1), limit);
    programs.add_of(dtype, "conv_transpose2d", {Shape{1, 16, 24, 23}, Shape{16, 9, 2, 4}}, with(2, 0), limit);
    programs.add_of(dtype, "conv_transpose2d", {Shape{1, 16, 24, 24}, Shape{16, 9, 3, 4}}, with(2, 1), limit);
    programs.add_of(dtype, "conv_transpose3d", {Shape{1, 8, 6, 7, 8}, Shape{8, 9, 4, 4, 4}}, with(2, 1), limit);
    programs.add_of(dtype, "conv_transpose3d", {Shape{2, 8, 5, 4, 6}, Shape{8, 9, 4, 4, 4}}, with(2, 3, 1), limit);
  }
  programs.check();
}

// Rows of whole words and others, windows that reach over every end.
TEST(EmulatedPrograms, PoolingIsThatOfTheReference) {
  TENON_SKIP_WITHOUT_COMPILER();
  Programs programs(13);
  const auto with = [](std::int64_t kernel, std::int64_t stride, std::int64_t padding) {
    return Attributes{{"kernel", kernel}, {"stride", stride}, {"padding", padding}};
  };
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const std::string kind : {"max", "avg"}) {
      const double limit = dtype == DType::f32 ? 4e-6 : 8e-3;
      for (const std::int64_t columns : {13, 16, 20}) {
        programs.add_of(dtype, (kind + "_pool1d").c_str(), {Shape{2, 3, columns}}, with(3, 2, 1), limit);
        programs.add_of(dtype, (kind + "_pool2d").c_str(), {Shape{2, 3, 9, columns}}, with(3, 2, 1), limit);
        programs.add_of(dtype, (kind + "_pool3d").c_str(), {Shape{2, 3, 7, 9, columns}}, with(3, 2, 1), limit);
      }
      programs.add_of(dtype, (kind + "_pool3d").c_str(), {Shape{1, 2, 8, 5, 12}}, with(4, 3, 2), limit);
      programs.add_of(dtype, (kind + "_pool1d").c_str(), {Shape{1, 2, 120}}, with(11, 1, 5), limit);
      programs.add_of(dtype, (kind + "_pool2d").c_str(), {Shape{1, 2, 8, 24}}, with(2, 2, 0), limit);
    }
  // Long windows, whose middle is read where it is.
  for (const char* op : {"adaptive_avg_pool1d", "adaptive_max_pool1d"}) {
    programs.add(op, {Shape{2, 3, 1000}}, {{"output_size", std::int64_t{7}}}, 1e-5);
    programs.add_of(DType::bf16, op, {Shape{1, 3, 2050}}, {{"output_size", std::int64_t{3}}}, 8e-3);
  }
  programs.add("conv2d", {Shape{2, 6, 9, 16}, Shape{6, 1, 3, 3}}, {{"padding", std::int64_t{1}}, {"groups", std::int64_t{6}}},
               1e-5);
  programs.check();
}

// Windows that overlap and others, more windows than elements, rows that work-items share and rows that they have alone.
TEST(EmulatedPrograms, PoolingToANumberOfWindowsIsThatOfTheReference) {
  TENON_SKIP_WITHOUT_COMPILER();
  Programs programs(19);
  for (const DType dtype : {DType::f32, DType::bf16, DType::f64})
    for (const std::string kind : {"max", "avg"}) {
      const double limit = kind == "max" ? 0 : dtype == DType::bf16 ? 8e-3 : 4e-6;
      const auto add = [&](int axes, const Shape& shape, std::int64_t windows) {
        programs.add_of(dtype, fmt::format("adaptive_{}_pool{}d", kind, axes).c_str(), {shape}, {{"output_size", windows}},
                        limit);
      };
      add(1, Shape{2, 3, 1000}, 7);
      add(1, Shape{2, 9, 12}, 4);
      add(1, Shape{1, 2, 2050}, 3);
      add(2, Shape{3, 5, 16, 16}, 4);
      add(2, Shape{1, 3, 7, 70}, 9);
      add(2, Shape{1, 2, 45, 300}, 2);
      add(3, Shape{2, 3, 9, 10, 11}, 4);
      add(3, Shape{1, 2, 17, 5, 33}, 2);
      add(3, Shape{1, 2, 2, 3, 4}, 5);
    }
  programs.check();
}

TEST(EmulatedPrograms, PaddedOnesAreThoseOfTheReference) {
  TENON_SKIP_WITHOUT_COMPILER();
  Programs programs(12);
  const auto with = [](std::vector<std::int64_t> padding) { return Attributes{{"padding", std::move(padding)}, {"value", 1.5}}; };
  for (const DType dtype : {DType::f32, DType::bf16, DType::f64, DType::u8}) {
    programs.add_of(dtype, "pad", {Shape{5, 33}}, with({3}), 0);
    programs.add_of(dtype, "pad", {Shape{3, 4, 32}}, with({0, 0, 0, 5, 8, 16}), 0);
    programs.add_of(dtype, "pad", {Shape{3, 4, 6, 2}}, with({1, 0, 0, 2, 0, 0, 0, 0}), 0);
    programs.add_of(dtype, "pad", {Shape{700}}, with({13, 2}), 0);
  }
  programs.add_of(DType::boolean, "pad", {Shape{1, 3}}, with({1}), 0);
  programs.add_of(DType::f32, "pad", {Shape{4097, 2}}, with({0, 0, 1, 0}), 0);
  // Of views: one with its axes exchanged, one broadcast, one read from its end, and a part.
  for (const char* view : {"transpose", "broadcast", "flip", "slice"}) {
    Graph graph;
    const NodeId x = graph.input("x", DType::f32, Shape{20, 40});
    const std::int64_t start[] = {2, 4}, extent[] = {10, 32}, step[] = {1, 1};
    const NodeId seen = view == std::string("transpose")   ? apply(graph, "transpose", {x})[0]
                        : view == std::string("broadcast") ? graph.broadcast(x, Shape{3, 20, 40})
                        : view == std::string("flip")      ? apply(graph, "flip", {x})[0]
                                                           : graph.slice(x, start, extent, step);
    const std::vector<std::int64_t> low(static_cast<std::size_t>(graph[seen].shape.rank()), 4);
    graph.set_outputs({graph.pad(seen, low, low, -2)});
    programs.add(fmt::format("pad of {}", view), std::move(graph), {programs.numbers().normal(DType::f32, Shape{20, 40})}, 0);
  }
  programs.check();
}

// Groups that store their results in the place that these have in a concatenation, and parts that are copied.
TEST(EmulatedPrograms, ConcatenationsOfGroupsAreThoseOfTheReference) {
  TENON_SKIP_WITHOUT_COMPILER();
  Programs programs(14);
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const double limit = dtype == DType::f32 ? 4e-6 : 8e-3;
    programs.add_of(dtype, "cross", {Shape{700, 3}, Shape{700, 3}}, {}, limit);
    programs.add_of(dtype, "cross", {Shape{3, 40}, Shape{3, 40}}, {{"axis", std::int64_t{0}}}, limit);
    for (const int axis : {0, 1, 2}) {
      Graph graph;
      const NodeId x = graph.input("x", dtype, Shape{4, 6, 16}), y = graph.input("y", dtype, Shape{4, 6, 16});
      const auto one = [&](const char* op, std::vector<NodeId> operands) { return apply(graph, find_op(op), operands, {})[0]; };
      const NodeId sum = one("add", {x, y}), twice = one("mul", {x, y}), rounded = graph.cast(x, DType::f16);
      const NodeId wide = graph.cast(rounded, dtype);
      const NodeId parts[] = {sum, x, one("neg", {twice}), one("tanh", {y}), wide};
      const NodeId all = graph.concat(parts, axis), twins[] = {twice, all};
      graph.set_outputs({all, one("exp", {graph.concat(twins, axis)}), one("sum", {all})});
      std::vector<HostArray> inputs;
      for (int i = 0; i < 2; ++i) inputs.push_back(programs.numbers().normal(dtype, Shape{4, 6, 16}));
      programs.add(fmt::format("{} along {}", name(dtype), axis), std::move(graph), std::move(inputs), std::max(limit, 1e-5));
    }
  }
  programs.check();
}

// Groups that draw the random numbers that they alone read, with and without a quad that is cut off at the end.
TEST(EmulatedPrograms, GroupsOfRandomNumbersAreThoseOfTheReference) {
  TENON_SKIP_WITHOUT_COMPILER();
  Programs programs(11);
  const std::vector<std::int64_t> counts[] = {{1003}, {4, 32}, {2}};
  for (const std::vector<std::int64_t>& shape : counts) {
    for (const DType dtype : {DType::f32, DType::bf16, DType::f64})
      programs.add("uniform", std::vector<HostArray>{},
                   {{"shape", shape}, {"low", -1.0}, {"high", 1.0}, {"dtype", std::string(name(dtype))}}, 0);
    for (const DType dtype : {DType::f32, DType::boolean, DType::i64})
      programs.add("bernoulli", std::vector<HostArray>{}, {{"shape", shape}, {"p", 0.3}, {"dtype", std::string(name(dtype))}}, 0);
    // In integers where the range has up to 32 bits.
    for (const std::int64_t high : {std::int64_t{-4}, std::int64_t{70000}, std::int64_t{0xfffffffa}, std::int64_t{1} << 45})
      for (const std::string dtype : {"int64", "int32"})
        programs.add("randint", std::vector<HostArray>{},
                     {{"shape", shape}, {"low", std::int64_t{-5}}, {"high", high}, {"dtype", dtype}}, 0);
  }
  Numbers& numbers = programs.numbers();
  for (const DType dtype : {DType::f32, DType::f64})
    for (const bool is_normal : {false, true})
      for (const Shape& shape : {Shape{6, 5, 7}, Shape{3, 4, 8}}) {
        // Beside them a dense operand, one of a row, one of a column, and a transposed one.
        Graph graph;
        std::vector<HostArray> inputs;
        const auto input = [&](DType stored, const Shape& of) {
          inputs.push_back(numbers.normal(stored, of));
          return graph.input("x", stored, of);
        };
        const auto one = [&](const char* op, std::vector<NodeId> operands) { return apply(graph, find_op(op), operands, {})[0]; };
        const NodeId dense = input(DType::f16, shape), row = input(DType::f32, Shape{shape[2]}),
                     column = input(DType::f64, Shape{shape[1], 1}),
                     turned = input(DType::f32, Shape{shape[2], shape[1], shape[0]});
        const NodeId drawn = graph.random(shape, dtype, is_normal, 7), seen = graph.random(shape, DType::f32, false, 8);
        const NodeId sum = one("add", {one("mul", {dense, row}), one("add", {column, one("transpose", {turned})})});
        const NodeId kept = one("where", {one("greater", {drawn, seen}), sum, graph.literal(0.0)});
        graph.set_outputs({kept, one("mul", {drawn, drawn}), seen});
        programs.add(fmt::format("{} {} {}", name(dtype), is_normal ? "normal" : "uniform", to_string(shape)), std::move(graph),
                     std::move(inputs), 4e-6);
      }
  programs.check();
}

// With as many inputs as an op needs, of one shape; ops that take no such inputs are left out.
TEST(EmulatedPrograms, ASampleOfTheOpsIsThatOfTheReference) {
  TENON_SKIP_WITHOUT_COMPILER();
  Numbers numbers(9);
  Cases cases;
  int tried = 0;
  const auto add = [&](const OpInfo& op, DType dtype, const Shape& shape) {
    Graph graph;
    std::vector<NodeId> operands;
    std::vector<HostArray> inputs;
    for (int i = 0; i < op.min_inputs; ++i) {
      operands.push_back(graph.input("x", dtype, shape));
      inputs.push_back(dtype == DType::i32 ? numbers.below(dtype, shape, 2) : numbers.normal(dtype, shape));
    }
    try {
      graph.set_outputs(apply(graph, op, operands));
    } catch (const Error&) {
      return;
    }
    cases.add(fmt::format("{} {} {}", op.name, name(dtype), to_string(shape)), std::move(graph), std::move(inputs), card(),
              dtype == DType::f16 ? 2e-3 : 2e-5);
    ++tried;
  };
  const Shape shapes[] = {{5, 33}, {3, 4, 260}, {2, 8, 6, 12}};
  const DType dtypes[] = {DType::f32, DType::f16, DType::i32};
  for (std::size_t i = 0; i < all_ops().size(); i += 4) add(all_ops()[i], dtypes[i / 4 % 3], shapes[i / 12 % 3]);
  EXPECT_GE(tried, 40);
  cases.check();
}

// Few rows and a matrix along k, as steps of a decoder have them, with the group after them and the norm in front.
TEST(EmulatedPrograms, ProductsOfFewRowsAreThoseOfTheReference) {
  TENON_SKIP_WITHOUT_COMPILER();
  Numbers numbers(6);
  Cases cases;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
    for (const std::int64_t rows : {1, 2, 3, 4})
      for (const int units : {3, 40}) {
        const std::int64_t k = dtype == DType::f32 ? 516 : 1032, n = 201;
        Graph graph;
        const auto one = [&](const char* op, std::initializer_list<NodeId> operands, Attributes attributes = {}) {
          return apply(graph, find_op(op), std::vector<NodeId>(operands), std::move(attributes))[0];
        };
        const NodeId x = graph.input("x", DType::f32, Shape{rows, k}), scale = graph.input("scale", DType::f32, Shape{k});
        const NodeId both = graph.input("w", dtype, Shape{2 * n, k});
        const NodeId other = graph.input("other", DType::f32, Shape{rows, n});
        const NodeId normed = graph.cast(one("rms_norm", {x, scale}), dtype);
        const NodeId product = graph.cast(graph.matmul(normed, both, {.transpose_b = true}), DType::f32);
        const auto half = [&](std::int64_t first) {
          const std::int64_t start[] = {0, first}, extent[] = {rows, n}, step[] = {1, 1};
          return graph.slice(product, start, extent, step);
        };
        graph.set_outputs({one("add", {one("mul", {one("silu", {half(0)}), half(n)}), other})});
        std::vector<HostArray> inputs;
        for (const NodeId id : {x, scale, both, other})
          inputs.push_back(numbers.normal(graph[id].dtype, graph[id].shape, id == both ? 0.03 : 1));
        cases.add(fmt::format("{} rows, {}, {} units", rows, name(dtype), units), std::move(graph), std::move(inputs),
                  card(units), dtype == DType::f32 ? 1e-5 : 1e-2);
      }
  cases.check();
}

}  // namespace
}  // namespace tenon::emulated
