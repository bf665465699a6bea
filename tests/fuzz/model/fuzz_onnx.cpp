#include "fuzz/fuzzer.h"
#include "model/onnx/proto/model_proto.h"
#include "model/onnx/tensor_data.h"
#include "model/onnx_writer.h"
#include "tenon/error.h"

namespace tenon {
namespace {

using namespace onnx_writer;

std::string small_model() {
  const Message branch = graph_of({node("Add", {"x", "w"}, {"t"})}, {}, {value("t", 1, {-1, 4})});
  return model_of(
             graph_of({node("Gemm", {"x", "w"}, {"h"}, {attribute("transB", 1)}, "gemm"),
                       node("If", {"c"}, {"y"}, {attribute("then_branch", branch), attribute("else_branch", branch)})},
                      {value("x", 1, {-1, 4}), value("c", 9, {})}, {value("y", 1, {-1, 4})},
                      {tensor<float>("w", 1, {4, 4}, std::vector<float>(16, 1.0f)), tensor<std::int64_t>("s", 7, {2}, {1, -1})}))
      .str();
}

std::string function_model() {
  const Message function =
      Message().text(1, "twice").text(4, "a").text(5, "b").message(7, node("Add", {"a", "a"}, {"b"})).text(10, "local");
  Message model = model_of(graph_of({node("twice", {"x"}, {"y"})}, {value("x", 1, {3})}, {value("y", 1, {3})}));
  return model.message(25, function).message(14, Message().text(1, "key").text(2, "value")).str();
}

std::string typed_data() {
  std::vector<Message> tensors;
  for (int type = 1; type < 29; ++type) {
    Message data = Message().integer(1, 3).integer(2, type).text(8, "t" + std::to_string(type));
    for (int i = 0; i < 3; ++i) data.integer(5, i).integer(7, i);
    data.real(4, 1.5f);
    tensors.push_back(data);
  }
  tensors.push_back(Message().integer(1, 1).integer(2, 1).text(8, "e").integer(14, 1).message(
      13, Message().text(1, "location").text(2, "../secret")));
  return model_of(graph_of({}, {}, {value("t1", 1, {3})}, tensors)).str();
}

void read_tensors(const onnx::GraphProto& graph) {
  const auto read = [](const onnx::TensorProto& tensor) {
    try {
      const HostArray array = array_of(tensor, {});
      fuzz::require(array.shape() == shape_of(tensor), "an array of another shape");
    } catch (const Error&) {
    }
  };
  for (const onnx::TensorProto& tensor : graph.initializers) read(tensor);
  for (const onnx::NodeProto& node : graph.nodes)
    for (const onnx::AttributeProto& attribute : node.attributes) {
      if (attribute.tensor) read(*attribute.tensor);
      if (attribute.graph) read_tensors(*attribute.graph);
    }
}

fuzz::Target make_target() {
  fuzz::Target target{.name = "onnx"};
  target.seeds = {small_model(), function_model(), typed_data()};
  target.words = {"Gemm",     "x",    std::string(1, '\0'), "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
                  "\x0a\x00", "\x3a", "\x2a\x00",           "\x7a\x00",
                  "location", "\x80"};
  std::string nodes;
  for (int i = 0; i < 40000; ++i) nodes += std::string("\x0a\x03") + node("A", {}, {}).str();
  Message dense = Message().integer(1, 8);
  target.dense = {dense.text(7, nodes).str()};
  target.parse = [](fuzz::Bytes bytes) { read_tensors(onnx::parse_model(bytes).graph); };
  target.bound = [](std::size_t bytes) { return onnx::kOnnxParseFactor * bytes + onnx::kOnnxParseAllowance; };
  return target;
}

}  // namespace

const fuzz::Target& fuzz::target() {
  static const Target target = make_target();
  return target;
}

}  // namespace tenon
