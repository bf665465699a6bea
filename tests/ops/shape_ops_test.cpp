// Shapes, layout and indexing: the rules beside the values, which composed_golden_test.cpp checks.
#include <gtest/gtest.h>

#include "expression/expression_testing.h"

namespace tenon {
namespace {

using namespace tenon::testing;

TEST(ShapeOps, WorkOnEveryType) {
  for (DType dtype : all_dtypes()) {
    const std::string x = "cast([[1, 0], [1, 1]], " + std::string(name(dtype)) + ")";
    for (const std::string& op : {"transpose(" + x + ")", "flip(" + x + ")", "tril(" + x + ")", "concat(" + x + ", " + x + ")",
                                  "pad(" + x + ", 1)", "take(" + x + ", [1, 0], axis=0)", "repeat(" + x + ", 2)",
                                  "diag(" + x + ")", "masked_fill(" + x + ", [1, 0], value=1)", "sort(" + x + ")"})
      EXPECT_EQ(run(op).dtype(), dtype) << op;
  }
}

TEST(ShapeOps, ReshapeWorksOutOneExtent) {
  EXPECT_EQ(to_string(run("reshape(ones([2, 6]), [3, -1])").shape()), "[3, 4]");
  EXPECT_EQ(to_string(run("reshape(ones([0, 6]), [0, 3])").shape()), "[0, 3]");
  for (const char* source : {"reshape(ones([2, 3]), [4, -1])", "reshape(ones([2, 3]), [-1, -1])", "reshape(ones([2, 3]), [5])",
                             "reshape(ones([2, 3]), [-2, 3])", "reshape(ones([0]), [0, -1])"})
    EXPECT_EQ(error_of(source).code(), ErrorCode::invalid_argument) << source;
}

TEST(ShapeOps, WhatDoesNotFitIsRefused) {
  for (const char* source : {
           "squeeze(ones([2, 1]), axis=0)",
           "expand(ones([2]), [3])",
           "expand(ones([2]), [-1, 2])",
           "permute(ones([2, 3]), [0, 0])",
           "permute(ones([2, 3]), [0])",
           "flatten(ones([2, 3]), 1, 0)",
           "concat(ones([2, 3]), ones([2, 2]), axis=0)",
           "stack(ones([2]), ones([3]))",
           "split(ones([5]), 2)",
           "split(ones([5]), [2, 2])",
           "roll(ones([5]), [1, 2])",
           "slice(ones([5]), start=0, step=0)",
           "pad(ones([2, 2]), [1, 2, 3])",
           "pad(zeros([0]), 1, mode=\"edge\")",
           "pad([1], -1)",
           "gather(ones([2, 2]), [0])",
           "gather(ones([2, 2]), [[0.5]])",
           "scatter(ones([3]), [0, 1], ones([3]))",
           "select(ones([3]), index=3)",
           "diag(ones([2, 2, 2]))",
           "tril(ones([2]))",
           "unsqueeze(ones([1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]), 0)",
       })
    EXPECT_EQ(error_of(source).code(), ErrorCode::invalid_argument) << source;
}

TEST(ShapeOps, EnormousResultsAreRefusedWithoutAllocating) {
  for (const char* source : {"tile(ones([1000, 1000]), [1000000, 1000000])", "repeat(ones([10000000]), 1000000)",
                             "pad(ones([2, 2]), 2000000000)", "expand(1, [1000000000, 1000000000])"})
    EXPECT_EQ(error_of(source).code(), ErrorCode::resource_exhausted) << source;
}

TEST(ShapeOps, PartsBecomeSeveralResults) {
  EXPECT_EQ(run_all("split([1, 2, 3, 4, 5, 6], 3)").size(), 3u);
  EXPECT_EQ(run_all("chunk([1, 2, 3, 4, 5], 4)").size(), 3u);
  EXPECT_EQ(values("a, b = split([1, 2, 3], [1, 2]); b"), (std::vector<double>{2, 3}));
}

TEST(ShapeOps, ReversedSlicesFollowPython) {
  EXPECT_EQ(values("slice([0, 1, 2, 3, 4], start=3, stop=0, step=-2)"), (std::vector<double>{3, 1}));
  EXPECT_EQ(values("slice([0, 1, 2], start=-100, stop=100)"), (std::vector<double>{0, 1, 2}));
  EXPECT_EQ(run("slice([0, 1, 2], start=2, stop=1)").elements(), 0);
}

TEST(ShapeOps, ViewsAddNoCopies) {
  const NamedType x{"x", DType::f32, {4, 6}};
  for (const char* source : {"transpose(x)", "diagonal(x)", "flip(x)", "expand(x, [3, 4, 6])", "slice(x, start=1)"}) {
    const Graph graph = parse_expression(source, {x});
    for (NodeId id = 0; id < graph.size(); ++id) {
      const Prim prim = graph[id].prim;
      EXPECT_TRUE(prim == Prim::input || prim == Prim::transpose || prim == Prim::reshape || prim == Prim::slice ||
                  prim == Prim::broadcast)
          << source << ": " << name(prim);
    }
  }
}

}  // namespace
}  // namespace tenon
