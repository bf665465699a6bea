// CSV, .npz and pasted text: what is read, what is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "array/io/number_text.h"
#include "array/io/numpy/npz.h"
#include "temporary_folder.h"
#include "tenon/array/io.h"
#include "tenon/error.h"

namespace tenon {
namespace {

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << error.what();
    return error.what();
  }
  return "nothing was refused";
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Csv, ReadsEverySeparatorAndSkipsNamesAndRemarks) {
  for (const char* text :
       {"1,2\n3,4\n", "1;2\n3;4", "1\t2\r\n3\t4\r\n", " 1  2\n\n3 4", "a,b\n1,2\n3,4\n", "# a remark\n1,2\n3,4"}) {
    const HostArray array = parse_csv(text);
    EXPECT_EQ(array.shape(), (Shape{2, 2})) << text;
    EXPECT_EQ(array.dtype(), DType::i64) << text;
    EXPECT_EQ(array.to_doubles(), (std::vector<double>{1, 2, 3, 4})) << text;
  }
  EXPECT_EQ(parse_csv("1.5\n2\n").shape(), (Shape{2}));
  EXPECT_EQ(parse_csv("1.5\n2\n").dtype(), DType::f32);
  EXPECT_EQ(parse_csv("1,2,3").shape(), (Shape{3}));
  EXPECT_EQ(parse_csv("9007199254740993").view<std::int64_t>()[0], 9007199254740993) << "integers are exact";
  EXPECT_TRUE(std::isnan(parse_csv("nan,inf").to_doubles()[0]));
}

TEST(Csv, NamesTheLineThatIsWrong) {
  EXPECT_TRUE(contains(refusal([] { parse_csv("1,2\n3\n"); }), "line 2 has 1 values, but the lines before it have 2"));
  EXPECT_TRUE(contains(refusal([] { parse_csv("1,2\n3,x\n"); }), "line 2: 'x' is not a number"));
  EXPECT_TRUE(contains(refusal([] { parse_csv("\n\n"); }), "no numbers"));
}

TEST(Csv, WritesWhatItReads) {
  const HostArray matrix = HostArray::from<float>({2, 2}, {1.5F, -2, 3e-8F, 4});
  EXPECT_EQ(format_csv(matrix), "1.5,-2\n3e-08,4\n");
  EXPECT_EQ(parse_csv(format_csv(matrix)).to_doubles(), matrix.to_doubles());
  EXPECT_EQ(format_csv(HostArray::from<std::uint64_t>({1}, {18446744073709551615U})), "18446744073709551615\n");
  EXPECT_TRUE(contains(refusal([] { format_csv(HostArray::zeros(DType::f32, {1, 2, 3})); }), "vectors and matrices"));
}

TEST(Npz, ArchivesAreReadAgain) {
  const ArrayFile file{.arrays = {{"a", HostArray::from<float>({2}, {1, 2})}, {"b", HostArray::from<std::int64_t>({1}, {7})}}};
  const std::vector<std::byte> bytes = format_npz(file);
  const ArrayFile again = parse_npz(bytes);
  EXPECT_EQ(again.arrays.at("a").to_doubles(), (std::vector<double>{1, 2}));
  EXPECT_EQ(again.arrays.at("b").view<std::int64_t>()[0], 7);
  EXPECT_EQ(parse_arrays(bytes).arrays.size(), 2u);
  EXPECT_GT(npz_contents(bytes).bytes, 128u);
  EXPECT_EQ(npz_contents(bytes).files, 2u);
}

// What numpy.savez_compressed(f, x=numpy.arange(4, dtype="<i4")) wrote.
TEST(Npz, CompressedArchivesOfNumPyAreRead) {
  constexpr unsigned char kArchive[] = {
#include "array/io/compressed_npz.inc"
  };
  try {
    const ArrayFile file = parse_npz(std::as_bytes(std::span(kArchive)));
    EXPECT_EQ(file.arrays.at("x").to_doubles(), (std::vector<double>{0, 1, 2, 3}));
  } catch (const Error& error) {
    if (!contains(error.what(), "has no zlib")) throw;
    GTEST_SKIP() << error.what();
  }
}

TEST(Npz, DamageIsNoticed) {
  std::vector<std::byte> bytes = format_npz({.arrays = {{"a", HostArray::from<float>({2}, {1, 2})}}});
  std::vector<std::byte> changed = bytes;
  changed[140] ^= std::byte{1};
  EXPECT_TRUE(contains(refusal([&] { parse_npz(changed); }), "checksum"));
  for (std::size_t cut = 0; cut < bytes.size(); cut += 7) refusal([&] { parse_npz(std::span(bytes).first(cut)); });
}

TEST(AnyFile, IsRecognisedByItsContent) {
  const test::TemporaryFolder folder;
  const ArrayFile one{.arrays = {{"x", HostArray::from<float>({2, 2}, {1.5F, 2, 3, 4})}}};
  for (const char* file : {"x.npy", "x.npz", "x.safetensors", "x.csv"}) {
    save_arrays(folder / file, one);
    EXPECT_EQ(load_arrays(folder / file).arrays.begin()->second.to_doubles(), (std::vector<double>{1.5, 2, 3, 4})) << file;
  }
  EXPECT_TRUE(contains(refusal([&] { save_arrays(folder / "x.bin", one); }), "cannot tell the file format"));
  EXPECT_TRUE(contains(refusal([] { parse_arrays(std::as_bytes(std::span("\x01\x02\x03"))); }), "is no .npy"));
}

TEST(Pasted, TextOfOtherProgramsIsData) {
  const std::pair<const char*, Shape> forms[] = {{"tensor([[1., 2.],\n        [3., 4.]])", {2, 2}},
                                                 {"array([1, 2, 3])", {3}},
                                                 {"np.array([[1, 2]], dtype=np.int32)", {1, 2}},
                                                 {"torch.tensor([[1.5, 2]], device='cuda:0', dtype=torch.bfloat16)", {1, 2}},
                                                 {"[[1. 2.]\n [3. 4.]]", {2, 2}},
                                                 {"1 2; 3 4", {2, 2}},
                                                 {"1;2;3", {3}},
                                                 {"1;2;3\n4;5;6", {2, 3}},
                                                 {"tensor(3.5)", {}}};
  for (const auto& [text, shape] : forms) {
    const std::optional<HostArray> array = parse_pasted(text);
    ASSERT_TRUE(array) << text;
    EXPECT_EQ(array->shape(), shape) << text;
  }
  EXPECT_EQ(parse_pasted("array([1, 2])")->dtype(), DType::i64);
  EXPECT_EQ(parse_pasted("np.array([1], dtype=np.int32)")->dtype(), DType::i32);
  EXPECT_EQ(parse_pasted("tensor([1.], dtype=torch.bfloat16)")->dtype(), DType::bf16);
  EXPECT_EQ(parse_pasted("tensor([True, False])")->dtype(), DType::boolean);
  EXPECT_TRUE(std::isinf(parse_pasted("tensor([inf, nan])")->to_doubles()[0]));
}

TEST(Pasted, ExpressionsStayExpressions) {
  for (const char* text : {"[1, 2]", "rand([4], seed=1)", "a = 1; a + 2", "3", "[[1, 2], [3, 4]] * 2", "sum([1, 2])", ""})
    EXPECT_FALSE(parse_pasted(text)) << text;
}

TEST(Pasted, WhatIsLeftOutIsRefused) {
  EXPECT_TRUE(contains(refusal([] { parse_pasted("tensor([1., 2., ..., 9.])"); }), "leaves elements out"));
  EXPECT_TRUE(contains(refusal([] { parse_pasted("array([[1, 2], [3]])"); }), "different lengths"));
  EXPECT_TRUE(contains(refusal([] { parse_pasted("1 2; 3"); }), "different lengths"));
}

}  // namespace
}  // namespace tenon
