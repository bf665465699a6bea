// Changed ONNX models whose graphs are imported for small inputs: shapes, attributes, folding, converters.
#include "fuzz/fuzzer.h"
#include "model/onnx/import/importer.h"
#include "model/onnx_writer.h"
#include "tenon/error.h"

namespace tenon {
namespace {

using namespace onnx_writer;

Message integers(std::string_view name, std::initializer_list<std::int64_t> values) {
  Message out = Message().text(1, name).integer(20, 7);
  for (const std::int64_t value : values) out.integer(8, value);
  return out;
}

std::string perceptron() {
  return model_of(graph_of({node("Gemm", {"x", "w"}, {"h"}, {attribute("transB", 1)}), node("Relu", {"h"}, {"r"}),
                            node("Softmax", {"r"}, {"p"}, {attribute("axis", -1)}),
                            node("Concat", {"p", "x"}, {"y"}, {attribute("axis", 1)})},
                           {value("x", 1, {2, 4})}, {value("y", 1, {-1, 8})},
                           {tensor<float>("w", 1, {4, 4}, std::vector<float>(16, 0.5f))}))
      .str();
}

std::string convolution() {
  return model_of(graph_of({node("Conv", {"x", "w"}, {"c"}, {integers("pads", {1, 1, 1, 1}), integers("strides", {2, 2})}),
                            node("MaxPool", {"c"}, {"m"}, {integers("kernel_shape", {2, 2})}),
                            node("Resize", {"m", "", "", "sizes"}, {"y"})},
                           {value("x", 1, {1, 2, 6, 6})}, {value("y", 1, {1, 3, 4, 4})},
                           {tensor<float>("w", 1, {3, 2, 3, 3}, std::vector<float>(54, 0.1f)),
                            tensor<std::int64_t>("sizes", 7, {4}, {1, 3, 4, 4})}))
      .str();
}

std::string shapes() {
  return model_of(
             graph_of({node("Shape", {"x"}, {"s"}), node("Gather", {"s", "zero"}, {"n"}), node("Mul", {"n", "two"}, {"m"}),
                       node("Concat", {"m", "rest"}, {"t"}, {attribute("axis", 0)}), node("Reshape", {"x", "t"}, {"r"}),
                       node("Slice", {"r", "zero", "two"}, {"c"}), node("Transpose", {"c"}, {"d"}, {integers("perm", {1, 0})}),
                       node("ReduceSum", {"d", "zero"}, {"u"}), node("Expand", {"u", "t"}, {"y"})},
                      {value("x", 1, {2, 4})}, {value("y", 1, {-1, -1})},
                      {tensor<std::int64_t>("zero", 7, {1}, {0}), tensor<std::int64_t>("two", 7, {1}, {2}),
                       tensor<std::int64_t>("rest", 7, {1}, {-1})}))
      .str();
}

std::string control() {
  const Message then_branch = graph_of({node("Add", {"x", "x"}, {"a"})}, {}, {value("a", 1, {2, 4})});
  const Message else_branch = graph_of({node("Neg", {"x"}, {"b"})}, {}, {value("b", 1, {2, 4})});
  const Message body =
      graph_of({node("Identity", {"go"}, {"on"}), node("Add", {"v", "v"}, {"w"})},
               {value("i", 7, {}), value("go", 9, {}), value("v", 1, {2, 4})}, {value("on", 9, {}), value("w", 1, {2, 4})});
  return model_of(
             graph_of({node("If", {"c"}, {"f"}, {attribute("then_branch", then_branch), attribute("else_branch", else_branch)}),
                       node("Loop", {"count", "", "f"}, {"y"}, {attribute("body", body)})},
                      {value("x", 1, {2, 4})}, {value("y", 1, {2, 4})},
                      {tensor<std::uint8_t>("c", 9, {}, {1}), tensor<std::int64_t>("count", 7, {}, {3})}))
      .str();
}

std::string attention() {
  return model_of(
             graph_of({node("LayerNormalization", {"x", "scale"}, {"n"}), node("MatMul", {"n", "w"}, {"q"}),
                       node("Attention", {"q", "n", "n"}, {"a"}, {attribute("q_num_heads", 2), attribute("kv_num_heads", 2)}),
                       node("TopK", {"a", "k"}, {"y", "at"})},
                      {value("x", 1, {1, 3, 4})}, {value("y", 1, {1, 3, 2})},
                      {tensor<float>("w", 1, {4, 4}, std::vector<float>(16, 0.25f)),
                       tensor<float>("scale", 1, {4}, std::vector<float>(4, 1.0f)), tensor<std::int64_t>("k", 7, {1}, {2})}),
             23)
      .str();
}

std::string quantized() {
  return model_of(graph_of({node("DynamicQuantizeLinear", {"x"}, {"q", "s", "z"}), node("MatMulInteger", {"q", "w", "z"}, {"i"}),
                            node("Cast", {"i"}, {"f"}, {attribute("to", 1)}), node("Mul", {"f", "s"}, {"y"})},
                           {value("x", 1, {2, 4})}, {value("y", 1, {2, 4})},
                           {tensor<std::int8_t>("w", 3, {4, 4}, std::vector<std::int8_t>(16, 3))}))
      .str();
}

Message numbers(std::string_view name, std::initializer_list<float> values) {
  Message out = Message().text(1, name).integer(20, 6);
  for (const float value : values) out.real(7, value);
  return out;
}

Message words(std::string_view name, std::initializer_list<std::string_view> values) {
  Message out = Message().text(1, name).integer(20, 8);
  for (const std::string_view value : values) out.text(9, value);
  return out;
}

Message of(std::string_view domain, Message node) { return node.text(7, domain); }

std::string learners() {
  const Message trees = node(
      "TreeEnsembleRegressor", {"s"}, {"t"},
      {integers("nodes_treeids", {0, 0, 0, 1}), integers("nodes_nodeids", {0, 1, 2, 0}),
       integers("nodes_featureids", {1, 0, 0, 0}), words("nodes_modes", {"BRANCH_LEQ", "LEAF", "LEAF", "LEAF"}),
       numbers("nodes_values", {0.5f, 0, 0, 0}), integers("nodes_truenodeids", {1, 0, 0, 0}),
       integers("nodes_falsenodeids", {2, 0, 0, 0}), integers("target_treeids", {0, 0, 1}), integers("target_nodeids", {1, 2, 0}),
       integers("target_ids", {0, 1, 1}), numbers("target_weights", {1, 2, 3}), attribute("n_targets", 2)});
  const Message machine = node("SVMRegressor", {"t"}, {"y"},
                               {numbers("coefficients", {1, 2}), numbers("support_vectors", {1, 2, 3, 4}), numbers("rho", {0.5f}),
                                attribute("n_supports", 2), numbers("kernel_params", {0.5f, 0, 2})});
  return model_of(graph_of({of("ai.onnx.ml", node("Scaler", {"x"}, {"s"}, {numbers("scale", {2})})), of("ai.onnx.ml", trees),
                            of("ai.onnx.ml", machine)},
                           {value("x", 1, {2, 4})}, {value("y", 1, {2, 1})}))
      .str();
}

std::string fused() {
  return model_of(graph_of({of("com.microsoft", node("MatMulNBits", {"x", "w", "scales"}, {"q"},
                                                     {attribute("N", 12), attribute("K", 16), attribute("block_size", 16)})),
                            of("com.microsoft", node("GroupQueryAttention", {"q", "", "", "past", "past", "lengths", "total"},
                                                     {"y"}, {attribute("num_heads", 1), attribute("kv_num_heads", 1)}))},
                           {value("x", 1, {1, 2, 16})}, {value("y", 1, {1, 2, 4})},
                           {tensor<std::uint8_t>("w", 2, {12, 1, 8}, std::vector<std::uint8_t>(96, 0x7b)),
                            tensor<float>("scales", 1, {12}, std::vector<float>(12, 0.5f)),
                            tensor<float>("past", 1, {1, 1, 3, 4}, std::vector<float>(12, 0.5f)),
                            tensor<std::int32_t>("lengths", 6, {1}, {4}), tensor<std::int32_t>("total", 6, {}, {5})}))
      .str();
}

// Inputs as the model declares them, with free extents of 2; those beyond a few thousand elements are left to others.
void import(fuzz::Bytes bytes) {
  onnx::LoadedModel model{onnx::Bytes(bytes)};
  check_supported(model.proto);
  std::map<std::string, onnx::ValuePtr, std::less<>> inputs;
  for (const onnx::ValueInfoProto& info : model.proto.graph.inputs) {
    if (info.type.kind != onnx::TypeProto::Kind::tensor) continue;
    auto value = std::make_shared<onnx::Value>();
    value->type = info.type.element;
    std::vector<std::int64_t> dims;
    std::int64_t elements = 1;
    for (const onnx::TypeProto::Dim& dim : info.type.dims) {
      dims.push_back(dim.extent && *dim.extent >= 0 ? *dim.extent : 2);
      if (dims.back() > 4096 || dims.size() > 8) return;
      elements *= dims.back();
      if (elements > 4096) return;
    }
    value->shape = Shape(std::span<const std::int64_t>(dims));
    inputs.emplace(std::string(info.name), std::move(value));
  }
  const onnx::Import imported = onnx::Importer(model, inputs, {}).run();
  fuzz::require(imported.feeds.size() == imported.graph.inputs().size(), "an input of the program that nothing feeds");
}

fuzz::Target make_target() {
  fuzz::Target target{.name = "onnx_import"};
  target.seeds = {perceptron(), convolution(), shapes(), control(), attention(), quantized(), learners(), fused()};
  target.words = {"Gemm",
                  "TreeEnsembleClassifier",
                  "SVMClassifier",
                  "LinearClassifier",
                  "LabelEncoder",
                  "com.microsoft",
                  "MultiHeadAttention",
                  "QLinearConv",
                  "FusedMatMul",
                  "Conv",
                  "Reshape",
                  "Gather",
                  "Concat",
                  "Slice",
                  "Pad",
                  "Tile",
                  "Expand",
                  "Resize",
                  "Loop",
                  "Scan",
                  "If",
                  "Range",
                  "OneHot",
                  "TopK",
                  "Einsum",
                  "LSTM",
                  "Transpose",
                  "Split",
                  "Squeeze",
                  "CumSum",
                  "MatMul",
                  "Where",
                  "Clip",
                  "axis",
                  "perm",
                  "strides",
                  "x",
                  "y",
                  "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
                  "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",
                  std::string(8, '\xff'),
                  std::string(1, '\0')};
  target.parse = import;
  // What is folded while importing is bounded by the importer's own limits, not by the size of the file.
  target.bound = [](std::size_t) { return std::uint64_t{4} << 30; };
  return target;
}

}  // namespace

const fuzz::Target& fuzz::target() {
  static const Target target = make_target();
  return target;
}

}  // namespace tenon
