// The expression language: what each form means.
#include "expression/expression_testing.h"

#include <cmath>
#include <numbers>

namespace tenon::testing {
namespace {

using Values = std::vector<double>;

Given x23() { return {{"x", floats({2, 3}, {1, 2, 3, 4, 5, 6})}}; }

TEST(Expression, NumbersAreWholeOrNotAsWritten) {
  EXPECT_EQ(run("7").dtype(), DType::i64);
  EXPECT_EQ(run("7.0").dtype(), DType::f32);
  EXPECT_EQ(run("1e-3").dtype(), DType::f32);
  EXPECT_EQ(value("0x1F"), 31);
  EXPECT_EQ(run("true").dtype(), DType::boolean);
  EXPECT_TRUE(std::isinf(value("-inf")));
  EXPECT_TRUE(std::isnan(value("nan")));
  EXPECT_FLOAT_EQ(static_cast<float>(value("pi")), std::numbers::pi_v<float>);
  EXPECT_EQ(run("9007199254740993").view<std::int64_t>()[0], 9007199254740993);
}

TEST(Expression, PrecedenceIsPythons) {
  EXPECT_EQ(value("2 + 3 * 4"), 14);
  EXPECT_EQ(value("-2 ** 2"), -4);
  EXPECT_EQ(value("2 ** 3 ** 2"), 512);
  EXPECT_EQ(value("2 ** -1"), 0.5);
  EXPECT_EQ(value("7 // 2 * 2"), 6);
  EXPECT_EQ(value("-7 // 2"), -4);
  EXPECT_EQ(value("-7 % 3"), 2);
  EXPECT_EQ(value("1 | 6 & 3 ^ 1"), 3);
  EXPECT_EQ(value("1 + 2 << 3"), 24);
  EXPECT_EQ(value("~5"), -6);
  EXPECT_EQ(value("not 1 == 2"), 1);
  EXPECT_EQ(value("1 < 2 and 3 < 2 or true"), 1);
  EXPECT_EQ(value("1 < 2 < 3"), 1);
  EXPECT_EQ(value("1 < 3 < 2"), 0);
  EXPECT_EQ(value("(2 + 3) * 4"), 20);
}

// The same operators on tensors go through the ops; on numbers they are folded. Both must say the same.
TEST(Expression, FoldedNumbersAgreeWithTheOps) {
  for (const char* op : {"+", "-", "*", "/", "//", "%", "==", "!=", "<", "<=", ">", ">=", "&", "|", "^"})
    for (const int a : {-7, -1, 0, 3, 12})
      for (const int b : {-5, -1, 2, 7}) {
        const std::string folded = "(" + std::to_string(a) + ") " + op + " (" + std::to_string(b) + ")";
        const std::string computed = std::string("x ") + op + " y";
        const Given given{{"x", HostArray::full(DType::i64, {}, a)}, {"y", HostArray::full(DType::i64, {}, b)}};
        EXPECT_FLOAT_EQ(static_cast<float>(value(folded)), static_cast<float>(value(computed, given))) << folded;
      }
}

TEST(Expression, WholeNumbersBeyond64BitsBecomeFloats) {
  EXPECT_EQ(value("2 ** 62"), std::ldexp(1, 62));
  EXPECT_EQ(run("2 ** 62").dtype(), DType::i64);
  EXPECT_EQ(value("2 ** 70"), std::ldexp(1, 70));
  EXPECT_EQ(run("9223372036854775807 + 1").dtype(), DType::f32);
}

TEST(Expression, ANumberTakesTheDtypeOfTheTensorItMeets) {
  const Given bf16{{"x", HostArray::full(DType::bf16, {2}, 1)}};
  EXPECT_EQ(run("x * 2 + 0.5", bf16).dtype(), DType::bf16);
  const Given i8{{"x", HostArray::full(DType::i8, {2}, 1)}};
  EXPECT_EQ(run("x + 1", i8).dtype(), DType::i8);
  const Given f64{{"x", HostArray::full(DType::f64, {}, 1)}};
  EXPECT_EQ(value("x * 0.1", f64), 0.1);
  EXPECT_EQ(value("x * pi", f64), std::numbers::pi);
}

TEST(Expression, NumbersComputedFromNumbersKeepFullPrecisionUntilTheyMeetATensor) {
  const ExpressionOptions wide{.default_float = DType::f64};
  EXPECT_EQ(run("exp(1)", {}, wide).value(0), std::exp(1.0));
  EXPECT_EQ(run("sqrt(2) * x", {{"x", HostArray::full(DType::f64, {}, 1)}}).value(0), std::sqrt(2.0));
  EXPECT_EQ(run("sqrt(2)").dtype(), DType::f32);
  EXPECT_EQ(run("where(x > 3, 1.5, 0.5)", x23()).dtype(), DType::f32);
  EXPECT_EQ(run("where(x > 3, 1.5, 0.5) * h", {x23()[0], {"h", HostArray::full(DType::bf16, {}, 1)}}).dtype(), DType::bf16);
  EXPECT_EQ(run("where(x > 3, 1.5, 0.5)", x23(), wide).dtype(), DType::f64);
}

TEST(Expression, LiteralsAreTensors) {
  const HostArray matrix = run("[[1, 2], [3, 4]]");
  EXPECT_EQ(matrix.dtype(), DType::i64);
  EXPECT_EQ(matrix.shape(), (Shape{2, 2}));
  EXPECT_EQ(run("[1, 2.5]").dtype(), DType::f32);
  EXPECT_EQ(run("[true, false]").dtype(), DType::boolean);
  EXPECT_EQ(run("[]").shape(), (Shape{0}));
  EXPECT_EQ(values("[1, -2, 3 * 4,]"), (Values{1, -2, 12}));
  EXPECT_EQ(run("[1.5]", {}, {.default_float = DType::bf16}).dtype(), DType::bf16);
}

TEST(Expression, AListOfTensorsIsStacked) {
  const Given given{{"a", floats({2}, {1, 2})}, {"b", floats({2}, {3, 4})}};
  const HostArray stacked = run("[a, b]", given);
  EXPECT_EQ(stacked.shape(), (Shape{2, 2}));
  EXPECT_EQ(stacked.to_doubles(), (Values{1, 2, 3, 4}));
}

TEST(Expression, CallsTakeParametersByPositionAndByName) {
  EXPECT_EQ(value("addalpha(1, 2, 3)"), 7);
  EXPECT_EQ(value("subalpha(10, 2, 3)"), 4);
  EXPECT_EQ(value("addcmul(1, 2, 3, value=5)"), 31);
  EXPECT_EQ(value("addcdiv(10, 6, 2, 2)"), 16);
  EXPECT_EQ(value("prelu(-2, .5)"), -1);
  EXPECT_EQ(value("heaviside(0, .5)"), .5);
  EXPECT_EQ(value("threshold(.5, 1, 99)"), 99);
  EXPECT_EQ(values("clamp([-1, 0.5, 2], 0, 1)"), (Values{0, .5, 1}));
  EXPECT_EQ(run("reshape(x, [3, 2])", x23()).shape(), (Shape{3, 2}));
  EXPECT_EQ(values("sum(x, axis=1)", x23()), (Values{6, 15}));
  EXPECT_EQ(values("x.sum(axis=0)", x23()), (Values{5, 7, 9}));
  EXPECT_EQ(values("where(x > 3, 1, 0)", x23()), (Values{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(run("cast(x, bfloat16)", x23()).dtype(), DType::bf16);
  EXPECT_EQ(run("cast(x, \"int32\")", x23()).dtype(), DType::i32);
  EXPECT_EQ(values("einsum('ij->j', x)", x23()), (Values{5, 7, 9}));
}

TEST(Expression, EluOfTheCalculatorRoundsToBfloat16) {
  const HostArray result = run("elu(-1, 2)", {}, {.default_float = DType::bf16});
  EXPECT_EQ(result.dtype(), DType::bf16);
  EXPECT_EQ(result.value(0), -1.265625);
}

TEST(Expression, AParameterMayBeComputedFromNumbersAndNames) {
  EXPECT_EQ(values("n = 2; clamp(x, n - 1, 2 * n)", x23()), (Values{1, 2, 3, 4, 4, 4}));
  EXPECT_EQ(run("n = 3; reshape(x, [n, 2])", x23()).shape(), (Shape{3, 2}));
  EXPECT_EQ(run("reshape(x, (3, -1))", x23()).shape(), (Shape{3, 2}));
}

TEST(Expression, OpsOfManyInputsTakeAListOrArguments) {
  const Given given{{"a", floats({2}, {1, 2})}, {"b", floats({2}, {3, 4})}};
  EXPECT_EQ(values("concat(a, b)", given), (Values{1, 2, 3, 4}));
  EXPECT_EQ(values("concat([a, b], axis=0)", given), (Values{1, 2, 3, 4}));
  EXPECT_EQ(values("concat([1, 2], [3, 4])"), (Values{1, 2, 3, 4}));
  EXPECT_EQ(values("concat([[1, 2], [3, 4]])"), (Values{1, 2, 3, 4}));
  EXPECT_EQ(values("concat(split(x, 2, axis=0), axis=1)", x23()), (Values{1, 2, 3, 4, 5, 6}));
}

TEST(Expression, OptionalInputsAreGivenByNameOrAsTensors) {
  const Given given{{"x", floats({1, 2}, {1, 2})}, {"w", floats({1, 2}, {3, 4})}, {"b", floats({1}, {10})}};
  EXPECT_EQ(values("linear(x, w)", given), (Values{11}));
  EXPECT_EQ(values("linear(x, w, b)", given), (Values{21}));
  EXPECT_EQ(values("linear(x, w, bias=b)", given), (Values{21}));
  EXPECT_EQ(values("linear(x, w, None)", given), (Values{11}));
  EXPECT_EQ(values("linear(x, w, [10])", given), (Values{21}));
}

TEST(Expression, IndexingIsNumPys) {
  EXPECT_EQ(values("x[0]", x23()), (Values{1, 2, 3}));
  EXPECT_EQ(values("x[-1, 1:]", x23()), (Values{5, 6}));
  EXPECT_EQ(values("x[:, ::-1]", x23()), (Values{3, 2, 1, 6, 5, 4}));
  EXPECT_EQ(values("x[0, 10:0:-2]", x23()), (Values{3}));
  EXPECT_EQ(values("x[..., 0]", x23()), (Values{1, 4}));
  EXPECT_EQ(run("x[..., None]", x23()).shape(), (Shape{2, 3, 1}));
  EXPECT_EQ(run("x[None, 0, None]", x23()).shape(), (Shape{1, 1, 3}));
  EXPECT_EQ(run("x[0, 1]", x23()).shape(), Shape{});
  EXPECT_EQ(run("x[5:]", x23()).shape(), (Shape{0, 3}));
  EXPECT_EQ(values("x[1][2]", x23()), (Values{6}));
  EXPECT_EQ(values("x[0, -100:9223372036854775807:4611686018427387904]", x23()), (Values{1}));
  EXPECT_EQ(values("x.T", x23()), (Values{1, 4, 2, 5, 3, 6}));
}

// Python's own slices are the definition: every start, stop and step around a small axis.
TEST(Expression, SlicesSelectWhatCountingSelects) {
  const Given given{{"x", floats({4}, {0, 1, 2, 3})}};
  for (int start = -6; start <= 6; ++start)
    for (int stop = -6; stop <= 6; ++stop)
      for (const int step : {-5, -2, -1, 1, 2, 5}) {
        const auto place = [&](int at) {
          if (at < 0) at += 4;
          return step > 0 ? std::clamp(at, 0, 4) : std::clamp(at, -1, 3);
        };
        Values wanted;
        for (int i = place(start); step > 0 ? i < place(stop) : i > place(stop); i += step) wanted.push_back(i);
        const std::string source = "x[" + std::to_string(start) + ":" + std::to_string(stop) + ":" + std::to_string(step) + "]";
        EXPECT_EQ(values(source, given), wanted) << source;
      }
}

TEST(Expression, ATensorOfIntegersTakesAlongItsAxis) {
  EXPECT_EQ(values("x[:, [2, 0]]", x23()), (Values{3, 1, 6, 4}));
  EXPECT_EQ(values("x[[1, -2]]", x23()), (Values{4, 5, 6, 1, 2, 3}));
  EXPECT_EQ(run("x[argmax(x[:, 0])]", x23()).shape(), (Shape{3}));
  EXPECT_EQ(values("x[1, [0, 2]]", x23()), (Values{4, 6}));
}

TEST(Expression, StatementsNameParts) {
  EXPECT_EQ(values("t = x * 2; t + 1", x23()), (Values{3, 5, 7, 9, 11, 13}));
  EXPECT_EQ(value("a = 1\nb = 2  # a comment; not a statement\n\na + b\n"), 3);
  EXPECT_EQ(value("a = (1 +\n 2)\na"), 3);
  EXPECT_EQ(value("x = 1; x = x + 1; x"), 2);
  EXPECT_EQ(value("t = 1 + 1"), 2);
}

TEST(Expression, SeveralResults) {
  const std::vector<HostArray> pair = run_all("x, x + 1", x23());
  ASSERT_EQ(pair.size(), 2u);
  EXPECT_EQ(pair[1].value(0), 2);
  const Given five{{"x", floats({5}, {3, 1, 4, 1, 5})}};
  const std::vector<HostArray> top = run_all("v, i = top_k(x, 2); v, i", five);
  ASSERT_EQ(top.size(), 2u);
  EXPECT_EQ(top[0].to_doubles(), (Values{5, 4}));
  EXPECT_EQ(top[1].to_doubles(), (Values{4, 2}));
  EXPECT_EQ(values("top_k(x, 2)[1]", five), (Values{4, 2}));
  EXPECT_EQ(values("top_k(x, 2)[-2]", five), (Values{5, 4}));
  EXPECT_EQ(run_all("top_k(x, 2)", five).size(), 2u);
  EXPECT_EQ(value("a, b = 1, 2; a - b"), -1);
}

TEST(Expression, LogicOnTensors) {
  EXPECT_EQ(values("x > 1 and x < 5", x23()), (Values{0, 1, 1, 1, 0, 0}));
  EXPECT_EQ(values("1 < x < 5", x23()), (Values{0, 1, 1, 1, 0, 0}));
  EXPECT_EQ(values("(x > 1) & (x < 5)", x23()), (Values{0, 1, 1, 1, 0, 0}));
  EXPECT_EQ(values("~(x > 1)", x23()), (Values{1, 0, 0, 0, 0, 0}));
  EXPECT_EQ(run("(x > 1) ^ true", x23()).dtype(), DType::boolean);
  EXPECT_EQ(values("x ** 2", x23()), (Values{1, 4, 9, 16, 25, 36}));
  EXPECT_EQ(values("[1, 2, 3] << 2"), (Values{4, 8, 12}));
}

TEST(Expression, TheDefaultFloatDtypeIsForCreatedTensorsToo) {
  const ExpressionOptions half{.default_float = DType::f16};
  EXPECT_EQ(run("zeros([2])", {}, half).dtype(), DType::f16);
  EXPECT_EQ(run("zeros([2], dtype=float64)", {}, half).dtype(), DType::f64);
  EXPECT_EQ(run("1 / 3", {}, half).dtype(), DType::f16);
  EXPECT_EQ(run("zeros([2])").dtype(), DType::f32);
}

TEST(Expression, TheGraphHasTheInputsInTheOrderGiven) {
  const Graph graph = parse_expression("b", {{"a", DType::f32, {2}}, {"b", DType::i8, {3}}});
  ASSERT_EQ(graph.inputs().size(), 2u);
  EXPECT_EQ(graph[graph.inputs()[0]].as<InputAttr>().name, "a");
  EXPECT_EQ(graph[graph.outputs()[0]].shape, (Shape{3}));
}

TEST(Expression, FreeNamesAreThoseReadBeforeTheyAreAssigned) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(free_names("gelu(x) + y * x"), (Names{"x", "y"}));
  EXPECT_EQ(free_names("t = a @ b; t / norm(t)"), (Names{"a", "b"}));
  EXPECT_EQ(free_names("x = x + 1; x"), (Names{"x"}));
  EXPECT_EQ(free_names("cast(x, bfloat16) * pi + e"), (Names{"x"}));
  EXPECT_EQ(free_names("softmax(x, axis=n)"), (Names{"x", "n"}));
  EXPECT_EQ(free_names("1 + 1"), Names{});
}

}  // namespace
}  // namespace tenon::testing
