// Results of the CPU backend do not depend on how many threads computed them, to the last bit.
#include <gtest/gtest.h>

#include <cstring>

#include "backends/cpu/backend.h"
#include "conformance/cases/values.h"
#include "tenon/ops.h"

namespace tenon::conformance {
namespace {

struct Workload {
  const char* name;
  const char* op;
  std::vector<Shape> inputs;
  std::vector<NamedValue> parameters;
  DType dtype = DType::f32;
};

std::vector<Workload> workloads() {
  const NamedValue rows{"axis", std::int64_t{1}}, columns{"axis", std::int64_t{0}};
  return {
      {"SumOfAll", "sum", {{1'000'003}}, {}},
      {"SumOfRows", "sum", {{513, 1031}}, {rows}},
      {"SumOfColumns", "sum", {{513, 1031}}, {columns}},
      {"SumOfFewLongRows", "sum", {{3, 400'009}}, {rows}},
      {"SumOfBfloat16", "sum", {{1'000'003}}, {}, DType::bf16},
      {"SumOfDoubles", "sum", {{500'009}}, {}, DType::f64},
      {"ProductOfRows", "prod", {{4099, 33}}, {rows}},
      {"Mean", "mean", {{777, 991}}, {}},
      {"Variance", "var", {{777, 991}}, {columns}},
      {"LargestIndex", "argmax", {{777, 991}}, {}},
      {"Norm", "norm", {{777, 991}}, {}},
      {"Softmax", "softmax", {{300, 1201}}, {}},
      {"SoftmaxOfColumns", "softmax", {{1201, 300}}, {columns}},
      {"LayerNorm", "layer_norm", {{300, 1201}, {1201}, {1201}}, {}},
      {"Matmul", "matmul", {{257, 311}, {311, 263}}, {}},
      {"MatmulOfDoubles", "matmul", {{129, 311}, {311, 131}}, {}, DType::f64},
      {"MatmulOfBfloat16", "matmul", {{257, 311}, {311, 263}}, {}, DType::bf16},
      {"MatrixAndVector", "matmul", {{1031, 777}, {777}}, {}},
      {"VectorAndMatrix", "matmul", {{777}, {777, 1031}}, {}},
      {"Dot", "dot", {{300'007}, {300'007}}, {}},
      {"SmallBatches", "matmul", {{200, 9, 17}, {200, 17, 5}}, {}},
      {"Convolution", "conv2d", {{4, 8, 61, 53}, {16, 8, 3, 3}}, {}},
      {"RunningSum", "cumsum", {{300'007}}, {}},
      {"Random", "randn", {}, {{"shape", std::vector<std::int64_t>{100'003}}}},
      {"Gelu", "gelu", {{700, 701}}, {}},
  };
}

class Threads : public testing::TestWithParam<Workload> {};

HostArray run_with(int threads, const Workload& w) {
  ThreadPool pool(threads);
  const std::unique_ptr<OpenDevice> device = cpu::open_with(pool);
  Graph graph;
  std::vector<NodeId> nodes;
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<const Buffer*> inputs;
  for (const Shape& shape : w.inputs) {
    nodes.push_back(graph.input("x", w.dtype, shape));
    buffers.push_back(device->upload(filled({Values::near_one}, w.dtype, shape, nodes.size())));
    inputs.push_back(buffers.back().get());
  }
  graph.set_outputs(apply(graph, find_op(w.op), nodes, w.parameters));
  const std::unique_ptr<Executable> program = device->compile(graph);
  const std::unique_ptr<Buffer> output = device->allocate(program->output_types()[0]);
  Buffer* const outputs[] = {output.get()};
  program->run(inputs, outputs);
  return device->download(*output);
}

TEST_P(Threads, AnyNumberGivesTheSameBits) {
  const HostArray alone = run_with(1, GetParam());
  for (int threads : {2, 3, 5}) {
    const HostArray together = run_with(threads, GetParam());
    ASSERT_EQ(together.bytes(), alone.bytes());
    EXPECT_EQ(std::memcmp(together.data(), alone.data(), alone.bytes()), 0) << threads << " threads";
  }
}

INSTANTIATE_TEST_SUITE_P(Conformance, Threads, testing::ValuesIn(workloads()),
                         [](const testing::TestParamInfo<Workload>& chosen) { return chosen.param.name; });

}  // namespace
}  // namespace tenon::conformance
