// Einsum: what its equations may say. Values: composed_golden_test.cpp.
#include <gtest/gtest.h>

#include "expression/expression_testing.h"

namespace tenon {
namespace {

using namespace tenon::testing;

int matmuls(const Graph& graph) {
  int count = 0;
  for (NodeId id = 0; id < graph.size(); ++id) count += graph[id].prim == Prim::matmul;
  return count;
}

TEST(Einsum, SpacesAndCaseOfLettersAreFree) {
  EXPECT_EQ(values("einsum(\" i j , j k -> i k \", [[1, 2]], [[3], [4]])"), (std::vector<double>{11}));
  EXPECT_EQ(values("einsum(\"Ij,jK->IK\", [[1, 2]], [[3], [4]])"), (std::vector<double>{11}));
}

TEST(Einsum, ContractionsBecomeMatrixProducts) {
  const NamedType a{"a", DType::f32, {2, 3, 4, 5}}, b{"b", DType::f32, {2, 3, 6, 5}};
  EXPECT_EQ(matmuls(parse_expression("einsum(\"bhld,bhsd->bhls\", a, b)", {a, b})), 1);
  EXPECT_EQ(matmuls(parse_expression("einsum(\"bhld,bhld->bhld\", a, a)", {a})), 0);
}

TEST(Einsum, AChainStartsWithItsSmallestProduct) {
  // Left to right the first product would have 10^10 elements.
  const NamedType a{"a", DType::f32, {100000, 1}}, b{"b", DType::f32, {1, 100000}}, c{"c", DType::f32, {100000, 1}};
  const Graph graph = parse_expression("einsum(\"ij,jk,kl->il\", a, b, c)", {a, b, c});
  for (NodeId id = 0; id < graph.size(); ++id) EXPECT_LE(graph[id].shape.elements(), 100000);
}

TEST(Einsum, BadEquationsAreExplained) {
  const Given given{{"a", floats({1, 2}, {1, 2})}, {"b", floats({3, 1}, {1, 2, 3})}};
  const struct {
    const char* source;
    const char* says;
  } cases[] = {
      {"einsum(\"ij,jk->ik\", a)", "2 terms, but 1 operands"},
      {"einsum(\"ijk->i\", a)", "names 3 axes, but the operand has 2"},
      {"einsum(\"ij,jk\", a, b)", "axis 'j' has 2 elements in one operand and 3 in another"},
      {"einsum(\"ij->ik\", a)", "'k' of the result does not appear in any operand"},
      {"einsum(\"ij->ii\", a)", "appears twice in the result"},
      {"einsum(\"i1->i\", a)", "'1' is not a letter"},
      {"einsum(\"ii\", a)", "have 1 and 2 elements"},
  };
  for (const auto& c : cases) {
    const ExpressionError error = error_of(c.source, given);
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << c.source;
    EXPECT_NE(error.message().find(c.says), std::string::npos) << error.message();
  }
}

// Planning was once quartic in the operands: 400 took half a minute, and a request of 25 KB would have taken days.
TEST(Einsum, ManyOperandsArePlannedQuicklyAndTooManyAreRefused) {
  const auto chain = [](int operands) {
    std::string equation, list;
    for (int i = 0; i < operands; ++i) {
      equation += i == 0 ? "ab" : i % 2 == 0 ? ",ab" : ",ba";
      list += ", x";
    }
    return "einsum(\"" + equation + "->\"" + list + ")";
  };
  const Given given{{"x", floats({1, 1}, {2})}};
  EXPECT_EQ(values(chain(100), given).size(), 1u);
  const ExpressionError error = error_of(chain(129), given);
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  EXPECT_NE(error.message().find("129 operands"), std::string::npos) << error.message();
}

TEST(Einsum, ExtentsOfOneStretch) { EXPECT_EQ(values("einsum(\"ij,jk->ik\", [[1, 2]], [[10]])"), (std::vector<double>{30})); }

}  // namespace
}  // namespace tenon
