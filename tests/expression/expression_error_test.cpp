// What a wrong expression is told: what was expected, where, and what was probably meant.
#include "expression/expression_testing.h"

namespace tenon::testing {
namespace {

Given x23() { return {{"x", floats({2, 3}, {1, 2, 3, 4, 5, 6})}}; }

void expect_error(const std::string& source, int column, const std::string& message, const std::string& hint = {}) {
  const ExpressionError error = error_of(source, x23());
  EXPECT_EQ(error.place().column, column) << source << "\n" << error.what();
  EXPECT_NE(error.message().find(message), std::string::npos) << source << "\n" << error.what();
  EXPECT_NE(error.hint().find(hint), std::string::npos) << source << "\n" << error.hint();
}

TEST(ExpressionError, SyntaxSaysWhatWasExpectedAndWhere) {
  expect_error("1 +", 4, "expected a value, found the end of the expression");
  expect_error("(1 + 2", 7, "expected ')' to close the '(' of column 1");
  expect_error("x[0", 4, "expected ']' to close the '['");
  expect_error("1 2", 3, "expected an operator, found the number 2");
  expect_error("2x", 1, "expected an operator between 2 and x", "write 2 * x");
  expect_error("x $ 1", 3, "unexpected character '$'");
  expect_error("x !", 3, "unexpected character '!'", "not x");
  expect_error("einsum('ij", 8, "no closing '");
  expect_error("x[]", 2, "expected an index");
  expect_error("x + = 1", 5, "expected a value, found '='", "==");
  expect_error("{1}", 1, "expected a value", "[ ]");
  expect_error("true = 1", 1, "cannot be assigned");
  expect_error("a, a = 1, 2; a", 4, "'a' is assigned twice");
  expect_error("sum(x, axis=0, 1)", 16, "a positional argument follows axis=");
  expect_error("sum(x, axis=0, axis=1)", 16, "'axis' is given twice");
  expect_error("2(3)", 2, "only an op can be called");
  expect_error("x.foo", 3, "unknown attribute .foo");
  expect_error("1e999", 1, "too large for float64");
  EXPECT_EQ(error_of("").message(), "the expression is empty");
  EXPECT_EQ(error_of(" ; # nothing\n").message(), "the expression is empty");
}

TEST(ExpressionError, UnknownNamesComeWithTheNearest) {
  expect_error("1 + sofmax(x)", 5, "unknown op 'sofmax'", "did you mean 'softmax'?");
  expect_error("conv(x)", 1, "unknown op 'conv'", "names that contain it: conv1d, conv2d, conv3d");
  expect_error("gcd(4, 2.5)", 1, "gcd: it takes integers; 2.5 is a float", "cast");
  EXPECT_EQ(error_of("sofmax(1)").code(), ErrorCode::not_found);
  expect_error("sum(x, axsi=0)", 8, "no parameter 'axsi'", "did you mean 'axis'?");
  expect_error("weight = 1; wieght + 1", 13, "'wieght'", "did you mean 'weight'?");
  expect_error("cast(x, flaot32)", 9, "'flaot32'");
  expect_error("softmax", 1, "is an op", "softmax(...)");
  expect_error("x(1)", 1, "'x' is a tensor, not an op");
  expect_error("y + 1", 1, "unknown name 'y'");
}

TEST(ExpressionError, WhatOpsRefusePointsAtTheCall) {
  expect_error("1 + (x @ x)", 6, "[2, 3]");
  expect_error("x + [1, 2]", 1, "[2]");
  expect_error("1 * reshape(x, [4, 4])", 5, "reshape");
  expect_error("softmax(x, axis=5)", 1, "axis");
  expect_error("gelu()", 1, "gelu");
  expect_error("concat(x, None, x)", 11, "not None");
  expect_error("exp(x, 2)", 8, "too many arguments for exp");
  expect_error("softmax(x, axis=x)", 17, "must be a constant");
  EXPECT_EQ(error_of("softmax([1.0], axis=5)").code(), ErrorCode::out_of_range);
}

TEST(ExpressionError, RaggedLiteralsPointAtTheRow) {
  expect_error("[[1, 2], [3]]", 10, "this row has shape [1], but the first has [2]");
  expect_error("[1, [2]]", 5, "this row has shape [1], but the first has []");
  expect_error("[1, 'a']", 5, "a list can contain numbers or tensors");
}

TEST(ExpressionError, IndicesOutsideTheTensor) {
  expect_error("x[2]", 3, "index 2 is out of range for axis 0 of [2, 3]");
  expect_error("x[0, 0, 0]", 1, "3 indices, but the tensor has 2 axes");
  expect_error("x[::0]", 3, "the step of a slice must not be 0");
  expect_error("x[0.5]", 3, "must be integers, not");
  expect_error("x[x > 1]", 3, "mask", "where");
  expect_error("x[..., ...]", 8, "once");
  expect_error("x[[0], [0]]", 8, "only one index may be a tensor");
  expect_error("split(x, 2, axis=0)[2]", 21, "result 2 is out of range");
  expect_error("split(x, 2, axis=0) + 1", 1, "expected one tensor, but this has 2 results");
  expect_error("a, b, c = split(x, 2, axis=0); a", 1, "3 names for 2 values");
}

TEST(ExpressionError, TheExcerptHasACaretBelowThePlace) {
  const ExpressionError error = error_of("1 + sofmax(2)");
  EXPECT_EQ(error.excerpt(), "1 + sofmax(2)\n    ^~~~~~");
  EXPECT_EQ(std::string(error.what()), "column 5: unknown op 'sofmax'");
}

TEST(ExpressionError, PlacesInLongerSourcesHaveALine) {
  const ExpressionError error = error_of("a = 1\nb = a +\nb");
  EXPECT_EQ(error.place().line, 2);
  EXPECT_EQ(error.place().source_line, "b = a +");
  EXPECT_EQ(std::string(error.what()).find("line 2, column 8: "), 0u);
}

TEST(ExpressionError, ColumnsCountCharactersNotBytes) { EXPECT_EQ(error_of("t = '\xC3\xA9\xC3\xA9'; zz").place().column, 11); }

TEST(ExpressionError, ALongLineIsCutAroundThePlace) {
  std::string source = "1";
  for (int i = 0; i < 200; ++i) source += " + 1";
  const std::string excerpt = error_of(source + " + zz").excerpt();
  EXPECT_LT(excerpt.size(), 220u);
  EXPECT_NE(excerpt.find("zz"), std::string::npos);
  const std::size_t line = excerpt.find('\n') + 1;
  EXPECT_EQ(excerpt.find('^') - line, excerpt.find("zz"));
}

TEST(ExpressionError, SizeAndDepthAreBounded) {
  EXPECT_EQ(error_of(std::string(100'000, '1')).code(), ErrorCode::resource_exhausted);
  std::string many = "1";
  for (int i = 0; i < 6000; ++i) many += "+1";
  EXPECT_EQ(error_of(many).code(), ErrorCode::resource_exhausted);
  for (const char* open : {"(", "-", "[", "not ", "exp(", "2**"}) {
    std::string deep;
    for (int i = 0; i < 1000; ++i) deep += open;
    EXPECT_EQ(error_of(deep + "1").code(), ErrorCode::resource_exhausted) << open;
  }
}

TEST(ExpressionError, LongChainsThatNestNothingAreFine) {
  std::string sum = "x";
  for (int i = 0; i < 4000; ++i) sum += "+x";
  EXPECT_EQ(value(sum, {{"x", HostArray::full(DType::f32, {}, 1)}}), 4001);
}

TEST(ExpressionError, GiantTensorsAreRefusedBeforeAnythingIsAllocated) {
  for (const char* source : {"zeros([1000000, 1000000])", "ones([1000000000000])", "rand([1000000, 1000000]) + 1",
                             "a = zeros([1000000, 1]); b = zeros([1, 1000000]); a + b", "zeros([2 ** 62, 2 ** 62])"}) {
    const ExpressionError error = error_of(source);
    EXPECT_EQ(error.code(), ErrorCode::resource_exhausted) << error.what();
  }
  const ExpressionOptions small{.max_elements = 100};
  EXPECT_EQ(error_of("sum(zeros([101]))", {}, small).code(), ErrorCode::resource_exhausted);
  EXPECT_EQ(run("sum(zeros([100]))", {}, small).value(0), 0);
}

TEST(ExpressionError, LiteralsCannotGrowByRepetition) {
  std::string source = "a = [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]";
  for (int i = 0; i < 6; ++i) source += "; a = [a, a, a, a, a, a, a, a, a, a]";
  EXPECT_EQ(error_of(source + "; a").code(), ErrorCode::resource_exhausted);
}

}  // namespace
}  // namespace tenon::testing
