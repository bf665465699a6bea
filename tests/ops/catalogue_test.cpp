#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <string>

#include "ops/elementwise/elementwise.h"
#include "ops/names.h"
#include "reference/reference.h"
#include "tenon/error.h"
#include "tenon/expression.h"
#include "tenon/ops.h"

namespace tenon {
namespace {

// The ops of the web calculator, and threshold, which it described but did not list.
constexpr const char* kCalculatorOps =
    "abs acos acosh asin asinh atan atanh cbrt ceil celu clamp clip clone cos cosh deg2rad elu eqz erf erfc erfinv exp exp2 "
    "expm1 "
    "floor frac gelu gez gtz hardsigmoid hardswish hardtanh heaviside i0 identity isfinite isinf isnan isneginf isposinf "
    "leaky_relu lez lgamma log log10 log1p log2 log_sigmoid logical_not logit ltz mish neg nez prelu rad2deg reciprocal relu "
    "relu6 "
    "round rsqrt selu sigmoid sigmoid_accurate sign signbit silu sin sinh softplus softshrink softsign sqrt square swish tan "
    "tanh "
    "tanhshrink tril triu trunc add addalpha subalpha mul multiply subtract div divide div_no_nan floor_div remainder fmod gcd "
    "lcm "
    "logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor logaddexp logaddexp2 hypot xlogy squared_difference "
    "gt "
    "lt ge le eq ne isclose maximum minimum pow atan2 addcdiv addcmul mac where lerp threshold";

Error error_of(const auto& action) {
  try {
    action();
  } catch (const Error& e) {
    return e;
  }
  ADD_FAILURE() << "nothing was thrown";
  return Error(ErrorCode::ok, "");
}

NodeId vector_input(Graph& graph) { return graph.input("x", DType::f32, {3}); }

TEST(Catalogue, ListsEveryOpOfTheCalculatorByName) {
  std::set<std::string> names;
  for (const OpInfo& op : all_ops()) names.insert(op.name);
  std::istringstream words(kCalculatorOps);
  int count = 0;
  for (std::string name; words >> name; ++count) EXPECT_TRUE(names.contains(name)) << name;
  EXPECT_EQ(count, 123);
}

TEST(Catalogue, HasAtLeast190OpsSortedByName) {
  EXPECT_GE(all_ops().size(), 190U);
  EXPECT_TRUE(std::is_sorted(all_ops().begin(), all_ops().end(), [](auto& a, auto& b) { return a.name < b.name; }));
}

TEST(Catalogue, EveryOpIsDescribed) {
  for (const OpInfo& op : all_ops()) {
    EXPECT_FALSE(op.category.empty()) << op.name;
    EXPECT_FALSE(op.formula.empty()) << op.name;
    EXPECT_FALSE(op.doc.empty()) << op.name;
    EXPECT_EQ(op.doc.find('\n'), std::string::npos) << op.name;
    EXPECT_NE(op.example.find(op.name), std::string::npos) << op.name << ": " << op.example;
    EXPECT_FALSE(op.dtypes.empty() && op.max_inputs != 0) << op.name;
    EXPECT_NE(op.build, nullptr) << op.name;
    const bool any_number = op.max_inputs < 0;
    EXPECT_TRUE(any_number || op.input_names.size() == static_cast<std::size_t>(op.max_inputs)) << op.name;
    for (const Parameter& p : op.parameters) {
      EXPECT_FALSE(p.name.empty() || p.doc.empty()) << op.name;
      EXPECT_TRUE(!p.required || std::holds_alternative<std::monostate>(p.fallback)) << op.name << " " << p.name;
    }
  }
}

TEST(Catalogue, EveryExampleRunsAsItStands) {
  for (const OpInfo& op : all_ops()) {
    try {
      EXPECT_FALSE(reference_run(parse_expression(op.example), {}).empty()) << op.example;
    } catch (const std::exception& e) {
      ADD_FAILURE() << op.example << ": " << e.what();
    }
  }
}

TEST(Catalogue, AnElementwiseOpAddsThatOneNode) {
  for (const OpInfo& op : all_ops()) {
    if (!op.elementwise) continue;
    Graph graph;
    std::vector<NodeId> inputs;
    const ElementwiseTraits& t = traits(*op.elementwise);
    for (int i = 0; i < op.min_inputs; ++i)
      inputs.push_back(graph.input("",
                                   t.condition && i == 0      ? DType::boolean
                                   : (t.kinds & kFloats) != 0 ? DType::f32
                                                              : DType::i32,
                                   {2, 3}));
    const NodeId before = graph.size();
    const std::vector<NodeId> result = apply(graph, op, inputs);
    ASSERT_EQ(result.size(), 1U) << op.name;
    EXPECT_EQ(graph.size(), before + 1) << op.name;
    EXPECT_EQ(graph[result[0]].prim, Prim::elementwise) << op.name;
    EXPECT_EQ(graph[result[0]].as<ElementwiseAttr>().op, *op.elementwise) << op.name;
    EXPECT_EQ(graph[result[0]].dtype == DType::boolean, t.returns_bool) << op.name;
  }
}

TEST(Catalogue, AnElementwiseOpTakesEveryDtypeItLists) {
  for (const OpInfo& op : all_ops()) {
    if (!op.elementwise) continue;
    for (DType dtype : op.dtypes) {
      Graph graph;
      const std::vector<NodeId> inputs(static_cast<std::size_t>(op.min_inputs), graph.input("", dtype, {4}));
      EXPECT_NO_THROW(apply(graph, op, inputs)) << op.name << " " << name(dtype);
    }
  }
}

TEST(Catalogue, AliasesLeadToTheirOp) {
  EXPECT_EQ(find_op("power").name, "pow");
  EXPECT_EQ(find_op("arctan2").name, "atan2");
  EXPECT_EQ(lookup_op("no_such_op"), nullptr);
}

TEST(Catalogue, AMisspeltOpIsAnsweredWithTheNearest) {
  const Error typo = error_of([] { find_op("sofmax"); });
  EXPECT_EQ(typo.code(), ErrorCode::not_found);
  EXPECT_NE(typo.hint().find("'softmax'"), std::string::npos) << typo.hint();
  EXPECT_NE(error_of([] { find_op("geul"); }).hint().find("'gelu'"), std::string::npos);
  EXPECT_NE(error_of([] { find_op("xyzzyplugh"); }).hint().find("list of ops"), std::string::npos);
}

TEST(Catalogue, WrongArityIsRefusedWithTheSignature) {
  Graph graph;
  const NodeId x = vector_input(graph);
  const Error few = error_of([&] { apply(graph, "add", {x}); });
  EXPECT_EQ(few.code(), ErrorCode::invalid_argument);
  EXPECT_EQ(std::string(few.what()), "add: expected 2 inputs, got 1");
  EXPECT_NE(few.hint().find("add(x, y)"), std::string::npos);
  EXPECT_EQ(std::string(error_of([&] { apply(graph, "exp", {x, x, x}); }).what()), "exp: expected 1 input, got 3");
}

TEST(Catalogue, AnUnknownParameterIsAnsweredWithTheNearest) {
  Graph graph;
  const NodeId x = vector_input(graph);
  const Error error = error_of([&] { apply(graph, "elu", {x}, {{"alhpa", 1.0}}); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  EXPECT_NE(error.hint().find("'alpha'"), std::string::npos);
  EXPECT_NE(error_of([&] { apply(graph, "exp", {x}, {{"base", 2.0}}); }).hint().find("has no parameters"), std::string::npos);
}

TEST(Catalogue, ParametersAreConvertedOnlyWhereNothingIsLost) {
  Graph graph;
  const NodeId x = vector_input(graph);
  EXPECT_NO_THROW(apply(graph, "elu", {x}, {{"alpha", std::int64_t{2}}}));
  EXPECT_NO_THROW(apply(graph, "round", {x}, {{"decimals", 2.0}}));
  EXPECT_THROW(apply(graph, "round", {x}, {{"decimals", 2.5}}), Error);
  EXPECT_THROW(apply(graph, "elu", {x}, {{"alpha", std::string("two")}}), Error);
  EXPECT_THROW(apply(graph, "elu", {x}, {{"alpha", std::monostate{}}}), Error);
  EXPECT_NO_THROW(apply(graph, "clamp", {x}, {{"min", std::monostate{}}, {"max", 1.0}}));
}

TEST(Catalogue, BoundsAndChoicesAreChecked) {
  Graph graph;
  const NodeId x = vector_input(graph);
  EXPECT_NE(std::string(error_of([&] { apply(graph, "softshrink", {x}, {{"lambda", -1.0}}); }).what()).find("at least 0"),
            std::string::npos);
  EXPECT_THROW(apply(graph, "softshrink", {x}, {{"lambda", std::nan("")}}), Error);
  EXPECT_THROW(apply(graph, "celu", {x}, {{"alpha", 0.0}}), Error);
  const Error choice = error_of([&] { apply(graph, "gelu", {x}, {{"approximate", std::string("tnah")}}); });
  EXPECT_NE(std::string(choice.what()).find("none, tanh"), std::string::npos) << choice.what();
  EXPECT_NE(choice.hint().find("'tanh'"), std::string::npos);
}

TEST(Catalogue, AParameterGivenTwiceIsRefused) {
  Graph graph;
  const NodeId x = vector_input(graph);
  EXPECT_THROW(apply(graph, "elu", {x}, {{"alpha", 1.0}, {"alpha", 2.0}}), Error);
  EXPECT_THROW(apply(graph, "elu", {x, graph.literal(2.0)}, {{"alpha", 1.0}}), Error);
}

TEST(Catalogue, APositionalParameterMustBeKnownBeforeTheProgramRuns) {
  Graph graph;
  const NodeId x = vector_input(graph);
  const NodeId minus_two = apply(graph, "neg", {graph.literal(2.0)})[0];
  const NodeId node = apply(graph, "elu", {x, minus_two})[0];
  EXPECT_EQ(graph[node].as<ElementwiseAttr>().params[0], -2);
  EXPECT_THROW(apply(graph, "elu", {x, x}), Error);
}

TEST(Names, HintsNameWhatIsNearOrContainsTheTextOrBeginsAlike) {
  const std::vector<std::string_view> names = {"gelu", "conv1d", "conv2d", "conv_transpose2d"};
  EXPECT_EQ(name_hint("gleu", names, "look it up"), "did you mean 'gelu'?");
  EXPECT_EQ(name_hint("conv", names, "look it up"), "names that contain it: conv1d, conv2d, conv_transpose2d");
  EXPECT_EQ(name_hint("convolution", names, "look it up"), "names that begin alike: conv1d, conv2d, conv_transpose2d");
  EXPECT_EQ(name_hint("attention", names, "look it up"), "look it up");
}

TEST(Names, NearestCountsSwapsAndIgnoresCase) {
  EXPECT_EQ(edit_distance("geul", "gelu"), 1U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("Softmax", "softmax"), 0U);
  const std::vector<std::string_view> names = {"gelu", "relu", "elu", "softmax", "x"};
  EXPECT_EQ(nearest("reul", std::span<const std::string_view>(names)), "relu");
  EXPECT_EQ(nearest("softmaxx", std::span<const std::string_view>(names)), "softmax");
  EXPECT_EQ(nearest("y", std::span<const std::string_view>(names)), "");
  EXPECT_EQ(nearest("convolution", std::span<const std::string_view>(names)), "");
}

}  // namespace
}  // namespace tenon
