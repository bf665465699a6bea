// Products: types, shapes, and messages. Values: composed_golden_test.cpp.
#include <gtest/gtest.h>

#include "expression/expression_testing.h"

namespace tenon {
namespace {

using namespace tenon::testing;

TEST(LinearAlgebra, ProductsPromoteTheirOperands) {
  EXPECT_EQ(run("matmul(cast([[1]], bfloat16), cast([[1]], float32))").dtype(), DType::f32);
  EXPECT_EQ(run("matmul(cast([[1]], int8), cast([[1]], int8))").dtype(), DType::i8);
  EXPECT_EQ(run("linear(cast([[1]], bfloat16), cast([[1]], bfloat16))").dtype(), DType::bf16);
}

TEST(LinearAlgebra, MismatchingShapesAreNamed) {
  const ExpressionError error = error_of("matmul([[1, 2]], [[1, 2]])");
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  EXPECT_NE(error.message().find("[1, 2]"), std::string::npos) << error.message();
  EXPECT_FALSE(error.hint().empty());
  EXPECT_EQ(error_of("linear([[1.0, 2.0]], [[1.0], [2.0]])").code(), ErrorCode::invalid_argument);
  EXPECT_EQ(error_of("dot([[1]], [1])").code(), ErrorCode::invalid_argument);
  EXPECT_EQ(error_of("matmul(2, [1])").code(), ErrorCode::invalid_argument);
  EXPECT_EQ(error_of("bmm([[1]], [[1]])").code(), ErrorCode::invalid_argument);
  EXPECT_EQ(error_of("cross([1, 2], [1, 2])").code(), ErrorCode::invalid_argument);
  EXPECT_EQ(error_of("matrix_power([[1, 2]], 2)").code(), ErrorCode::invalid_argument);
}

TEST(LinearAlgebra, IntegersStayIntegersUnderWholeFactors) {
  EXPECT_EQ(run("addmm([[1]], [[2]], [[3]], beta=2, alpha=3)").dtype(), DType::i64);
  EXPECT_EQ(value("addmm([[1]], [[2]], [[3]], beta=2, alpha=3)"), 20);
  EXPECT_EQ(value("addmm([[1]], [[2]], [[3]], beta=0.5)"), 6.5);
}

TEST(LinearAlgebra, AnEmptySumIsZero) {
  EXPECT_EQ(values("matmul(zeros([2, 0]), zeros([0, 1]))"), (std::vector<double>{0, 0}));
  EXPECT_EQ(values("inner(zeros([2, 0]), zeros([1, 0]))"), (std::vector<double>{0, 0}));
  EXPECT_EQ(value("trace([[1, 2], [3, 4]], offset=5)"), 0);
}

TEST(Distance, RowsFarFromTheOriginAreStillApart) {
  EXPECT_EQ(value("cdist(cast([[1e8, 1]], float64), cast([[1e8, 2]], float64))"), 1);
  EXPECT_FLOAT_EQ(static_cast<float>(value("cdist([[3e30]], [[1e30]])")), 2e30f);  // the square would not fit
}

TEST(Distance, ZeroVectorsHaveNoDirection) { EXPECT_EQ(value("cosine_similarity([0.0, 0.0], [1.0, 0.0])"), 0); }

}  // namespace
}  // namespace tenon
