#include "tenon/array/dtype.h"
#include "source_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace tenon {
namespace {

using enum DType;

TEST(DType, EveryNameParsesBackInAnyCase) {
  EXPECT_EQ(all_dtypes().size(), static_cast<std::size_t>(kDTypeCount));
  for (DType dtype : all_dtypes()) {
    EXPECT_EQ(parse_dtype(name(dtype)), dtype);
    std::string upper(name(dtype));
    for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    EXPECT_EQ(parse_dtype(upper), dtype) << upper;
  }
}

TEST(DType, NamesAreNumPys) {
  EXPECT_EQ(name(boolean), "bool");
  EXPECT_EQ(name(u8), "uint8");
  EXPECT_EQ(name(i64), "int64");
  EXPECT_EQ(name(f16), "float16");
  EXPECT_EQ(name(bf16), "bfloat16");
  EXPECT_EQ(name(f64), "float64");
  EXPECT_EQ(name(bfloat4_b), "bfloat4_b");
}

TEST(DType, AliasesOfOtherHousesAreUnderstood) {
  EXPECT_EQ(parse_dtype("u8"), u8);
  EXPECT_EQ(parse_dtype("i32"), i32);
  EXPECT_EQ(parse_dtype("int"), i32);
  EXPECT_EQ(parse_dtype("long"), i64);
  EXPECT_EQ(parse_dtype("bf16"), bf16);
  EXPECT_EQ(parse_dtype("half"), f16);
  EXPECT_EQ(parse_dtype("float"), f32);
  EXPECT_EQ(parse_dtype("double"), f64);
  EXPECT_EQ(parse_dtype("bfp8_b"), bfloat8_b);
}

TEST(DType, UnknownNamesAreNothing) {
  for (const char* text : {"", "f", "float33", "float32 ", "complex64"}) EXPECT_EQ(parse_dtype(text), std::nullopt) << text;
}

TEST(Promotion, IsSymmetricAndKeepsEqualTypes) {
  for (DType a : all_dtypes()) {
    EXPECT_EQ(promote(a, a), a);
    for (DType b : all_dtypes()) EXPECT_EQ(promote(a, b), promote(b, a)) << name(a) << " " << name(b);
  }
}

TEST(Promotion, BoolGivesWay) {
  for (DType dtype : all_dtypes()) EXPECT_EQ(promote(boolean, dtype), dtype);
}

TEST(Promotion, IntegersMixAsInNumPy) {
  EXPECT_EQ(promote(u8, u32), u32);
  EXPECT_EQ(promote(i8, i16), i16);
  EXPECT_EQ(promote(u8, i8), i16);
  EXPECT_EQ(promote(u8, i16), i16);
  EXPECT_EQ(promote(u16, i8), i32);
  EXPECT_EQ(promote(u16, i16), i32);
  EXPECT_EQ(promote(u32, i8), i64);
  EXPECT_EQ(promote(u32, i64), i64);
  EXPECT_EQ(promote(u64, u8), u64);
  for (DType with_sign : {i8, i16, i32, i64}) EXPECT_EQ(promote(u64, with_sign), f64);
}

TEST(Promotion, AnIntegerTakesTheFloatsType) {
  for (DType integer : {u8, u16, u32, u64, i8, i16, i32, i64})
    for (DType floating : {f16, bf16, f32, f64, bfloat8_b, bfloat4_b}) EXPECT_EQ(promote(integer, floating), floating);
}

TEST(Promotion, FloatsMeetInTheTypeThatHoldsBoth) {
  EXPECT_EQ(promote(f16, bf16), f32);
  EXPECT_EQ(promote(f16, f32), f32);
  EXPECT_EQ(promote(bf16, f64), f64);
  EXPECT_EQ(promote(f16, bfloat8_b), f32);
  EXPECT_EQ(promote(f16, bfloat4_b), f32);
  EXPECT_EQ(promote(bf16, bfloat8_b), bf16);
  EXPECT_EQ(promote(bf16, bfloat4_b), bf16);
  EXPECT_EQ(promote(bfloat8_b, bfloat4_b), bfloat8_b);
  EXPECT_EQ(promote(bfloat4_b, f32), f32);
}

TEST(Promotion, IsWhatTheDocumentationPrints) {
  const std::filesystem::path page = source_folder() / "docs/dtypes.md";
  std::ifstream in(page);
  std::vector<std::vector<std::string>> rows;  // header first; cells without decoration
  for (std::string line; std::getline(in, line);) {
    const bool is_table = line.starts_with("| | bool |") || line.starts_with("| **");
    if (!is_table) continue;
    std::erase_if(line, [](char c) { return c == ' ' || c == '*'; });
    std::vector<std::string>& row = rows.emplace_back();
    std::istringstream cells(line.substr(1));
    for (std::string cell; std::getline(cells, cell, '|');) row.push_back(cell);
  }
  ASSERT_EQ(rows.size(), 16u);
  for (std::size_t a = 1; a < 16; ++a)
    for (std::size_t b = 1; b < 16; ++b)
      EXPECT_EQ(parse_dtype(rows[a][b]), promote(*parse_dtype(rows[a][0]), *parse_dtype(rows[0][b]))) << a << " " << b;
}

TEST(DType, SmallFloatsComputeInFloat32) {
  for (DType dtype : {f16, bf16, bfloat8_b, bfloat4_b}) EXPECT_EQ(compute_dtype(dtype), f32);
  for (DType dtype : {boolean, u8, i64, f32, f64}) EXPECT_EQ(compute_dtype(dtype), dtype);
}

}  // namespace
}  // namespace tenon
