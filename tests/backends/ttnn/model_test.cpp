// A model on the stand-in for TTNN: the same answers as on the CPU, most of it in the fast tier.
#include "tenon/model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tenon/manager.h"
#include "tenon/ops.h"
#include "tenon/tensor.h"
#include "ttnn_testing.h"

namespace tenon::ttnn {
namespace {

// A block of a small network in bfloat16: convolution, pooling, a linear layer, a normalisation, softmax.
Graph network() {
  Graph graph;
  const NodeId image = graph.input("image", DType::bf16, {2, 3, 8, 8}), kernel = graph.input("kernel", DType::bf16, {4, 3, 3, 3});
  const NodeId weight = graph.input("weight", DType::bf16, {5, 64}), bias = graph.input("bias", DType::bf16, {5});
  const NodeId seen =
      apply(graph, "relu", {apply(graph, "conv2d", {image, kernel}, {{"padding", std::vector<std::int64_t>{1}}})[0]})[0];
  const NodeId pooled = apply(graph, "max_pool2d", {seen}, {{"kernel", std::vector<std::int64_t>{2}}})[0];
  const NodeId flat = apply(graph, "reshape", {pooled}, {{"shape", std::vector<std::int64_t>{2, 64}}})[0];
  const NodeId scores = apply(graph, "linear", {flat, weight, bias})[0];
  graph.set_outputs({apply(graph, "softmax", {apply(graph, "layer_norm", {scores})[0]})[0]});
  return graph;
}

class TtnnModel : public testing::Test {
 protected:
  void SetUp() override { TENON_NEEDS_NUMPY(); }

  test::TemporaryFolder folder_;
  const std::string library_ = folder_.write("libttsim.so", ""),
                    about_ = folder_.write("soc_descriptor.yaml", "arch_name: BLACKHOLE\n");
  StandIn stand_in_{"auto"};
  const Variable simulator_{"TT_METAL_SIMULATOR", library_}, python_{"TENON_TTNN_PYTHON", TENON_TEST_PYTHON};
  DeviceManager manager_;
};

TEST_F(TtnnModel, ANetworkInBfloat16RunsFastAsAWhole) {
  const Graph graph = network();
  std::vector<HostArray> inputs;
  for (const NodeId id : graph.inputs()) {
    std::vector<float> values(static_cast<std::size_t>(graph[id].shape.elements()));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>((i * 37 + 11) % 64) / 32 - 1;
    inputs.push_back(HostArray::from<float>(graph[id].shape, values).cast(DType::bf16));
  }
  const RunResult here = manager_.run(graph, inputs, {.device = "cpu:0"});
  const RunResult there = manager_.run(graph, inputs, {.device = "ttsim:0"});
  EXPECT_EQ(there.device->details.at("tier"), "fast");
  const std::vector<double> expected = here.outputs[0].to_doubles(), got = there.outputs[0].to_doubles();
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 0.004 * std::abs(expected[i])) << i;
  manager_.close_all();
}

TEST_F(TtnnModel, AModelFromAFileHasTheAnswersOfTheCpu) {
  const UseManager use(manager_);
  const Model model = Model::load(std::string(TENON_SOURCE_DIR) + "/tests/fixtures/models/linear.onnx");
  Model::Tensors inputs;
  for (const ModelValue& input : model.info().inputs) {
    std::vector<std::int64_t> shape;
    for (const auto& extent : input.shape) shape.push_back(extent.extent.value_or(2));
    const Shape fixed(shape);
    std::vector<float> values(static_cast<std::size_t>(fixed.elements()));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) / 8 - 1;
    inputs.emplace(input.name, Tensor(HostArray::from<float>(fixed, values).cast(input.dtype.value())));
  }
  const Model::Tensors here = model(inputs, {.device = "cpu:0"}), there = model(inputs, {.device = "ttsim:0"});
  ASSERT_FALSE(here.empty());
  for (const auto& [name, tensor] : here) {
    const std::vector<double> expected = tensor.to_host().to_doubles(), got = there.at(name).to_host().to_doubles();
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-5 + 1e-5 * std::abs(expected[i])) << name;
  }
  manager_.close_all();
}

}  // namespace
}  // namespace tenon::ttnn
