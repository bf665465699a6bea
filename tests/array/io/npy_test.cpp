#include <gtest/gtest.h>

#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "temporary_folder.h"
#include "tenon/array/io.h"
#include "tenon/error.h"

namespace tenon {
namespace {

using enum DType;

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

// A file of the given version whose header is |dictionary|, unpadded, followed by |data|.
std::vector<std::byte> npy(std::string_view dictionary, std::string_view data, int version = 1) {
  std::string out = "\x93NUMPY";
  out += static_cast<char>(version);
  out += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) out += static_cast<char>(dictionary.size() >> (8 * i) & 0xff);
  out += dictionary;
  out += data;
  return bytes_of(out);
}

std::string refusal(const std::vector<std::byte>& file) {
  try {
    parse_npy(file);
  } catch (const Error& error) {
    EXPECT_TRUE(error.code() == ErrorCode::invalid_argument || error.code() == ErrorCode::resource_exhausted)
        << to_string(error.code());
    return error.what();
  }
  return "accepted";
}

std::string refused_header(std::string_view dictionary, std::string_view data = "") { return refusal(npy(dictionary, data)); }

class NpyFile : public testing::Test {
 protected:
  test::TemporaryFolder folder_;
};

TEST(Npy, RoundTripsEveryElementType) {
  for (DType dtype : all_dtypes()) {
    if (is_block(dtype)) continue;
    for (const Shape& shape : {Shape{}, Shape{0}, Shape{5}, Shape{2, 3}, Shape{1, 2, 3, 4}}) {
      HostArray array = HostArray::full(dtype, shape, 1);
      const HostArray back = parse_npy(format_npy(array));
      EXPECT_EQ(back.dtype(), dtype);
      EXPECT_EQ(back.shape(), shape);
      EXPECT_EQ(back.to_doubles(), array.to_doubles());
    }
  }
}

TEST(Npy, WritesWhatNumPyWrites) {
  const std::vector<std::byte> out = format_npy(HostArray::from<float>({2, 2}, {1, 2, 3, 4}));
  ASSERT_EQ(out.size(), 128u + 16u);
  const std::string_view text(reinterpret_cast<const char*>(out.data()), 128);
  EXPECT_EQ(text.substr(0, 10), std::string_view("\x93NUMPY\x01\x00\x76\x00", 10));
  EXPECT_TRUE(text.substr(10).starts_with("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), } ")) << text.substr(10);
  EXPECT_EQ(text.back(), '\n');
}

TEST(Npy, DataBeginsAtAMultipleOf64) {
  for (int rank = 0; rank <= 8; ++rank) {
    std::vector<std::int64_t> dims(static_cast<std::size_t>(rank), 1);
    EXPECT_EQ((format_npy(HostArray::zeros(u8, Shape(std::span<const std::int64_t>(dims)))).size() - 1) % 64, 0u) << rank;
  }
}

TEST(Npy, ReadsAllThreeVersions) {
  for (int version : {1, 2, 3}) {
    const HostArray array = parse_npy(npy("{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }", "\x01\x02\x03", version));
    EXPECT_EQ(array.to_doubles(), (std::vector<double>{1, 2, 3})) << version;
  }
}

TEST(Npy, TurnsBigEndianRound) {
  EXPECT_EQ(parse_npy(npy("{'descr': '>u2', 'fortran_order': False, 'shape': (2,)}", std::string_view("\x01\x02\x00\x05", 4)))
                .to_doubles(),
            (std::vector<double>{258, 5}));
  EXPECT_EQ(
      parse_npy(npy("{'descr': '>f4', 'fortran_order': False, 'shape': ()}", std::string_view("\x3f\x80\x00\x00", 4))).value(0),
      1);
  EXPECT_EQ(parse_npy(npy("{'descr': '>i8', 'fortran_order': False, 'shape': ()}", "\xff\xff\xff\xff\xff\xff\xff\xfe")).value(0),
            -2);
}

TEST(Npy, TurnsFortranOrderRound) {
  const HostArray array = parse_npy(npy("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3)}", "\x01\x02\x03\x04\x05\x06"));
  EXPECT_EQ(array.to_doubles(), (std::vector<double>{1, 3, 5, 2, 4, 6}));
  std::string data(2 * 3 * 50 * 40, '\0');
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(i % 251);
  const HostArray big = parse_npy(npy("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3, 50, 40)}", data));
  std::int64_t index = 0;
  for (int a = 0; a < 2; ++a)
    for (int b = 0; b < 3; ++b)
      for (int c = 0; c < 50; ++c)
        for (int d = 0; d < 40; ++d) ASSERT_EQ(big.value(index++), (a + 2 * (b + 3 * (c + 50 * d))) % 251);
}

TEST(Npy, AcceptsAnyOrderOfKeysAndEitherQuote) {
  EXPECT_EQ(parse_npy(npy("{\"shape\":(1,),\"fortran_order\":False,\"descr\":\"|i1\"}  \n", "\xff")).value(0), -1);
  EXPECT_EQ(parse_npy(npy("{'descr': '|i1', 'fortran_order': False, 'shape': (1L, 1L)}", "\x07")).shape(), Shape({1, 1}));
}

TEST(Npy, Bfloat16IsTwoRawBytes) {
  const HostArray array = HostArray::from<float>({2}, {1.5f, -3}).cast(bf16);
  const std::vector<std::byte> out = format_npy(array);
  EXPECT_NE(std::string_view(reinterpret_cast<const char*>(out.data()), 64).find("'descr': '<V2'"), std::string_view::npos);
  EXPECT_EQ(parse_npy(out).dtype(), bf16);
  EXPECT_EQ(parse_npy(npy("{'descr': '|V2', 'fortran_order': False, 'shape': (1,)}", std::string_view("\x80\x3f", 2))).value(0),
            1);
}

TEST(Npy, BoolsAreZeroOrOneWhateverTheFileHolds) {
  const HostArray array =
      parse_npy(npy("{'descr': '|b1', 'fortran_order': False, 'shape': (3,)}", std::string_view("\x00\x07\xff", 3)));
  EXPECT_EQ(array.view<std::uint8_t>()[1], 1);
  EXPECT_EQ(array.view<std::uint8_t>()[2], 1);
}

TEST(Npy, BlockFormatsAreRefusedWithAWayOut) {
  try {
    format_npy(HostArray::zeros(bfloat8_b, {4}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unimplemented);
    EXPECT_NE(error.hint().find("safetensors"), std::string::npos);
  }
}

TEST(Npy, WhatIsNotTheFormatIsRefusedWithAReason) {
  EXPECT_EQ(refusal({}), "npy data: this is not a .npy file");
  EXPECT_EQ(refusal(bytes_of("PK\x03\x04 a zip archive")), "npy data: this is not a .npy file");
  EXPECT_NE(refusal(npy("{}", "", 4)).find("version 4.0"), std::string::npos);
  std::vector<std::byte> cut = npy("{'descr': '|u1', 'fortran_order': False, 'shape': (3,)}", "abc");
  cut.resize(30);
  EXPECT_NE(refusal(cut).find("ends inside its header"), std::string::npos);
}

TEST(Npy, AHeaderThatClaimsTooMuchIsRefusedUnread) {
  std::vector<std::byte> file = npy("{}", "", 2);
  file[11] = std::byte{0x7f};
  EXPECT_NE(refusal(file).find("the header length is"), std::string::npos);
}

TEST(Npy, BadDictionariesAreRefusedWithAReason) {
  EXPECT_NE(refused_header("").find("expected '{' at byte 0"), std::string::npos);
  EXPECT_NE(refused_header("{'descr': '|u1', 'shape': (1,)}", "a").find("no 'fortran_order'"), std::string::npos);
  EXPECT_NE(refused_header("{'descr': '|u1', 'descr': '|u1', 'shape': (1,)}", "a").find("'descr' twice"), std::string::npos);
  EXPECT_NE(refused_header("{'what': 1}").find("unknown key 'what'"), std::string::npos);
  EXPECT_NE(refused_header("{'descr': '|u1', 'fortran_order': 1, 'shape': (1,)}", "a").find("neither True nor False"),
            std::string::npos);
  EXPECT_NE(refused_header("{'descr': '|u1', 'fortran_order': False, 'shape': (1,)} x", "a").find("extra text after"),
            std::string::npos);
  EXPECT_NE(refused_header("{'descr': '|u1").find("never closed"), std::string::npos);
  EXPECT_NE(refused_header("{'de\\x73cr': '|u1'}").find("backslash"), std::string::npos);
}

TEST(Npy, BadShapesAreRefusedWithAReason) {
  const auto with_shape = [](std::string_view shape) {
    return refused_header("{'descr': '|u1', 'fortran_order': False, 'shape': " + std::string(shape) + "}", "abc");
  };
  EXPECT_NE(with_shape("(3)").find("not a tuple"), std::string::npos);
  EXPECT_NE(with_shape("(-3,)").find("non-negative integer"), std::string::npos);
  EXPECT_NE(with_shape("(3 1)").find("comma"), std::string::npos);
  EXPECT_NE(with_shape("(,)").find("non-negative integer"), std::string::npos);
  EXPECT_NE(with_shape("(99999999999999999999,)").find("64 bits"), std::string::npos);
  EXPECT_NE(with_shape("(4294967296, 4294967296)").find("2^40"), std::string::npos);
  EXPECT_NE(with_shape("(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,3)").find("more than 16 axes"), std::string::npos);
  EXPECT_NE(with_shape("(4,)").find("needs 4 bytes, but 3 follow"), std::string::npos);
  EXPECT_NE(with_shape("(2,)").find("needs 2 bytes, but 3 follow"), std::string::npos);
  EXPECT_EQ(with_shape("(3,)"), "accepted");
}

TEST(Npy, UnknownElementTypesAreRefusedByName) {
  const auto with_type = [](std::string_view descr) {
    return refused_header("{'descr': " + std::string(descr) + ", 'fortran_order': False, 'shape': (0,)}");
  };
  EXPECT_NE(with_type("'<c8'").find("'<c8' is not supported"), std::string::npos);
  EXPECT_NE(with_type("'|O'").find("Python objects"), std::string::npos);
  EXPECT_NE(with_type("[('a', '<f4')]").find("several fields"), std::string::npos);
  EXPECT_NE(with_type("'|f4'").find("byte order"), std::string::npos);
  EXPECT_NE(with_type("'f4'").find("not supported"), std::string::npos);
  EXPECT_NE(with_type("''").find("not supported"), std::string::npos);
}

TEST_F(NpyFile, SavesAndLoads) {
  const HostArray array = HostArray::from<double>({2, 2}, {1, 2, 3, 4});
  save_npy(folder_ / "a.npy", array);
  const HostArray back = load_npy(folder_ / "a.npy");
  EXPECT_EQ(back.dtype(), f64);
  EXPECT_EQ(back.to_doubles(), array.to_doubles());
}

TEST_F(NpyFile, NamesTheFileInItsRefusals) {
  std::ofstream(folder_ / "bad.npy") << "not an array";
  try {
    load_npy(folder_ / "bad.npy");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("bad.npy: this is not"), std::string::npos) << error.what();
  }
}

TEST_F(NpyFile, MissingFilesFoldersAndForbiddenPlacesAreToldApart) {
  const auto code = [](auto action) {
    try {
      action();
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::ok;
  };
  EXPECT_EQ(code([&] { load_npy(folder_ / "none.npy"); }), ErrorCode::not_found);
  EXPECT_EQ(code([&] { load_npy(folder_.path()); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code([&] { save_npy(folder_ / "none/a.npy", HostArray()); }), ErrorCode::not_found);
  EXPECT_EQ(code([&] { save_npy(folder_.path(), HostArray()); }), ErrorCode::invalid_argument);
}

TEST_F(NpyFile, ReplacesAFileAndLeavesNothingElseBehind) {
  save_npy(folder_ / "a.npy", HostArray::zeros(f32, {100}));
  save_npy(folder_ / "a.npy", HostArray::full(i32, {2}, 7));
  EXPECT_EQ(load_npy(folder_ / "a.npy").to_doubles(), (std::vector<double>{7, 7}));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 1);
}

TEST_F(NpyFile, AReaderNeverSeesHalfAFile) {
  const std::filesystem::path file = folder_ / "a.npy";
  save_npy(file, HostArray::full(i32, {50000}, 0));
  std::thread writer([&] {
    for (int i = 1; i <= 50; ++i) save_npy(file, HostArray::full(i32, {50000 + i}, i));
  });
  for (int i = 0; i < 50; ++i) {
    const HostArray seen = load_npy(file);
    EXPECT_EQ(seen.value(0), seen.value(seen.elements() - 1));
  }
  writer.join();
}

TEST_F(NpyFile, WritesThroughALink) {
  save_npy(folder_ / "real.npy", HostArray::zeros(u8, {1}));
  std::filesystem::create_symlink(folder_ / "real.npy", folder_ / "link.npy");
  save_npy(folder_ / "link.npy", HostArray::full(u8, {1}, 3));
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ / "link.npy"));
  EXPECT_EQ(load_npy(folder_ / "real.npy").value(0), 3);
}

TEST_F(NpyFile, ReadsAndWritesPipes) {
  const std::filesystem::path pipe = folder_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::thread writer([&] { save_npy(pipe, HostArray::full(f32, {100000}, 2.5)); });
  const HostArray back = load_npy(pipe);
  writer.join();
  EXPECT_EQ(back.elements(), 100000);
  EXPECT_EQ(back.value(99999), 2.5);
}

}  // namespace
}  // namespace tenon
