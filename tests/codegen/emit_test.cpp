#include <gtest/gtest.h>

#include <limits>

#include "codegen/c/body.h"
#include "codegen/c/loops/geometry.h"
#include "codegen/c/math.h"
#include "tenon/error.h"

namespace tenon::emit {
namespace {

TEST(Emit, LiteralsKeepTheirTypeTheirBitsAndTheirLimits) {
  EXPECT_EQ(literal(DType::f32, 0.1), "0.100000001f");
  EXPECT_EQ(literal(DType::bf16, 2), "2.0f");
  EXPECT_EQ(literal(DType::f64, 0.1), "0.10000000000000001");
  EXPECT_EQ(literal(DType::f32, std::numeric_limits<double>::infinity()), "AS_F32(0x7f800000u)");
  EXPECT_EQ(literal(DType::u8, 300), "(u8)255");
  EXPECT_EQ(literal(DType::i64, -1e30), "(i64)(-9223372036854775807l - 1)");
  EXPECT_EQ(literal(DType::boolean, 0.5), "1");
}

TEST(Emit, NeighbouringAxesAreJoinedWhereEveryOperandAllowsIt) {
  const Axes dense = joined({4, 1, 5, 6}, {{30, 7, 6, 1}, {30, 0, 6, 1}});
  EXPECT_EQ(dense.extents, (std::vector<std::int64_t>{120}));
  const Axes row = joined({4, 5, 6}, {{30, 6, 1}, {0, 0, 1}});
  EXPECT_EQ(row.extents, (std::vector<std::int64_t>{20, 6}));
  EXPECT_EQ(row.strides[1], (std::vector<std::int64_t>{0, 1}));
  const Axes transposed = joined({4, 5}, {{1, 4}, {5, 1}});
  EXPECT_EQ(transposed.extents.size(), 2u);
}

TEST(Emit, IndicesOf32BitsAreUsedOnlyWhereEveryAddressFits) {
  EXPECT_TRUE(fits_i32({{1 << 20}, {{1}}}, {0}));
  EXPECT_FALSE(fits_i32({{1 << 20}, {{4096}}}, {0}));
  EXPECT_FALSE(fits_i32({{2}, {{1}}}, {std::int64_t{1} << 31}));
  EXPECT_FALSE(fits_i32({{1 << 16, 1 << 16}, {{0, 0}}}, {0}));
}

TEST(Emit, HelpersComeOnceAndAfterWhatTheyCall) {
  const KernelTarget target;
  const std::string text = helper_text(target, {"celu_f32", "tanh_f32", "expm1_f32"});
  const auto place = [&](const char* what) { return text.find(what); };
  ASSERT_NE(place("f32 celu_f32(f32 x, f32 y)"), std::string::npos);
  EXPECT_LT(place("f32 expm1_f32("), place("f32 celu_f32("));
  EXPECT_LT(place("f32 expm1_f32("), place("f32 tanh_f32("));
  EXPECT_EQ(text.find("DEVICE f32 expm1_f32(", place("DEVICE f32 expm1_f32(") + 1), std::string::npos);
}

// The formula of src/math, written down: used once it stands in its place, used twice in a variable.
TEST(Emit, AFormulaBecomesTheTextOfAHelper) {
  EXPECT_EQ(helper_text({}, {"tanh_f32"}).substr(helper_text({}, {"expm1_f32"}).size()),
            "DEVICE f32 tanh_f32(f32 x) {\n"
            "  const f32 t0 = fabs(x);\n"
            "  const f32 t1 = expm1_f32((-2.0f * ((9.10000038f < t0) ? 9.10000038f : t0)));\n"
            "  return copysign((t1 / (t1 + 2.0f)), x);\n"
            "}\n");
}

TEST(Emit, CudaHasFunctionsOfItsOwnThatFormulasCall) {
  KernelTarget cuda;
  cuda.dialect = Dialect::cuda;
  EXPECT_NE(helper_text(cuda, {"sigmoid_f32"}).find("return expf(x);"), std::string::npos);
  EXPECT_EQ(helper_text({}, {"sigmoid_f32"}).find("expf"), std::string::npos);
  EXPECT_EQ(helper_text(cuda, {"gelu_f32"}), helper_text({}, {"gelu_f32"}));
}

TEST(Emit, IntegerHelpersAreMadeForTheirType) {
  const std::string text = helper_text({}, {"pow_i8", "from_f32_u64"});
  EXPECT_NE(text.find("i8 pow_i8(i8 x, i8 y)"), std::string::npos);
  EXPECT_NE(text.find("u64 from_f32_u64(f32 x)"), std::string::npos);
  EXPECT_NE(text.find("18446744073709551616.0f"), std::string::npos);
}

TEST(Emit, AHelperThereIsNotIsAnError) {
  try {
    helper_text({}, {"cotangent_f32"});
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::internal);
    EXPECT_NE(std::string(error.what()).find("cotangent_f32"), std::string::npos);
  }
}

TEST(Emit, ConversionsSaturateOnlyWhereTheyCanOverflow) {
  Parameters parameters(false);
  const KernelTarget target;
  Body body(target, parameters);
  EXPECT_EQ(body.cast(DType::u8, DType::i32, "x"), "(i32)((i32)x)");
  EXPECT_NE(body.cast(DType::i32, DType::u8, "x").find("255"), std::string::npos);
  EXPECT_EQ(body.cast(DType::bf16, DType::f32, "x"), "x");
  EXPECT_EQ(body.cast(DType::f64, DType::f16, "x"), "half_to_f32(f32_to_half(f64_to_f32_odd(x)))");
}

}  // namespace
}  // namespace tenon::emit
