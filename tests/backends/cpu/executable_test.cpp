// The CPU's programs against the reference interpreter: every kind of loop, view and step, and random graphs.
#include "backends/cpu/executable.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "backends/cpu/backend.h"
#include "reference/reference.h"
#include "tenon/error.h"
#include "tenon/ops.h"

namespace tenon {
namespace {

HostArray random_array(DType dtype, const Shape& shape, std::mt19937_64& rng) {
  std::vector<float> values(static_cast<std::size_t>(shape.elements()));
  std::uniform_real_distribution<float> uniform(-3, 3);
  for (float& v : values) v = uniform(rng);
  return HostArray::from<float>(shape, std::span<const float>(values)).cast(dtype);
}

// Runs the graph on the CPU and compares every output with the reference.
void expect_like_reference(Graph& graph, std::span<const HostArray> inputs, double tolerance = 2e-5, int threads = 2) {
  ThreadPool pool(threads);
  const auto device = cpu::open_with(pool);
  const auto program = device->compile(graph);
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<const Buffer*> in;
  std::vector<Buffer*> out;
  for (const HostArray& array : inputs) in.push_back(buffers.emplace_back(device->upload(array)).get());
  for (const TensorType& type : program->output_types()) out.push_back(buffers.emplace_back(device->allocate(type)).get());
  // Twice: the second run finds a used workspace.
  program->run(in, out);
  program->run(in, out);
  const std::vector<HostArray> expected = reference_run(graph, inputs);
  ASSERT_EQ(expected.size(), out.size());
  for (std::size_t o = 0; o < out.size(); ++o) {
    const HostArray got = device->download(*out[o]);
    ASSERT_EQ(got.dtype(), expected[o].dtype());
    ASSERT_EQ(got.shape(), expected[o].shape());
    for (std::int64_t i = 0; i < got.elements(); ++i) {
      const double g = got.value(i), e = expected[o].value(i);
      if (std::isnan(e) && std::isnan(g)) continue;
      if (g == e) continue;
      ASSERT_NEAR(g, e, tolerance * std::max(1.0, std::abs(e))) << "output " << o << " element " << i << "\n" << graph.text();
    }
  }
}

class ProgramTest : public testing::Test {
 protected:
  NodeId input(const Shape& shape, DType dtype = DType::f32) {
    arrays_.push_back(random_array(dtype, shape, rng_));
    return graph_.input("x" + std::to_string(arrays_.size()), dtype, shape);
  }
  NodeId op(const char* name, std::initializer_list<NodeId> in, std::initializer_list<NamedValue> params = {}) {
    return apply(graph_, name, in, params)[0];
  }
  void expect(std::vector<NodeId> outputs, double tolerance = 2e-5) {
    graph_.set_outputs(std::move(outputs));
    expect_like_reference(graph_, arrays_, tolerance);
  }

  std::mt19937_64 rng_{7};
  Graph graph_;
  std::vector<HostArray> arrays_;
};

TEST_F(ProgramTest, AFusedChain) {
  const NodeId a = input({5, 700}), b = input({5, 700});
  expect({op("gelu", {op("add", {op("mul", {a, b}), graph_.literal(0.5)})})});
}

TEST_F(ProgramTest, ChainsOfSeveralKernelsInAndBeyondTheCaches) {
  for (const std::int64_t elements : {3001, 2'600'011})
    for (const DType dtype : {DType::f32, DType::bf16}) {
      graph_ = Graph();
      arrays_.clear();
      const NodeId a = input({elements}, dtype), b = input({elements}, dtype);
      expect({op("abs", {op("sub", {op("mul", {a, b}), b})})}, dtype == DType::f32 ? 2e-5 : 1e-2);
    }
}

TEST_F(ProgramTest, BroadcastOperandsOfEveryKind) {
  const NodeId x = input({6, 50, 40}), row = input({40}), column = input({50, 1}), scalar = input({}), plane = input({6, 1, 40});
  expect({op("add", {op("mul", {op("sub", {op("div", {x, scalar}), row}), column}), plane})});
}

TEST_F(ProgramTest, BroadcastOperandsWithLongRows) {
  const NodeId x = input({3, 5000}), row = input({5000}), column = input({3, 1}), scalar = input({1, 1});
  expect({op("add", {op("mul", {op("sub", {x, row}), column}), scalar})});
}

TEST_F(ProgramTest, TransposedOperandsSmallAndLarge) {
  const NodeId small = input({30, 20}), large = input({300, 200}), other = input({20, 30}), more = input({200, 300});
  expect({op("add", {op("transpose", {small}), other}), op("mul", {op("transpose", {large}), more})});
}

TEST_F(ProgramTest, HalfPrecisionIsRoundedOnceAtTheEnd) {
  const NodeId a = input({33, 65}, DType::bf16), b = input({33, 65}, DType::bf16), c = input({7, 9}, DType::f16);
  expect({op("add", {op("mul", {a, b}), a}), op("exp", {c})}, 0);
}

TEST_F(ProgramTest, AnExplicitCastRoundsWhereItStands) {
  const NodeId a = input({1000});
  expect({op("add", {graph_.cast(graph_.cast(a, DType::bf16), DType::f32), a}), graph_.cast(a, DType::i32),
          graph_.cast(a, DType::boolean)},
         0);
}

TEST_F(ProgramTest, ACastThatIsOnlyStoredAndOneThatIsReadToo) {
  for (const DType from : {DType::f32, DType::f64, DType::i64, DType::boolean, DType::bf16})
    for (const DType to : {DType::bf16, DType::f16}) {
      graph_ = Graph();
      arrays_.clear();
      const NodeId x = input({40, 300}, from), row = graph_.reduce(ReduceKind::max, x, 2);
      const NodeId read = graph_.cast(op("add", {x, x}), to);
      expect({graph_.cast(x, to), graph_.cast(row, to), read, op("add", {read, read})}, 0);
    }
}

TEST_F(ProgramTest, BlockFormatsInsideAProgram) {
  const NodeId a = input({40, 70}, DType::bfloat8_b), b = input({40, 70});
  expect({op("mul", {a, b}), graph_.cast(b, DType::bfloat4_b), op("add", {graph_.cast(b, DType::bfloat8_b), b}), a});
}

TEST_F(ProgramTest, SoftmaxOverShortLongAndVeryLongRows) {
  expect({op("softmax", {input({100, 10})}), op("softmax", {input({7, 3000})}), op("softmax", {input({2, 40000})}),
          op("softmax", {input({1, 1})})});
}

TEST_F(ProgramTest, NormsWithWeights) {
  const NodeId x = input({6, 10, 48}), w = input({48}), b = input({48});
  expect({op("layer_norm", {x, w, b}), op("rms_norm", {x, w})}, 1e-4);
}

TEST_F(ProgramTest, RowsNormalizedInOnePassAlsoWhereTheResultIsReadAgain) {
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const std::int64_t width : {31, 700, 9000})
      for (const bool read_again : {false, true}) {
        graph_ = Graph();
        arrays_.clear();
        const NodeId x = input({2, 6, width}, dtype), mean = input({6}, dtype), root = input({6}, dtype),
                     weight = input({6}, dtype), bias = input({6}, dtype);
        const NodeId of_channels = op("batch_norm", {x, mean, op("square", {root}), weight, bias}, {{"eps", 0.5}});
        const NodeId of_groups = op("group_norm", {x, weight, bias}, {{"groups", 3.0}});
        std::vector<NodeId> outputs{of_channels, of_groups};
        if (read_again) outputs = {of_channels, op("exp", {of_channels}), op("mul", {of_groups, x})};
        expect(outputs, dtype == DType::bf16 ? 1e-2 : 2e-5);
      }
}

TEST_F(ProgramTest, NormsOfRowsWithSmallLargeAndNoNumbers) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (const std::int64_t width : {31, 700, 2047, 2100, 9001}) {
      graph_ = Graph();
      arrays_.clear();
      const NodeId x = input({5, width}, dtype);
      std::vector<float> sizes{1, 1e-3f, 0, 0.5f, 2};
      if (dtype != DType::f16) sizes = {1, 1e-30f, 0, 1e-12f, 1e30f};
      arrays_.push_back(HostArray::from<float>({5, 1}, std::span<const float>(sizes)).cast(dtype));
      const NodeId scaled = op("mul", {x, graph_.input("size", dtype, {5, 1})});
      arrays_.push_back(arrays_[0]);
      const NodeId plain = graph_.input("plain", dtype, {5, width});
      expect({op("norm", {scaled}, {{"axis", std::int64_t{1}}}), op("normalize", {scaled}), op("normalize", {plain}),
              op("norm", {plain}, {{"axis", std::int64_t{1}}})},
             dtype == DType::f32 ? 2e-5 : 1e-2);
    }
}

TEST_F(ProgramTest, CheapOpsOf16BitsAreRoundedOnce) {
  for (const DType dtype : {DType::f16, DType::bf16})
    for (const Shape& shape : {Shape{7}, Shape{1000}, Shape{3, 37}, Shape{70'001}}) {
      graph_ = Graph();
      arrays_.clear();
      const NodeId x = input(shape, dtype), y = input(shape, dtype), z = input(shape, dtype);
      expect(
          {op("add", {x, y}), op("mul", {x, y}), op("div", {x, y}), op("mac", {x, y, z}), op("lerp", {x, y, z}), op("abs", {x}),
           op("reciprocal", {z}), op("copysign", {x, z}), op("addalpha", {x, y}, {{"alpha", 0.25}}), op("addcdiv", {x, y, z})},
          dtype == DType::f16 ? 1e-3 : 8e-3);
    }
}

TEST_F(ProgramTest, LongDotsOfEveryFloat) {
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64}) {
    graph_ = Graph();
    arrays_.clear();
    expect({op("dot", {input({100'003}, dtype), input({100'003}, dtype)}),
            op("mv", {input({3, 70'000}, dtype), input({70'000}, dtype)})},
           is_float(dtype) && element_bytes(dtype) == 2 ? 2e-2 : 1e-4);
  }
}

TEST_F(ProgramTest, PoolingToANumberOfWindowsOfAnySize) {
  const std::pair<Shape, std::int64_t> cases[] = {{{2, 3, 40'007}, 7}, {{2, 3, 64}, 4},     {{1, 2, 5}, 9},
                                                  {{2, 5, 33, 47}, 6}, {{1, 2, 90, 12}, 4}, {{1, 2, 9, 40, 11}, 3},
                                                  {{2, 3, 8, 8, 8}, 7}};
  for (const DType dtype : {DType::f32, DType::bf16, DType::f64})
    for (const auto& [shape, windows] : cases)
      for (const char* kind : {"avg", "max"}) {
        graph_ = Graph();
        arrays_.clear();
        const NodeId x = input(shape, dtype);
        std::vector<double> values(static_cast<std::size_t>(shape.elements()));
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = arrays_[0].value(static_cast<std::int64_t>(i));
        values[values.size() / 3] = -INFINITY;
        values[values.size() / 2] = NAN;
        arrays_[0] = HostArray::from<double>(shape, std::span<const double>(values)).cast(dtype);
        const std::string name = std::string("adaptive_") + kind + "_pool" + std::to_string(shape.rank() - 2) + "d";
        expect({op(name.c_str(), {x}, {{"output_size", windows}})}, dtype == DType::bf16 ? 1e-2 : 2e-5);
      }
}

TEST_F(ProgramTest, BordersOfEveryKindAndWidth) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::i32})
    for (const char* mode : {"constant", "edge", "reflect", "wrap"})
      for (const std::vector<std::int64_t>& width : std::vector<std::vector<std::int64_t>>{{2}, {0, 3}, {6, 6}, {9, 0, 1, 20}}) {
        graph_ = Graph();
        arrays_.clear();
        const NodeId x = input({7, 33}, dtype);
        expect({op("pad", {x}, {{"padding", width}, {"mode", std::string(mode)}})});
      }
}

TEST_F(ProgramTest, ChoicesBetweenColumnsBeforeAndAfterANumberOfTheRow) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::i64, DType::boolean})
    for (const auto& [rows, cols] : {std::pair<std::int64_t, std::int64_t>{7, 5}, {3, 2050}, {40, 300}, {1, 9}, {600, 5000}}) {
      graph_ = Graph();
      arrays_.clear();
      const NodeId x = input({rows, cols}, dtype), v = input({std::min<std::int64_t>(cols, 300)}, dtype);
      std::vector<NodeId> outputs;
      for (const std::int64_t diagonal : {-2, 0, 3, 4000}) {
        outputs.push_back(op("tril", {x}, {{"diagonal", diagonal}}));
        outputs.push_back(op("triu", {x}, {{"diagonal", diagonal}}));
      }
      if (dtype != DType::boolean) outputs.push_back(op("tril", {op("add", {x, x})}));
      for (const std::int64_t offset : {-1, 0, 2}) outputs.push_back(op("diag", {v}, {{"offset", offset}}));
      expect(outputs, dtype == DType::bf16 ? 1e-2 : 2e-5);
    }
}

TEST_F(ProgramTest, ShortRowsOfSeveralBroadcastAxes) {
  const NodeId a = input({3, 1, 5, 1}), b = input({1, 7, 1, 6}), c = input({1, 7, 5, 1});
  expect({op("kron", {input({9, 8}), input({8, 9})}), op("add", {op("mul", {a, b}), c})});
}

TEST_F(ProgramTest, ShortRowsReadThroughViewsAndReducedOverEitherAxis) {
  for (const std::int64_t width : {1, 2, 3, 4, 5, 7, 16, 24, 32, 33})
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::i32}) {
      graph_ = Graph();
      arrays_.clear();
      const std::int64_t count = 61;
      const NodeId x = input({count, width}, dtype), wide = input({count, width + 2}, dtype), row = input({width}, dtype);
      const std::int64_t start[] = {0, 1}, extent[] = {count, width}, step[] = {1, 1};
      const NodeId some = graph_.slice(wide, start, extent, step);
      const Shape across{1, count, width}, down{count, 1, width};
      const NodeId d = op("sub", {graph_.reshape(x, across), graph_.reshape(some, down)});
      const NodeId total = graph_.reduce(ReduceKind::sum, op("mul", {d, d}), 4);
      std::vector<NodeId> outputs{total, op("mul", {op("maximum", {d, row}), total}), graph_.reduce(ReduceKind::sum, d, 2),
                                  graph_.reduce(ReduceKind::max, op("abs", {d}), 4), graph_.reduce(ReduceKind::max, d, 1)};
      for (const ReduceKind kind : {ReduceKind::max, ReduceKind::min, ReduceKind::prod}) {
        outputs.push_back(graph_.reduce(kind, op("mul", {d, row}), 4));
        outputs.push_back(graph_.reduce(kind, x, 2));
        outputs.push_back(graph_.reduce(kind, x, 1));
      }
      expect(outputs, dtype == DType::bf16 ? 3e-2 : 1e-4);
    }
}

TEST_F(ProgramTest, NarrowPartsSideBySide) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::i64, DType::u8})
    for (const std::int64_t rows : {1, 5, 3001}) {
      graph_ = Graph();
      arrays_.clear();
      const NodeId x = input({2, rows, 9}, dtype), y = input({2, rows}, dtype), one = input({1, 1, 3}, dtype);
      const std::int64_t start[] = {0, 0, 1}, extent[] = {2, rows, 4}, step[] = {1, 1, 2};
      const NodeId parts[] = {graph_.slice(x, start, extent, step), graph_.reshape(y, {2, rows, 1}),
                              graph_.broadcast(one, {2, rows, 3})};
      const NodeId pairs[] = {graph_.reshape(y, {2, rows, 1, 1}), graph_.reshape(op("mul", {y, y}), {2, rows, 1, 1})};
      expect({graph_.concat(parts, 2), graph_.concat(pairs, 2), graph_.concat(pairs, 3)}, dtype == DType::bf16 ? 1e-2 : 1e-5);
    }
}

TEST_F(ProgramTest, ValuesJoinedWithACacheAreRoundedBeforeAndReadRoundedOrNot) {
  for (const DType dtype : {DType::bf16, DType::f16})
    for (const bool is_read_unrounded : {false, true}) {
      graph_ = Graph();
      arrays_.clear();
      const NodeId q = input({2, 1, 24}, dtype), past = input({2, 40, 24}, dtype), step = input({2, 1, 24}, dtype);
      const NodeId weight = input({24, 24}, dtype);
      const NodeId turned = op("mul", {step, q}), projected = op("matmul", {step, weight});
      const NodeId both[] = {past, turned}, all[] = {past, projected, op("neg", {turned})};
      const NodeId keys = graph_.concat(both, 1), values = graph_.concat(all, 1);
      const std::int64_t low[] = {0, 1, 0}, high[] = {0, 0, 0};
      std::vector<NodeId> outputs{op("matmul", {keys, weight}), keys, graph_.pad(values, low, high, 0),
                                  op("matmul", {values, weight})};
      if (is_read_unrounded) outputs.push_back(op("add", {keys, step}));
      expect(outputs, 3e-2);
    }
}

TEST_F(ProgramTest, RowValuesLeaveTheGroupToo) {
  const NodeId x = input({9, 200});
  const NodeId m = graph_.reduce(ReduceKind::max, x, 2), s = graph_.reduce(ReduceKind::sum, op("exp", {op("sub", {x, m})}), 2);
  expect({m, s, op("div", {op("exp", {op("sub", {x, m})}), s}), op("log", {s})});
}

TEST_F(ProgramTest, RowValuesOnEitherSideOfTheirRows) {
  for (const Shape& shape : {Shape{50, 30}, Shape{50, 300}, Shape{9, 5003}, Shape{200, 15'001}}) {
    graph_ = Graph();
    arrays_.clear();
    const NodeId x = input(shape), y = input(shape);
    const NodeId m = graph_.reduce(ReduceKind::max, x, 2);
    expect({op("sub", {x, m}), op("sub", {m, x}), op("mul", {m, y}), op("add", {y, m}), op("add", {m, m}),
            op("mul", {op("sub", {y, m}), m})});
  }
}

// From the second run on, weights are read in the order in which they were packed.
TEST_F(ProgramTest, ProductsWithPartsOfWeightsAreTheSameInEveryRun) {
  const NodeId x = input({5, 40}), weights = input({40, 90});
  const std::int64_t start[] = {0, 3}, extent[] = {40, 40}, step[] = {1, 2};
  expect({graph_.matmul(x, graph_.slice(weights, start, extent, step)), graph_.matmul(x, op("flip", {weights}))});
}

// Their steps round them, and the concatenation moves 16 bits.
TEST_F(ProgramTest, ProductsAndAttentionThatAreRoundedWhereTheyAreComputedAreJoined) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    graph_ = Graph();
    arrays_.clear();
    const auto small = [&](NodeId x) { return op("mul", {x, graph_.literal(0.125)}); };
    const NodeId product = graph_.matmul(small(input({256, 16}, dtype)), input({16, 600}, dtype));
    const NodeId q = input({2, 4, 130, 64}, dtype), k = input({2, 4, 130, 64}, dtype), v = input({2, 4, 130, 64}, dtype);
    const NodeId attention = op("attention", {small(q), k, v});
    expect({op("concat", {input({10, 600}, dtype), product}, {{"axis", std::int64_t{0}}}),
            op("concat", {attention, input({2, 4, 9, 64}, dtype)}, {{"axis", std::int64_t{2}}})},
           dtype == DType::bf16 ? 3e-2 : 4e-3);
  }
}

// Other steps may take them as zeros, which saves products a hundredfold time.
TEST_F(ProgramTest, ActivationsOfProductsThatAreResultsKeepSubnormalNumbers) {
  const NodeId x = input({4, 1}), weights = input({1, 32});
  for (float& value : arrays_[0].mutable_view<float>()) value = -13.4F;
  for (float& value : arrays_[1].mutable_view<float>()) value = 1;
  graph_.set_outputs({op("gelu", {graph_.matmul(x, weights)})});
  const auto device = cpu::open_with(process_pool());
  const auto program = device->compile(graph_);
  const auto a = device->upload(arrays_[0]), b = device->upload(arrays_[1]), out = device->allocate({DType::f32, {4, 32}});
  program->run({a.get(), b.get()}, {out.get()});
  EXPECT_NEAR(device->download(*out).value(7), -4.051e-40, 1e-42);
}

TEST_F(ProgramTest, SumsOfProductsThatNobodyElseNeedsAndThatSomebodyDoes) {
  for (const Shape& shape : {Shape{50, 30}, Shape{9, 5003}})
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::i32}) {
      graph_ = Graph();
      arrays_.clear();
      const NodeId x = input(shape, dtype), y = input(shape, dtype), z = input({shape[0], 1}, dtype);
      const NodeId shared = op("mul", {x, y}), m = graph_.reduce(ReduceKind::max, x, 2);
      expect({graph_.reduce(ReduceKind::sum, op("mul", {y, x}), 2), graph_.reduce(ReduceKind::sum, op("square", {y}), 3),
              graph_.reduce(ReduceKind::sum, op("mul", {x, z}), 2), graph_.reduce(ReduceKind::sum, shared, 2), shared,
              graph_.reduce(ReduceKind::sum, op("square", {op("sub", {x, m})}), 2)},
             dtype == DType::bf16 ? 2e-2 : 1e-4);
    }
}

TEST_F(ProgramTest, DeviationsThatAreReadOnceSeveralTimesAndOutside) {
  for (const Shape& shape : {Shape{50, 30}, Shape{50, 300}, Shape{9, 5003}, Shape{300, 9001}})
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
      graph_ = Graph();
      arrays_.clear();
      const NodeId x = op("add", {input(shape, dtype), input(shape, dtype)});
      const NodeId m = graph_.reduce(ReduceKind::max, x, 2), s = graph_.reduce(ReduceKind::sum, x, 2);
      const NodeId d = op("sub", {x, m}), again = op("sub", {op("sub", {x, s}), m}), kept = op("sub", {x, op("add", {m, m})});
      expect({op("log_softmax", {x}), op("layer_norm", {op("mul", {x, x})}), op("var", {x}, {{"axis", std::int64_t{-1}}}),
              op("div", {d, m}), op("mul", {d, s}), op("sub", {d, m}), graph_.reduce(ReduceKind::sum, op("mul", {d, d}), 2),
              op("mul", {again, m}), op("div", {again, s}), kept, op("mul", {kept, m}), op("relu", {op("sub", {x, s})})},
             dtype == DType::bf16 ? 3e-2 : 1e-3);
    }
}

TEST_F(ProgramTest, ReductionsOfDifferences) {
  const auto reduce = [&](ReduceKind kind, NodeId x, AxisSet axes) { return graph_.reduce(kind, x, axes); };
  for (const Shape& shape : {Shape{50, 30}, Shape{9, 5003}, Shape{300, 9001}})
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::i32}) {
      graph_ = Graph();
      arrays_.clear();
      const NodeId x = input(shape, dtype), y = input(shape, dtype), z = input({shape[0], 1}, dtype);
      const NodeId used = op("abs", {op("sub", {y, x})});
      expect(
          {reduce(ReduceKind::sum, op("abs", {op("sub", {x, y})}), 2), reduce(ReduceKind::max, op("abs", {op("sub", {x, y})}), 3),
           reduce(ReduceKind::sum, op("square", {op("sub", {x, y})}), 3),
           reduce(ReduceKind::min, op("abs", {op("sub", {x, y})}), 2), reduce(ReduceKind::sum, op("abs", {op("sub", {x, z})}), 2),
           reduce(ReduceKind::sum, used, 2), used, reduce(ReduceKind::sum, op("abs", {op("sub", {x, y})}), 1)},
          dtype == DType::bf16 ? 3e-2 : 1e-4);
    }
}

TEST_F(ProgramTest, RowValuesInHalfPrecision) {
  const NodeId x = input({9, 200}, DType::bf16);
  expect({op("mean", {x}, {{"axis", std::int64_t{-1}}}), op("softmax", {x})}, 1e-2);
}

TEST_F(ProgramTest, ReductionsOverEveryAxis) {
  const NodeId x = input({12, 34, 56});
  std::vector<NodeId> outputs;
  for (AxisSet axes = 1; axes < 8; ++axes)
    for (ReduceKind kind : {ReduceKind::sum, ReduceKind::max, ReduceKind::min}) outputs.push_back(graph_.reduce(kind, x, axes));
  expect(outputs, 1e-4);
}

TEST_F(ProgramTest, ReductionsOfComputedValuesOverLeadingAxes) {
  const NodeId x = input({300, 7}), y = input({5, 64, 3000}), bias = input({3000}), row = input({64, 1});
  expect({graph_.reduce(ReduceKind::sum, op("square", {x}), 1),
          graph_.reduce(ReduceKind::sum, op("mul", {op("add", {y, bias}), row}), 2),
          graph_.reduce(ReduceKind::max, op("abs", {y}), 3), graph_.reduce(ReduceKind::sum, op("mul", {y, row}), 1)},
         1e-4);
}

TEST_F(ProgramTest, ReductionsWithSeveralInnerAxesThatCannotBeJoined) {
  const NodeId x = input({50, 6, 40}), w = input({40});
  expect({graph_.reduce(ReduceKind::sum, op("mul", {x, w}), 1)}, 1e-4);
}

TEST_F(ProgramTest, IntegerAndBoolReductions) {
  const NodeId i = input({40, 100}, DType::i32), u = input({40, 100}, DType::u8), x = input({40, 100});
  const NodeId positive = op("gt", {x, graph_.literal(0.0)});
  expect({graph_.reduce(ReduceKind::sum, i, 1), graph_.reduce(ReduceKind::prod, u, 2),
          graph_.reduce(ReduceKind::any, positive, 2), graph_.reduce(ReduceKind::all, positive, 1),
          graph_.reduce(ReduceKind::sum, positive, 3), graph_.reduce(ReduceKind::max, i, 3)},
         0);
}

// In parts that are joined, and with enough columns at once.
TEST_F(ProgramTest, ReductionsOfColumnsInManyTypes) {
  for (const Shape& shape : {Shape{700, 3001}, Shape{20, 33001}, Shape{9000, 7}})
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::i16, DType::u8, DType::i64, DType::boolean}) {
      graph_ = Graph();
      arrays_.clear();
      if (shape[0] == 700 && dtype != DType::f32) continue;  // for the threads that join parts
      const NodeId x = input(shape, dtype);
      std::vector<NodeId> outputs;
      for (const ReduceKind kind : {ReduceKind::sum, ReduceKind::max, ReduceKind::min, ReduceKind::prod}) {
        if (dtype == DType::boolean && kind == ReduceKind::prod) continue;
        outputs.push_back(graph_.reduce(kind, x, 1));
      }
      const NodeId truth = dtype == DType::boolean ? x : op("gt", {x, graph_.literal(0.0)});
      for (const ReduceKind kind : {ReduceKind::any, ReduceKind::all}) outputs.push_back(graph_.reduce(kind, truth, 1));
      expect(outputs, dtype == DType::f32 ? 1e-4 : dtype == DType::bf16 ? 1e-2 : 1e-12);
    }
}

TEST_F(ProgramTest, ReductionsOfNothing) {
  const NodeId x = input({3, 0}), y = input({0, 3});
  expect({graph_.reduce(ReduceKind::sum, x, 2), graph_.reduce(ReduceKind::prod, y, 1),
          graph_.reduce(ReduceKind::all, op("gt", {x, x}), 3), op("add", {x, x}), graph_.reduce(ReduceKind::sum, x, 1)});
}

TEST_F(ProgramTest, ALargeSumInOneStep) {
  const NodeId x = input({1'000'003});
  expect({graph_.reduce(ReduceKind::sum, op("mul", {x, x}), 1), graph_.reduce(ReduceKind::max, x, 1)}, 1e-6);
}

TEST_F(ProgramTest, OutputsThatAreInputsConstantsViewsAndEachOther) {
  const NodeId x = input({4, 6}), h = input({8}, DType::bf16);
  const NodeId y = op("exp", {x});
  expect({x, y, y, op("transpose", {y}), graph_.scalar(3, DType::f32), op("transpose", {x}), h, graph_.reshape(y, {24})});
}

TEST_F(ProgramTest, OutputsThatAreComputedValuesInOtherShapes) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::i32}) {
    graph_ = Graph();
    arrays_.clear();
    const NodeId x = input({6, 40}, dtype), y = op("mul", {x, x}), z = op("neg", {x}), sorted = op("sort", {x});
    const NodeId flat = graph_.reshape(y, {240}), half = graph_.reshape(z, {2, 120});
    expect({flat, half, z, op("add", {half, half}), graph_.reshape(z, {240}), graph_.reshape(sorted, {3, 80}),
            op("transpose", {y}), graph_.reshape(op("transpose", {x}), {240})},
           dtype == DType::bf16 ? 1e-2 : 2e-5);
  }
}

TEST_F(ProgramTest, EveryOtherPrimitive) {
  const NodeId x = input({6, 8}), y = input({8, 5}), image = input({2, 4, 9, 9}), kernel = input({6, 2, 3, 3});
  const NodeId index = graph_.constant(HostArray::from<std::int64_t>({3}, {0, -1, 2}));
  const std::int64_t one_two[] = {1, 2}, two_zero[] = {2, 0};
  const NodeId both[] = {x, op("exp", {x})};
  expect({graph_.matmul(x, y), graph_.matmul(op("transpose", {y}), x, {false, true}),
          graph_.conv(image, kernel, {.stride = {2, 1, 1}, .pad_low = {1, 1, 0}, .pad_high = {1, 1, 0}, .groups = 2}),
          graph_.window(image, {.max = true, .size = {3, 2, 1}, .stride = {2, 1, 1}}), graph_.take(x, index, 1),
          graph_.pad(x, one_two, two_zero, 7), graph_.concat(both, 1), graph_.arg_reduce(x, 1, true), graph_.arg_sort(x, 0, true),
          graph_.cumulative(x, 1, false), graph_.random({5, 7}, DType::f32, false, 42),
          graph_.random({1001}, DType::f32, true, 43), graph_.iota({3, 4}, 1)},
         1e-4);
}

TEST_F(ProgramTest, PrimitivesOnHalfPrecisionInputs) {
  const NodeId a = input({16, 24}, DType::bf16), b = input({24, 8}, DType::bf16);
  expect({graph_.matmul(a, b), op("transpose", {a}), graph_.cumulative(a, 0, false)}, 1e-2);
  const NodeId index = graph_.constant(HostArray::from<std::int64_t>({2, 24}, std::vector<std::int64_t>(48, 3)));
  const NodeId few = op("slice", {a}, {{"start", std::vector<std::int64_t>{5}}, {"stop", std::vector<std::int64_t>{7}}});
  expect({graph_.scatter(a, index, few, 0, false), graph_.scatter(op("neg", {a}), index, few, 0, false),
          graph_.scatter(a, index, few, 0, true), graph_.gather(a, index, 0)},
         1e-2);
}

TEST_F(ProgramTest, SumsOfUpdatesInHalfPrecisionAreRoundedOnce) {
  for (const DType dtype : {DType::f16, DType::bf16})
    for (const int axis : {0, 1}) {
      graph_ = Graph();
      arrays_.clear();
      const NodeId a = input({70, 90}, dtype), b = input({70, 90}, dtype);
      std::vector<std::int64_t> numbers(70 * 90), rows(70);
      for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::int64_t>(i * 7 % 23) - 9;
      for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::int64_t>(i % 5);
      const NodeId index = graph_.constant(HostArray::from<std::int64_t>({70, 90}, numbers));
      const NodeId row = graph_.broadcast(graph_.constant(HostArray::from<std::int64_t>({70, 1}, rows)), {70, 90});
      const NodeId read = graph_.scatter(a, index, b, axis, true);
      expect({graph_.scatter(a, index, b, axis, true), graph_.scatter(a, row, b, axis, true),
              graph_.scatter(op("transpose", {op("transpose", {a})}), index, b, axis, true), op("neg", {read})},
             dtype == DType::f16 ? 2e-3 : 1e-2);
    }
}

TEST_F(ProgramTest, ConcatenationsOfConcatenationsAndOfPartsOfThem) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::i64}) {
    graph_ = Graph();
    arrays_.clear();
    const NodeId a = input({5, 40}, dtype), b = input({7, 40}, dtype), c = input({12, 9}, dtype);
    const auto join = [&](std::vector<NodeId> parts, int axis) { return graph_.concat(parts, axis); };
    const auto part = [&](NodeId x, std::int64_t first, std::int64_t extent, std::int64_t step) {
      const std::int64_t starts[] = {0, first}, extents[] = {graph_[x].shape[0], extent}, steps[] = {1, step};
      return graph_.slice(x, starts, extents, steps);
    };
    const NodeId rows = join({a, op("neg", {b})}, 0), twice = join({c, rows, rows}, 1);
    const NodeId own = join({a, b}, 0), bordered = join({part(own, 3, 4, -1), own, part(own, 1, 5, 7)}, 1);
    const NodeId seen = join({b, a}, 0), also = join({part(seen, 0, 2, 1), seen}, 1);
    const NodeId transposed = join({a, b}, 0), no = join({transposed, graph_.reshape(transposed, {12, 40})}, 1);
    const NodeId three = join({join({join({a, a}, 0), join({a, a}, 0)}, 1), join({a, a}, 1)}, 0);
    expect({twice, bordered, also, op("neg", {seen}), no, three}, dtype == DType::bf16 ? 1e-2 : 2e-5);
  }
}

TEST_F(ProgramTest, StreamedResults) {
  const NodeId a = input({3'000'000}), b = input({3'000'000}), h = input({9'000'000}, DType::bf16);
  expect({op("add", {op("mul", {a, b}), a}), op("neg", {h})});
}

TEST_F(ProgramTest, AnIndexOutsideItsAxisIsAnErrorAndTheNextRunWorks) {
  const NodeId x = input({4});
  const NodeId index = graph_.input("i", DType::i64, {2});
  graph_.set_outputs({graph_.take(x, index, 0)});
  const auto device = cpu::open_with(process_pool());
  const auto program = device->compile(graph_);
  const auto values = device->upload(arrays_[0]);
  const auto bad = device->upload(HostArray::from<std::int64_t>({2}, {0, 4})),
             good = device->upload(HostArray::from<std::int64_t>({2}, {0, 3}));
  const auto out = device->allocate({DType::f32, {2}});
  try {
    program->run({values.get(), bad.get()}, {out.get()});
    FAIL() << "the index was accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::out_of_range);
    EXPECT_NE(std::string(e.what()).find('4'), std::string::npos);
  }
  program->run({values.get(), good.get()}, {out.get()});
  EXPECT_EQ(device->download(*out).value(1), arrays_[0].value(3));
}

TEST_F(ProgramTest, ADownloadedResultIsNotOverwrittenByTheNextRun) {
  const NodeId x = input({4});
  graph_.set_outputs({op("neg", {x})});
  const auto device = cpu::open_with(process_pool());
  const auto program = device->compile(graph_);
  const auto first = device->upload(HostArray::full(DType::f32, {4}, 1)),
             second = device->upload(HostArray::full(DType::f32, {4}, 2));
  const auto out = device->allocate({DType::f32, {4}});
  program->run({first.get()}, {out.get()});
  const HostArray kept = device->download(*out);
  program->run({second.get()}, {out.get()});
  EXPECT_EQ(kept.value(0), -1);
  EXPECT_EQ(device->download(*out).value(0), -2);
}

TEST_F(ProgramTest, AnUploadedArrayIsNeverWrittenTo) {
  const NodeId x = input({4});
  graph_.set_outputs({op("neg", {x})});
  const auto device = cpu::open_with(process_pool());
  const auto program = device->compile(graph_);
  const HostArray mine = HostArray::full(DType::f32, {4}, 1);
  const auto in = device->upload(mine), out = device->upload(mine);
  program->run({in.get()}, {out.get()});
  EXPECT_EQ(mine.value(0), 1);
  EXPECT_EQ(device->download(*out).value(0), -1);
}

TEST_F(ProgramTest, WrongTypesAreRefused) {
  graph_.set_outputs({op("neg", {input({4})})});
  const auto device = cpu::open_with(process_pool());
  const auto program = device->compile(graph_);
  const auto wrong = device->upload(HostArray::zeros(DType::f32, {5})), out = device->allocate({DType::f32, {4}});
  EXPECT_THROW(program->run({wrong.get()}, {out.get()}), Error);
}

// Random graphs: elementwise ops, reductions, views and products over a handful of shapes, several outputs.
TEST(RandomPrograms, AgreeWithTheReference) {
  const char* unary[] = {"neg", "abs", "tanh", "sigmoid", "relu", "square", "sin"};
  const char* binary[] = {"add", "sub", "mul", "maximum", "minimum"};
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 rng(seed);
    const auto pick = [&](std::int64_t n) { return static_cast<std::int64_t>(rng() % static_cast<std::uint64_t>(n)); };
    const Shape shapes[] = {{4, 33}, {33}, {4, 1}, {3, 4, 33}, {}, {1, 33}, {2, 1500}, {65, 2, 16}};
    const DType dtypes[] = {DType::f32, DType::f32, DType::f64, DType::bf16};
    Graph g;
    std::vector<HostArray> arrays;
    std::vector<NodeId> nodes;
    for (int i = 0; i < 4; ++i) {
      const Shape& shape = shapes[pick(8)];
      const DType dtype = dtypes[pick(4)];
      arrays.push_back(random_array(dtype, shape, rng));
      nodes.push_back(g.input("x" + std::to_string(i), dtype, shape));
    }
    const int steps = 3 + static_cast<int>(pick(20));
    for (int i = 0; i < steps; ++i) {
      const NodeId a = nodes[static_cast<std::size_t>(pick(static_cast<std::int64_t>(nodes.size())))];
      const NodeId b = nodes[static_cast<std::size_t>(pick(static_cast<std::int64_t>(nodes.size())))];
      const Shape shape = g[a].shape;
      try {
        switch (pick(8)) {
          case 0:
          case 1: nodes.push_back(apply(g, unary[pick(7)], {a})[0]); break;
          case 2:
          case 3:
          case 4: nodes.push_back(apply(g, binary[pick(5)], {a, b})[0]); break;
          case 5:
            if (shape.rank() > 0) {
              const ReduceKind kind = pick(2) ? ReduceKind::max : ReduceKind::sum;
              NodeId r = g.reduce(kind, a, static_cast<AxisSet>(1 + pick((1 << shape.rank()) - 1)));
              if (kind == ReduceKind::sum) r = apply(g, "tanh", {r})[0];  // keeps magnitudes small
              nodes.push_back(r);
              nodes.push_back(g.broadcast(r, shape));
            }
            break;
          case 6: nodes.push_back(apply(g, "transpose", {a})[0]); break;
          case 7: nodes.push_back(g.reshape(a, Shape{shape.elements()})); break;
        }
      } catch (const Error&) {
        continue;  // shapes that do not meet
      }
    }
    std::vector<NodeId> outputs;
    for (int i = 0; i < 3; ++i)
      outputs.push_back(nodes[nodes.size() - 1 -
                              static_cast<std::size_t>(pick(static_cast<std::int64_t>(std::min<std::size_t>(nodes.size(), 6))))]);
    g.set_outputs(outputs);
    SCOPED_TRACE("seed " + std::to_string(seed));
    expect_like_reference(g, arrays, 2e-2, 1 + static_cast<int>(seed % 3));
    if (testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace tenon
