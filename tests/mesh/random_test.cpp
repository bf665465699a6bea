// Random programs of several ops with random shardings, against the reference; of integers and 16-bit floats against one device.
// TENON_MESH_PROGRAMS=N tries N of them on each mesh; TENON_MESH_SEED=S others.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>

#include "conformance/judge/bounds.h"
#include "conformance/judge/compare.h"
#include "mesh/simulated_mesh.h"
#include "tenon/error.h"
#include "tenon/ops.h"

namespace tenon {
namespace {

int number_from(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::atoi(text) : otherwise;
}

class RandomProgram {
 public:
  RandomProgram(std::uint32_t seed, DType dtype) : random_(seed), dtype_(dtype) {
    const int count = 2 + below(2);
    for (int i = 0; i < count; ++i) add_input(i);
    const int steps = 2 + below(7);
    for (int tries = 0; added_ < steps && tries < 60; ++tries) add_step();
    // The last value, and sometimes one on the way.
    std::vector<NodeId> outputs{values_.back()};
    if (below(3) == 0) outputs.push_back(any());
    graph.set_outputs(outputs);
  }

  // The same with every value as an output.
  Graph with_all_outputs() const {
    Graph all = graph;
    all.set_outputs(values_);
    return all;
  }
  bool has_floats() const {
    for (NodeId id = 0; id < graph.size(); ++id)
      if (is_float(graph[id].dtype)) return true;
    return false;
  }

  Graph graph;
  std::vector<HostArray> inputs;
  std::string text;

  MeshOptions shardings(const Mesh& mesh) {
    MeshOptions options;
    for (const NodeId id : graph.inputs()) {
      Sharding sharding;
      sharding.axes.resize(static_cast<std::size_t>(graph[id].shape.rank()));
      for (const MeshAxis& axis : mesh.axes())
        if (const auto choice = static_cast<std::size_t>(below(graph[id].shape.rank() + 1)); choice < sharding.axes.size())
          sharding.axes[choice].push_back(axis.name);
      options.inputs[graph[id].as<InputAttr>().name] = sharding;
    }
    if (below(4) == 0)
      for (int i = 0; i < mesh.size(); ++i) options.speeds.push_back(1 + below(4));
    return options;
  }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<std::uint32_t>(n)); }
  NodeId any() { return values_[static_cast<std::size_t>(below(static_cast<int>(values_.size())))]; }

  void add_input(int number) {
    std::vector<std::int64_t> extents(static_cast<std::size_t>(1 + below(3)));
    for (std::int64_t& extent : extents) extent = 1 + below(9);
    const Shape shape(extents);
    HostArray array = HostArray::empty(DType::f32, shape);
    float* data = reinterpret_cast<float*>(array.mutable_data());
    // Integers from -9 to 9; small numbers in 16 bits, so that products do not magnify what is rounded away.
    const float largest = dtype_ == DType::f32 ? 2.0F : dtype_ == DType::bf16 ? 0.5F : 9.9F;
    std::uniform_real_distribution<float> values(-largest, largest);
    for (std::int64_t i = 0; i < array.elements(); ++i) data[i] = values(random_);
    values_.push_back(graph.input(fmt::format("x{}", number), dtype_, shape));
    inputs.push_back(array.cast(dtype_));
  }

  // One op of any kind; one that does not fit its operands is left out.
  void add_step() {
    // The first ones do not magnify errors and work with integers; the last ones make floats of them.
    static constexpr const char* kUnary[] = {"abs",     "neg",    "relu",       "sign",    "tanh",       "gelu",
                                             "sigmoid", "square", "layer_norm", "softmax", "log_softmax"};
    static constexpr const char* kBinary[] = {"add", "sub", "mul", "maximum", "minimum", "matmul", "matmul"};
    static constexpr const char* kReduce[] = {"sum", "mean", "max", "min", "cumsum", "softmax", "sum"};
    try {
      switch (below(6)) {
        case 0:
        case 1: return push(kUnary[below(dtype_ == DType::f32 ? std::size(kUnary) : dtype_ == DType::bf16 ? 7 : 4)], {any()});
        case 2:
        case 3: return push(kBinary[below(std::size(kBinary))], {any(), any()});
        case 4: {
          const NodeId operand = any();
          const int rank = graph[operand].shape.rank();
          if (rank == 0) return;
          return push(kReduce[below(std::size(kReduce))], {operand}, {{"axis", std::int64_t{below(rank)}}});
        }
        default: return push_view(any());
      }
    } catch (const Error&) {
    }
  }

  void push_view(NodeId operand) {
    const Shape shape = graph[operand].shape;
    if (shape.rank() == 0) return;
    if (below(2) == 0 && shape.rank() >= 2) {
      std::vector<int> order(static_cast<std::size_t>(shape.rank()));
      for (int i = 0; i < shape.rank(); ++i) order[static_cast<std::size_t>(i)] = i;
      std::shuffle(order.begin(), order.end(), random_);
      return keep(graph.transpose(operand, order), "transpose");
    }
    if (below(2) == 0) return keep(graph.reshape(operand, Shape{shape.elements()}), "reshape");
    std::vector<std::int64_t> start, extent, step;
    for (int axis = 0; axis < shape.rank(); ++axis) {
      start.push_back(below(static_cast<int>(shape[axis])));
      extent.push_back(1 + below(static_cast<int>(shape[axis] - start.back())));
      step.push_back(1);
    }
    keep(graph.slice(operand, start, extent, step), "slice");
  }

  void push(const char* op, const std::vector<NodeId>& operands, const std::vector<NamedValue>& parameters = {}) {
    const OpInfo& info = find_op(op);
    const std::vector<NodeId> results = apply(graph, info, operands, parameters);
    // Values that grow without bound, or tensors that do, say nothing about shardings.
    if (graph[results[0]].shape.elements() > 5000) return;
    keep(results[0], op);
  }

  void keep(NodeId value, std::string_view name) {
    values_.push_back(value);
    text += fmt::format("{} ", name);
    ++added_;
  }

  std::mt19937 random_;
  const DType dtype_;
  std::vector<NodeId> values_;
  int added_ = 0;
};

double largest_of(const std::vector<HostArray>& arrays) {
  double largest = 0;
  for (const HostArray& array : arrays)
    for (const double value : array.to_doubles())
      if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  return largest;
}

class RandomMesh : public testing::TestWithParam<const char*> {
 protected:
  // Runs programs of |dtype|, and gives each with its result to |check|.
  void try_programs(DType dtype, int programs, const std::function<void(const RandomProgram&, const MeshResult&)>& check) {
    const auto seed = static_cast<std::uint32_t>(number_from("TENON_MESH_SEED", 1));
    programs = number_from("TENON_MESH_PROGRAMS", programs);
    int exchanged = 0;
    for (int i = 0; i < programs && !HasFailure(); ++i) {
      const std::uint32_t own = seed * 1'000'003U + static_cast<std::uint32_t>(i);
      RandomProgram program(own, dtype);
      const MeshOptions options = program.shardings(devices.mesh);
      SCOPED_TRACE(fmt::format("seed {}: {}\n{}", own, program.text, explain_mesh(program.graph, devices.mesh, options).text()));
      const MeshResult result = run_on_mesh(devices.manager, program.graph, program.inputs, devices.mesh, options);
      exchanged += result.collectives.empty() ? 0 : 1;
      check(program, result);
    }
    EXPECT_GT(exchanged, programs / 10);
  }
  std::vector<HostArray> alone(const Graph& graph, const std::vector<HostArray>& inputs) {
    return devices.manager.run(graph, inputs, {.device = devices.mesh.devices()[0]}).outputs;
  }

  SimulatedMesh devices{GetParam()};
};

TEST_P(RandomMesh, ProgramsGiveWhatTheReferenceGives) {
  try_programs(DType::f32, 150, [&](const RandomProgram& program, const MeshResult& result) {
    const std::vector<conformance::Bounded> expected = conformance::bounded_run(program.graph, program.inputs);
    for (std::size_t output = 0; output < result.outputs.size(); ++output)
      EXPECT_EQ(conformance::compare(result.outputs[output], expected[output], false).failures, 0) << "output " << output;
  });
}

TEST_P(RandomMesh, IntegersAreTheSameBitsAsOnOneDevice) {
  try_programs(DType::i32, 60, [&](const RandomProgram& program, const MeshResult& result) {
    if (program.has_floats()) return;  // a mean
    const std::vector<HostArray> expected = alone(program.graph, program.inputs);
    for (std::size_t output = 0; output < result.outputs.size(); ++output) {
      ASSERT_EQ(result.outputs[output].bytes(), expected[output].bytes());
      EXPECT_EQ(std::memcmp(result.outputs[output].data(), expected[output].data(), expected[output].bytes()), 0)
          << "output " << output;
    }
  });
}

// Where a program is cut, values are rounded to 16 bits: by a little more or less than on one device.
TEST_P(RandomMesh, SixteenBitsAreNearThoseOfOneDevice) {
  try_programs(DType::bf16, 60, [&](const RandomProgram& program, const MeshResult& result) {
    const std::vector<HostArray> expected = alone(program.graph, program.inputs);
    const double largest = largest_of(alone(program.with_all_outputs(), program.inputs));
    const double limit = (1 + largest) * (1 + largest) / 64;
    for (std::size_t output = 0; output < result.outputs.size(); ++output)
      for (std::int64_t i = 0; i < expected[output].elements(); ++i)
        ASSERT_NEAR(result.outputs[output].value(i), expected[output].value(i), limit)
            << "output " << output << ", element " << i;
  });
}

INSTANTIATE_TEST_SUITE_P(Meshes, RandomMesh, testing::Values("a=2", "a=4", "a=2,b=2"));

}  // namespace
}  // namespace tenon
