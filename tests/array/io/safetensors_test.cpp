#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "temporary_folder.h"
#include "tenon/array/io.h"
#include "tenon/error.h"

namespace tenon {
namespace {

using enum DType;

std::vector<std::byte> file_of(std::string_view header, std::string_view data) {
  const std::uint64_t size = header.size();
  std::string out(8, '\0');
  std::memcpy(out.data(), &size, 8);
  out += header;
  out += data;
  const auto* begin = reinterpret_cast<const std::byte*>(out.data());
  return {begin, begin + out.size()};
}

std::string refusal_of_bytes(const std::vector<std::byte>& file) {
  try {
    parse_safetensors(file);
  } catch (const Error& error) {
    EXPECT_NE(error.hint(), "") << error.what();
    return error.what();
  }
  return "accepted";
}
std::string refusal(std::string_view header, std::string_view data = "") { return refusal_of_bytes(file_of(header, data)); }

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(Safetensors, ReadsNamesTypesShapesAndValues) {
  const ArrayFile file =
      parse_safetensors(file_of(R"({"__metadata__":{"who":"me"},"b":{"dtype":"U8","shape":[3],"data_offsets":[4,7]},)"
                                R"("a":{"dtype":"I16","shape":[1,2],"data_offsets":[0,4]}}   )",
                                std::string_view("\x01\x00\xff\xff\x07\x08\x09", 7)));
  ASSERT_EQ(file.arrays.size(), 2u);
  EXPECT_EQ(file.arrays.at("a").shape(), Shape({1, 2}));
  EXPECT_EQ(file.arrays.at("a").to_doubles(), (std::vector<double>{1, -1}));
  EXPECT_EQ(file.arrays.at("b").to_doubles(), (std::vector<double>{7, 8, 9}));
  EXPECT_EQ(file.metadata.at("who"), "me");
}

TEST(Safetensors, RoundTripsEveryTypeAndShape) {
  ArrayFile file;
  for (DType dtype : all_dtypes())
    for (const Shape& shape : {Shape{}, Shape{0}, Shape{5}, Shape{2, 33, 40}})
      file.arrays.emplace(std::string(name(dtype)) + to_string(shape), HostArray::full(dtype, shape, 1));
  file.metadata = {{"quote \" and \n line", "value \\ \u00e9"}, {"tenon.note", "not reserved"}};
  const ArrayFile back = parse_safetensors(format_safetensors(file));
  EXPECT_EQ(back.metadata, file.metadata);
  ASSERT_EQ(back.arrays.size(), file.arrays.size());
  for (const auto& [name, array] : file.arrays) {
    const HostArray& other = back.arrays.at(name);
    EXPECT_EQ(other.dtype(), array.dtype()) << name;
    EXPECT_EQ(other.shape(), array.shape()) << name;
    ASSERT_EQ(other.bytes(), array.bytes()) << name;
    EXPECT_EQ(std::memcmp(other.data(), array.data(), array.bytes()), 0) << name;
  }
}

TEST(Safetensors, AnEmptyFileRoundTrips) {
  EXPECT_TRUE(parse_safetensors(format_safetensors({})).arrays.empty());
  EXPECT_TRUE(parse_safetensors(file_of("{}", "")).arrays.empty());
}

TEST(Safetensors, EveryArrayIsAlignedToItsElements) {
  ArrayFile file;
  file.arrays = {{"a", HostArray::zeros(u8, {3})}, {"b", HostArray::zeros(f64, {1})}, {"c", HostArray::zeros(f16, {1})}};
  const std::vector<std::byte> out = format_safetensors(file);
  std::uint64_t header = 0;
  std::memcpy(&header, out.data(), 8);
  EXPECT_EQ(header % 8, 0u);
  const std::string_view json(reinterpret_cast<const char*>(out.data()) + 8, header);
  EXPECT_TRUE(json.find(R"("b":{"dtype":"F64","shape":[1],"data_offsets":[0,8]})") != std::string_view::npos) << json;
  EXPECT_TRUE(json.find(R"("c":{"dtype":"F16","shape":[1],"data_offsets":[8,10]})") != std::string_view::npos) << json;
}

TEST(Safetensors, BlockFormatsAreTileBytesWithMetadata) {
  ArrayFile file;
  file.arrays.emplace("w", HostArray::full(bfloat8_b, {2, 3}, 1.5));
  const std::vector<std::byte> out = format_safetensors(file);
  const std::string_view text(reinterpret_cast<const char*>(out.data()), out.size());
  EXPECT_NE(text.find(R"("w":{"dtype":"U8","shape":[1088],"data_offsets":[0,1088]})"), std::string_view::npos);
  EXPECT_NE(text.find(R"("tenon.w.format":"bfloat8_b")"), std::string_view::npos);
  EXPECT_NE(text.find(R"("tenon.w.logical_shape":"[2, 3]")"), std::string_view::npos);
  const ArrayFile back = parse_safetensors(out);
  EXPECT_TRUE(back.metadata.empty());
  EXPECT_EQ(back.arrays.at("w").dtype(), bfloat8_b);
  EXPECT_EQ(back.arrays.at("w").shape(), Shape({2, 3}));
}

// Values of the OCP specification: 1, the smallest subnormal, the largest, -1, NaN (and infinity in e5m2).
TEST(Safetensors, EightBitFloatsAreReadAsBfloat16) {
  const ArrayFile file = parse_safetensors(file_of(R"({"a":{"dtype":"F8_E4M3","shape":[5],"data_offsets":[0,5]},)"
                                                   R"("b":{"dtype":"F8_E5M2","shape":[2,3],"data_offsets":[5,11]}})",
                                                   std::string_view("\x38\x01\x7e\xb8\x7f\x3c\x01\x7b\xbc\x7c\x7f", 11)));
  const HostArray a = file.arrays.at("a").cast(f32), b = file.arrays.at("b").cast(f32);
  EXPECT_EQ(file.arrays.at("a").dtype(), bf16);
  EXPECT_EQ(b.shape(), Shape({2, 3}));
  const auto at = [](const HostArray& array, int i) { return reinterpret_cast<const float*>(array.data())[i]; };
  EXPECT_EQ(at(a, 0), 1.0f);
  EXPECT_EQ(at(a, 1), 0x1p-9f);
  EXPECT_EQ(at(a, 2), 448.0f);
  EXPECT_EQ(at(a, 3), -1.0f);
  EXPECT_TRUE(std::isnan(at(a, 4)));
  EXPECT_EQ(at(b, 0), 1.0f);
  EXPECT_EQ(at(b, 1), 0x1p-16f);
  EXPECT_EQ(at(b, 2), 57344.0f);
  EXPECT_EQ(at(b, 3), -1.0f);
  EXPECT_TRUE(std::isinf(at(b, 4)));
  EXPECT_TRUE(std::isnan(at(b, 5)));
}

TEST(Safetensors, FilesThatAreNotTheFormatAreRefused) {
  EXPECT_TRUE(has(refusal_of_bytes({}), "shorter than 8 bytes"));
  std::vector<std::byte> huge = file_of("{}", "");
  huge[6] = std::byte{1};
  EXPECT_TRUE(has(refusal_of_bytes(huge), "the header length is"));
  std::vector<std::byte> cut = file_of("{}", "");
  cut[0] = std::byte{100};
  EXPECT_TRUE(has(refusal_of_bytes(cut), "ends inside its header"));
  EXPECT_TRUE(has(refusal(""), "does not start with '{'"));
  EXPECT_TRUE(has(refusal(" {}"), "does not start with '{'"));
  EXPECT_TRUE(has(refusal("{"), "not valid JSON"));
  EXPECT_TRUE(has(refusal("{}x"), "extra text after its JSON") || has(refusal("{}x"), "not valid JSON"));
  EXPECT_TRUE(has(refusal("{\"\xff\":{}}"), "not valid JSON"));
}

std::string tensor(std::string_view fields) { return "{\"t\":{" + std::string(fields) + "}}"; }

TEST(Safetensors, MalformedTensorsAreRefusedByName) {
  EXPECT_TRUE(has(refusal(tensor(R"("shape":[],"data_offsets":[0,1])"), "a"), "tensor 't' has no dtype"));
  EXPECT_TRUE(has(refusal(tensor(R"("dtype":"U8","data_offsets":[0,1])"), "a"), "has no shape"));
  EXPECT_TRUE(has(refusal(tensor(R"("dtype":"U8","shape":[])"), "a"), "has no data_offsets"));
  EXPECT_TRUE(has(refusal(tensor(R"("dtype":"U8","dtype":"U8")")), "'dtype' twice"));
  EXPECT_TRUE(has(refusal(tensor(R"("color":"red")")), "unknown key 'color'"));
  EXPECT_TRUE(
      has(refusal(tensor(R"("dtype":"F8_E8M0","shape":[1],"data_offsets":[0,1])"), "a"), "'F8_E8M0', which is not supported"));
  EXPECT_TRUE(has(refusal(tensor(R"("dtype":8)")), "a number in an unexpected place"));
  EXPECT_TRUE(has(refusal(tensor(R"("shape":[-1])")), "negative"));
  EXPECT_TRUE(has(refusal(tensor(R"("shape":[1.5])")), "not a 64-bit integer"));
  EXPECT_TRUE(has(refusal(tensor(R"("shape":[1e3])")), "not a 64-bit integer"));
  EXPECT_TRUE(has(refusal(tensor(R"("shape":[[1]])")), "a nested list"));
  EXPECT_TRUE(has(refusal(tensor(R"("shape":["1"])")), "a string in an unexpected place"));
  EXPECT_TRUE(has(refusal(tensor(R"("shape":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1])")), "more than 16 axes"));
  EXPECT_TRUE(has(refusal(tensor(R"("shape":[18446744073709551615])")), "63 bits"));
  EXPECT_TRUE(has(refusal(tensor(R"("data_offsets":[0])")), "two data_offsets"));
  EXPECT_TRUE(has(refusal(tensor(R"("data_offsets":[0,1,2])")), "two data_offsets"));
  EXPECT_TRUE(has(refusal(R"({"t":null})"), "null in an unexpected place"));
  EXPECT_TRUE(has(refusal(R"({"t":[]})"), "a list in an unexpected place"));
}

TEST(Safetensors, SizesThatOverflowOrDoNotMatchAreRefused) {
  EXPECT_TRUE(has(refusal(tensor(R"("dtype":"F64","shape":[4294967296,4294967296],"data_offsets":[0,0])")), "2^40"));
  EXPECT_TRUE(
      has(refusal(tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])"), "abcd"), "needs 8 bytes, but its offsets span 4"));
  EXPECT_TRUE(has(refusal(tensor(R"("dtype":"U8","shape":[4],"data_offsets":[4,0])"), "abcd"), "is less than its start offset"));
  EXPECT_TRUE(
      has(refusal(tensor(R"("dtype":"U8","shape":[4],"data_offsets":[0,4])"), "abc"), "need 4 bytes, but the file has 3"));
  EXPECT_TRUE(
      has(refusal(tensor(R"("dtype":"U8","shape":[2],"data_offsets":[0,2])"), "abc"), "need 2 bytes, but the file has 3"));
  EXPECT_TRUE(has(refusal("{}", "abc"), "need 0 bytes, but the file has 3"));
}

std::string two(std::string_view a, std::string_view b, std::string_view second = "b") {
  return "{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":" + std::string(a) + "},\"" + std::string(second) +
         "\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":" + std::string(b) + "}}";
}

TEST(Safetensors, HolesOverlapsAndDuplicatesAreRefused) {
  EXPECT_EQ(refusal(two("[0,2]", "[2,4]"), "abcd"), "accepted");
  EXPECT_TRUE(has(refusal(two("[0,2]", "[3,5]"), "abcde"), "bytes 2 to 3 of the data belong to no tensor"));
  EXPECT_TRUE(has(refusal(two("[0,2]", "[1,3]"), "abc"), "overlaps"));
  EXPECT_TRUE(has(refusal(two("[0,2]", "[0,2]"), "ab"), "overlaps"));
  EXPECT_TRUE(has(refusal(two("[1,3]", "[3,5]"), "abcde"), "bytes 0 to 1"));
  EXPECT_TRUE(has(refusal(two("[0,2]", "[2,4]", "a"), "abcd"), "tensor 'a' appears twice"));
}

TEST(Safetensors, MetadataIsStringsOnlyAndOnce) {
  EXPECT_TRUE(has(refusal(R"({"__metadata__":{"n":1}})"), "metadata 'n' is a number, not a string"));
  EXPECT_TRUE(has(refusal(R"({"__metadata__":{"n":null}})"), "metadata 'n' is null, not a string"));
  EXPECT_TRUE(has(refusal(R"({"__metadata__":{"n":{}}})"), "not a string"));
  EXPECT_TRUE(has(refusal(R"({"__metadata__":{"n":"1","n":"2"}})"), "metadata 'n' appears twice"));
  EXPECT_TRUE(has(refusal(R"({"__metadata__":{},"__metadata__":{}})"), "__metadata__ appears twice"));
  EXPECT_TRUE(has(refusal(R"({"__metadata__":"x"})"), "a string in an unexpected place"));
}

TEST(Safetensors, BlockFormatMetadataMustFitItsTensor) {
  const auto with = [](std::string_view metadata, std::string_view dtype = "U8") {
    return refusal("{\"__metadata__\":{" + std::string(metadata) + "},\"w\":{\"dtype\":\"" + std::string(dtype) +
                       "\",\"shape\":[1088],\"data_offsets\":[0,1088]}}",
                   std::string(1088, '\0'));
  };
  EXPECT_EQ(with(R"("tenon.w.format":"bfloat8_b","tenon.w.logical_shape":"[32, 32]")"), "accepted");
  EXPECT_TRUE(has(with(R"("tenon.w.format":"bfloat8_b")"), "needs both"));
  EXPECT_TRUE(has(with(R"("tenon.w.format":"float32","tenon.w.logical_shape":"[32, 32]")"), "is not a block format"));
  EXPECT_TRUE(has(with(R"("tenon.w.format":"bfloat8_b","tenon.w.logical_shape":"[33, 32]")"), "must have 2176 bytes"));
  for (const char* shape : {"", "[", "[]x", "[32,32]", "[32, ]", "32", "[-1]",
                            "[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]", "[4294967296, 4294967296]"})
    EXPECT_NE(with(std::string(R"("tenon.w.format":"bfloat8_b","tenon.w.logical_shape":")") + shape + "\""), "accepted") << shape;
  EXPECT_TRUE(has(with(R"("tenon.v.format":"bfloat8_b")"), "belongs to no tensor"));
}

TEST(Safetensors, WhatCouldNotBeReadIsNotWritten) {
  const auto refused = [](const ArrayFile& file) {
    try {
      format_safetensors(file);
    } catch (const Error& error) {
      return error.code() == ErrorCode::invalid_argument;
    }
    return false;
  };
  EXPECT_TRUE(refused({.arrays = {{"__metadata__", HostArray()}}, .metadata = {}}));
  EXPECT_TRUE(refused({.arrays = {{"\xff", HostArray()}}, .metadata = {}}));
  EXPECT_TRUE(refused({.arrays = {}, .metadata = {{"tenon.w.format", "bfloat8_b"}}}));
}

TEST(Safetensors, SavesAndLoadsFiles) {
  const test::TemporaryFolder folder;
  const HostArray a = HostArray::from<float>({2}, {1, 2});
  save_safetensors(folder / "x.safetensors", {.arrays = {{"a", a}, {"b", a.cast(bf16)}}, .metadata = {{"k", "v"}}});
  const ArrayFile back = load_safetensors(folder / "x.safetensors");
  EXPECT_EQ(back.arrays.at("b").dtype(), bf16);
  EXPECT_EQ(back.arrays.at("a").to_doubles(), a.to_doubles());
  EXPECT_EQ(back.metadata.at("k"), "v");
}

}  // namespace
}  // namespace tenon
