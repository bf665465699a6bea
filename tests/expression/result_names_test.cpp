#include "expression/result_names.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

using Names = std::vector<std::string>;

TEST(ResultNames, AreThoseOfTheLastStatement) {
  EXPECT_EQ(result_names("values, indices = top_k(x, 3)", 2), (Names{"values", "indices"}));
  EXPECT_EQ(result_names("v, i = top_k(x, 3); i, v", 2), (Names{"i", "v"}));
  EXPECT_EQ(result_names("top_k(x, 3)", 2), (Names{"values", "indices"}));
  EXPECT_EQ(op_result_names("topk", 2), op_result_names("top_k", 2));
}

TEST(ResultNames, AreNumbersWhereThereIsNoName) {
  EXPECT_EQ(result_names("x + 1", 1), Names{"result"});
  EXPECT_EQ(result_names("y = x", 1), Names{"result"});
  EXPECT_EQ(result_names("x, x + 1", 2), (Names{"x", "result1"}));
  EXPECT_EQ(result_names("chunk(x, 3)", 3), (Names{"result0", "result1", "result2"}));
}

TEST(ResultNames, AreDistinct) {
  EXPECT_EQ(result_names("x, x", 2), (Names{"x", "result1"}));
  EXPECT_EQ(result_names("result1, x", 2), (Names{"result0", "x"}));
}

}  // namespace
}  // namespace tenon
