#include "tenon/model.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "base/threads/stop_scope.h"
#include "model/onnx/import/importer.h"
#include "model/onnx_writer.h"
#include "temporary_folder.h"
#include "tenon/device/simulated.h"
#include "tenon/error.h"
#include "tenon/tensor/functions.h"

namespace tenon {
namespace {

using namespace onnx_writer;

constexpr int kFloat = 1, kInt64 = 7, kBool = 9;

template <class Action>
Error error_of(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorCode::ok, "nothing was thrown");
}

Message linear_model() {
  return model_of(graph_of({node("MatMul", {"x", "w"}, {"h"}), node("Relu", {"h"}, {"y"})}, {value("x", kFloat, {-1, 2})},
                           {value("y", kFloat, {-1, 2})}, {tensor<float>("w", kFloat, {2, 2}, {1, -1, 2, 1})}));
}

TEST(Model, IsAFunctionOfNamedTensors) {
  const Model model = Model::parse(bytes(linear_model()));
  const Model::Tensors out = model({{"x", tensor({{1.0, 2.0}, {3.0, -4.0}})}});
  EXPECT_EQ(out.at("y").to_vector<float>(), (std::vector<float>{5, 1, 0, 0}));
}

TEST(Model, DescribesItsInputsAndOps) {
  const Model model = Model::parse(bytes(linear_model()));
  const ModelInfo& info = model.info();
  EXPECT_EQ(to_string(info.inputs.at(0)), "x: float [n, 2]");
  EXPECT_EQ(info.ops.at("MatMul"), 1);
  EXPECT_EQ(info.parameters, 4);
  EXPECT_EQ(info.weight_bytes, 16u);
}

TEST(Model, ListsItsNodesAPartAtATime) {
  const Model model = Model::parse(bytes(linear_model()));
  const std::vector<ModelNode> all = model.nodes(0, 100);
  ASSERT_EQ(all.size(), static_cast<std::size_t>(model.info().nodes));
  EXPECT_EQ(all[0].op, "MatMul");
  EXPECT_EQ(all[0].inputs, std::vector<std::string>{"x"});
  EXPECT_EQ(all[0].weights, std::vector<std::string>{"w"});
  EXPECT_EQ(all.back().outputs, std::vector<std::string>{"y"});
  EXPECT_TRUE(model.nodes(0, 0).empty());
  EXPECT_TRUE(model.nodes(all.size(), 5).empty());
}

TEST(Model, KeepsProgramsUpToANumberOfBytes) {
  const Model small = Model::parse(bytes(linear_model()), {.program_bytes = 8 << 10}),
              large = Model::parse(bytes(linear_model()));
  for (std::int64_t rows = 1; rows <= 40; ++rows)
    for (const Model* model : {&small, &large}) EXPECT_EQ((*model)({{"x", ones({rows, 2})}}).at("y").shape(), (Shape{rows, 2}));
  EXPECT_EQ(large.programs(), 40u);
  EXPECT_GE(small.programs(), 1u);
  EXPECT_LT(small.programs(), 10u);
  const Model none = Model::parse(bytes(linear_model()), {.program_bytes = 0});
  EXPECT_EQ(none({{"x", ones({1, 2})}}).at("y").shape(), (Shape{1, 2}));
  EXPECT_EQ(none.programs(), 0u);
}

TEST(Model, AnImportCanBeCancelled) {
  const Model model = Model::parse(bytes(linear_model()));
  std::stop_source stop;
  stop.request_stop();
  const StopScope scope(stop.get_token());
  EXPECT_EQ(error_of([&] { model.graph({{"x", ones({3, 2})}}); }).code(), ErrorCode::cancelled);
  EXPECT_EQ(error_of([&] { Model::parse(bytes(linear_model())); }).code(), ErrorCode::cancelled);
}

TEST(Model, QuestionMarksAreNotTheSameExtent) {
  const auto unknown = [](std::string_view name) {
    Message shape;
    for (int i = 0; i < 2; ++i) shape.message(1, Message().text(2, "?"));
    return Message().text(1, name).message(2, Message().message(1, Message().integer(1, kFloat).message(2, shape)));
  };
  const Model model = Model::parse(
      bytes(model_of(graph_of({node("Add", {"images:0", "b"}, {"y"})}, {unknown("images:0"), unknown("b")}, {unknown("y")}))));
  EXPECT_EQ(to_string(model.info().inputs.at(0)), "images:0: float [?, ?]");
  EXPECT_EQ(model({{"images:0", ones({2, 3})}, {"b", ones({2, 1})}}).at("y").shape(), (Shape{2, 3}));
}

TEST(Model, KeepsOneProgramPerShape) {
  const Model model = Model::parse(bytes(linear_model()));
  for (const std::int64_t batch : {1, 3, 1, 3}) EXPECT_EQ(model({{"x", ones({batch, 2})}}).at("y").shape(), (Shape{batch, 2}));
  EXPECT_EQ(model.programs(), 2u);
}

TEST(Model, ConvertsIntegersOnlyWhereNoValueCanChange) {
  const Model model =
      Model::parse(bytes(model_of(graph_of({node("Neg", {"i"}, {"y"})}, {value("i", kInt64, {2})}, {value("y", kInt64, {2})}))));
  EXPECT_EQ(model({{"i", tensor({1, 2}, DType::i32)}}).at("y").to_vector<std::int64_t>(), (std::vector<std::int64_t>{-1, -2}));
  EXPECT_EQ(error_of([&] { model({{"i", tensor({1.5, 2.0})}}); }).code(), ErrorCode::invalid_argument);
}

TEST(Model, RefusesInputsThatDoNotFit) {
  const Model model = Model::parse(bytes(linear_model()));
  EXPECT_NE(std::string(error_of([&] { model({{"x", ones({2, 3})}}); }).what()).find("x: float [n, 2]"), std::string::npos);
  EXPECT_EQ(error_of([&] { model({{"z", ones({2, 2})}}); }).hint(), "its inputs are: x");
  EXPECT_NE(std::string(error_of([&] { model({}); }).what()).find("missing"), std::string::npos);
}

TEST(Model, RefusesUnsupportedOpsByNodeBeforeAnythingRuns) {
  const Message model = model_of(
      graph_of({node("Frobnicate", {"x"}, {"y"}, {}, "layer7/frob")}, {value("x", kFloat, {1})}, {value("y", kFloat, {1})}));
  const Error error = error_of([&] { Model::parse(bytes(model)); });
  EXPECT_EQ(error.code(), ErrorCode::unimplemented);
  EXPECT_NE(std::string(error.what()).find("Frobnicate 'layer7/frob'"), std::string::npos);
}

TEST(Model, FoldsShapeArithmetic) {
  // Flattens all axes but the first: Reshape(x, Concat(Gather(Shape(x), 0), [-1])).
  const Message model =
      model_of(graph_of({node("Shape", {"x"}, {"s"}), node("Gather", {"s", "zero"}, {"n"}),
                         node("Concat", {"n", "rest"}, {"to"}, {attribute("axis", 0)}), node("Reshape", {"x", "to"}, {"y"})},
                        {value("x", kFloat, {-1, 2, 3})}, {value("y", kFloat, {-1, 6})},
                        {tensor<std::int64_t>("zero", kInt64, {1}, {0}), tensor<std::int64_t>("rest", kInt64, {1}, {-1})}));
  const Model loaded = Model::parse(bytes(model));
  EXPECT_EQ(loaded({{"x", ones({4, 2, 3})}}).at("y").shape(), (Shape{4, 6}));
  const std::string program = loaded.program({{"x", ones({4, 2, 3})}});
  EXPECT_EQ(program.find("take"), std::string::npos) << program;
  EXPECT_EQ(program.find("concat"), std::string::npos) << program;
}

TEST(Model, TakesTheBranchThatItsDataChooses) {
  const Message one = graph_of({node("Add", {"x", "x"}, {"t"})}, {}, {value("t", kFloat, {2})}),
                other = graph_of({node("Neg", {"x"}, {"t"})}, {}, {value("t", kFloat, {2})});
  const Model model = Model::parse(
      bytes(model_of(graph_of({node("If", {"c"}, {"y"}, {attribute("then_branch", one), attribute("else_branch", other)})},
                              {value("c", kBool, {}), value("x", kFloat, {2})}, {value("y", kFloat, {2})}))));
  const Tensor x = tensor({1.0, 2.0});
  EXPECT_EQ(model({{"c", Tensor(true)}, {"x", x}}).at("y").to_vector<float>(), (std::vector<float>{2, 4}));
  EXPECT_EQ(model({{"c", Tensor(false)}, {"x", x}}).at("y").to_vector<float>(), (std::vector<float>{-1, -2}));
}

TEST(Model, ResultsMayHaveExtentsThatDataDecides) {
  const Model model = Model::parse(
      bytes(model_of(graph_of({node("NonZero", {"x"}, {"y"})}, {value("x", kFloat, {-1})}, {value("y", kInt64, {1, -1})}))));
  EXPECT_EQ(model({{"x", tensor({0.0, 3.0, 0.0, 2.0})}}).at("y").to_vector<std::int64_t>(), (std::vector<std::int64_t>{1, 3}));
  EXPECT_EQ(model({{"x", tensor({1.0, 0.0, 0.0, 0.0})}}).at("y").to_vector<std::int64_t>(), (std::vector<std::int64_t>{0}));
}

// h = x * w, v = the elements of h that are positive, y = those of v above 1.
Message twice_chosen() {
  std::vector<float> w(300 * 300, 0);
  for (std::size_t i = 0; i < 300; ++i) w[i * 301] = 2;
  return model_of(graph_of({node("MatMul", {"x", "w"}, {"h"}), node("Greater", {"h", "zero"}, {"m"}),
                            node("NonZero", {"m"}, {"i"}), node("Transpose", {"i"}, {"t"}), node("GatherND", {"h", "t"}, {"v"}),
                            node("Greater", {"v", "one"}, {"n"}), node("Compress", {"v", "n"}, {"y"}, {attribute("axis", 0)})},
                           {value("x", kFloat, {64, 300})}, {value("y", kFloat, {-1})},
                           {tensor<float>("w", kFloat, {300, 300}, w), tensor<float>("zero", kFloat, {}, {0}),
                            tensor<float>("one", kFloat, {}, {1})}));
}

TEST(Model, GoesOnWhereDataStoppedIt) {
  const Message file = twice_chosen();
  const Model model = Model::parse(bytes(file));
  for (const double shift : {0.0, 0.3, 0.0}) {
    const Tensor x = rand({64, 300}, DType::f32, 1) - shift;
    std::vector<float> expected;
    for (const float each : x.to_vector<float>())
      if (each * 2 > 1) expected.push_back(each * 2);
    EXPECT_EQ(model({{"x", x}}).at("y").to_vector<float>(), expected);
  }
}

TEST(Model, WhatLedToAChoiceIsNotComputedAgain) {
  const Message file = twice_chosen();
  onnx::LoadedModel model(bytes(file));
  const auto x = std::make_shared<onnx::Value>();
  x->type = onnx::ElementType::f32;
  x->shape = Shape{64, 300};
  const auto products = [](const Graph& graph) {
    int count = 0;
    for (NodeId id = 0; id < graph.size(); ++id) count += graph[id].prim == Prim::matmul;
    return count;
  };
  const onnx::Import first = onnx::Importer(model, {{"x", x}}, {}).run();
  ASSERT_TRUE(first.checkpoint);
  EXPECT_EQ(products(first.graph), 1);
  const Node& asked = first.graph[first.graph.outputs()[0]];
  const std::vector<HostArray> answer{HostArray::full(asked.dtype, asked.shape, 1)};
  const onnx::Import second = onnx::Importer(model, {{"x", x}}, answer, first.checkpoint.get()).run();
  EXPECT_EQ(products(second.graph), 0);
}

TEST(Model, AMapOfLabelsToScoresIsATensorOfScores) {
  const auto list = [](std::string_view name, std::vector<float> values) {
    Message out = Message().text(1, name).integer(20, 6);
    for (const float each : values) out.real(7, each);
    return out;
  };
  const Message labels = Message().text(1, "classlabels_ints").integer(20, 7).integer(8, 4).integer(8, 9);
  const Message floats = Message().message(1, Message().integer(1, kFloat));
  const Message map = Message().message(5, Message().integer(1, kInt64).message(2, floats));
  const Message sequence = Message().text(1, "z").message(2, Message().message(4, Message().message(1, map)));
  Message classifier = node("LinearClassifier", {"x"}, {"label", "p"}, {list("coefficients", {1, 0, 0, 1}), labels});
  Message zip = node("ZipMap", {"p"}, {"z"});
  const Model model =
      Model::parse(bytes(model_of(graph_of({classifier.text(7, "ai.onnx.ml"), zip.text(7, "ai.onnx.ml")},
                                           {value("x", kFloat, {-1, 2})}, {value("label", kInt64, {-1}), sequence}))));
  const auto outputs = model({{"x", tensor({{1.0, 2.0}, {4.0, 3.0}})}});
  EXPECT_EQ(outputs.at("label").to_vector<std::int64_t>(), (std::vector<std::int64_t>{9, 4}));
  EXPECT_EQ(outputs.at("z").to_vector<float>(), (std::vector<float>{1, 2, 4, 3}));
}

Message integers(std::string_view name, const std::vector<std::int64_t>& values) {
  Message out = Message().text(1, name).integer(20, 7);
  for (const std::int64_t each : values) out.integer(8, each);
  return out;
}
Message floats(std::string_view name, const std::vector<float>& values) {
  Message out = Message().text(1, name).integer(20, 6);
  for (const float each : values) out.real(7, each);
  return out;
}
Message strings(std::string_view name, const std::vector<std::string>& values) {
  Message out = Message().text(1, name).integer(20, 8);
  for (const std::string& each : values) out.text(9, each);
  return out;
}

TEST(Trees, RefusesMoreTargetsThanMemoryHolds) {
  // Four trees of one leaf: 4 * 2^62 wraps to 0.
  const std::vector<std::int64_t> each{0, 1, 2, 3}, none(4, 0);
  const auto load = [&](std::int64_t targets) {
    Message trees =
        node("TreeEnsembleRegressor", {"x"}, {"y"},
             {integers("nodes_treeids", each), integers("nodes_nodeids", none), integers("nodes_featureids", none),
              integers("nodes_truenodeids", none), integers("nodes_falsenodeids", none),
              strings("nodes_modes", {"LEAF", "LEAF", "LEAF", "LEAF"}), floats("nodes_values", {0, 0, 0, 0}),
              integers("target_treeids", each), integers("target_nodeids", none), integers("target_ids", {0, 1, 0, 1}),
              floats("target_weights", {1, 2, 4, 8}), attribute("n_targets", targets)});
    const Message file =
        model_of(graph_of({trees.text(7, "ai.onnx.ml")}, {value("x", kFloat, {1, 2})}, {value("y", kFloat, {1, targets})}));
    return Model::parse(bytes(file))({{"x", ones({1, 2})}}).at("y").to_vector<float>();
  };
  EXPECT_EQ(load(2), (std::vector<float>{5, 10}));
  for (const std::int64_t targets : {std::int64_t{1} << 62, std::int64_t{1} << 40})
    EXPECT_EQ(error_of([&] { load(targets); }).code(), ErrorCode::unimplemented) << targets;
}

TEST(Trees, TakeRowsOfOtherWidthsAfterTheFirst) {
  // The first leaf is reached a step before the others, and must stay where it is whatever the third feature is.
  const std::vector<std::int64_t> none(5, 0);
  Message trees = node(
      "TreeEnsembleRegressor", {"x"}, {"y"},
      {integers("nodes_treeids", none), integers("nodes_nodeids", {0, 1, 2, 3, 4}), integers("nodes_featureids", {0, 0, 1, 0, 0}),
       integers("nodes_truenodeids", {1, 0, 3, 0, 0}), integers("nodes_falsenodeids", {2, 0, 4, 0, 0}),
       strings("nodes_modes", {"BRANCH_LEQ", "LEAF", "BRANCH_LEQ", "LEAF", "LEAF"}), floats("nodes_values", {0.5, 0, 0.5, 0, 0}),
       integers("target_treeids", {0, 0, 0}), integers("target_nodeids", {1, 3, 4}), integers("target_ids", {0, 0, 0}),
       floats("target_weights", {1, 2, 3})});
  const Message file =
      model_of(graph_of({trees.text(7, "ai.onnx.ml")}, {value("x", kFloat, {-1, -1})}, {value("y", kFloat, {-1, 1})}));
  const Model model = Model::parse(bytes(file));
  EXPECT_EQ(model({{"x", tensor({{0.0, 0.0}, {1.0, 1.0}})}}).at("y").to_vector<float>(), (std::vector<float>{1, 3}));
  const Tensor wide = tensor({{0.0, 0.0, 5.0}, {1.0, 0.0, 5.0}, {1.0, 1.0, 5.0}});
  EXPECT_EQ(model({{"x", wide}}).at("y").to_vector<float>(), (std::vector<float>{1, 2, 3}));
}

// x + the values that a LabelEncoder with |attributes| gives to |words|.
std::vector<std::int64_t> encoded(const std::vector<std::string>& words, std::vector<Message> attributes) {
  const auto count = static_cast<std::int64_t>(words.size());
  Message given = Message().integer(1, count).integer(2, 8).text(8, "words");
  for (const std::string& word : words) given.text(6, word);
  Message encoder = node("LabelEncoder", {"words"}, {"i"}, std::move(attributes));
  const Message file = model_of(graph_of({encoder.text(7, "ai.onnx.ml"), node("Add", {"x", "i"}, {"y"})},
                                         {value("x", kInt64, {count})}, {value("y", kInt64, {count})}, {given}));
  return Model::parse(bytes(file))({{"x", zeros({count}, DType::i64)}}).at("y").to_vector<std::int64_t>();
}

TEST(LabelEncoder, RefusesKeysOfTwoKinds) {
  const Error error = error_of([] {
    encoded({"e"},
            {strings("keys_strings", {"a", "b", "c", "d", "e"}), integers("keys_int64s", {7}), integers("values_int64s", {1})});
  });
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << error.what();
}

TEST(LabelEncoder, AKeyThatIsGivenTwiceHasItsFirstValueAndMovesNoOther) {
  EXPECT_EQ(encoded({"b", "a", "z"}, {strings("keys_strings", {"a", "a", "b"}), integers("values_int64s", {1, 2, 3})}),
            (std::vector<std::int64_t>{3, 1, -1}));
}

TEST(ArrayFeatureExtractor, TakesStringsFromTheirOwnRow) {
  Message words = Message().integer(1, 2).integer(1, 2).integer(2, 8).text(8, "words");
  for (const char* word : {"a", "b", "c", "d"}) words.text(6, word);
  const auto taken = [&](std::int64_t place) {
    Message extractor = node("ArrayFeatureExtractor", {"words", "at"}, {"column"}),
            encoder = node("LabelEncoder", {"column"}, {"i"},
                           {strings("keys_strings", {"a", "b", "c", "d"}), integers("values_int64s", {1, 2, 3, 4})});
    const Message file = model_of(graph_of(
        {extractor.text(7, "ai.onnx.ml"), encoder.text(7, "ai.onnx.ml"), node("Add", {"x", "i"}, {"y"})},
        {value("x", kInt64, {2, 1})}, {value("y", kInt64, {2, 1})}, {words, tensor<std::int64_t>("at", kInt64, {1}, {place})}));
    return Model::parse(bytes(file))({{"x", zeros({2, 1}, DType::i64)}}).at("y").to_vector<std::int64_t>();
  };
  EXPECT_EQ(taken(0), (std::vector<std::int64_t>{1, 3}));
  EXPECT_EQ(taken(-1), (std::vector<std::int64_t>{2, 4}));
  for (const std::int64_t place : {2, -3})
    EXPECT_EQ(error_of([&] { taken(place); }).code(), ErrorCode::invalid_argument) << place;
}

TEST(Classifiers, RefuseLabelsOfTwoKindsThatDifferInNumber) {
  Message classifier =
      node("LinearClassifier", {"x"}, {"label", "p"},
           {floats("coefficients", {1, 0, 0, 1}), integers("classlabels_ints", {4, 9}), strings("classlabels_strings", {"a"})});
  const Message file =
      model_of(graph_of({classifier.text(7, "ai.onnx.ml")}, {value("x", kFloat, {1, 2})}, {value("p", kFloat, {1, 2})}));
  const Error error = error_of([&] { Model::parse(bytes(file))({{"x", tensor({{1.0, 2.0}})}}); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << error.what();
}

TEST(Classifiers, RefuseMorePairsOfClassesThanMemoryHolds) {
  // 1,000 classes have 499,500 pairs, and a table of votes has 1,000 columns for each.
  std::vector<std::int64_t> labels(1000), counts(1000, 0);
  counts[0] = 1;
  Message classifier =
      node("SVMClassifier", {"x"}, {"label", "p"},
           {floats("coefficients", std::vector<float>(999, 1)), floats("rho", std::vector<float>(499500, 0)),
            floats("support_vectors", {1, 1}), integers("vectors_per_class", counts), integers("classlabels_ints", labels)});
  const Message file =
      model_of(graph_of({classifier.text(7, "ai.onnx.ml")}, {value("x", kFloat, {1, 2})}, {value("label", kInt64, {1})}));
  const Error error = error_of([&] { Model::parse(bytes(file))({{"x", tensor({{1.0, 2.0}})}}); });
  EXPECT_EQ(error.code(), ErrorCode::unimplemented) << error.what();
}

TEST(RotaryEmbedding, TakesEmptySequencesAndRefusesOtherRanks) {
  const auto load = [](std::vector<std::int64_t> shape) {
    Message rotary = node("RotaryEmbedding", {"x", "p", "cos", "sin"}, {"y"});
    return Model::parse(bytes(model_of(graph_of(
        {rotary.text(7, "com.microsoft")}, {value("x", kFloat, shape), value("p", kInt64, {1, -1})}, {value("y", kFloat, shape)},
        {tensor<float>("cos", kFloat, {4, 2}, std::vector<float>(8, 0)),
         tensor<float>("sin", kFloat, {4, 2}, std::vector<float>(8, 1))}))));
  };
  const Model model = load({1, -1, 4});
  EXPECT_EQ(model({{"x", ones({1, 0, 4})}, {"p", zeros({1, 0}, DType::i64)}}).at("y").shape(), (Shape{1, 0, 4}));
  EXPECT_EQ(model({{"x", ones({1, 1, 4})}, {"p", zeros({1, 1}, DType::i64)}}).at("y").to_vector<float>(),
            (std::vector<float>{-1, -1, 1, 1}));
  const Error error = error_of([&] { load({4})({{"x", ones({4})}, {"p", zeros({1, 1}, DType::i64)}}); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << error.what();
}

// x + w dequantized with scales along axis 0.
std::vector<float> dequantized(std::int64_t block, const std::vector<float>& scales) {
  const Message file =
      model_of(graph_of({node("DequantizeLinear", {"w", "s"}, {"f"}, {attribute("axis", 0), attribute("block_size", block)}),
                         node("Add", {"x", "f"}, {"y"})},
                        {value("x", kFloat, {4})}, {value("y", kFloat, {4})},
                        {tensor<std::int8_t>("w", 3, {4}, {1, 2, 3, 4}),
                         tensor<float>("s", kFloat, {static_cast<std::int64_t>(scales.size())}, scales)}),
               21);
  return Model::parse(bytes(file))({{"x", zeros({4})}}).at("y").to_vector<float>();
}

TEST(DequantizeLinear, ABlockMayBeLargerThanTheAxis) {
  for (const std::int64_t block : {std::int64_t{4}, std::int64_t{5}, std::numeric_limits<std::int64_t>::max()}) {
    EXPECT_EQ(dequantized(block, {2}), (std::vector<float>{2, 4, 6, 8})) << block;
    EXPECT_NE(error_of([&] { dequantized(block, {}); }).code(), ErrorCode::ok) << block;
  }
  EXPECT_EQ(dequantized(3, {2, 10}), (std::vector<float>{2, 4, 6, 40}));
}

TEST(DequantizeLinear, AFunctionGivesItsAttributesToEachCall) {
  const Message axis = Message().text(1, "axis").integer(20, 2).text(21, "along");
  const Message function = Message()
                               .text(1, "F")
                               .text(4, "w")
                               .text(4, "s")
                               .text(5, "f")
                               .text(6, "along")
                               .message(7, node("DequantizeLinear", {"w", "s"}, {"f"}, {axis}))
                               .message(9, Message().text(1, "").integer(2, 17))
                               .text(10, "own");
  const auto call = [](std::string_view to, std::int64_t along) {
    return node("F", {"w", "s"}, {std::string(to)}, {attribute("along", along)}).text(7, "own");
  };
  Message file = model_of(
      graph_of({call("rows", 0), call("columns", 1), node("Add", {"x", "rows"}, {"y"}), node("Add", {"x", "columns"}, {"z"})},
               {value("x", kFloat, {2, 2})}, {value("y", kFloat, {2, 2}), value("z", kFloat, {2, 2})},
               {tensor<std::int8_t>("w", 3, {2, 2}, {1, 1, 1, 1}), tensor<float>("s", kFloat, {2}, {2, 3})}));
  const Model::Tensors out = Model::parse(bytes(file.message(25, function)))({{"x", zeros({2, 2})}});
  EXPECT_EQ(out.at("y").to_vector<float>(), (std::vector<float>{2, 2, 3, 3}));
  EXPECT_EQ(out.at("z").to_vector<float>(), (std::vector<float>{2, 3, 2, 3}));
}

TEST(Attention, RefusesNumbersOfHeadsThatItsWidthCannotHave) {
  // 2 + 2 * (2^63 - 1) wraps to 0.
  Message grouped = node("GroupQueryAttention", {"q", "", "", "", "", "n", "total"}, {"y"},
                         {attribute("num_heads", 2), attribute("kv_num_heads", std::numeric_limits<std::int64_t>::max())});
  const Message file =
      model_of(graph_of({grouped.text(7, "com.microsoft")}, {value("q", kFloat, {1, 1, 8})}, {value("y", kFloat, {1, 1, 4})},
                        {tensor<std::int32_t>("n", 6, {1}, {0}), tensor<std::int32_t>("total", 6, {1}, {1})}));
  const Error error = error_of([&] { Model::parse(bytes(file))({{"q", ones({1, 1, 8})}}); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << error.what();
}

TEST(Attention, RefusesKeysWithoutHeads) {
  const Message file =
      model_of(graph_of({node("Attention", {"q", "k", "v"}, {"y"})},
                        {value("q", kFloat, {1, 2, 3, 4}), value("k", kFloat, {1, 0, 3, 4}), value("v", kFloat, {1, 0, 3, 4})},
                        {value("y", kFloat, {1, 2, 3, 4})}),
               23);
  const Error error = error_of(
      [&] { Model::parse(bytes(file))({{"q", ones({1, 2, 3, 4})}, {"k", ones({1, 0, 3, 4})}, {"v", ones({1, 0, 3, 4})}}); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << error.what();
}

TEST(Model, ProductsOfIntegersAreExact) {
  // 1,000 products of 255 and 127: the sum is odd and beyond 2^24.
  std::vector<std::uint8_t> row(1001, 255);
  std::vector<std::int8_t> column(1001, 127);
  const Model model =
      Model::parse(bytes(model_of(graph_of({node("MatMulInteger", {"a", "b"}, {"y"})}, {value("a", 2, {1, 1001})},
                                           {value("y", 6, {1, 1})}, {tensor<std::int8_t>("b", 3, {1001, 1}, column)}))));
  EXPECT_EQ(model({{"a", Tensor(HostArray::from<std::uint8_t>({1, 1001}, row))}}).at("y").to_vector<std::int32_t>(),
            (std::vector<std::int32_t>{255 * 127 * 1001}));
}

Message external_model(std::string_view location) {
  Message weight = Message().integer(1, 2).integer(2, kFloat).text(8, "w").integer(14, 1);
  weight.message(13, Message().text(1, "location").text(2, location));
  return model_of(graph_of({node("Add", {"x", "w"}, {"y"})}, {value("x", kFloat, {2})}, {value("y", kFloat, {2})}, {weight}));
}

class ExternalData : public ::testing::Test {
 protected:
  void write(const std::filesystem::path& file, std::string_view text) { std::ofstream(file, std::ios::binary) << text; }
  Error load(std::string_view location) {
    write(folder_.path() / "m" / "model.onnx", external_model(location).str());
    return error_of([&] {
      value_ = Model::load(folder_.path() / "m" / "model.onnx")({{"x", tensor({1.0, 2.0})}}).at("y").to_vector<float>();
    });
  }
  void SetUp() override {
    std::filesystem::create_directories(folder_.path() / "m" / "sub");
    const float two[] = {10, 20};
    write(folder_.path() / "m" / "w.bin", {reinterpret_cast<const char*>(two), 8});
    write(folder_.path() / "secret", {reinterpret_cast<const char*>(two), 8});
  }
  test::TemporaryFolder folder_;
  std::vector<float> value_;
};

TEST_F(ExternalData, IsReadBesideTheModel) {
  EXPECT_EQ(load("w.bin").code(), ErrorCode::ok);
  EXPECT_EQ(value_, (std::vector<float>{11, 22}));
}

TEST_F(ExternalData, IsRefusedElsewhere) {
  std::filesystem::create_symlink(folder_.path() / "secret", folder_.path() / "m" / "link");
  std::filesystem::create_directory_symlink(folder_.path(), folder_.path() / "m" / "up");
  std::filesystem::create_hard_link(folder_.path() / "secret", folder_.path() / "m" / "hard");
  for (const std::string& location :
       {std::string("../secret"), (folder_.path() / "secret").string(), std::string("link"), std::string("up/secret"),
        std::string("hard"), std::string("sub"), std::string("/dev/zero")})
    EXPECT_EQ(load(location).code(), ErrorCode::permission_denied) << location;
  EXPECT_EQ(load("missing").code(), ErrorCode::not_found);
}

TEST(Model, BytesHaveNoFolder) {
  EXPECT_EQ(error_of([] { Model::parse(bytes(external_model("w.bin")))({{"x", ones({2})}}); }).code(),
            ErrorCode::failed_precondition);
}

TEST(Model, DamagedFilesAreRefusedWithAReason) {
  const std::string whole = linear_model().str();
  int refused = 0;
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const Error error = error_of([&] { Model::parse(std::as_bytes(std::span(whole)).first(size)); });
    refused += error.code() != ErrorCode::ok;
    if (error.code() == ErrorCode::ok) continue;
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << size << ": " << error.what();
    EXPECT_NE(error.hint(), "") << size << ": " << error.what();
  }
  EXPECT_GT(refused, static_cast<int>(whole.size()) / 2);
}

// y = x @ w and z = x + 1/3: a product, and something that is none.
Message mixed_model() {
  std::vector<float> w;
  for (int i = 0; i < 64 * 8; ++i) w.push_back(std::sin(static_cast<float>(i)));
  return model_of(graph_of(
      {node("MatMul", {"x", "w"}, {"y"}), node("Add", {"x", "third"}, {"z"})}, {value("x", kFloat, {-1, 64})},
      {value("y", kFloat, {-1, 8}), value("z", kFloat, {-1, 64})},
      {onnx_writer::tensor<float>("w", kFloat, {64, 8}, w), onnx_writer::tensor<float>("third", kFloat, {1}, {1.0f / 3})}));
}

TEST(MixedPrecision, ProductsAreRoundedAndNothingElse) {
  const HostArray x = (randn({5, 64}, DType::f32, 7) * 3.0).to_host();
  const Model exact = Model::parse(bytes(mixed_model()));
  const Model::Tensors wanted = exact({{"x", Tensor(x)}});
  for (const auto& [dtype, limit] : {std::pair{DType::bf16, 2e-2}, std::pair{DType::f16, 2e-3}}) {
    const Model mixed = Model::parse(bytes(mixed_model()), {.products = dtype});
    const Model::Tensors got = mixed({{"x", Tensor(x)}});
    EXPECT_EQ(got.at("y").dtype(), DType::f32);
    EXPECT_EQ(got.at("z").to_vector<float>(), wanted.at("z").to_vector<float>());
    const std::vector<float> a = wanted.at("y").to_vector<float>(), b = got.at("y").to_vector<float>();
    float largest = 0, difference = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      largest = std::max(largest, std::abs(a[i]));
      difference = std::max(difference, std::abs(a[i] - b[i]));
    }
    EXPECT_GT(difference, 0) << name(dtype);
    EXPECT_LT(difference, limit * largest) << name(dtype);
  }
}

// 300 ones: each is exact in bfloat16, their sum is not.
TEST(MixedPrecision, SumsOfProductsStayInFloat32) {
  const Model model = Model::parse(
      bytes(model_of(graph_of({node("MatMul", {"x", "w"}, {"y"})}, {value("x", kFloat, {-1, 301})}, {value("y", kFloat, {-1, 1})},
                              {onnx_writer::tensor<float>("w", kFloat, {301, 1}, std::vector<float>(301, 1.0f))}))),
      {.products = DType::bf16});
  EXPECT_EQ(model({{"x", ones({2, 301})}}).at("y").to_vector<float>(), (std::vector<float>{301, 301}));
}

TEST(MixedPrecision, AWeightIsKeptInTheSmallType) {
  const Model model = Model::parse(bytes(mixed_model()), {.products = DType::bf16});
  const std::shared_ptr<const Graph> graph = model.graph({{"x", ones({1, 64})}});
  int small = 0;
  for (NodeId id = 0; id < graph->size(); ++id) small += (*graph)[id].prim == Prim::input && (*graph)[id].dtype == DType::bf16;
  EXPECT_EQ(small, 1);
}

TEST(MixedPrecision, OnlyFloatsOf16BitsAreATypeOfProducts) {
  EXPECT_EQ(error_of([] { Model::parse(bytes(mixed_model()), {.products = DType::i8}); }).code(), ErrorCode::invalid_argument);
  EXPECT_EQ(error_of([] { Model::parse(bytes(mixed_model()), {.products = DType::f32}); }).code(), ErrorCode::ok);
}

TEST(Model, WeightsLeaveTheirDeviceBeforeItClosesAndComeBack) {
  Config config;
  config.simulated.push_back(parse_simulated("gpu,id=card,open=0,close=0"));
  DeviceManager manager(config);
  const UseManager use(manager);
  const Model model = Model::parse(bytes(mixed_model()));
  const HostArray x = randn({3, 64}, DType::f32, 1).to_host();
  const auto run = [&] { return model({{"x", Tensor(x)}}, {.device = "card"}).at("y").to_vector<float>(); };
  const auto restores = [&] {
    for (const DeviceStatus& status : manager.status())
      if (status.device.id == "card") return status.counters.restores;
    return std::uint64_t{0};
  };
  const std::vector<float> first = run();
  EXPECT_EQ(restores(), 0u);
  for (int i = 1; i <= 3; ++i) {
    manager.close("card");
    EXPECT_EQ(run(), first);
    EXPECT_GE(restores(), static_cast<std::uint64_t>(i));
  }
}

}  // namespace
}  // namespace tenon
